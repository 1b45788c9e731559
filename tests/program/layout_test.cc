// Tests finding files and commands as a program would see them.
#include "server/program/layout.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "server/program/command.h"
#include "tests/test_folder.h"

namespace ablate::program {
namespace {

TEST(LayoutTest, FindsFilesThroughBindsAndLinks) {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "env/bin");
  folder.Write("env/bin/python3.11", "");
  std::filesystem::create_symlink("python3.11", folder / "env/bin/python3");
  std::filesystem::create_symlink("/env/bin/python3", folder / "absolute");
  std::filesystem::create_symlink("loop", folder / "loop");
  const Layout layout = {{{folder.path(), "/program"}, {folder / "env", "/env"}},
                         {{"/bin", "env/bin"}}};
  EXPECT_EQ(FindFile(layout, "/program/env/bin/python3"), folder / "env/bin/python3.11");
  EXPECT_EQ(FindFile(layout, "/program/absolute"), folder / "env/bin/python3.11");
  EXPECT_EQ(FindFile(layout, "/bin/../bin/./python3"), folder / "env/bin/python3.11");
  EXPECT_EQ(FindFile(layout, "/program/loop"), std::nullopt);
  EXPECT_EQ(FindFile(layout, "/program/none"), std::nullopt);
  EXPECT_EQ(FindFile(layout, folder.path()), std::nullopt) << "not at this path";
}

TEST(LayoutTest, FindsCommandsAsExecvpDoes) {
  const TestFolder folder;
  folder.Write("tool", "not executable");
  std::filesystem::create_directory(folder / "bin");
  folder.Script("bin/tool", "");
  const auto path = folder.path() + ":" + folder.path() + "/bin";
  EXPECT_EQ(FindCommand(HostLayout(), "tool", path, "/").value(), folder / "bin/tool");
  EXPECT_EQ(FindCommand(HostLayout(), "bin/tool", "", folder.path()).value(),
            folder.path() + "/bin/tool");
  EXPECT_EQ(FindCommand(HostLayout(), "./tool", path, folder.path()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(FindCommand(HostLayout(), "none", path, "/").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ablate::program
