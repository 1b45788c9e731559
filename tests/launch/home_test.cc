// Tests the folders of a personal server.
#include "server/launch/home.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test_folder.h"

namespace ablate::launch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

int Mode(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 0777) : -1;
}

TEST(PrepareHomeTest, MakesFoldersThatOnlyTheOwnerCanEnter) {
  const TestFolder folder;
  const auto home = PrepareHome(folder / "above/home");
  ASSERT_TRUE(home.ok()) << home.status();
  EXPECT_EQ(home->folder, folder / "above/home");
  for (const std::string& made : {home->folder, home->log_folder, home->run_folder}) {
    EXPECT_EQ(Mode(made), 0700) << made;
  }
  EXPECT_EQ(home->client_socket, folder / "above/home/run/ablate.sock");
  EXPECT_EQ(home->worker_socket, folder / "above/home/run/worker.sock");
  EXPECT_EQ(home->address_file, folder / "above/home/run/address");
  EXPECT_EQ(home->pid_file, folder / "above/home/run/ablated.pid");
}

TEST(PrepareHomeTest, AnswersTheSameForEverySpelling) {
  const TestFolder folder;
  const auto plain = PrepareHome(folder / "home");
  const auto slash = PrepareHome(folder / "home/");
  const auto dots = PrepareHome(folder / "other/../home/.");
  std::filesystem::create_symlink(folder / "home", folder / "link");
  const auto link = PrepareHome(folder / "link");
  ASSERT_TRUE(plain.ok() && slash.ok() && dots.ok() && link.ok());
  EXPECT_EQ(slash->folder, plain->folder);
  EXPECT_EQ(dots->folder, plain->folder);
  EXPECT_EQ(link->folder, plain->folder);
}

TEST(PrepareHomeTest, ATrailingSlashStillMakesAPrivateFolder) {
  const TestFolder folder;
  ASSERT_TRUE(PrepareHome(folder / "new/").ok());
  EXPECT_EQ(Mode(folder / "new"), 0700);
}

TEST(PrepareHomeTest, RefusesAFolderThatOthersCanEnter) {
  const TestFolder folder;
  std::filesystem::create_directory(folder / "home");
  chmod((folder / "home").c_str(), 0755);
  const auto home = PrepareHome(folder / "home");
  EXPECT_EQ(home.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(home.status().message(), "folder " + (folder / "home") +
                                         " has mode 755, must be 700 (chmod 700 " +
                                         (folder / "home") + ")");
  EXPECT_EQ(Mode(folder / "home"), 0755) << "it must not be changed";
}

TEST(PrepareHomeTest, RefusesARunFolderThatIsALink) {
  const TestFolder folder;
  ASSERT_TRUE(PrepareHome(folder / "home").ok());
  std::filesystem::remove(folder / "home/run");
  std::filesystem::create_directory_symlink(folder / "home/log", folder / "home/run");
  const auto home = PrepareHome(folder / "home");
  EXPECT_EQ(home.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(home.status().message()), HasSubstr("is not a folder"));
}

TEST(PrepareHomeTest, RefusesAFileAndAnEmptyName) {
  const TestFolder folder;
  EXPECT_EQ(PrepareHome(folder.Write("file", "")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(PrepareHome("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PrepareHomeTest, GivesSocketsOfADeepFolderAShortPath) {
  const TestFolder folder;
  const TestFolder runtime;
  setenv("XDG_RUNTIME_DIR", runtime.path().c_str(), 1);
  const std::string deep = folder / std::string(100, 'd');
  const auto home = PrepareHome(deep);
  ASSERT_TRUE(home.ok()) << home.status();
  EXPECT_THAT(home->client_socket, StartsWith(runtime / "ablate/"));
  EXPECT_THAT(home->worker_socket, StartsWith(runtime / "ablate/"));
  EXPECT_NE(home->client_socket, home->worker_socket);
  EXPECT_LE(home->client_socket.size(), 107u);
  EXPECT_EQ(Mode(runtime / "ablate"), 0700);
  EXPECT_EQ(PrepareHome(deep)->client_socket, home->client_socket);
  EXPECT_NE(PrepareHome(folder / std::string(100, 'e'))->client_socket, home->client_socket);
}

TEST(PrepareHomeTest, UsesTheTemporaryFolderWithoutARuntimeFolder) {
  const TestFolder folder;
  const std::string temporary = "/tmp/ablate-" + std::to_string(geteuid()) + "/";
  unsetenv("XDG_RUNTIME_DIR");
  const auto unset = PrepareHome(folder / std::string(100, 'd'));
  setenv("XDG_RUNTIME_DIR", (folder / "missing").c_str(), 1);
  const auto missing = PrepareHome(folder / std::string(100, 'd'));
  ASSERT_TRUE(unset.ok()) << unset.status();
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_THAT(unset->client_socket, StartsWith(temporary));
  EXPECT_THAT(missing->client_socket, StartsWith(temporary));
}

TEST(PrepareHomeTest, RefusesAShortFolderThatOthersCanEnter) {
  const TestFolder folder;
  const TestFolder runtime;
  setenv("XDG_RUNTIME_DIR", runtime.path().c_str(), 1);
  std::filesystem::create_directory(runtime / "ablate");
  chmod((runtime / "ablate").c_str(), 0777);
  EXPECT_EQ(PrepareHome(folder / std::string(100, 'd')).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace ablate::launch
