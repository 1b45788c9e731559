// Tests `admin user`: adding, listing, roles, and refusals of each.
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

class AdminUserTest : public ClientTest {
 protected:
  AdminUserTest() {
    answers_.create_user = [this](const v1::CreateUserRequest& request, v1::User* user) {
      asked_.push_back(request.ShortDebugString());
      user->set_name("users/" + request.user());
      return result_;
    };
    answers_.create_token = [this](const v1::CreateTokenRequest& request,
                                   v1::CreateTokenResponse* response) {
      asked_.push_back(request.ShortDebugString());
      response->mutable_token()->set_name("tokens/5f0c2a91");
      response->mutable_token()->set_note(request.note());
      *response->mutable_join() = JoinOf("box");
      response->mutable_join()->set_user(request.user());
      return absl::OkStatus();
    };
    answers_.revoke = [this](const v1::RevokeTokenRequest& request, v1::Token*) {
      asked_.push_back("revoke " + request.name());
      return absl::OkStatus();
    };
    answers_.remove_user = [this](const v1::DeleteUserRequest& request, google::protobuf::Empty*) {
      asked_.push_back("remove " + request.name());
      return result_;
    };
    answers_.update_user = [this](const v1::UpdateUserRequest& request, v1::User* user) {
      asked_.push_back(request.ShortDebugString());
      user->set_name("users/" + request.name());
      user->set_role(request.role());
      user->set_programs(request.programs() || always_);
      return result_;
    };
    answers_.users = [this](const v1::ListUsersRequest& request, v1::ListUsersResponse* response) {
      const bool first = request.page_token().empty();
      v1::User* user = response->add_users();
      user->set_name(first ? "users/ada" : "users/gpu2");
      user->set_role(first ? v1::Role::admin : v1::Role::worker);
      user->set_programs(first);
      user->mutable_create_time()->set_seconds(1'700'000'000 - (first ? 7'200 : 0));
      if (first) response->set_next_page_token("2");
      return result_;
    };
    StartServer();
  }

  const std::string secret_ = JoinOf("box").token();
  const std::string file_ = folder_ + "/ada.join";
  bool always_ = false;  // the user may submit programs anyway
};

TEST_F(AdminUserTest, AddSendsWhatIsGiven) {
  const Outcome made = Run({"admin", "user", "add", "ada", "--note", "laptop", "-o", file_});
  EXPECT_EQ(made.code, kSuccess) << made.err;
  EXPECT_THAT(asked_, ElementsAre("user: \"ada\" role: member", "user: \"ada\" note: \"laptop\""));
  EXPECT_EQ(
      made.err,
      file_ +
          ": token 5f0c2a91 of ada, valid until 2033-05-18; whoever has the file acts as ada\n");
  EXPECT_EQ(made.out, "");
}

TEST_F(AdminUserTest, AddPrintsTheSecretOnlyWhereNoFileHasIt) {
  const Outcome printed = Run({"admin", "user", "add", "ada"});
  EXPECT_THAT(printed.out, HasSubstr("\"token\": \"" + secret_ + "\""));
  EXPECT_EQ(printed.err,
            "token 5f0c2a91 of ada, valid until 2033-05-18; whoever has the file acts as ada\n");
  const Outcome json = Run({"admin", "user", "add", "ada", "--json", "-o", file_});
  EXPECT_EQ(json.code, kSuccess) << json.err;
  EXPECT_THAT(json.out, HasSubstr("\"name\": \"tokens/5f0c2a91\""));
  EXPECT_EQ(json.out.find(secret_), std::string::npos);
  EXPECT_THAT(Read(file_), HasSubstr(secret_));
}

TEST_F(AdminUserTest, AddLooksForThePlaceOfItsFileFirst) {
  Write("ada.join", "mine");
  const Outcome refused = Run({"admin", "user", "add", "ada", "-o", file_});
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + file_ + " exists already: --force replaces it\n");
  EXPECT_EQ(Read(file_), "mine");
  EXPECT_EQ(Run({"admin", "user", "add", "ada", "-o", folder_ + "/gone/ada.join"}).err,
            "error: there is no folder " + folder_ + "/gone\n");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(AdminUserTest, AddIsUndoneWhereTheFileCantBeWritten) {
  // A link to nowhere is seen only when the file is made.
  fs::create_symlink(folder_ + "/nowhere", file_);
  const Outcome failed = Run({"admin", "user", "add", "ada", "-o", file_});
  EXPECT_EQ(failed.code, kFailure);
  EXPECT_THAT(failed.err, HasSubstr(file_));
  EXPECT_THAT(asked_, ElementsAre("user: \"ada\" role: member", "user: \"ada\"",
                                  "revoke tokens/5f0c2a91", "remove ada"));
  EXPECT_FALSE(fs::exists(folder_ + "/nowhere"));
}

TEST_F(AdminUserTest, AddSaysWhatIsLeftWhereItCantBeUndone) {
  answers_.create_token = [](const v1::CreateTokenRequest&, v1::CreateTokenResponse*) {
    return absl::ResourceExhaustedError("too many tokens");
  };
  answers_.remove_user = nullptr;
  const Outcome failed = Run({"admin", "user", "add", "ada", "-o", file_});
  EXPECT_EQ(failed.code, kFailure);
  EXPECT_EQ(failed.err,
            "error: too many tokens; ada is a user without a token: `ablate admin token add ada` "
            "makes one\n");
}

TEST_F(AdminUserTest, LsListsAllPages) {
  const Outcome listed = Run({"admin", "user", "ls"});
  EXPECT_EQ(listed.code, kSuccess) << listed.err;
  EXPECT_EQ(listed.out,
            "user  role    programs  created\n"
            "ada   admin   yes       2 h ago\n"
            "gpu2  worker  no        just now\n");
  const Outcome json = Run({"admin", "user", "ls", "--json"});
  EXPECT_THAT(json.out, HasSubstr("\"name\": \"users/ada\""));
  EXPECT_THAT(json.out, HasSubstr("\"name\": \"users/gpu2\""));
}

TEST_F(AdminUserTest, RoleChangesOne) {
  const Outcome changed = Run({"admin", "user", "role", "ada", "reader", "--json"});
  EXPECT_EQ(changed.code, kSuccess);
  EXPECT_EQ(changed.err, "ada is reader now\n");
  EXPECT_THAT(changed.out, HasSubstr("\"role\": \"reader\""));
  EXPECT_THAT(asked_, ElementsAre("name: \"ada\" role: reader"));
}

TEST_F(AdminUserTest, ProgramsChangesTheRightAlone) {
  EXPECT_EQ(Run({"admin", "user", "programs", "ada", "yes"}).err, "ada may submit programs\n");
  EXPECT_EQ(Run({"admin", "user", "programs", "ada", "no"}).err, "ada may not submit programs\n");
  always_ = true;
  EXPECT_EQ(Run({"admin", "user", "programs", "ada", "no"}).err,
            "ada may submit programs, because admins always may\n");
  EXPECT_THAT(asked_, ElementsAre("name: \"ada\" programs: true", "name: \"ada\" programs: false",
                                  "name: \"ada\" programs: false"));
  const Outcome refused = Run({"admin", "user", "programs", "ada", "maybe"});
  EXPECT_EQ(refused.code, kUsage);
  EXPECT_EQ(refused.err,
            "error: ablate admin user programs: ALLOWED: \"maybe\" is unknown; expected yes or "
            "no\n");
}

TEST_F(AdminUserTest, AddGivesTheRightToSubmitPrograms) {
  EXPECT_EQ(Run({"admin", "user", "add", "ada", "--programs", "-o", file_}).code, kSuccess);
  EXPECT_EQ(asked_.at(0), "user: \"ada\" role: member programs: true");
}

TEST_F(AdminUserTest, RoleNamesWhichThereAre) {
  for (const std::string role : {"king", "unspecified", "Admin", "1"}) {
    const Outcome refused = Run({"admin", "user", "role", "ada", role});
    EXPECT_EQ(refused.code, kUsage) << role;
    EXPECT_EQ(refused.err, "error: ablate admin user role: ROLE: \"" + role +
                               "\" is unknown; expected reader, member, admin or worker\n");
  }
  const Outcome added = Run({"admin", "user", "add", "ada", "--role", "king"});
  EXPECT_EQ(added.code, kUsage);
  EXPECT_EQ(added.err,
            "error: ablate admin user add: --role: \"king\" is unknown; expected reader, member, "
            "admin or worker\n");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(AdminUserTest, RmLeavesWhatTheUserMade) {
  const Outcome removed = Run({"admin", "user", "rm", "ada"});
  EXPECT_EQ(removed.code, kSuccess);
  EXPECT_EQ(removed.out, "");
  EXPECT_EQ(removed.err, "removed ada; its experiments stay\n");
  EXPECT_EQ(Run({"admin", "user", "rm", "ada", "--json"}).out, "{}\n");
  EXPECT_THAT(asked_, ElementsAre("remove ada", "remove ada"));
}

TEST_F(AdminUserTest, AllSayWhyTheServerRefuses) {
  ExpectRefusals({{"admin", "user", "add", "ada", "-o", file_},
                  {"admin", "user", "ls"},
                  {"admin", "user", "role", "ada", "admin"},
                  {"admin", "user", "rm", "ada"}});
  EXPECT_FALSE(fs::exists(file_)) << "no user, no token";
}

TEST_F(AdminUserTest, NamesWhatTheCommandLineLacks) {
  for (const std::string command : {"add", "role", "rm"}) {
    const Outcome refused = Run({"admin", "user", command});
    EXPECT_EQ(refused.code, kUsage) << command;
    EXPECT_THAT(refused.err, HasSubstr("NAME"));
    EXPECT_THAT(refused.err, HasSubstr("see ablate admin user " + command + " --help\n"));
  }
  EXPECT_THAT(Run({"admin", "user", "role", "ada"}).err, HasSubstr("ROLE"));
}

}  // namespace
}  // namespace ablate::client
