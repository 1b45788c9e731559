// Tests `whoami` and `logout`: the server that they use, and their output.
#include <filesystem>

#include "client/context.h"
#include "client/logins.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LoginTest : public ClientTest {
 protected:
  LoginTest() {
    environment_["XDG_CONFIG_HOME"] = folder_;
    for (const char* name : {"attic", "box"}) {
      EXPECT_TRUE(Known().Add(name, JoinOf(name)).ok());
    }
  }

  absl::Time expires_;
};

TEST_F(LoginTest, LogsOutFromTheServerThatCommandsTalkTo) {
  EXPECT_EQ(Known().Current(), "box") << "the last";
  const Outcome named = Run({"--server", "attic", "logout"});
  EXPECT_EQ(named.code, 0);
  EXPECT_THAT(named.err, HasSubstr("logged out from attic; "));
  EXPECT_THAT(Known().Names(), ElementsAre("box"));
  EXPECT_THAT(Run({"logout"}).err, HasSubstr("logged out from box; "));
  EXPECT_EQ(Known().Current(), "") << "commands talk to the personal server again";
}

TEST_F(LoginTest, LogsOutFromNoneWhereNoneIsMeant) {
  const Outcome personal = Run({"--server", "personal", "logout"});
  EXPECT_EQ(personal.code, kFailure);
  EXPECT_EQ(personal.err, "error: NAME: no login is in use; expected the name of a server\n");
  EXPECT_THAT(Run({"logout", "cellar"}).err,
              HasSubstr("no server is named \"cellar\"; expected personal, attic, box"));
  EXPECT_THAT(Known().Names(), ElementsAre("attic", "box"));
}

TEST_F(LoginTest, ALoginWhoseFileIsGoneIsNotThePersonalServer) {
  std::filesystem::remove(folder_ + "/ablate/servers/box.json");
  const Outcome gone = Run({"ls"});
  EXPECT_NE(gone.code, 0);
  EXPECT_THAT(gone.err, HasSubstr("no server is named \"box\"; expected personal, attic"));
}

TEST_F(LoginTest, SaysWhenATokenEndsToTheMinuteWhereThatIsSoon) {
  answers_.who = [this](const v1::WhoAmIRequest&, v1::WhoAmIResponse* response) {
    response->set_user("users/ada");
    response->set_role(v1::Role::member);
    response->mutable_expire_time()->set_seconds(absl::ToUnixSeconds(expires_));
    return absl::OkStatus();
  };
  StartServer();
  expires_ = now_ + absl::Hours(3);
  EXPECT_THAT(Run({"whoami"}).out, HasSubstr("2023-11-15 01:13 UTC"));
  expires_ = now_ + absl::Hours(72);
  EXPECT_THAT(Run({"whoami"}).out, HasSubstr("2023-11-17"));
}

TEST_F(LoginTest, WhoamiNamesTheServerAndTheUser) {
  answers_.who = [this](const v1::WhoAmIRequest&, v1::WhoAmIResponse* response) {
    response->set_user("users/ada");
    response->set_role(v1::Role::admin);
    return result_;
  };
  StartServer();
  const Outcome who = Run({"whoami"});
  EXPECT_EQ(who.code, kSuccess) << who.err;
  EXPECT_THAT(who.out, MatchesRegex("server +address +user +role +token expires\n"
                                    "— +unix:[^ ]+/socket +ada +admin +—\n"));
  EXPECT_EQ(Run({"whoami", "--json"}).out,
            "{\n \"user\": \"users/ada\",\n \"role\": \"admin\",\n \"token\": \"\"\n}\n");
  ExpectRefusals({{"whoami"}});
}

TEST_F(LoginTest, WhoamiSaysWhereNoServerAnswers) {
  environment_["ABLATE_SERVER"] = "unix:" + folder_ + "/nowhere";
  const Outcome who = Run({"whoami"});
  EXPECT_EQ(who.code, kNoServer);
  EXPECT_THAT(who.err, HasSubstr("error: no server answers at unix:" + folder_ + "/nowhere"));
  environment_["ABLATE_SERVER"] = "personal";
  const Outcome personal = Run({"whoami"});
  EXPECT_EQ(personal.code, kNoServer);
  EXPECT_THAT(personal.err, HasSubstr("run `ablate up`"));
}

TEST_F(LoginTest, LogoutNeedsNoServerAndLeavesNoToken) {
  const Outcome made = Run({"logout", "box", "--json"});
  EXPECT_EQ(made.code, kSuccess);
  EXPECT_EQ(made.out, "{}\n");
  EXPECT_EQ(made.err,
            "logged out from box; its token is deleted here, and stays valid until it expires or "
            "is revoked\n");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/ablate")) {
    EXPECT_NE(entry.path().filename(), "box.json");
  }
  EXPECT_EQ(Run({"logout", "box"}).code, kFailure) << "it is gone";
  const Outcome two = Run({"logout", "attic", "box"});
  EXPECT_EQ(two.code, kUsage);
  EXPECT_THAT(Known().Names(), ElementsAre("attic"));
}

}  // namespace
}  // namespace ablate::client
