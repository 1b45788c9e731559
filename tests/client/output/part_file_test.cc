// Tests files that appear only when they are whole, and what may exist at their path before.
#include "client/output/part_file.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/test_folder.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

class PartFileTest : public ::testing::Test {
 protected:
  std::string In(const std::string& name) const { return folder_ / name; }
  size_t Names() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  const TestFolder folder_;
};

TEST_F(PartFileTest, ReplacesAFileOnceItIsWhole) {
  std::ofstream(In("page")) << "old";
  {
    PartFile file({In("page"), true});
    ASSERT_TRUE(file.Open().ok());
    ASSERT_TRUE(file.Write("half").ok());
    EXPECT_EQ(ReadText(In("page")), "old");
  }
  EXPECT_EQ(ReadText(In("page")), "old");
  ASSERT_TRUE(WriteFile({In("page"), true}, "new").ok());
  EXPECT_EQ(ReadText(In("page")), "new");
  EXPECT_EQ(Names(), 1u);
}

TEST_F(PartFileTest, LeavesNothingWhenASignalEndsTheProgram) {
  const int file = open(folder_.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (file < 0) GTEST_SKIP() << "this file system has no files without a name";
  close(file);
  EXPECT_EXIT(
      {
        PartFile page({In("page"), true});
        const bool written = page.Open().ok() && page.Write("half").ok();
        raise(written ? SIGKILL : SIGABRT);
      },
      ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(Names(), 0u);
}

TEST_F(PartFileTest, ReplacesWhatAppearsMeanwhileIfForced) {
  PartFile first({In("page")}), second({In("page"), true});
  ASSERT_TRUE(first.Open().ok());
  ASSERT_TRUE(second.Open().ok());
  ASSERT_TRUE(first.Write("first").ok());
  ASSERT_TRUE(second.Write("second").ok());
  ASSERT_TRUE(first.Commit().ok());
  EXPECT_TRUE(second.Commit().ok());
  EXPECT_EQ(ReadText(In("page")), "second");
  EXPECT_EQ(Names(), 1u);
}

TEST_F(PartFileTest, RefusesWhatAppearsMeanwhile) {
  PartFile page({In("page")});
  ASSERT_TRUE(page.Open().ok());
  ASSERT_TRUE(page.Write("page").ok());
  std::ofstream(In("page")) << "precious";
  EXPECT_TRUE(absl::IsAlreadyExists(page.Commit()));
  EXPECT_EQ(ReadText(In("page")), "precious");
}

TEST_F(PartFileTest, KeepsThePermissionsOfWhatItReplaces) {
  for (const mode_t mode : {0600, 0640, 0444, 0777}) {
    std::ofstream(In("page")) << "old";
    ASSERT_EQ(chmod(In("page").c_str(), mode), 0);
    ASSERT_TRUE(WriteFile({In("page"), true}, "new").ok());
    struct stat info;
    ASSERT_EQ(stat(In("page").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
    fs::remove(In("page"));
  }
  ASSERT_EQ(mkdir(In("logs").c_str(), 0700), 0);
  ASSERT_EQ(chmod(In("logs").c_str(), 0750), 0);
  PartFolder folder({In("logs"), true}, [](const std::string&) { return true; });
  ASSERT_TRUE(folder.Open().ok());
  ASSERT_TRUE(folder.Write("events", "new").ok());
  ASSERT_TRUE(folder.Commit().ok());
  struct stat info;
  ASSERT_EQ(stat(In("logs").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0750u);
}

// Lets every change of permissions by this thread fail with `error`, for ever. Whether that works.
bool RefusePermissions(int error) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const uint32_t call : {
#ifdef SYS_chmod
           SYS_chmod,
#endif
           SYS_fchmod, SYS_fchmodat}) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<uint16_t>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(PartFileTest, ReplacesWherePermissionsCannotBeChanged) {
  std::ofstream(In("page")) << "old";
  ASSERT_EQ(mkdir(In("logs").c_str(), 0700), 0);
  for (const int error : {EPERM, ENOTSUP, ENOSYS}) {
    bool refused = false;
    absl::Status file, folder;
    std::thread([&] {
      refused = RefusePermissions(error);
      file = WriteFile({In("page"), true}, absl::StrCat("new ", error));
      PartFolder logs({In("logs"), true}, [](const std::string&) { return true; });
      folder = logs.Open();
      folder.Update(logs.Write("events", "new"));
      folder.Update(logs.Commit());
    }).join();
    if (!refused) GTEST_SKIP() << "no call can be made to fail here";
    EXPECT_TRUE(file.ok()) << file;
    EXPECT_TRUE(folder.ok()) << folder;
    EXPECT_EQ(ReadText(In("page")), absl::StrCat("new ", error));
  }
}

TEST(PartFileNameTest, OfStandardOutputTakesAFileAndNoFolder) {
  std::ostringstream out;
  EXPECT_TRUE(WriteFile({"-", false, &out}, std::string("new\0", 4)).ok());
  EXPECT_EQ(out.str(), std::string("new\0", 4));
  out.setstate(std::ios::badbit);
  EXPECT_TRUE(absl::IsAborted(WriteFile({"-", false, &out}, "new")));
  PartFolder folder({"-", true}, [](const std::string&) { return true; });
  EXPECT_TRUE(absl::IsInvalidArgument(folder.Open()));
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(PartFileTest, WritesToWhatALinkPointsTo) {
  std::ofstream(In("page")) << "old";
  fs::create_symlink("page", In("link"));
  ASSERT_TRUE(WriteFile({In("link"), true}, "new").ok());
  EXPECT_TRUE(fs::is_symlink(In("link")));
  EXPECT_EQ(ReadText(In("page")), "new");
}

TEST_F(PartFileTest, LeavesADeviceADevice) {
  fs::create_symlink("/dev/null", In("null"));  // so that not the real one is lost
  ASSERT_TRUE(WriteFile({In("null"), true}, "new").ok());
  EXPECT_TRUE(fs::is_symlink(In("null")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(PartFileTest, WritesIntoAPipe) {
  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  std::fstream reader(In("pipe"));  // open both ways, so that nothing waits
  ASSERT_TRUE(WriteFile({In("pipe"), true}, "new\n").ok());
  std::string line;
  std::getline(reader, line);
  EXPECT_EQ(line, "new");
  EXPECT_TRUE(fs::is_fifo(In("pipe")));
}

TEST_F(PartFileTest, RefusesOnlyWhatWouldBeLost) {
  std::ofstream(In("page")) << "old";
  fs::create_symlink("page", In("link"));
  fs::create_symlink("/dev/null", In("null"));
  for (const char* name : {"page", "link"}) {
    EXPECT_EQ(WriteFile({In(name)}, "new").message(),
              absl::StrCat(In(name), " exists already: --force replaces it"));
  }
  EXPECT_EQ(ReadText(In("page")), "old");
  EXPECT_TRUE(WriteFile({In("null")}, "new").ok());
  EXPECT_TRUE(WriteFile({In("other")}, "new").ok());
}

TEST_F(PartFileTest, RefusesAFolder) {
  fs::create_directory(In("page"));
  EXPECT_THAT(std::string(WriteFile({In("page"), true}, "new").message()),
              ::testing::HasSubstr("is a folder"));
  EXPECT_EQ(Names(), 1u);
}

TEST_F(PartFileTest, NamesTheFolderThatIsMissing) {
  const std::string nowhere = In("no/such");
  const std::string why = absl::StrCat("folder ", nowhere, ": No such file or directory");
  EXPECT_EQ(WriteFile({absl::StrCat(nowhere, "/page"), true}, "new").message(), why);
  PartFolder folder({absl::StrCat(nowhere, "/logs")}, [](const std::string&) { return true; });
  EXPECT_EQ(folder.Open().message(), why);
  std::ofstream(In("file")) << "no folder";
  EXPECT_EQ(WriteFile({In("file/page"), true}, "new").message(),
            absl::StrCat("folder ", In("file"), ": Not a directory"));
}

// Whoever may write there could else have us write through a link of theirs.
TEST_F(PartFileTest, PassesOverANameThatIsTaken) {
  std::ofstream(In("precious")) << "old";
  fs::create_symlink("precious", absl::StrCat(In("page"), ".", getpid(), ".0.part"));
  ASSERT_TRUE(WriteFile({In("page"), true}, "new").ok());
  EXPECT_EQ(ReadText(In("page")), "new");
  EXPECT_EQ(ReadText(In("precious")), "old");
}

TEST(PathTest, StaysBelowItsFolder) {
  for (const char* path : {"a", "a/b", "..a/b..", "pre-s1/events.out.tfevents.1"}) {
    EXPECT_TRUE(IsPathBelow(path)) << path;
  }
  for (const char* path : {"", "/", "a/", "/a", ".", "..", "a/..", "../a", "a/./b", "a\nb"}) {
    EXPECT_FALSE(IsPathBelow(path)) << path;
  }
}

}  // namespace
}  // namespace ablate::client
