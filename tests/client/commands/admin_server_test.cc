// Tests `admin init`, `admin renew` and `admin audit`: requests, files and output.
#include <algorithm>
#include <filesystem>

#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class AdminServerTest : public ClientTest {
 protected:
  AdminServerTest() {
    answers_.initialize = [this](const v1::InitializeSharingRequest& request, v1::JoinFile* join) {
      asked_.push_back(request.ShortDebugString());
      *join = JoinOf("box");
      join->set_address(request.address());
      join->set_user("grace");
      return result_;
    };
    answers_.renew = [this](const v1::RenewCertificateRequest& request,
                            v1::RenewCertificateResponse* response) {
      asked_.push_back(request.ShortDebugString());
      response->add_hosts("box.example.org");
      response->add_hosts("10.0.0.7");
      response->mutable_expire_time()->set_seconds(2'000'000'000);
      return result_;
    };
    // 5 entries, at most 2 a page.
    answers_.audit = [this](const v1::ListAuditRequest& request, v1::ListAuditResponse* response) {
      asked_.push_back(request.ShortDebugString());
      const int first = request.page_token().empty() ? 0 : std::stoi(request.page_token());
      const int size = request.page_size() == 1 ? 1 : 2;
      for (int i = first; i < std::min(first + size, 5); ++i) {
        v1::AuditEntry* entry = response->add_entries();
        entry->mutable_time()->set_seconds(1'700'000'000 - 60 * i);
        entry->set_user("ada");
        entry->set_method("Experiments.CancelExperiment");
        entry->set_resource("experiments/e" + std::to_string(i));
        entry->set_outcome(i == 1 ? "PERMISSION_DENIED" : "OK");
      }
      if (first + size < 5) response->set_next_page_token(std::to_string(first + size));
      return result_;
    };
    StartServer();
  }

  Outcome Init(const std::string& file) {
    return Run({"admin", "init", "box.example.org:7443", "-o", file});
  }

  const std::string token_ = JoinOf("box").token();
  const std::string file_ = folder_ + "/grace.join";
};

TEST_F(AdminServerTest, InitWritesTheFirstAdminsJoinFile) {
  const Outcome made = Run({"admin", "init", "box.example.org:7443", "--host", "box", "--host",
                            "10.0.0.7", "--user", "grace", "-o", file_});
  EXPECT_EQ(made.code, kSuccess) << made.err;
  EXPECT_THAT(asked_, ElementsAre("address: \"box.example.org:7443\" hosts: \"box\" hosts: "
                                  "\"10.0.0.7\" user: \"grace\""));
  EXPECT_EQ(made.out, "");
  EXPECT_EQ(made.err, file_ +
                          ": token of the admin grace, valid until 2033-05-18 03:33 UTC; after "
                          "`ablate up --listen HOST:PORT` other machines reach the server at "
                          "box.example.org:7443\n");
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_THAT(Read(file_), HasSubstr("\"token\": \"" + token_ + "\""));
}

TEST_F(AdminServerTest, InitPrintsTheJoinFileInsteadOfWritingIt) {
  const Outcome printed = Run({"admin", "init", "box.example.org:7443", "--json"});
  EXPECT_EQ(printed.code, kSuccess) << printed.err;
  EXPECT_THAT(asked_, ElementsAre("address: \"box.example.org:7443\""));
  EXPECT_THAT(printed.out, HasSubstr("\"token\": \"" + token_ + "\""));
  EXPECT_EQ(printed.err, "");
  EXPECT_FALSE(fs::exists("admin.join"));
  const Outcome both = Run({"admin", "init", "box.example.org:7443", "--json", "-o", file_});
  EXPECT_EQ(both.out, printed.out);
  EXPECT_THAT(Read(file_), HasSubstr(token_));
}

TEST_F(AdminServerTest, InitLooksForThePlaceOfItsFileFirst) {
  Write("grace.join", "mine");
  const Outcome refused = Init(file_);
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + file_ + " exists already: --force replaces it\n");
  EXPECT_EQ(Read(file_), "mine");
  EXPECT_EQ(Init(folder_ + "/gone/a.join").err, "error: there is no folder " + folder_ + "/gone\n");
  EXPECT_THAT(asked_, ElementsAre()) << "it is made once";
}

TEST_F(AdminServerTest, InitSaysHowToHaveAFileThatCouldNotBeWritten) {
  // A link to nowhere is seen only when the file is made.
  fs::create_symlink(folder_ + "/nowhere", file_);
  const Outcome failed = Init(file_);
  EXPECT_EQ(failed.code, kFailure);
  EXPECT_THAT(failed.err, HasSubstr("; everything else was made. Run `ablate admin token add grace "
                                    "-o FILE` for another file.\n"));
  EXPECT_THAT(failed.err, Not(HasSubstr(token_)));
  EXPECT_FALSE(fs::exists(folder_ + "/nowhere"));
}

TEST_F(AdminServerTest, RenewSendsItsHosts) {
  const Outcome renewed =
      Run({"admin", "renew", "--host", "box.example.org", "--host", "10.0.0.7", "--only"});
  EXPECT_EQ(renewed.code, kSuccess) << renewed.err;
  EXPECT_EQ(renewed.out, "");
  EXPECT_EQ(renewed.err,
            "certificate for box.example.org, 10.0.0.7, valid until 2033-05-18 03:33 UTC; new "
            "connections use it\n");
  EXPECT_THAT(Run({"admin", "renew", "--json"}).out,
              HasSubstr("\"expire_time\": \"2033-05-18T03:33:20Z\""));
  EXPECT_THAT(asked_,
              ElementsAre("hosts: \"box.example.org\" hosts: \"10.0.0.7\" drop_others: true", ""));
}

TEST_F(AdminServerTest, AuditPrintsALineAnEntry) {
  const Outcome listed =
      Run({"admin", "audit", "--limit", "2", "--user", "ada", "--method", "Experiments."});
  EXPECT_EQ(listed.code, kSuccess) << listed.err;
  EXPECT_EQ(listed.out,
            "time, UTC         user  method                        what            outcome\n"
            "2023-11-14 22:13  ada   Experiments.CancelExperiment  experiments/e0  OK\n"
            "2023-11-14 22:12  ada   Experiments.CancelExperiment  experiments/e1  "
            "PERMISSION_DENIED\n");
  EXPECT_THAT(asked_, ElementsAre("user: \"ada\" method: \"Experiments.\" page_size: 2"));
}

TEST_F(AdminServerTest, AuditTakesAsManyPagesAsItsLimit) {
  const auto entries = [this](const std::string& limit) {
    const std::string json = Run({"admin", "audit", "--json", "--limit", limit}).out;
    size_t count = 0;
    for (size_t at = 0; (at = json.find("\"resource\"", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(entries("1"), 1u);
  EXPECT_EQ(entries("3"), 3u);
  EXPECT_EQ(entries("0"), 5u) << "all";
}

TEST_F(AdminServerTest, AllSayWhyTheServerRefuses) {
  ExpectRefusals({{"admin", "init", "box.example.org:7443", "-o", file_},
                  {"admin", "renew"},
                  {"admin", "audit", "--json"}});
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(AdminServerTest, NamesWhatTheCommandLineLacks) {
  const Outcome init = Run({"admin", "init"});
  EXPECT_EQ(init.code, kUsage);
  EXPECT_THAT(init.err, HasSubstr("ADDRESS"));
  const Outcome renew = Run({"admin", "renew", "--host", ""});
  EXPECT_EQ(renew.code, kUsage);
  EXPECT_THAT(renew.err, HasSubstr("--host"));
  const Outcome audit = Run({"admin", "audit", "--limit", "-1"});
  EXPECT_EQ(audit.code, kUsage);
  EXPECT_THAT(audit.err, HasSubstr("--limit"));
  EXPECT_THAT(asked_, ElementsAre());
}

}  // namespace
}  // namespace ablate::client
