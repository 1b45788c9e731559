// Tests the forms of tables: alignment, quoting, and texts that look like commands.
#include "server/report/table/table.h"

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::report {
namespace {

using ::testing::ElementsAre;

TEST(RenderTest, AlignsAndQuotesAndEscapes) {
  const Table table = {{{"name", false, {{"a"}, {"b,\"c\""}}}, {"Δ", true, {{"−1"}, {"12"}}}}};
  EXPECT_EQ(RenderText(table), "name    Δ\na      −1\nb,\"c\"  12\n");
  EXPECT_EQ(RenderCsv(table), "name,Δ\r\na,−1\r\n\"b,\"\"c\"\"\",12\r\n");
  EXPECT_EQ(RenderLatex(table),
            "% needs \\usepackage{booktabs}\n\\begin{tabular}{lr}\n\\toprule\n"
            "name & $\\Delta$ \\\\\n\\midrule\na & $-$1 \\\\\n"
            "b,{\\symbol{34}}c{\\symbol{34}} & 12 \\\\\n\\bottomrule\n\\end{tabular}\n");
}

// Returns random characters, most of them special somewhere.
std::string Hostile(std::mt19937* random) {
  static const std::vector<std::string> kPieces = absl::StrSplit(
      "\\ { } $ & # % _ ~ ^ ` \" ' , \r \n \t [ ] * - = @ + | < > ; ! a \x1b[2J \u202E \u2066 \x80 "
      "\xC3 \x7F é 名 😀 \u2028 \\input{/etc/passwd} \\end{tabular} =cmd() \\\\ $(x)",
      ' ');
  std::string text;
  const size_t pieces = 1 + (*random)() % 8;
  for (size_t i = 0; i < pieces; ++i) {
    text += kPieces[(*random)() % kPieces.size()];
    if ((*random)() % 8 == 0) text += ' ';
  }
  return text;
}

// Parses fields with a line-based reader of RFC 4180.
std::vector<std::vector<std::string>> ParseCsv(const std::string& text) {
  std::vector<std::vector<std::string>> lines = {{""}};
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string& field = lines.back().back();
    if (quoted) {
      if (text[i] != '"') {
        field += text[i];
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        quoted = false;
      }
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == ',') {
      lines.back().emplace_back();
    } else if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
      lines.push_back({""});
    } else {
      field += text[i];
    }
  }
  lines.pop_back();
  return lines;
}

TEST(RenderTest, KeepsTenThousandHostileTextsLiteralInCsv) {
  std::mt19937 random(7);
  Table table = {{{"hostile", false, {}}, {"n", true, {}}}};
  for (int i = 0; i < 10'000; ++i) {
    table.columns[0].cells.push_back({Hostile(&random)});
    table.columns[1].cells.push_back({absl::StrCat(i)});
  }
  const auto lines = ParseCsv(RenderCsv(table));
  ASSERT_EQ(lines.size(), 10'001u);
  for (size_t i = 0; i < 10'000; ++i) {
    ASSERT_THAT(lines[i + 1], ElementsAre(table.columns[0].cells[i].text, absl::StrCat(i)));
  }
}

TEST(RenderTest, KeepsTenThousandHostileTextsOnTheirLineOfATerminal) {
  std::mt19937 random(8);
  Table table = {{{"hostile", false, {}}, {"end", false, {}}}};
  for (int i = 0; i < 10'000; ++i) {
    table.columns[0].cells.push_back({Hostile(&random)});
    table.columns[1].cells.push_back({"end"});
  }
  const std::string text = RenderText(table);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  ASSERT_EQ(lines.size(), 10'002u);
  for (size_t i = 0; i <= 10'000; ++i) EXPECT_TRUE(absl::EndsWith(lines[i], "end")) << lines[i];
  for (const char* bad : {"\x1b", "\r", "\t", "\x7f", "\u202E", "\u2066", "\u2028"}) {
    EXPECT_FALSE(absl::StrContains(text, bad));
  }
}

// Returns an EscapeLatex text without its own commands.
std::string WithoutCommands(std::string text) {
  const std::vector<std::string> commands = absl::StrSplit(
      R"(\textbackslash{} \textasciitilde{} \textasciicircum{} \textless{} \textgreater{} \textbar{}
         {\symbol{34}} {\symbol{39}} {\symbol{96}} {[} {]} {*} {-} \{ \} \$ \& \# \% \_)",
      absl::ByAnyChar(" \n"), absl::SkipEmpty());
  for (const std::string& command : commands) {
    for (size_t at = text.find(command); at != std::string::npos; at = text.find(command, at)) {
      text.replace(at, command.size(), " ");
    }
  }
  for (size_t at = text.find("\\texttt{U+"); at != std::string::npos;
       at = text.find("\\texttt{U+")) {
    text.erase(at, text.find('}', at) + 1 - at);
  }
  return text;
}

TEST(RenderTest, LeavesNoCommandInTenThousandHostileTextsForLatex) {
  std::mt19937 random(9);
  for (int i = 0; i < 10'000; ++i) {
    const std::string hostile = Hostile(&random);
    const std::string rest = WithoutCommands(EscapeLatex(hostile));
    EXPECT_EQ(rest.find_first_of("\\{}$&#%_~^[]*\"'`\r\n\t|<>"), std::string::npos) << rest;
    for (const char c : rest) {
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != '\x7f') << rest;
    }
  }
  EXPECT_EQ(EscapeLatex("\\input{x}"), "\\textbackslash{}input\\{x\\}");
  EXPECT_EQ(EscapeLatex("a\u202Eb\xFF"), "a\\texttt{U+202E}b\\texttt{U+FFFD}");
  EXPECT_EQ(EscapeLatex("résumé"), "résumé");
}

}  // namespace
}  // namespace ablate::report
