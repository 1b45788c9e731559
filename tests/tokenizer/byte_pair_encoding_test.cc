// Tests byte pair encodings: tokens of closed cases, files that are refused.
#include "base/tokenizer/byte_pair_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/tokenizer/byte_alphabet.h"
#include "tests/test_folder.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const SmallTokenizer kSmall = {{"a b", "Ġ ab"}, {"<end>", "<two words>"}};

// Returns the error for a vocabulary or merges in place of the small tokenizer's.
std::string ErrorOf(const std::string& vocabulary, const std::string& merges) {
  const auto parsed =
      BytePairEncoding::Parse({"v/vocab.json", vocabulary}, {"v/merges.txt", merges});
  EXPECT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}
std::string VocabularyError(const std::string& text) {
  return ErrorOf(text, kSmall.MergesFile().text);
}
std::string MergesError(const std::string& text) {
  return ErrorOf(kSmall.VocabularyFile().text, text);
}
// Returns the error for the small vocabulary with this text in front of its entries.
std::string EntryError(const std::string& entry) {
  return VocabularyError("{" + entry + "," + kSmall.VocabularyFile().text.substr(1));
}

TEST(ByteAlphabetTest, NamesAllBytes) {
  EXPECT_EQ(NameOfByte(' '), "Ġ");
  EXPECT_EQ(NameOfByte('\n'), "Ċ");
  EXPECT_EQ(NameOfByte('!'), "!");
  EXPECT_EQ(NameOfByte(0), "Ā");
  EXPECT_EQ(NameOfByte(0x7F), "ġ");
  EXPECT_EQ(NameOfByte(0xA0), "ł");
  EXPECT_EQ(NameOfByte(0xA1), "¡");
  EXPECT_EQ(NameOfByte(0xAD), "Ń");
  EXPECT_EQ(NameOfByte(0xFF), "ÿ");
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::string name = NameOfByte(static_cast<unsigned char>(byte));
    EXPECT_EQ(BytesOfName(name), std::string(1, static_cast<char>(byte))) << name;
  }
  for (const char* other : {" ", "\n", "\x7F", "\u00A0", "\u00AD", "\u0144", "a\xFF"}) {
    EXPECT_EQ(BytesOfName(other), std::nullopt) << other;
  }
}

TEST(BytePairEncodingTest, HasTheTextOfEachToken) {
  const auto encoding = kSmall.Make();
  EXPECT_EQ(encoding->vocabulary(), 260u);
  EXPECT_EQ(encoding->TextOf(0xC3), "\xC3");
  EXPECT_EQ(encoding->TextOf(257), " ab");
  EXPECT_EQ(encoding->TextOf(258), "<end>");
  EXPECT_EQ(encoding->TextOf(259), "<two words>");
  EXPECT_EQ(encoding->TextOf(260), "");
  EXPECT_THAT(encoding->special(), ElementsAre(258, 259));
}

TEST(BytePairEncodingTest, DecodesOrNamesTheUnknownId) {
  const auto encoding = kSmall.Make();
  EXPECT_EQ(*encoding->Decode({257, 0xC3, 258}), " ab\xC3<end>");
  EXPECT_EQ(*encoding->Decode({}), "");
  EXPECT_EQ(encoding->Decode({97, 4'000'000'000}).status().message(),
            "id 4000000000 at position 1 has no token; expected ids of a vocabulary of 260");
}

TEST(BytePairEncodingTest, AllowsMissingIds) {
  SmallTokenizer small = kSmall;
  FileText vocabulary = small.VocabularyFile();
  vocabulary.text = absl::StrReplaceAll(vocabulary.text, {{"\"<end>\":258", "\"<end>\":1000"}});
  const auto encoding = *BytePairEncoding::Parse(vocabulary, small.MergesFile());
  EXPECT_EQ(encoding->vocabulary(), 1001u);
  EXPECT_EQ(encoding->TextOf(1000), "<end>");
  EXPECT_THAT(encoding->special(), ElementsAre(259, 1000));
  EXPECT_THAT(std::string(encoding->Decode({258}).status().message()),
              StartsWith("id 258 at position 0"));
}

TEST(BytePairEncodingTest, ReadsMergesWithOtherLineEnds) {
  const auto parse = [](const std::string& merges) {
    return BytePairEncoding::Parse(kSmall.VocabularyFile(), {"merges.txt", merges});
  };
  for (const char* merges :
       {"a b\nĠ ab", "#version: 0.2\r\na b\r\nĠ ab\r\n", "a b\nĠ ab\n\n\r\n"}) {
    const auto encoding = parse(merges);
    ASSERT_TRUE(encoding.ok()) << encoding.status();
    EXPECT_EQ((*encoding)->RankOf('a', 'b'), 0u);
    EXPECT_EQ((*encoding)->RankOf(' ', 256), 1u);
    EXPECT_EQ((*encoding)->ResultOf(1), 257u);
    EXPECT_EQ((*encoding)->RankOf('b', 'a'), BytePairEncoding::kNoRank);
  }
  for (const char* none : {"", "#version: 0.2", "\n"}) EXPECT_TRUE(parse(none).ok());
}

TEST(BytePairEncodingTest, RefusesVocabularies) {
  for (const char* text : {"", "{", "{\"a\":0}x", "{\"a\" 0}", "\xFF", "{\"\xC3(\":0}"}) {
    EXPECT_THAT(VocabularyError(text), HasSubstr("v/vocab.json:1: not JSON at byte ")) << text;
  }
  EXPECT_THAT(VocabularyError("{\"a\": 0,\n\n\"b\": ?}"), StartsWith("v/vocab.json:3: not JSON"));
  for (const char* text : {"[]", "null", "5", "-5", "1.5", "true", "\"{}\""}) {
    EXPECT_EQ(VocabularyError(text),
              "v/vocab.json: not an object; expected an object of tokens and ids")
        << text;
  }
  for (const char* id : {"-1", "1.0", "1e3", "null", "true", "\"7\"", "{}", "[7]", "1048576",
                         "18446744073709551616", "99999999999999999999999"}) {
    const std::string error = EntryError(absl::StrCat("\"<x>\": ", id));
    EXPECT_THAT(error, StartsWith("v/vocab.json: token \"<x>\" has the id ")) << id;
    EXPECT_THAT(error, HasSubstr("; expected an integer of 0 to 1,048,575")) << id;
  }
  EXPECT_EQ(EntryError("\"<x>\": 97"),
            "v/vocab.json: token \"a\" has the id 97 of another token; expected different ids");
  EXPECT_EQ(EntryError("\"<x>\": 900, \"<x>\": 901"),
            "v/vocab.json: token \"<x>\" occurs twice; expected one entry");
  EXPECT_EQ(EntryError("\"\": 900"),
            "v/vocab.json: a token has an empty name; expected at least 1 character");
  EXPECT_THAT(EntryError(absl::StrCat("\"", std::string(1025, 'y'), "\": 900")),
              HasSubstr("yyy…\" has a name of 1025 bytes; expected at most 1024"));
  EXPECT_EQ(VocabularyError("{}"),
            "v/vocab.json: no token for the byte 0x00; expected a token \"Ā\" and one for each "
            "other byte");
  const std::string without_space =
      absl::StrReplaceAll(kSmall.VocabularyFile().text, {{"\"Ġ\":", "\"<x>\":"}});
  EXPECT_THAT(VocabularyError(without_space), HasSubstr("no token for the byte 0x20"));
}

TEST(BytePairEncodingTest, RefusesMerges) {
  for (const char* line : {"a", "a ", " b", "a  b", "a b ", "a b c", " ", "  ", "a\tb"}) {
    EXPECT_EQ(MergesError(absl::StrCat("#version: 0.2\na b\n", line, "\n")),
              absl::StrCat("v/merges.txt:3: ", Quoted(line),
                           " isn't a merge; expected two tokens with one space between them"));
  }
  EXPECT_THAT(MergesError("a b\n\nĠ ab\n"), StartsWith("v/merges.txt:2: \"\" isn't a merge"));
  EXPECT_THAT(MergesError("a b\n#version: 0.2\n"),
              StartsWith("v/merges.txt:2: token \"#version:\""));
  EXPECT_THAT(MergesError("\xFF\xFE b\n"),
              StartsWith("v/merges.txt:1: token \"\\xff\\xfe\" of the merge \"\\xff\\xfe b\""));
  const std::string escaped = MergesError(std::string(1000, '\0') + " b\n");
  EXPECT_THAT(escaped, StartsWith("v/merges.txt:1: token \"\\x00"));
  EXPECT_LT(escaped.size(), 500u);
  for (const char* merge : {"a x1", "x1 a", "b a", "a b\r"}) {
    EXPECT_THAT(MergesError(absl::StrCat(merge, "\n\n\nb a")), StartsWith("v/merges.txt:"));
  }
  EXPECT_EQ(MergesError("b a\n"),
            "v/merges.txt:1: token \"ba\" of the merge \"b a\" isn't in the vocabulary; expected "
            "files of the same tokenizer");
  EXPECT_EQ(MergesError("a b\nĠ ab\na b\n"),
            "v/merges.txt:3: the merge \"a b\" is in line 1 already; expected each merge once");
  const std::string vocabulary =
      absl::StrCat("{\"a€\": 901, \"€\": 902,", kSmall.VocabularyFile().text.substr(1));
  EXPECT_EQ(ErrorOf(vocabulary, "a €\n"),
            "v/merges.txt:1: token \"a€\" has a character that stands for no byte; expected "
            "GPT-2's byte alphabet");
}

TEST(BytePairEncodingTest, ReadsFilesOrNamesTheBadOne) {
  const TestFolder folder;
  const std::string vocabulary = folder.Write("v.json", kSmall.VocabularyFile().text);
  const std::string merges = folder.Write("m.txt", kSmall.MergesFile().text);
  const auto encoding = BytePairEncoding::Read(vocabulary, merges);
  ASSERT_TRUE(encoding.ok()) << encoding.status();
  EXPECT_EQ((*encoding)->vocabulary(), 260u);
  const auto error = [](const std::string& v, const std::string& m) {
    return std::string(BytePairEncoding::Read(v, m).status().message());
  };
  EXPECT_THAT(error(folder / "gone", merges), StartsWith(folder / "gone: can't be read"));
  EXPECT_THAT(error(vocabulary, folder / "gone"), StartsWith(folder / "gone: can't be read"));
  EXPECT_EQ(error(folder.path(), merges), folder.path() + ": is a folder; expected a file");
  EXPECT_EQ(error("/dev/zero", merges), "/dev/zero: too large; expected at most 64 MiB");
}

TEST(QuotedTest, ShortensBetweenCharacters) {
  EXPECT_EQ(Quoted("a\n\"\x01"), "\"a\\n\\\"\\x01\"");
  EXPECT_EQ(Quoted("é\xFF"), "\"\\xc3\\xa9\\xff\"");
  std::string text = std::string(39, 'x') + "é";
  EXPECT_EQ(Quoted(text), "\"" + std::string(39, 'x') + "…\"");
}

}  // namespace
}  // namespace ablate::tokenizer
