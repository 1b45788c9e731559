// Tests `admin quota`: setting limits, keeping the others, listing.
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AdminQuotaTest : public ClientTest {
 protected:
  AdminQuotaTest() {
    // Ada is on the first page, grace on the second.
    answers_.users = [this](const v1::ListUsersRequest& request, v1::ListUsersResponse* response) {
      const bool first = request.page_token().empty();
      v1::User* user = response->add_users();
      user->set_name(first ? "users/ada" : "users/grace");
      if (first) {
        response->set_next_page_token("2");
      } else {
        user->mutable_quota()->set_lanes(4);
        user->mutable_quota()->set_queued_runs(0);
        user->mutable_quota()->set_stored_bytes(20'000'000'000);
        user->mutable_usage()->set_lanes(3);
        user->mutable_usage()->set_queued_runs(7);
        user->mutable_usage()->set_stored_bytes(1'500);
        user->mutable_usage()->mutable_device_time()->set_seconds(90);
      }
      return users_fail_ ? result_ : absl::OkStatus();
    };
    answers_.quota = [this](const v1::SetQuotaRequest& request, v1::User* user) {
      asked_.push_back(request.ShortDebugString());
      user->set_name("users/" + request.name());
      *user->mutable_quota() = request.quota();
      return result_;
    };
    StartServer();
  }

  Outcome Set(const std::vector<std::string>& more) {
    return Run(With({"admin", "quota", "set"}, more));
  }

  bool users_fail_ = false;  // with `result_`
};

TEST_F(AdminQuotaTest, SetsAllLimits) {
  const Outcome set =
      Set({"ada", "--lanes", "4", "--queued-runs", "100", "--stored", "1500MB", "--json"});
  EXPECT_EQ(set.code, kSuccess) << set.err;
  EXPECT_THAT(asked_, ElementsAre("name: \"ada\" quota { lanes: 4 queued_runs: 100 stored_bytes: "
                                  "1500000000 }"));
  EXPECT_EQ(set.err, "ada: lanes 4, queued runs 100, stored 1.5 GB\n");
  EXPECT_THAT(set.out, HasSubstr("\"stored_bytes\": \"1500000000\""));
}

TEST_F(AdminQuotaTest, KeepsTheRestOfAUserOnAnyPage) {
  const Outcome set = Set({"grace", "--stored", "none"});
  EXPECT_EQ(set.err, "grace: lanes 4, queued runs 0, stored none\n");
  EXPECT_EQ(Set({"grace", "--lanes", "none", "--queued-runs", "none"}).err,
            "grace: lanes none, queued runs none, stored 20 GB\n");
  EXPECT_THAT(asked_, ElementsAre("name: \"grace\" quota { lanes: 4 queued_runs: 0 }",
                                  "name: \"grace\" quota { stored_bytes: 20000000000 }"));
}

TEST_F(AdminQuotaTest, NamesWhatIsAllowed) {
  const struct {
    const char* option;
    const char* value;
    const char* allowed;
  } kCases[] = {
      {"--lanes", "0", "none, or 1 to 4294967295"},
      {"--lanes", "4294967296", "none, or 1 to 4294967295"},
      {"--lanes", "None", "none, or 1 to 4294967295"},
      {"--queued-runs", "-1", "none, or 0 to 9223372036854775807"},
      {"--queued-runs", "1k", "none, or 0 to 9223372036854775807"},
      {"--stored", "9223372036854775808",
       "none, or 0 to 9223372036854775807 with or without a unit, such as 20GB"},
      {"--stored", "1.5GB",
       "none, or 0 to 9223372036854775807 with or without a unit, such as 20GB"},
      {"--stored", "20 parsecs",
       "none, or 0 to 9223372036854775807 with or without a unit, such as 20GB"},
  };
  for (const auto& [option, value, allowed] : kCases) {
    const Outcome refused = Set({"ada", option, value});
    EXPECT_EQ(refused.code, kUsage) << option << " " << value;
    EXPECT_EQ(refused.err, std::string("error: ablate admin quota set: ") + option + ": \"" +
                               value + "\" is not a limit; expected " + allowed + "\n");
  }
  const Outcome nothing = Set({"ada"});
  EXPECT_EQ(nothing.code, kUsage);
  EXPECT_EQ(nothing.err,
            "error: ablate admin quota set: no limit is given; expected --lanes, --queued-runs or "
            "--stored\n");
  EXPECT_EQ(Set({"ada", "--lanes", ""}).code, kUsage);
  EXPECT_EQ(Set({"--lanes", "1"}).code, kUsage);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(AdminQuotaTest, ChecksBeforeItLooksForAServer) {
  server_.reset();
  EXPECT_EQ(Set({"ada", "--lanes", "0"}).code, kUsage);
}

TEST_F(AdminQuotaTest, LsShowsWhatThereIsOfWhatThereMayBe) {
  const Outcome listed = Run({"admin", "quota", "ls"});
  EXPECT_EQ(listed.code, kSuccess) << listed.err;
  EXPECT_EQ(listed.out,
            "user   lanes   queued runs  stored           recent device time\n"
            "ada    0       0            0 B              0 s\n"
            "grace  3 of 4  7 of 0       1.5 kB of 20 GB  1 min 30 s\n");
  EXPECT_THAT(Run({"admin", "quota", "ls", "--json"}).out, HasSubstr("\"device_time\": \"90s\""));
}

TEST_F(AdminQuotaTest, AllSayWhyTheServerRefuses) {
  ExpectRefusals({{"admin", "quota", "set", "ada", "--lanes", "1"}});
  users_fail_ = true;
  ExpectRefusals({{"admin", "quota", "set", "ada", "--lanes", "1"}, {"admin", "quota", "ls"}});
}

}  // namespace
}  // namespace ablate::client
