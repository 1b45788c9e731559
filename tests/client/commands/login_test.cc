// `whoami` and `logout`: which server they mean.
#include <filesystem>

#include "client/context.h"
#include "client/logins.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoginTest : public ClientTest {
 protected:
  LoginTest() {
    environment_["XDG_CONFIG_HOME"] = folder_;
    for (const char* name : {"attic", "box"}) {
      EXPECT_TRUE(Known().Add(name, JoinOf(name)).ok());
    }
  }

  Logins Known() {
    return *Logins::Of([this](const char* name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      if (found == environment_.end()) return std::nullopt;
      return found->second;
    });
  }

  absl::Time expires_;

  static v1::JoinFile JoinOf(const std::string& name) {
    v1::JoinFile join;
    join.set_address(name + ".example.org:7443");
    join.set_server_name(name + ".example.org");
    join.set_certificate_authority(
        "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n");
    join.set_user("ada");
    join.set_token("ablate_" + std::string(43, 'a'));
    join.mutable_expire_time()->set_seconds(2'000'000'000);
    return join;
  }
};

TEST_F(LoginTest, LogsOutFromTheServerThatCommandsTalkTo) {
  EXPECT_EQ(Known().Current(), "box") << "the last";
  const Outcome named = Run({"--server", "attic", "logout"});
  EXPECT_EQ(named.code, 0);
  EXPECT_THAT(named.err, HasSubstr("logged out from attic: "));
  EXPECT_THAT(Known().Names(), ElementsAre("box"));
  EXPECT_THAT(Run({"logout"}).err, HasSubstr("logged out from box: "));
  EXPECT_EQ(Known().Current(), "") << "commands talk to the personal server again";
}

TEST_F(LoginTest, LogsOutFromNoneWhereNoneIsMeant) {
  const Outcome personal = Run({"--server", "personal", "logout"});
  EXPECT_EQ(personal.code, kFailure);
  EXPECT_EQ(personal.err, "error: commands talk to no server that was logged in to: name one\n");
  EXPECT_THAT(Run({"logout", "cellar"}).err,
              HasSubstr("no server is known as \"cellar\"; known: personal, attic, box"));
  EXPECT_THAT(Known().Names(), ElementsAre("attic", "box"));
}

TEST_F(LoginTest, ALoginWhoseFileIsGoneIsNotThePersonalServer) {
  std::filesystem::remove(folder_ + "/ablate/servers/box.json");
  const Outcome gone = Run({"ls"});
  EXPECT_NE(gone.code, 0);
  EXPECT_THAT(gone.err, HasSubstr("no server is known as \"box\"; known: personal, attic"));
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

}  // namespace
}  // namespace ablate::client
