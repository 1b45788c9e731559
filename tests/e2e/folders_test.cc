// Tests copied and moved folders of a personal server: commands reach the server of their own
// folder, and no other.
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/personal_server.h"

namespace ablate::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class FoldersTest : public ::testing::Test {
 protected:
  void SetUp() override { server_.Up({"--lanes", "1"}); }
  // The fixture stops the server of its own folder.
  void TearDown() override { AblateThere({"down"}); }

  // Runs `ablate` for the other folder.
  Output AblateThere(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {ABLATE_BIN "/ablate"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunProgram(command, "", {{"ABLATE_HOME", other_}, {"ABLATE_SERVER", ""}});
  }

  std::string Submit() {
    const std::string yaml = SmallNames("kept", 5, "seeds: {count: 1}\n");
    return server_.Json({"submit", "-", "--wait", "--json"}, yaml)["experiment"]["name"];
  }

  PersonalServer server_;
  const std::string other_ = server_.home() + "-other";
};

TEST_F(FoldersTest, ACopyHasAServerOfItsOwn) {
  const std::string experiment = Submit();
  ASSERT_TRUE(Eventually([this] { return server_.WorkerPid() > 0 && server_.AnalystPid() > 0; }));
  const int server = server_.ServerPid();
  const int worker = server_.WorkerPid();
  const int analyst = server_.AnalystPid();
  ASSERT_EQ(RunProgram({"/bin/cp", "-a", server_.home(), other_}, "", {}).exit_code, 0);

  EXPECT_EQ(AblateThere({"ls"}).exit_code, 69) << "nothing serves the copy yet";
  EXPECT_THAT(AblateThere({"down"}).err, HasSubstr("no server runs in"));
  EXPECT_EQ(AblateThere({"up", "--lanes", "1"}).err, "up: " + other_ + "\n");
  EXPECT_EQ(AblateThere({"rm", experiment, "--yes"}).exit_code, 0);
  EXPECT_EQ(AblateThere({"down"}).err, "down: " + other_ + "\n");

  EXPECT_THAT(server_.Json({"ls", "--json"})["experiments"], SizeIs(1));
  EXPECT_EQ(server_.ServerPid(), server);
  EXPECT_EQ(server_.WorkerPid(), worker);
  EXPECT_EQ(server_.AnalystPid(), analyst);
}

TEST_F(FoldersTest, AMovedFolderIsNotServedByWhoeverHasItsPlace) {
  const std::string experiment = Submit();
  const int before = server_.ServerPid();
  std::filesystem::rename(server_.home(), other_);
  ASSERT_TRUE(Eventually([before] { return !PersonalServer::Lives(before); }));
  server_.Up();
  EXPECT_EQ(AblateThere({"ls"}).exit_code, 69);
  EXPECT_THAT(AblateThere({"down"}).err, HasSubstr("no server runs in"));
  EXPECT_EQ(AblateThere({"up"}).err, "up: " + other_ + "\n");
  EXPECT_EQ(AblateThere({"show", experiment}).exit_code, 0);
  EXPECT_THAT(server_.Json({"ls", "--json"})["experiments"], SizeIs(0));
}

// The server may not have noticed yet.
TEST_F(FoldersTest, AMovedFolderIsServedAnewAtOnce) {
  const std::string experiment = Submit();
  const int before = server_.ServerPid();
  std::filesystem::rename(server_.home(), other_);
  EXPECT_EQ(AblateThere({"ls"}).exit_code, 69);
  EXPECT_EQ(AblateThere({"up", "--lanes", "1"}).err, "up: " + other_ + "\n");
  EXPECT_FALSE(PersonalServer::Lives(before));
  EXPECT_EQ(AblateThere({"show", experiment}).exit_code, 0);
}

}  // namespace
}  // namespace ablate::e2e
