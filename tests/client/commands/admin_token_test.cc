// Tests `admin token`: adding, listing and revoking.
#include <filesystem>

#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AdminTokenTest : public ClientTest {
 protected:
  AdminTokenTest() {
    answers_.create_token = [this](const v1::CreateTokenRequest& request,
                                   v1::CreateTokenResponse* response) {
      asked_.push_back(request.ShortDebugString());
      response->mutable_token()->set_name("tokens/5f0c2a91");
      *response->mutable_join() = JoinOf("box");
      response->mutable_join()->set_user(request.user());
      return result_;
    };
    answers_.tokens = [this](const v1::ListTokensRequest& request,
                             v1::ListTokensResponse* response) {
      asked_.push_back(request.user() + "/" + request.page_token());
      if (request.page_token().empty()) {
        Add("a1", "laptop", 1'700'000'000 + 86'400, response)
            ->mutable_last_use_time()
            ->set_seconds(1'700'000'000 - 180);
        Add("b2", "", 1'700'000'000, response);
        response->set_next_page_token("2");
      } else {
        Add("c3", "lost", 1'700'000'000 + 86'400, response)
            ->mutable_revoke_time()
            ->set_seconds(1'600'000'000);
        Add("d4", "", 0, response)->clear_expire_time();
      }
      return result_;
    };
    answers_.revoke = [this](const v1::RevokeTokenRequest& request, v1::Token* token) {
      asked_.push_back("revoke " + request.name());
      token->set_name("tokens/" + request.name());
      token->set_user("users/ada");
      return result_;
    };
    StartServer();
  }

  static v1::Token* Add(const std::string& id, const std::string& note, int64_t expires,
                        v1::ListTokensResponse* response) {
    v1::Token* token = response->add_tokens();
    token->set_name("tokens/" + id);
    token->set_user("users/ada");
    token->set_note(note);
    token->mutable_expire_time()->set_seconds(expires);
    return token;
  }

  const std::string secret_ = JoinOf("box").token();
  const std::string file_ = folder_ + "/ada.join";
};

TEST_F(AdminTokenTest, AddWritesAJoinFile) {
  const Outcome made = Run({"admin", "token", "add", "ada", "--note", "laptop", "--days", "3650",
                            "-o", file_, "--json"});
  EXPECT_EQ(made.code, kSuccess) << made.err;
  EXPECT_THAT(asked_,
              ElementsAre("user: \"ada\" note: \"laptop\" lifetime { seconds: 315360000 }"));
  EXPECT_EQ(
      made.err,
      file_ +
          ": token 5f0c2a91 of ada, valid until 2033-05-18; whoever has the file acts as ada\n");
  EXPECT_THAT(made.out, HasSubstr("\"name\": \"tokens/5f0c2a91\""));
  EXPECT_EQ(made.out.find(secret_), std::string::npos);
  EXPECT_THAT(Read(file_), HasSubstr(secret_));
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AdminTokenTest, AddOverwritesNothing) {
  Write("ada.join", "mine");
  const Outcome refused = Run({"admin", "token", "add", "ada", "-o", file_});
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + file_ + " exists already: --force replaces it\n");
  EXPECT_EQ(Read(file_), "mine");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(AdminTokenTest, AddReplacesAJoinFileIfForced) {
  Write("ada.join", "mine");
  const Outcome made = Run({"admin", "token", "add", "ada", "-o", file_, "--force"});
  EXPECT_EQ(made.code, kSuccess) << made.err;
  EXPECT_THAT(Read(file_), HasSubstr(secret_));
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_THAT(Run({"admin", "token", "add", "ada", "-o", "-"}).out, HasSubstr(secret_));
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(AdminTokenTest, ATokenWhoseFileCantBeWrittenIsRevoked) {
  // A link to nowhere is seen only when the file is made.
  fs::create_symlink(folder_ + "/nowhere", file_);
  const Outcome failed = Run({"admin", "token", "add", "ada", "-o", file_});
  EXPECT_EQ(failed.code, kFailure);
  EXPECT_EQ(failed.err.find(secret_), std::string::npos);
  EXPECT_THAT(asked_, ElementsAre("user: \"ada\"", "revoke tokens/5f0c2a91"));
}

TEST_F(AdminTokenTest, ATokenThatCantBePrintedIsRevoked) {
  output_fails_ = true;
  EXPECT_NE(Run({"admin", "token", "add", "ada"}).code, 0);
  EXPECT_THAT(asked_, ElementsAre("user: \"ada\"", "revoke tokens/5f0c2a91"));
}

TEST_F(AdminTokenTest, AddTakesDaysThatTheServerTakes) {
  for (const std::string days : {"0", "3651", "4294967295"}) {
    const Outcome refused = Run({"admin", "token", "add", "ada", "--days", days});
    EXPECT_EQ(refused.code, kUsage) << days;
    EXPECT_EQ(refused.err, "error: ablate admin token add: --days: " + days +
                               " is out of range; expected 1 to 3650\n");
  }
  for (const std::string days : {"-1", "a week", "1.5", "4294967296"}) {
    const Outcome refused = Run({"admin", "token", "add", "ada", "--days", days});
    EXPECT_EQ(refused.code, kUsage) << days;
    EXPECT_THAT(refused.err, HasSubstr("--days"));
    EXPECT_THAT(refused.err, HasSubstr(days));
  }
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(AdminTokenTest, LsSaysOfEachWhetherItIsGood) {
  const Outcome listed = Run({"admin", "token", "ls", "ada"});
  EXPECT_EQ(listed.code, kSuccess) << listed.err;
  EXPECT_EQ(listed.out,
            "token  user  note    state    expires     last used\n"
            "a1     ada   laptop  valid    2023-11-15  3 min ago\n"
            "b2     ada           expired  2023-11-14  never\n"
            "c3     ada   lost    revoked  2023-11-15  never\n"
            "d4     ada           valid    —           never\n");
  EXPECT_THAT(asked_, ElementsAre("ada/", "ada/2"));
  EXPECT_THAT(Run({"admin", "token", "ls", "--json"}).out,
              HasSubstr("\"revoke_time\": \"2020-09-13T12:26:40Z\""));
  EXPECT_EQ(asked_.back(), "/2") << "whose, says the server";
}

TEST_F(AdminTokenTest, RevokeSaysWhose) {
  const Outcome revoked = Run({"admin", "token", "revoke", "5f0c2a91", "--json"});
  EXPECT_EQ(revoked.code, kSuccess);
  EXPECT_EQ(revoked.err, "revoked token 5f0c2a91 of ada\n");
  EXPECT_THAT(revoked.out, HasSubstr("\"name\": \"tokens/5f0c2a91\""));
  EXPECT_THAT(asked_, ElementsAre("revoke 5f0c2a91"));
}

TEST_F(AdminTokenTest, AllSayWhyTheServerRefuses) {
  ExpectRefusals({{"admin", "token", "add", "ada", "-o", file_},
                  {"admin", "token", "ls"},
                  {"admin", "token", "revoke", "5f0c2a91"}});
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(AdminTokenTest, NamesWhatTheCommandLineLacks) {
  const Outcome add = Run({"admin", "token", "add"});
  EXPECT_EQ(add.code, kUsage);
  EXPECT_THAT(add.err, HasSubstr("USER"));
  const Outcome revoke = Run({"admin", "token", "revoke"});
  EXPECT_EQ(revoke.code, kUsage);
  EXPECT_THAT(revoke.err, HasSubstr("TOKEN"));
}

}  // namespace
}  // namespace ablate::client
