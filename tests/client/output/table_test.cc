// Tests tables: alignment, truncation, harmless texts.
#include "client/output/table.h"

#include "gtest/gtest.h"

namespace ablate::client {
namespace {

TEST(TableTest, AlignsTextLeftAndNumbersRight) {
  Table table({{"cell"}, {"step", true}, {"note"}});
  table.Add({"a", "5", "x"});
  table.Add({"longer", "1000", ""});
  EXPECT_EQ(table.Render(0),
            "cell    step  note\n"
            "a          5  x\n"
            "longer  1000\n");
}

TEST(TableTest, AlignsByWhatATerminalShows) {
  Table table({{"name"}, {"n", true}});
  table.Add({"名前名前", "1"});
  table.Add({"grün", "10"});
  EXPECT_EQ(table.Render(0),
            "name       n\n"
            "名前名前   1\n"
            "grün      10\n");
}

TEST(TableTest, ShortensTheWidestTextUntilItFits) {
  Table table({{"id"}, {"n", true}, {"question"}});
  table.Add({"experiment-one", "123456789012", "what is the question of this experiment?"});
  EXPECT_EQ(table.Render(50),
            "id                         n  question\n"
            "experiment-one  123456789012  what is the questio…\n");
  EXPECT_EQ(table.Render(36),
            "id                     n  question\n"
            "experimen…  123456789012  what is t…\n");
}

TEST(TableTest, KeepsEightColumnsAndNumbersHoweverNarrow) {
  Table table({{"id"}, {"n", true}});
  table.Add({"experiment-one", "123456789012"});
  EXPECT_EQ(table.Render(5),
            "id                   n\n"
            "experim…  123456789012\n");
}

TEST(TableTest, LeavesOutAnOptionalColumnWithoutTexts) {
  Table table({{"id"}, {"owner", false, /*optional=*/true}, {"failure", false, true}});
  table.Add({"a", "", ""});
  table.Add({"b", "", "lost"});
  EXPECT_EQ(table.Render(0), "id  failure\na\nb   lost\n");
}

TEST(TableTest, ShowsControlCharactersHarmlessly) {
  Table table({{"lab\x1b[el"}});
  table.Add({"a\x1b[31m\nb"});
  EXPECT_EQ(table.Render(0), "lab\\x1b[el\na\\x1b[31m b\n");
}

}  // namespace
}  // namespace ablate::client
