// Tests the list of shared servers that a user has logged in to.
#include "client/logins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "client/personal_server.h"
#include "tests/test_folder.h"

namespace ablate::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kAuthority[] = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";

v1::JoinFile JoinOf(const std::string& address, char secret) {
  v1::JoinFile join;
  join.set_address(address);
  join.set_server_name("localhost");
  join.set_certificate_authority(kAuthority);
  join.set_user("ada");
  join.set_token("ablate_" + std::string(43, secret));
  join.mutable_expire_time()->set_seconds(2'000'000'000);
  return join;
}

class LoginsTest : public ::testing::Test {
 protected:
  process::Environment EnvironmentWith(const std::string& server = "") const {
    const std::string home = folder_.path();
    return [home, server](const char* name) -> std::optional<std::string> {
      const std::string variable = name;
      if (variable == "HOME") return home;
      if (variable == "ABLATE_SERVER" && !server.empty()) return server;
      return std::nullopt;
    };
  }
  Logins Known() const { return *Logins::Of(EnvironmentWith()); }

  const TestFolder folder_;
};

TEST_F(LoginsTest, OneNameIsOneServer) {
  v1::JoinFile box = JoinOf("box:7443", 'a');
  ASSERT_TRUE(Known().Add("box", box).ok());
  box.set_token("ablate_" + std::string(43, 'b'));
  EXPECT_TRUE(Known().Add("box", box).ok()) << "a new token for the same server";
  EXPECT_EQ(Known().Find("box")->token(), box.token());
  v1::JoinFile other = JoinOf("other:7443", 'c');
  other.set_certificate_authority("-----BEGIN CERTIFICATE-----\nMAE=\n-----END CERTIFICATE-----\n");
  const absl::Status taken = Known().Add("box", other);
  EXPECT_TRUE(absl::IsAlreadyExists(taken)) << taken;
  EXPECT_THAT(
      std::string(taken.message()),
      HasSubstr(
          "box is the name of another server (box:7443); give this one another by --name NAME"));
  EXPECT_EQ(Known().Find("box")->token(), box.token());
}

TEST_F(LoginsTest, WhatIsCurrentIsAFile) {
  std::filesystem::create_directories(folder_ / ".config/ablate/current");
  EXPECT_EQ(Known().Current(), "") << "a folder has no content";
}

TEST_F(LoginsTest, KeepsServersByNameForTheirUserAlone) {
  EXPECT_THAT(Known().Names(), IsEmpty());
  EXPECT_EQ(Known().Current(), "");
  ASSERT_TRUE(Known().Add("box", JoinOf("box.example.org:7443", 'a')).ok());
  ASSERT_TRUE(Known().Add("attic", JoinOf("attic:7443", 'b')).ok());
  EXPECT_THAT(Known().Names(), ElementsAre("attic", "box"));
  EXPECT_EQ(Known().Current(), "attic") << "the last";
  EXPECT_EQ(Known().Find("box")->address(), "box.example.org:7443");
  namespace fs = std::filesystem;
  const std::string folder = folder_ / ".config/ablate";
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(folder + "/servers/box.json").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(LoginsTest, ReplacesAServerOfTheSameName) {
  ASSERT_TRUE(Known().Add("box", JoinOf("old:1", 'a')).ok());
  ASSERT_TRUE(Known().Add("box", JoinOf("new:1", 'b')).ok());
  EXPECT_EQ(Known().Find("box")->address(), "new:1");
  EXPECT_THAT(Known().Names(), ElementsAre("box"));
}

TEST_F(LoginsTest, ForgetsAServer) {
  ASSERT_TRUE(Known().Add("box", JoinOf("box:1", 'a')).ok());
  ASSERT_TRUE(Known().Remove("box").ok());
  EXPECT_EQ(Known().Current(), "");
  EXPECT_EQ(Known().Find("box").status().message(),
            "no server is named \"box\"; expected personal. `ablate login --join FILE` adds one.");
  EXPECT_TRUE(absl::IsNotFound(Known().Remove("box")));
}

TEST_F(LoginsTest, RefusesNamesThatAreNone) {
  for (const char* name : {"", "personal", "a/b", "../x", ".x", "a b", "ä"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Logins::CheckName(name))) << name;
  }
  EXPECT_TRUE(Logins::CheckName("box-2.example_org").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Logins::CheckName(std::string(65, 'a'))));
}

TEST_F(LoginsTest, AreWhatCommandsTalkTo) {
  ASSERT_TRUE(Known().Add("box", JoinOf("box:1", 'a')).ok());
  ASSERT_TRUE(Known().Add("attic", JoinOf("attic:1", 'b')).ok());
  const auto current = FindServer(EnvironmentWith());
  ASSERT_TRUE(current.ok()) << current.status();
  EXPECT_EQ(current->login, "attic");
  EXPECT_EQ(current->address, "attic:1");
  EXPECT_EQ(current->authority, kAuthority);
  EXPECT_EQ(current->token, "ablate_" + std::string(43, 'b'));
  EXPECT_EQ(FindServer(EnvironmentWith("box"))->address, "box:1");
  EXPECT_THAT(std::string(FindServer(EnvironmentWith("personal")).status().message()),
              HasSubstr("run `ablate up`"));
}

TEST_F(LoginsTest, RefusesAFileThatOthersMayRead) {
  ASSERT_TRUE(Known().Add("box", JoinOf("box:1", 'a')).ok());
  namespace fs = std::filesystem;
  fs::permissions(folder_ / ".config/ablate/servers/box.json",
                  fs::perms::owner_read | fs::perms::group_read);
  EXPECT_TRUE(absl::IsFailedPrecondition(FindServer(EnvironmentWith("box")).status()));
}

}  // namespace
}  // namespace ablate::client
