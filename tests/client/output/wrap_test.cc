// Tests lines of text and lists of terms that are broken to a width.
#include "client/output/wrap.h"

#include "gtest/gtest.h"

namespace ablate::client {
namespace {

TEST(WrapTest, BreaksAtSpacesAndKeepsLinesThatFit) {
  EXPECT_EQ(Wrap("", 10), "");
  EXPECT_EQ(Wrap("one two\n\nthree four", 9), "one two\n\nthree\nfour");
  EXPECT_EQ(Wrap("a 1–9 c", 7), "a 1–9 c") << "columns, not bytes";
  EXPECT_EQ(Wrap("one-very-long-word and", 8), "one-very-long-word\nand");
}

TEST(WrapTest, IndentsWhatFollowsLikeTheLineOrTheTextOfATerm) {
  EXPECT_EQ(Wrap("  one two three", 9), "  one two\n  three");
  EXPECT_EQ(Wrap("  69  no server answers", 14), "  69  no\n      server\n      answers");
}

TEST(WrapTest, KeepsCommandsWhole) {
  EXPECT_EQ(Wrap("see `ablate ls` here", 12), "see\n`ablate ls`\nhere");
  EXPECT_EQ(Wrap("  ablate ls --limit 3", 12), "  ablate ls --limit 3");
}

TEST(WrapProseTest, KeepsRowsOfTables) {
  EXPECT_EQ(WrapProse("setting   mean  n\n\nthree four five", 9),
            "setting   mean  n\n\nthree\nfour five");
  EXPECT_EQ(WrapProse("  one two three", 9), "  one two\n  three");
}

TEST(TermListTest, AlignsTexts) {
  EXPECT_EQ(TermList({{"a", "one"}, {"bb", "two three"}}, 12),
            "  a   one\n  bb  two\n      three\n");
  EXPECT_EQ(TermList({{"a", "one"}}, 12, 4), "  a     one\n");
}

TEST(TermListTest, PutsTheTextOfALongTermOnTheNextLine) {
  const std::string term(27, 'x');
  EXPECT_EQ(TermList({{"a", "one"}, {term, "two"}}, 80), "  a  one\n  " + term + "\n     two\n");
}

}  // namespace
}  // namespace ablate::client
