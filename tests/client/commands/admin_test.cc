// `admin user`, `admin token` and `admin quota`: what goes to the server, what is written, and what
// is undone where a step fails.
#include <sys/stat.h>

#include <filesystem>

#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kAuthority[] = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";

class AdminTest : public ClientTest {
 protected:
  AdminTest() {
    answers_.create_user = [this](const v1::CreateUserRequest& request, v1::User* user) {
      did_.push_back("create " + request.user());
      role_ = request.role();
      user->set_name("users/" + request.user());
      return absl::OkStatus();
    };
    answers_.remove_user = [this](const v1::DeleteUserRequest& request, google::protobuf::Empty*) {
      did_.push_back("remove " + request.name());
      return absl::OkStatus();
    };
    answers_.create_token = [this](const v1::CreateTokenRequest& request,
                                   v1::CreateTokenResponse* response) {
      did_.push_back("token " + request.user());
      lifetime_ = request.lifetime().seconds();
      if (!token_.ok()) return token_;
      response->mutable_token()->set_name("tokens/t1");
      v1::JoinFile* join = response->mutable_join();
      join->set_address("box.example.org:7443");
      join->set_server_name("box.example.org");
      join->set_certificate_authority(kAuthority);
      join->set_user("ada");
      join->set_token("ablate_" + std::string(43, 'a'));
      join->mutable_expire_time()->set_seconds(2'000'000'000);
      return absl::OkStatus();
    };
    answers_.revoke = [this](const v1::RevokeTokenRequest& request, v1::Token*) {
      did_.push_back("revoke " + request.name());
      return absl::OkStatus();
    };
    answers_.users = [](const v1::ListUsersRequest&, v1::ListUsersResponse* response) {
      v1::User* ada = response->add_users();
      ada->set_name("users/ada");
      ada->mutable_quota()->set_lanes(2);
      return absl::OkStatus();
    };
    answers_.quota = [this](const v1::SetQuotaRequest& request, v1::User* user) {
      quota_ = request.quota();
      user->set_name("users/ada");
      *user->mutable_quota() = request.quota();
      return absl::OkStatus();
    };
    StartServer();
  }

  std::vector<std::string> did_;  // by the server
  v1::Role::Value role_ = v1::Role::unspecified;
  int64_t lifetime_ = 0;
  absl::Status token_;
  v1::Quota quota_;
};

TEST_F(AdminTest, AUserIsAnAccountAndAJoinFile) {
  const std::string file = folder_ + "/ada.join";
  const Outcome made =
      Run({"admin", "user", "add", "ada", "--role", "reader", "--days", "7", "-o", file});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(did_, ElementsAre("create ada", "token ada"));
  EXPECT_EQ(role_, v1::Role::reader);
  EXPECT_EQ(lifetime_, 7 * 86'400);
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_THAT(made.err, HasSubstr("whoever has the file is ada"));
}

TEST_F(AdminTest, NothingIsMadeWhereAnOptionMakesNoSense) {
  for (const char* days : {"0", "3651"}) {
    const Outcome refused = Run({"admin", "user", "add", "ada", "--days", days});
    EXPECT_EQ(refused.code, kFailure);
    EXPECT_EQ(refused.err, std::string("error: --days is ") + days + "; allowed: 1 to 3650\n");
  }
  EXPECT_THAT(Run({"admin", "user", "add", "ada", "--role", "king"}).err,
              HasSubstr("\"king\" is no role; allowed: reader, member, admin, worker"));
  EXPECT_THAT(did_, IsEmpty());
}

TEST_F(AdminTest, AUserWithoutATokenIsNoneAgain) {
  token_ = absl::ResourceExhaustedError("too many tokens");
  const Outcome failed = Run({"admin", "user", "add", "ada"});
  EXPECT_EQ(failed.code, kFailure);
  EXPECT_EQ(failed.err, "error: too many tokens\n");
  EXPECT_THAT(did_, ElementsAre("create ada", "token ada", "remove ada"));
}

TEST_F(AdminTest, ATokenThatNobodyHasIsRevoked) {
  output_fails_ = true;
  EXPECT_NE(Run({"admin", "token", "add", "ada"}).code, 0);
  EXPECT_THAT(did_, ElementsAre("token ada", "revoke tokens/t1"));
}

TEST_F(AdminTest, AQuotaKeepsWhatIsNotGiven) {
  EXPECT_EQ(Run({"admin", "quota", "set", "ada", "--stored", "20GB"}).code, 0);
  EXPECT_EQ(quota_.lanes(), 2u);
  EXPECT_EQ(quota_.stored_bytes(), 20'000'000'000u);
  EXPECT_FALSE(quota_.has_queued_runs());
  EXPECT_EQ(Run({"admin", "quota", "set", "ada", "--lanes", "none"}).code, 0);
  EXPECT_FALSE(quota_.has_lanes());
}

TEST_F(AdminTest, AQuotaThatIsNoNumberIsRefused) {
  for (const char* size : {"20XB", "1,5GB", "-5GB", "99999999999999999999"}) {
    const Outcome refused = Run({"admin", "quota", "set", "ada", "--stored", size});
    EXPECT_EQ(refused.code, kFailure) << size;
    EXPECT_THAT(refused.err,
                HasSubstr(std::string("--stored is \"") + size + "\"; allowed: none, or 0 to "));
  }
  EXPECT_THAT(Run({"admin", "quota", "set", "ada", "--lanes", "0"}).err,
              HasSubstr("--lanes is \"0\"; allowed: none, or 1 to 4294967295"));
  EXPECT_THAT(Run({"admin", "quota", "set", "ada"}).err, HasSubstr("nothing to set"));
}

}  // namespace
}  // namespace ablate::client
