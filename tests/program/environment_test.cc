// Tests describing Python environments and using them in the sandbox.
#include "server/program/environment.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "tests/program/run_fixture.h"

namespace ablate::program {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kPython[] = "/usr/bin/python3";

class EnvironmentTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    if (!std::filesystem::exists(kPython)) GTEST_SKIP() << "no " << kPython;
  }
  Request Python(const std::string& script, const std::string& python = kPython) const {
    Request request = Command({"python", "-c", script});
    const auto environment = DescribePython("test", python);
    EXPECT_TRUE(environment.ok()) << environment.status();
    if (environment.ok()) request.environment = *environment;
    return request;
  }
};

TEST_F(EnvironmentTest, DescribesTheSystemsPython) {
  const auto environment = DescribePython("system", kPython);
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->name, "system");
  EXPECT_FALSE(environment->is_virtual);
  EXPECT_THAT(environment->version,
              MatchesRegex("Python 3\\.[0-9.]+, (torch [^ ]+, )?[0-9a-f]{8}"));
  EXPECT_EQ(DescribePython("again", kPython)->version, environment->version);
}

TEST_F(EnvironmentTest, RejectsWhatIsNotPython) {
  EXPECT_EQ(DescribePython("sh", "/bin/true").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DescribePython("x", "/no/such/python").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(EnvironmentTest, ShowsFoldersOfData) {
  std::filesystem::create_directories(folder_ / "corpus/a");
  folder_.Write("corpus/a/text", "words");
  std::filesystem::create_directory_symlink(folder_ / "corpus", folder_ / "link");
  const auto describe = [&] { return DescribePython("data", kPython, {folder_ / "link"}); };
  const auto environment = describe();
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_THAT(environment->version, MatchesRegex(".*, data [0-9a-f]{8}"));
  EXPECT_EQ(describe()->version, environment->version);
  Request request = Shell(
      absl::StrCat("cat ", folder_ / "link/a/text", " && echo x >>", folder_ / "link/a/text"));
  EXPECT_FALSE(RunToEnd(request).ended->ok());
  request.environment = *environment;
  EXPECT_THAT(RunToEnd(request).log, ::testing::StartsWith("words"));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "corpus/a/text"), 5u);
  folder_.Write("corpus/a/text", "others");
  EXPECT_NE(describe()->version, environment->version);
  EXPECT_THAT(DescribePython("data", kPython, {folder_ / "gone"}).status().message(),
              ::testing::HasSubstr("gone"));
}

TEST_F(EnvironmentTest, RunsPythonByBothNames) {
  const Output output = RunToEnd(
      Python("import os, sys\n"
             "print(sys.prefix, os.popen('python3 -c \"import sys; print(sys.prefix)\"').read())"));
  EXPECT_EQ(output.log, "/usr /usr\n\n");
}

TEST_F(EnvironmentTest, RunsAVirtualEnvironment) {
  ASSERT_EQ(RunToEnd([&] {
              Request request = Python("import venv; venv.create('venv', symlinks=True)");
              request.sandboxed = false;
              return request;
            }())
                .ended->reason,
            "exit code 0");
  // It isn't in the run's folder.
  std::filesystem::rename(work_ + "/venv", folder_ / "venv");
  std::filesystem::create_directories(folder_ / "venv/lib/python3.0/site-packages");
  const Request request = Python("import sys; print(sys.prefix); open(sys.prefix + '/x', 'w')",
                                 folder_ / "venv/bin/python");
  EXPECT_TRUE(request.environment.is_virtual);
  EXPECT_THAT(request.environment.folders, Contains(folder_ / "venv"));
  const Output output = RunToEnd(request);
  EXPECT_THAT(output.log, HasSubstr((folder_ / "venv") + "\n"));
  EXPECT_THAT(output.log, HasSubstr("Read-only file system"));
}

TEST_F(EnvironmentTest, GivesMetricsToPython) {
  for (const bool sandboxed : {true, false}) {
    Request request = Python(
        "import json, os\n"
        "number = int(os.environ['ABLATE_METRICS'])\n"
        "with os.fdopen(number, 'w', closefd=False) as out:\n"
        "    out.write(json.dumps({'step': 1, 'a': float('inf')}) + '\\n')\n"
        "with open(f'/dev/fd/{number}', 'w') as out:\n"
        "    out.write('{\"step\": 2, \"a\": 5}\\n{\"checkpoint\": 2}\\n')\n"
        "print(open(int(os.environ['ABLATE_REPLIES'])).readline(), end='')\n");
    request.sandboxed = sandboxed;
    const Output output = RunToEnd(request);
    ASSERT_EQ(output.points.size(), 2u) << output.log;
    EXPECT_EQ(output.points[1], (Point{"a", 2, 5}));
    EXPECT_EQ(output.log, "ok\n");
  }
}

TEST_F(EnvironmentTest, SharesMemoryAmongProcesses) {
  const Output output = RunToEnd(
      Python("import multiprocessing as m\n"
             "lock, value = m.Lock(), m.Value('i', 7)\n"
             "with m.get_context('fork').Pool(2) as pool: print(sum(pool.map(abs, [-3, 4])))"));
  EXPECT_EQ(output.log, "7\n");
}

TEST(CheckReachableTest, NamesTheMissingPart) {
  const TestFolder folder;
  EXPECT_TRUE(CheckReachable(folder.path()).ok());
  EXPECT_THAT(std::string(CheckReachable(folder / "a/b").message()),
              HasSubstr(absl::StrCat("can't enter ", folder / "a", " (No such file")));
}

TEST(CheckReachableTest, NamesAFolderThatThisUserCannotEnter) {
  if (geteuid() == 0) GTEST_SKIP() << "root enters all folders";
  const TestFolder folder;
  std::filesystem::create_directories(folder / "closed/inner");
  chmod((folder / "closed").c_str(), 0);
  EXPECT_THAT(std::string(CheckReachable(folder / "closed/inner").message()),
              HasSubstr(absl::StrCat("can't enter ", folder / "closed")));
  chmod((folder / "closed").c_str(), 0700);
}

}  // namespace
}  // namespace ablate::program
