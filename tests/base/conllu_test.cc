#include "base/conllu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace ablate {
namespace {

using ::testing::ElementsAre;

// A line with these columns, and _ in the others.
std::string Line(const std::string& id, const std::string& form, const std::string& upos = "X",
                 const std::string& features = "_", const std::string& misc = "_") {
  return absl::StrCat(id, "\t", form, "\t_\t", upos, "\t_\t", features, "\t_\t_\t_\t", misc, "\n");
}

absl::StatusOr<std::vector<TaggedSentence>> ReadAll(const std::string& file) {
  std::vector<TaggedSentence> sentences;
  ConlluReader reader(file);
  TaggedSentence sentence;
  while (true) {
    const auto found = reader.Next(sentence);
    if (!found.ok()) return found.status();
    if (!*found) return sentences;
    sentences.push_back(sentence);
  }
}

std::string Refusal(const std::string& file) {
  return std::string(ReadAll(file).status().message());
}

// Returns each word's part of the sentence's text.
std::vector<std::string> PartsOf(const TaggedSentence& sentence) {
  std::vector<std::string> parts;
  for (const TaggedWord& word : sentence.words) {
    parts.push_back(sentence.text.substr(word.begin, word.end - word.begin));
  }
  return parts;
}

TEST(ConlluReaderTest, ReadsSentencesWithTheirText) {
  const std::string file = absl::StrCat(
      "# sent_id = 1\n# text = No, it works.\n", Line("1", "No", "INTJ", "_", "SpaceAfter=No"),
      Line("2", ",", "PUNCT"), Line("3", "it", "PRON", "Number=Sing|Person=3"),
      Line("4", "works", "VERB", "_", "Gloss=x|SpaceAfter=No"), Line("5", ".", "PUNCT"), "\n\n",
      Line("1", "Yes", "INTJ"));
  const auto sentences = ReadAll(file);
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  ASSERT_EQ(sentences->size(), 2u);
  const TaggedSentence& first = (*sentences)[0];
  EXPECT_EQ(first.text, "No, it works.");
  EXPECT_EQ(first.line, 3u);
  EXPECT_THAT(PartsOf(first), ElementsAre("No", ",", "it", "works", "."));
  EXPECT_EQ(LabelOf(first.words[2], "upos"), "PRON");
  EXPECT_EQ(LabelOf(first.words[2], "Number"), "Sing");
  EXPECT_EQ(LabelOf(first.words[2], "Person"), "3");
  EXPECT_EQ(LabelOf(first.words[2], "Num"), "") << "the name is whole";
  EXPECT_EQ(LabelOf(first.words[2], "xpos"), "") << "_ is no label";
  EXPECT_EQ((*sentences)[1].text, "Yes") << "no line end is needed after the last sentence";
  EXPECT_EQ((*sentences)[1].line, 10u);
}

TEST(ConlluReaderTest, ReadsHeadsAndRelationsAsTheyAre) {
  const std::string file =  // the words point into it
      "1\tGo\t_\tVERB\t_\t_\t0\troot\t_\t_\n2\tin\t_\tADV\t_\t_\t1\tadvmod:lmod\t_\t_\n"
      "3\t.\t_\tPUNCT\t_\t_\t_\t_\t_\t_\n";
  const auto sentences = ReadAll(file);
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  const std::vector<TaggedWord>& words = (*sentences)[0].words;
  EXPECT_EQ(words[0].head, "0");
  EXPECT_EQ(words[1].head, "1");
  EXPECT_EQ(words[1].relation, "advmod:lmod");
  EXPECT_EQ(words[2].head, "_");
}

TEST(ConlluReaderTest, DividesMultiwordTokensIfTheirWordsAddUp) {
  const std::string file =
      absl::StrCat(Line("1", "We"), Line("2-3", "don't", "_", "_", "SpaceAfter=No"),
                   Line("2", "do"), Line("3", "n't"), Line("4", "!"), Line("5-6", "du"),
                   Line("5", "de"), Line("6", "le"), Line("7", "end"));
  const auto sentences = ReadAll(file);
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  EXPECT_EQ((*sentences)[0].text, "We don't! du end");
  EXPECT_THAT(PartsOf((*sentences)[0]), ElementsAre("We", "do", "n't", "!", "du", "du", "end"));
}

TEST(ConlluReaderTest, LeavesOutEmptyNodes) {
  const auto sentences = ReadAll(absl::StrCat(Line("0.1", "e"), Line("1", "a"), Line("1.1", "f"),
                                              Line("1.2", "g"), Line("2", "b"), Line("2.1", "h")));
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  EXPECT_EQ((*sentences)[0].text, "a b");
}

TEST(ConlluReaderTest, AcceptsByteOrderMarkAndCarriageReturns) {
  std::string file = absl::StrCat("\xEF\xBB\xBF# c\n", Line("1", "a"), Line("2", "b"), "\n");
  file = absl::StrJoin(absl::StrSplit(file, '\n'), "\r\n");
  EXPECT_TRUE(IsConllu(file));
  const auto sentences = ReadAll(file);
  ASSERT_TRUE(sentences.ok()) << sentences.status();
  EXPECT_EQ((*sentences)[0].text, "a b");
}

TEST(ConlluReaderTest, HasNoSentenceInCommentsAlone) {
  const auto sentences = ReadAll("# only\n\n# comments");
  ASSERT_TRUE(sentences.ok());
  EXPECT_TRUE(sentences->empty());
}

TEST(ConlluReaderTest, NamesTheLineOfAProblem) {
  const std::string one = Line("1", "a");
  EXPECT_EQ(Refusal(absl::StrCat("# c\n", one, "2\tb\n")),
            "line 3: the number of its columns is 2; expected 10, separated by tabs");
  EXPECT_EQ(Refusal(absl::StrCat(one, "2\tb\t_\t_\t_\t_\t_\t_\t_\t_\t_\n")),
            "line 2: the number of its columns is 11; expected 10, separated by tabs");
  EXPECT_EQ(Refusal(Line("x", "a")),
            "line 1: its ID isn't a number; expected one such as 3, 3-4 or 3.1");
  EXPECT_EQ(Refusal(Line("01", "a")),
            "line 1: its ID isn't a number; expected one such as 3, 3-4 or 3.1");
  EXPECT_EQ(Refusal(Line("2", "a")), "line 1: its ID is 2; expected 1");
  EXPECT_EQ(Refusal(absl::StrCat(one, one)), "line 2: its ID is 1; expected 2");
  EXPECT_EQ(Refusal(Line("1", "")), "line 1: its form is empty; expected text");
  EXPECT_EQ(Refusal(absl::StrCat(one, Line("1.2", "e"))),
            "line 2: its ID is 1.2; expected 1.1 for an empty node here");
  EXPECT_EQ(Refusal(absl::StrCat(one, Line("1-2", "r"))),
            "line 2: its ID is 1-2; expected a range that begins with the next word, 2");
  EXPECT_EQ(Refusal(absl::StrCat(Line("1-3", "rst"), one, Line("2-3", "s"))),
            "line 3: it is inside the multiword token of line 1");
  EXPECT_EQ(Refusal(absl::StrCat(Line("1-3", "rst"), one)),
            "line 1: its words end at 3, those of the sentence at 1");
  EXPECT_EQ(Refusal(absl::StrCat(one, "# c\n")),
            "line 2: a comment is inside a sentence; expected an empty line");
  EXPECT_EQ(Refusal(Line("1", "a", "X", "Number")),
            "line 1: a feature isn't a pair; expected _, or Name=Value separated by |");
  EXPECT_EQ(Refusal(Line("1", "a", "X", "A=1|A=2")), "line 1: two features have the same name");
  EXPECT_EQ(Refusal(Line("0.1", "e")), "line 1: the sentence has no words");
  EXPECT_EQ(Refusal(Line("1", "\xff")), "line 1: it is not UTF-8");
  EXPECT_EQ(Refusal(Line("1", "a\x1b")),
            "line 1: it has a control character; only tabs and line ends are allowed");
}

TEST(ConlluReaderTest, RefusesMultiwordTokensOfMoreWordsThanTheirFormCanHave) {
  const std::string words = absl::StrCat(Line("1", "x"), Line("2", "y"));
  EXPECT_EQ(Refusal(absl::StrCat(Line("1-2", "a"), words)), "") << "two are always allowed";
  EXPECT_EQ(Refusal(absl::StrCat(Line("1-3", "du"), words, Line("3", "z"))),
            "line 1: its ID is 1-3; expected at most 2 words in such a short form");
  EXPECT_EQ(Refusal(absl::StrCat(Line("1-3", "dus"), words, Line("3", "z"))), "");
  EXPECT_EQ(Refusal(absl::StrCat(Line("1-4294967295", "a"), words)),
            "line 1: its ID is 1-4294967295; expected at most 2 words in such a short form");
}

TEST(ConlluReaderTest, RefusesLongLines) {
  const auto with_form = [](size_t bytes) { return Line("1", std::string(bytes, 'a')); };
  const size_t others = with_form(0).size() - 1;  // without the line end
  EXPECT_EQ(Refusal(with_form(kMaxConlluLineBytes - others)), "");
  EXPECT_EQ(Refusal(absl::StrCat("\n", with_form(kMaxConlluLineBytes - others + 1))),
            "line 2: it has 65,537 bytes; expected at most 65,536");
  EXPECT_EQ(Refusal(absl::StrCat("#", std::string(kMaxConlluLineBytes, 'a'), "\n")),
            "line 1: it has 65,537 bytes; expected at most 65,536");
}

TEST(ConlluReaderTest, RefusesEndlessSentences) {
  std::string file;
  for (size_t i = 1; i <= kMaxSentenceWords + 1; ++i) {
    absl::StrAppend(&file, Line(absl::StrCat(i), "a"));
  }
  EXPECT_EQ(Refusal(file), "line 10001: its sentence has more than 10000 words");
}

TEST(IsConlluTest, KnowsAFileByItsFirstWord) {
  EXPECT_TRUE(IsConllu(Line("1", "a")));
  EXPECT_TRUE(IsConllu(absl::StrCat("# c\n\n", Line("1-2", "a"))));
  EXPECT_TRUE(IsConllu(Line("0.1", "a")));
  EXPECT_TRUE(IsConllu(absl::StrCat(Line("1", "a"), "anything"))) << "refused when it is read";
  EXPECT_FALSE(IsConllu(""));
  EXPECT_FALSE(IsConllu("# a comment\n"));
  EXPECT_FALSE(IsConllu("To be, or not to be\n"));
  EXPECT_FALSE(IsConllu("1\tb\n")) << "a table of two columns";
  EXPECT_FALSE(IsConllu(Line("2", "a")));
}

TEST(IsConlluTest, LooksAtTheBeginningOnly) {
  const std::string line = Line("1", "a");
  const std::string comments(kConlluBeginningBytes - line.size() - 1, '#');
  EXPECT_TRUE(IsConllu(absl::StrCat(comments, "\n", line)));
  EXPECT_FALSE(IsConllu(absl::StrCat(comments, "####\n", line)));
}

}  // namespace
}  // namespace ablate
