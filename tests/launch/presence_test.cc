// Tests the files that a server writes into its home and removes, and when they are another
// server's.
#include "server/launch/presence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/process_id.h"
#include "base/socket_path.h"
#include "tests/test_folder.h"

namespace ablate::launch {
namespace {

namespace fs = std::filesystem;
using process::ReadWholeFile;

class PresenceTest : public testing::Test {
 protected:
  // Files in place of sockets: nothing here listens.
  PresenceTest() {
    Write(presence_->client_draft(), "c");
    Write(presence_->worker_draft(), "w");
    EXPECT_TRUE(presence_->TakeSocketNames().ok());
    EXPECT_TRUE(presence_->Announce().ok());
  }

  static void Write(const std::string& file, const std::string& text) {
    EXPECT_TRUE(process::ReplaceFile(file, text).ok());
  }

  // Writes the files of another server, a process started later.
  void MakeAnother() {
    EXPECT_TRUE(PrepareHome(home_.folder).ok());
    for (const std::string& file : Names()) Write(file, "1 1 another");
  }

  std::vector<std::string> Names() const {
    return {home_.client_socket, home_.worker_socket, home_.address_file, home_.pid_file};
  }

  const TestFolder folder_;
  const Home home_ = *PrepareHome(folder_ / "home");
  std::unique_ptr<Presence> presence_ = std::make_unique<Presence>(home_);
};

TEST_F(PresenceTest, RemovesWhatItMade) {
  EXPECT_EQ(ReadWholeFile(home_.client_socket), "c");
  EXPECT_EQ(ReadWholeFile(home_.worker_socket), "w");
  EXPECT_EQ(ReadWholeFile(home_.address_file), process::SocketAddress(home_.client_socket) + "\n");
  EXPECT_TRUE(process::FindByPidFile(home_.pid_file).has_value());
  presence_->LeaveClients();
  EXPECT_FALSE(fs::exists(home_.client_socket));
  EXPECT_FALSE(fs::exists(home_.address_file));
  EXPECT_TRUE(fs::exists(home_.worker_socket));
  presence_.reset();
  EXPECT_TRUE(fs::is_empty(home_.run_folder));
}

TEST_F(PresenceTest, IsKeptWhereOnlyNamesAreMissing) {
  for (const std::string& file : {home_.pid_file, home_.address_file}) {
    fs::remove(file);
    EXPECT_TRUE(presence_->Keep());
    EXPECT_TRUE(fs::exists(file)) << file;
  }
}

TEST_F(PresenceTest, IsLostWithEitherSocket) {
  for (const std::string& socket : {home_.client_socket, home_.worker_socket}) {
    fs::rename(socket, socket + ".away");
    EXPECT_FALSE(presence_->Keep()) << socket;
    Write(socket, "another");
    EXPECT_FALSE(presence_->Keep()) << socket;
    fs::rename(socket + ".away", socket);
    EXPECT_TRUE(presence_->Keep()) << socket;
  }
}

TEST_F(PresenceTest, IsLostWhereTheFolderIsAFile) {
  fs::rename(home_.run_folder, folder_ / "away");
  Write(home_.run_folder, "");
  EXPECT_FALSE(presence_->Keep());
}

TEST_F(PresenceTest, SaysWhichProcessEndsWhereItsFolderStillIsItsOwn) {
  fs::remove_all(home_.run_folder);
  EXPECT_FALSE(presence_->Keep());
  ASSERT_TRUE(presence_->AnnounceEnd().ok());
  EXPECT_EQ(process::FindByPidFile(home_.pid_file)->process.pid, getpid());
  EXPECT_FALSE(fs::exists(home_.address_file));
  presence_.reset();
  EXPECT_TRUE(fs::is_empty(home_.run_folder));
}

TEST_F(PresenceTest, MakesNoFolderAnewThatWasRemoved) {
  fs::remove_all(home_.folder);
  EXPECT_FALSE(presence_->Keep());
  EXPECT_TRUE(presence_->AnnounceEnd().ok());
  EXPECT_FALSE(fs::exists(home_.folder));
}

TEST_F(PresenceTest, TouchesNothingInAFolderThatAnotherServerMade) {
  fs::rename(home_.folder, folder_ / "away");  // removed, its inode could become the next one's
  MakeAnother();
  EXPECT_FALSE(presence_->OwnsFolder());
  EXPECT_FALSE(presence_->Keep());
  EXPECT_TRUE(presence_->AnnounceEnd().ok());
  presence_->LeaveClients();
  presence_->LeaveWorkers();
  presence_.reset();
  for (const std::string& file : Names()) EXPECT_EQ(ReadWholeFile(file), "1 1 another") << file;
}

TEST_F(PresenceTest, LeavesThePidFileOfALaterProcess) {
  Write(home_.pid_file, "1 1 another");
  presence_.reset();
  EXPECT_EQ(ReadWholeFile(home_.pid_file), "1 1 another");
}

}  // namespace
}  // namespace ablate::launch
