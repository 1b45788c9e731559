// Tests `login` to a TLS server in this process: what is sent and stored, and when nothing is.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/context.h"
#include "client/logins.h"
#include "gmock/gmock.h"
#include "proto/join/join_file.h"
#include "server/access/certificates.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LoginServerTest : public ClientTest {
 protected:
  LoginServerTest() {
    environment_["XDG_CONFIG_HOME"] = folder_ + "/config";
    answers_.who = [this](const v1::WhoAmIRequest&, v1::WhoAmIResponse* response) {
      response->set_user("users/ada");
      response->set_role(v1::Role::member);
      return result_;
    };
    Serve();
  }

  // A server anew, on another port, with a certificate for box.example.org and this machine.
  void Serve() {
    const access::CertifiedKey pair =
        access::MakeServerCertificate(authority_, {"box.example.org"}, absl::Now()).value();
    server_ = std::make_unique<FakeServer>(pair.certificate, pair.key, &answers_);
  }

  // The path of a join file of the server; `change` makes it another's.
  std::string JoinFile(const std::string& name,
                       const std::function<void(v1::JoinFile*)>& change = nullptr) {
    v1::JoinFile join = JoinOf("box");
    join.set_address(server_->address());
    join.set_certificate_authority(authority_.certificate);
    if (change) change(&join);
    const std::string path = folder_ + "/" + name;
    const absl::Status written = join::WriteJoinFile(path, join);
    EXPECT_TRUE(written.ok()) << written;
    return path;
  }

  const access::CertifiedKey authority_ = access::MakeAuthority("box", absl::Now()).value();
  const std::string token_ = JoinOf("box").token();
};

TEST_F(LoginServerTest, KeepsTheServerForItsUserAlone) {
  const std::string file = JoinFile("ada.join");
  const Outcome made = Run({"login", "--join", file});
  EXPECT_EQ(made.code, kSuccess) << made.err;
  EXPECT_EQ(answers_.authorization, "Bearer " + token_);
  EXPECT_EQ(made.out, "");
  EXPECT_EQ(made.err, "logged in to box (" + server_->address() +
                          ") as ada, member; the token expires 2033-05-18; " + file +
                          " may be deleted\n");
  const std::string kept = folder_ + "/config/ablate/servers/box.json";
  EXPECT_EQ(fs::status(kept).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  for (const fs::path& folder :
       {fs::path(kept).parent_path(), fs::path(folder_ + "/config/ablate")}) {
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all) << folder;
  }
  const auto known = Known().Find("box");
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->token(), token_);
  EXPECT_EQ(known->certificate_authority(), authority_.certificate);
  EXPECT_EQ(Known().Current(), "box");
}

TEST_F(LoginServerTest, OthersTalkToTheServerFromThenOn) {
  ASSERT_EQ(Run({"login", "--join", JoinFile("ada.join"), "--name", "attic"}).code, kSuccess);
  answers_.authorization = "";
  const Outcome who = Run({"whoami"});
  EXPECT_EQ(who.code, kSuccess) << who.err;
  EXPECT_EQ(answers_.authorization, "Bearer " + token_);
  EXPECT_THAT(who.out, HasSubstr("attic   " + server_->address() + "  ada   member"));
}

TEST_F(LoginServerTest, PrintsAsWhom) {
  const Outcome made = Run({"login", "--join", JoinFile("ada.join"), "--json"});
  EXPECT_THAT(made.out, HasSubstr("\"user\": \"users/ada\""));
  EXPECT_THAT(made.out, HasSubstr("\"role\": \"member\""));
  EXPECT_EQ(made.out.find(token_), std::string::npos);
}

TEST_F(LoginServerTest, TwiceUnderOneNameKeepsTheLaterTokenOfOneServer) {
  ASSERT_EQ(Run({"login", "--join", JoinFile("first.join")}).code, kSuccess);
  const std::string later = "ablate_" + std::string(43, 't');
  const std::string second =
      JoinFile("second.join", [&](v1::JoinFile* join) { join->set_token(later); });
  EXPECT_EQ(Run({"login", "--join", second}).code, kSuccess);
  EXPECT_EQ(answers_.authorization, "Bearer " + later);
  EXPECT_EQ(Known().Find("box")->token(), later);
  EXPECT_THAT(Known().Names(), ElementsAre("box"));
}

TEST_F(LoginServerTest, AnotherServerOfTheNameIsRefused) {
  ASSERT_TRUE(Known().Add("box", JoinOf("attic")).ok());
  const std::string file = JoinFile("ada.join");
  const Outcome refused = Run({"login", "--join", file});
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err,
            "error: box is the name of another server (attic.example.org:7443); give this one "
            "another by --name NAME, or run `ablate logout box` first\n");
  EXPECT_EQ(Known().Find("box")->address(), "attic.example.org:7443");
  EXPECT_EQ(Run({"login", "--join", file, "--name", "mine"}).code, kSuccess);
  EXPECT_THAT(Known().Names(), ElementsAre("box", "mine"));
}

TEST_F(LoginServerTest, TakesTheAddressOfATunnel) {
  const std::string file =
      JoinFile("ada.join", [](v1::JoinFile* join) { join->set_address("box.example.org:7443"); });
  const Outcome made = Run({"login", server_->address(), "--join", file});
  EXPECT_EQ(made.code, kSuccess) << made.err;
  EXPECT_EQ(Known().Find("box")->address(), server_->address());
  EXPECT_EQ(Known().Find("box")->server_name(), "box.example.org");
}

TEST_F(LoginServerTest, TrustsNoServerOfAnotherAuthority) {
  const access::CertifiedKey other = access::MakeAuthority("box", absl::Now()).value();
  const std::string file = JoinFile(
      "ada.join", [&](v1::JoinFile* join) { join->set_certificate_authority(other.certificate); });
  const Outcome refused = Run({"login", "--join", file});
  EXPECT_EQ(refused.code, kNoServer);
  EXPECT_THAT(refused.err, HasSubstr("authority"));
  EXPECT_EQ(answers_.authorization, "") << "the token is not shown to it";
  EXPECT_THAT(Known().Names(), IsEmpty());
}

TEST_F(LoginServerTest, KeepsNoServerThatRefuses) {
  ExpectRefusals({{"login", "--join", JoinFile("ada.join")}});
  EXPECT_THAT(Known().Names(), IsEmpty());
}

TEST_F(LoginServerTest, SaysWhereNoServerAnswers) {
  const std::string file = JoinFile("ada.join");
  const std::string address = server_->address();
  server_.reset();
  const Outcome refused = Run({"login", "--join", file});
  EXPECT_EQ(refused.code, kNoServer);
  EXPECT_THAT(refused.err, HasSubstr(address));
  EXPECT_THAT(Known().Names(), IsEmpty());
}

TEST_F(LoginServerTest, NamesWhatIsWrongWithAJoinFile) {
  const auto refused_with = [this](const std::string& file, const std::string& why) {
    const Outcome refused = Run({"login", "--join", file});
    EXPECT_EQ(refused.code, kFailure);
    EXPECT_THAT(refused.err, HasSubstr(file));
    EXPECT_THAT(refused.err, HasSubstr(why));
    EXPECT_EQ(refused.err.find(token_), std::string::npos) << refused.err;
  };
  const std::string good = Read(JoinFile("ada.join"));
  const auto changed = [&](const std::string& name, const std::string& text) {
    const std::string path = Write(name, text);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    return path;
  };
  refused_with(folder_ + "/gone.join", "No such file or directory");
  refused_with(folder_, "is not a regular file");
  refused_with(changed("empty.join", ""), "not the JSON of a join file");
  refused_with(changed("cut.join", good.substr(0, good.size() / 2)), "not the JSON of a join file");
  refused_with(changed("none.join", "{}"), "address is \"\"");
  refused_with(changed("more.join", "{\"colour\": 1," + good.substr(1)), "colour");
  const std::string open = changed("open.join", good);
  fs::permissions(open, fs::perms::owner_read | fs::perms::group_read);
  refused_with(open, "mode");
  EXPECT_THAT(Known().Names(), IsEmpty());
  EXPECT_EQ(answers_.authorization, "");
}

TEST_F(LoginServerTest, NamesTheArgumentThatMakesNoSense) {
  const std::string file = JoinFile("ada.join");
  for (const std::string name : {"personal", "a/b", ".x"}) {
    const Outcome refused = Run({"login", "--join", file, "--name", name});
    EXPECT_EQ(refused.code, kUsage) << name;
    EXPECT_EQ(refused.err, "error: ablate login: --name: \"" + name +
                               "\" is not a server name; expected 1 to 64 letters, digits and . _ "
                               "-, other than \"personal\", the server on this machine\n");
  }
  for (const std::string address : {"nowhere", "box:0", "box:65536"}) {
    const Outcome refused = Run({"login", address, "--join", file});
    EXPECT_EQ(refused.code, kUsage) << address;
    EXPECT_THAT(refused.err, HasSubstr("error: ablate login: address is \"" + address + "\": "));
  }
  const Outcome none = Run({"login"});
  EXPECT_EQ(none.code, kUsage);
  EXPECT_THAT(none.err, HasSubstr("--join"));
  EXPECT_THAT(Known().Names(), IsEmpty());
}

TEST_F(LoginServerTest, NeedsAFolderToKeepItIn) {
  const std::string file = JoinFile("ada.join");
  environment_.erase("XDG_CONFIG_HOME");
  const Outcome unset = Run({"login", "--join", file});
  EXPECT_EQ(unset.code, kUsage);
  EXPECT_EQ(unset.err, "error: no folder for logins: set HOME or XDG_CONFIG_HOME\n");
  environment_["XDG_CONFIG_HOME"] = Write("config", "a file");
  const Outcome refused = Run({"login", "--join", file});
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_THAT(refused.err, HasSubstr(folder_ + "/config/ablate"));
}

}  // namespace
}  // namespace ablate::client
