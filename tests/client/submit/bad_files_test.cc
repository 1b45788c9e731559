// Every malformed file in bad_files/ gets exactly the messages that bad_files/expected.txt has for
// it, in which {ModelSpec} stands for a list of fields (field_lists.h).
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/submit/experiment_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/reflect/field_lists.h"

namespace ablate::client {
namespace {

constexpr const char* kExpected = "expected.txt";

std::vector<std::string> FileNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(BAD_FILES)) {
    const std::string name = entry.path().filename().string();
    if (name != kExpected) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The lines of expected.txt about one file.
std::vector<std::string> ExpectedLines(const std::string& name) {
  std::ifstream in(absl::StrCat(BAD_FILES, "/", kExpected));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (absl::StartsWith(line, name + ":")) lines.push_back(WithFieldLists(line));
  }
  return lines;
}

class BadFileTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BadFileTest, GetsItsExactMessages) {
  std::istringstream unused;
  const ExperimentFile file = LoadExperimentFile(absl::StrCat(BAD_FILES, "/", GetParam()), unused);
  std::vector<std::string> lines;
  for (const yaml::Diagnostic& problem : file.problems)
    lines.push_back(yaml::ToString(problem, GetParam()));
  EXPECT_FALSE(lines.empty());
  EXPECT_EQ(lines, ExpectedLines(GetParam()));
}

std::string TestName(const ::testing::TestParamInfo<std::string>& parameter) {
  std::string name = parameter.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, BadFileTest, ::testing::ValuesIn(FileNames()), TestName);

TEST(BadFilesTest, AreMany) { EXPECT_GE(FileNames().size(), 70u); }

class LargeFileTest : public ::testing::Test {
 protected:
  // The messages for a YAML text from stdin.
  static std::vector<std::string> Messages(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (const yaml::Diagnostic& problem : LoadExperimentFile("-", in).problems) {
      lines.push_back(yaml::ToString(problem, "x"));
    }
    return lines;
  }

  static std::string Repeat(const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  }
};

TEST_F(LargeFileTest, IsRefusedAboveOneMebibyte) {
  const std::string most = "name: a\nquestion: " + std::string((1 << 20) - 18, 'x');
  EXPECT_THAT(Messages(most), ::testing::IsEmpty());
  EXPECT_THAT(
      Messages(most + "x"),
      ::testing::ElementsAre("x: the file is larger than 1 MiB, the most an experiment may be"));
}

TEST_F(LargeFileTest, IsRefusedWhenItNestsDeeply) {
  EXPECT_THAT(Messages("name: " + Repeat("[", 51) + Repeat("]", 51)),
              ::testing::Contains("x:1:56: nested deeper than 50 levels"));
  EXPECT_THAT(Messages("{\"name\": " + Repeat("[", 51) + Repeat("]", 51) + "}"),
              ::testing::Contains("x:1:59: nested deeper than 50 levels"));
  EXPECT_THAT(Messages(Repeat("{a: ", 49) + "1" + Repeat("}", 49)),
              ::testing::Not(::testing::Contains(::testing::HasSubstr("nested"))));
}

TEST_F(LargeFileTest, IsRefusedWhenValuesNestTooDeeplyToBeSent) {
  const std::string axis =
      "name: a\naxes: [{field: training.checkpoints, settings: [{label: a, set: {task: " +
      Repeat("{a: ", 40) + "1" + Repeat("}", 40) + "}}]}]\n";
  EXPECT_THAT(Messages(axis), ::testing::Not(::testing::IsEmpty()));
}

TEST_F(LargeFileTest, EndsQuicklyWhateverIsRepeated) {
  for (const std::string piece : {"[", "{", "- ", "? ", ": ", "\"", "{a: ", "[a, ", "&a ", "!a ",
                                  "*a ", "|", ",", "a: ", "a\n", "a: 1\n", "'", "%"}) {
    const std::string text = Repeat(piece, (1 << 19) / static_cast<int>(piece.size()));
    EXPECT_THAT(Messages(text), ::testing::Not(::testing::IsEmpty())) << piece;
  }
}

}  // namespace
}  // namespace ablate::client
