// Tests the one rule of --force over the table of commands: a command that writes a file refuses an
// existing one before it does anything else, and all of them in the same words.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/command_table.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

enum class Writes { kFile, kFolder };

struct OutputCase {
  Writes writes = Writes::kFile;
  std::vector<std::string> arguments;  // besides -o PATH
};

// Every command with an output, and arguments that are complete.
const std::map<std::string, OutputCase>& OutputCases() {
  static const auto& cases = *new std::map<std::string, OutputCase>{
      {"report", {Writes::kFile, {"small"}}},
      {"figure", {Writes::kFile, {"small", "loss"}}},
      {"table", {Writes::kFile, {"small"}}},
      {"export", {Writes::kFile, {"small", "--format", "csv"}}},
      {"analyze", {Writes::kFile, {"spectrum", "small/pre-s1"}}},
      {"artifact get", {Writes::kFile, {"small/pre-s1", "checkpoint"}}},
      {"model export", {Writes::kFolder, {"small/pre-s1"}}},
      {"data get", {Writes::kFile, {"names"}}},
      {"data encode", {Writes::kFile, {"text", "--tokenizer", "gpt2"}}},
      {"admin init", {Writes::kFile, {"lab:7443"}}},
      {"admin user add", {Writes::kFile, {"ada"}}},
      {"admin token add", {Writes::kFile, {"ada"}}},
  };
  return cases;
}

std::vector<std::string> WordsOf(const CommandRow& row) {
  std::vector<std::string> words = {row.name};
  for (const CommandGroup* group = row.group; group != nullptr; group = group->parent) {
    words.insert(words.begin(), group->name);
  }
  return words;
}

class OutputsTest : public ClientTest {
 protected:
  // Without a server: each of the calls is refused or fails before it needs one.
  Outcome RunCase(const std::string& name, const std::string& path,
                  const std::vector<std::string>& more = {}) {
    const OutputCase& one = OutputCases().at(name);
    std::vector<std::string> arguments = absl::StrSplit(name, ' ');
    return Run(With(With(With(std::move(arguments), one.arguments), {"-o", path}), more));
  }
};

TEST_F(OutputsTest, HasEveryCommandThatWritesAFile) {
  std::set<std::string> expected;
  for (const auto& [name, one] : OutputCases()) expected.insert(name);
  std::set<std::string> found;
  for (const CommandRow& row : CommandTable()) {
    if (row.name == absl::string_view("help")) continue;  // adds pages to a folder of others
    const std::string help = Run(With(WordsOf(row), {"--help"})).out;
    if (!absl::StrContains(help, "-o, ") && !absl::StrContains(help, "--output")) {
      EXPECT_FALSE(absl::StrContains(help, "--force")) << row.name;
      continue;
    }
    found.insert(absl::StrJoin(WordsOf(row), " "));
    EXPECT_THAT(help, HasSubstr("Replace an existing file or folder")) << "see Command::Output";
  }
  EXPECT_EQ(found, expected) << "add the command to OutputCases";
}

// A command gets a file's name only with the user's choice: PartFile takes an Output.
TEST_F(OutputsTest, NoCommandOpensFilesByItself) {
  for (const auto& entry : std::filesystem::directory_iterator(COMMANDS)) {
    const std::string source = Read(entry.path());
    for (const char* way : {"std::ofstream", "fopen(", "O_CREAT", "process::CreateFile",
                            "process::ReplaceFile", "PartFile(\"", "Output{"}) {
      EXPECT_FALSE(absl::StrContains(source, way)) << entry.path() << " has " << way;
    }
  }
}

TEST_F(OutputsTest, RefusesWhatExistsInTheSameWords) {
  for (const auto& [name, one] : OutputCases()) {
    const std::string path = absl::StrCat(folder_, "/there");
    if (one.writes == Writes::kFolder) {
      std::filesystem::create_directory(path);
    } else {
      Write("there", "mine");
    }
    const Outcome refused = RunCase(name, path);
    EXPECT_EQ(refused.code, kFailure) << name;
    EXPECT_EQ(refused.err, absl::StrCat("error: ", path, " exists already: --force replaces it\n"))
        << name;
    EXPECT_EQ(refused.out, "") << name;
    // Passes the check, and fails later: nothing was lost.
    const Outcome forced = RunCase(name, path, {"--force"});
    EXPECT_NE(forced.code, kSuccess) << name;
    EXPECT_THAT(forced.err, Not(HasSubstr("exists already"))) << name;
    if (one.writes == Writes::kFile) {
      EXPECT_EQ(Read(path), "mine") << name;
    }
    std::filesystem::remove_all(path);
  }
}

TEST_F(OutputsTest, TakesAHyphenForStandardOutput) {
  for (const auto& [name, one] : OutputCases()) {
    EXPECT_THAT(RunCase(name, "-").err, Not(HasSubstr("exists already"))) << name;
    EXPECT_FALSE(std::filesystem::exists("-")) << name;
    const Outcome both = RunCase(name, "-", {"--json"});
    EXPECT_EQ(both.code, kUsage) << name;
    EXPECT_EQ(both.err, absl::StrCat("error: ablate ", name,
                                     ": --json: can't be combined with -o -, which writes to "
                                     "standard output, too; remove one of them\n"));
  }
}

}  // namespace
}  // namespace ablate::client
