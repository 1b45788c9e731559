// Scripts: labels are data, numbers are numbers, and nothing that a label says is a command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/report/compare/paired.h"
#include "server/report/figure/gnuplot.h"

namespace ablate::figure {
namespace {

using testing::HasSubstr;
using testing::Not;

Figure WithTexts(const std::vector<std::string>& texts) {
  Figure figure;
  figure.name = "test";
  Panel panel;
  for (const std::string& text : texts) {
    figure.texts.push_back({1, 1, text, 7, {}});
    panel.x.ticks.push_back({0.5, absl::StrCat("at ", text)});
  }
  figure.panels.push_back(panel);
  return figure;
}

// The lines of the block of texts, and everything behind it.
struct Parts {
  std::vector<std::string> texts;
  std::string commands;
};

Parts Split(const std::string& script) {
  Parts parts;
  const std::string begin = "set encoding utf8\n$L <<ABLATE_EOD\n", end = "\nABLATE_EOD\nS(i)=";
  EXPECT_TRUE(absl::StartsWith(script, begin));
  const size_t last = script.find(end);
  EXPECT_NE(last, std::string::npos);
  parts.texts = absl::StrSplit(script.substr(begin.size(), last - begin.size()), '\n');
  parts.commands = script.substr(last);
  return parts;
}

// Any bytes, with those that gnuplot, markup and UTF-8 care about more often than others.
std::string RandomText(report::RandomStream* random) {
  static const std::vector<std::string> kPieces = {"`",    "$(",         "\"",
                                                   "'",    "\\",         "{",
                                                   "}",    "@",          "|",
                                                   "\n",   "ABLATE_EOD", "\nABLATE_EOD\n",
                                                   "<",    "&",          ">",
                                                   "%",    "#",          ";",
                                                   "\0",   "\x80",       "\xE2\x80\xAE",
                                                   "é",    "−",          "system('id')",
                                                   "^{2}", "_x",         " "};
  std::string text;
  const uint32_t length = random->Below(12);
  for (uint32_t i = 0; i < length; ++i) {
    if (random->Below(2) == 0) {
      text += kPieces[random->Below(static_cast<uint32_t>(kPieces.size()))];
    } else {
      text.push_back(static_cast<char>(random->Below(256)));
    }
  }
  return text;
}

TEST(ScriptTest, KeepsTenThousandHostileTextsOutOfTheCommands) {
  report::RandomStream random(7);
  std::vector<std::string> hostile, harmless;
  for (int i = 0; i < 10000; ++i) {
    // The number makes them distinct, so that both figures use the same indices.
    hostile.push_back(absl::StrCat(RandomText(&random), i));
    harmless.push_back(absl::StrCat("label ", i));
  }
  const Parts parts = Split(GnuplotScript(WithTexts(hostile), Format::kSvg));
  const Parts calm = Split(GnuplotScript(WithTexts(harmless), Format::kSvg));
  EXPECT_EQ(parts.commands, calm.commands);
  ASSERT_EQ(parts.texts.size(), 2 * hostile.size());
  for (const std::string& line : parts.texts) {
    ASSERT_TRUE(absl::StartsWith(line, "|")) << line;
    for (const unsigned char c : line) ASSERT_FALSE(c < 0x20 || c == 0x7F) << line;
  }
}

TEST(ScriptTest, BreaksLinesAndSplitsBandsAtWhatIsNotFinite) {
  Figure figure;
  Panel panel;
  const double nan = std::nan("");
  panel.layers.push_back(Line{{1, 2, 3}, {1, nan, 3}, {}, 1.2, {12, 3}});
  panel.layers.push_back(
      Band{{1, 2, 3, 4, 5}, {0, 0, nan, 0, 0}, {1, 1, 1, 1, 1}, {0x0072B2, 0xC0}});
  figure.panels.push_back(panel);
  const std::string script = GnuplotScript(figure, Format::kPng);
  EXPECT_THAT(script, HasSubstr("$D1 <<ABLATE_EOD\n1 1\n\n3 3\nABLATE_EOD\n"));
  EXPECT_THAT(script, HasSubstr("$D2 <<ABLATE_EOD\n1 0 1\n2 0 1\nABLATE_EOD\n"));
  EXPECT_THAT(script, HasSubstr("$D3 <<ABLATE_EOD\n4 0 1\n5 0 1\nABLATE_EOD\n"));
  EXPECT_THAT(script, HasSubstr("dt (12,3) lc rgb '#00000000'"));
  EXPECT_THAT(script, HasSubstr("filledcurves lc rgb '#C00072B2'"));
}

TEST(ScriptTest, LeavesOutEmptyLayersAndAlwaysGivesRanges) {
  Figure figure;
  Panel panel;
  panel.layers.push_back(Line{});
  panel.layers.push_back(Points{});
  figure.panels.push_back(panel);
  const std::string script = GnuplotScript(figure, Format::kPdf);
  EXPECT_THAT(script, Not(HasSubstr("$D1")));
  EXPECT_THAT(script, HasSubstr("set xrange [0:1]\n"));
  EXPECT_THAT(script, HasSubstr("plot NaN notitle"));
}

}  // namespace
}  // namespace ablate::figure
