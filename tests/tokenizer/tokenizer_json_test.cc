// Tests tokenizer.json: tokens and ids of closed cases, files that are refused.
#include "base/tokenizer/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/tokenizer/encoder.h"
#include "base/tokenizer/tokenizer_files.h"
#include "tests/test_folder.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::tokenizer {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Ids = std::vector<uint32_t>;

json Added(const char* text, uint32_t id, bool special) {
  return {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

// Returns a file with the merges "a b" and "Ġ ab", 256 and 257, and two added tokens.
json Small() {
  const SmallTokenizer small = {{"a b", "Ġ ab"}, {}};
  return {{"version", "1.0"},
          {"added_tokens", {Added("<end>", 258, true), Added("é!", 259, false)}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model",
           {{"type", "BPE"},
            {"ignore_merges", false},
            {"vocab", json::parse(small.VocabularyFile().text)},
            {"merges", {"a b", json::array({"Ġ", "ab"})}}}}};
}

// Returns the small file with another value at a JSON pointer.
json With(const char* pointer, const json& value) {
  json file = Small();
  file[json::json_pointer(pointer)] = value;
  return file;
}

std::shared_ptr<const BytePairEncoding> Parse(const json& file) {
  auto parsed = BytePairEncoding::ParseJson({"t.json", file.dump()});
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *parsed : nullptr;
}

std::string ErrorOfText(const std::string& text) {
  const auto parsed = BytePairEncoding::ParseJson({"t.json", text});
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(parsed.status().message());
}
std::string ErrorWith(const char* pointer, const json& value) {
  return ErrorOfText(With(pointer, value).dump());
}

Ids Encode(const json& file, absl::string_view text, const std::vector<std::string>& names = {}) {
  Ids ids;
  Encoder::WithSpecial(Parse(file), names)->Encode(text, &ids);
  return ids;
}

json Split(const char* regex) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"},
             {"pattern", {{"Regex", regex}}},
             {"behavior", "Isolated"},
             {"invert", false}},
            {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
}
constexpr char kLlama3Regex[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(TokenizerJsonTest, HasTokensAndAddedTokens) {
  const auto encoding = Parse(Small());
  EXPECT_EQ(encoding->vocabulary(), 260u);
  EXPECT_EQ(encoding->TextOf(257), " ab");
  EXPECT_EQ(encoding->TextOf(258), "<end>");
  EXPECT_EQ(encoding->TextOf(259), "é!");
  EXPECT_THAT(encoding->special(), ElementsAre(258));
  EXPECT_THAT(encoding->added(), ElementsAre(259));
  EXPECT_EQ(encoding->nfc(), nullptr);
}

TEST(TokenizerJsonTest, FindsAddedTokensUnlessTheyAreSpecial) {
  EXPECT_THAT(Encode(Small(), "ab<end>"), ElementsAre(256, '<', 'e', 'n', 'd', '>'));
  EXPECT_THAT(Encode(Small(), "ab<end>é!", {"<end>"}), ElementsAre(256, 258, 259));
  EXPECT_THAT(Encode(Small(), "é!! é"), ElementsAre(259, '!', ' ', 0xC3, 0xA9));
  json one = With("/added_tokens",
                  {Added("\xC3\xA9?", 300, false), Added("\xC3\xA9?\xC3\xA9?", 301, false)});
  EXPECT_THAT(Encode(one, "é?é?é?\u00E8"), ElementsAre(301, 300, 0xC3, 0xA8));
}

TEST(TokenizerJsonTest, IgnoresMergesOfWordsInTheVocabulary) {
  json file = Small();
  file["model"]["vocab"]["abab"] = 260;
  EXPECT_THAT(Encode(file, "abab ababa"), ElementsAre(256, 256, 257, 256, 'a'));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(Encode(file, "abab ababa"), ElementsAre(260, 257, 256, 'a'));
  EXPECT_TRUE(Parse(file)->special().size() == 1);
}

TEST(TokenizerJsonTest, SplitsByThePattern) {
  json file = With("/pre_tokenizer", Split(kLlama3Regex));
  file["model"]["vocab"]["!ab"] = 260;
  file["model"]["vocab"]["12"] = 261;
  file["model"]["vocab"]["123"] = 262;
  file["model"]["merges"] = {"a b", "! ab", "1 2", "12 3"};
  EXPECT_THAT(Encode(file, "!ab1234"), ElementsAre(260, 262, '4'));
  file["pre_tokenizer"] =
      Split(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  EXPECT_THAT(Encode(file, "!ab1234"), ElementsAre('!', 256, 262, '4'));
}

TEST(TokenizerJsonTest, NormalizesTextBetweenSpecialTokens) {
  json file = With("/normalizer", {{"type", "NFC"}});
  const Ids normal = Encode(file, "caf\u00E9 ab");
  EXPECT_EQ(Encode(file, "cafe\u0301 ab"), normal);
  EXPECT_NE(Encode(Small(), "cafe\u0301 ab"), normal);
  EXPECT_THAT(Encode(file, "e<end>\u0301", {"<end>"}), ElementsAre('e', 258, 0xCC, 0x81));
  EXPECT_EQ(*Parse(file)->Decode(Encode(file, "e\u0301")), "\u00E9");
}

TEST(TokenizerJsonTest, AllowsWhatAddsNothing) {
  const auto accepts = [](const char* pointer, const json& value) {
    const auto parsed = BytePairEncoding::ParseJson({"t.json", With(pointer, value).dump()});
    EXPECT_TRUE(parsed.ok()) << pointer << " " << parsed.status();
  };
  accepts("/post_processor", {{"type", "ByteLevel"}});
  accepts("/post_processor", {{"type", "TemplateProcessing"}, {"single", json::array()}});
  accepts("/post_processor",
          {{"type", "Sequence"},
           {"processors", {{{"type", "ByteLevel"}}, {{"type", "TemplateProcessing"}}}}});
  accepts("/decoder", nullptr);
  accepts("/added_tokens", nullptr);
  accepts("/model/dropout", 0.0);
  accepts("/model/unk_token", "<unk>");
  accepts("/model/continuing_subword_prefix", "");
  accepts("/truncation", {{"max_length", 5}});
  accepts("/pre_tokenizer/use_regex", true);
}

TEST(TokenizerJsonTest, RefusesOtherTokenizers) {
  const struct {
    const char* pointer;
    json value;
    const char* error;
  } cases[] = {
      {"/model/type", "Unigram", "model.type: \"Unigram\" isn't supported; expected \"BPE\""},
      {"/model", 5, "model.merges: missing"},
      {"/model/dropout", 0.1, "model.dropout: 0.1 isn't supported; expected null"},
      {"/model/byte_fallback", true, "model.byte_fallback: true isn't supported; expected false"},
      {"/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix: \"</w>\" isn't supported"},
      {"/normalizer",
       {{"type", "NFKC"}},
       "normalizer.type: \"NFKC\" isn't supported; expected \"NFC\", or null for the normalizer"},
      {"/pre_tokenizer", nullptr,
       "pre_tokenizer.type: null isn't supported; expected \"ByteLevel\""},
      {"/pre_tokenizer/type", "Metaspace", "pre_tokenizer.type: \"Metaspace\" isn't supported"},
      {"/pre_tokenizer/add_prefix_space", true, "pre_tokenizer.add_prefix_space: true isn't"},
      {"/pre_tokenizer/use_regex", false, "pre_tokenizer.use_regex: false isn't supported"},
      {"/pre_tokenizer", Split(R"(\w+|\s+)"),
       "pre_tokenizer.pretokenizers[0].pattern.Regex: the pattern isn't supported at"},
      {"/post_processor", {{"type", "BertProcessing"}}, "post_processor.type: \"BertProcessing\""},
      {"/post_processor",
       {{"type", "Sequence"}, {"processors", {{{"type", "Sequence"}}}}},
       "post_processor.type: \"Sequence\""},
      {"/decoder", {{"type", "WordPiece"}}, "decoder.type: \"WordPiece\" isn't supported"},
      {"/added_tokens", 7, "added_tokens: 7 isn't supported; expected an array"},
      {"/added_tokens/0/lstrip", true, "added_tokens[0]: lstrip: true isn't supported"},
      {"/added_tokens/0/content", "", "added_tokens[0]: a token has an empty name"},
      {"/added_tokens/0/content", 5,
       "added_tokens[0]: content: 5 isn't supported; expected a text"},
      {"/added_tokens/0/id", -1, "added_tokens[0]: token \"<end>\" has the id -1; expected an"},
      {"/added_tokens/1/id", 258, "added_tokens[1]: token \"é!\" has the id 258 of \"<end>\""},
      {"/added_tokens/1/content", "<end>", "added_tokens[1]: token \"<end>\" has the id 259 of"},
      {"/added_tokens/0/id", 97, "added_tokens[0]: token \"<end>\" has the id 97 of \"a\""},
      {"/added_tokens/0/content", "ab",
       "added_tokens[0]: token \"ab\" has the id 258; expected 256, its id in model.vocab"},
      {"/added_tokens/0", Added("Ġ", ' ', true), "added_tokens[0]: token \"Ġ\" stands for"},
      {"/model/vocab/x1", "7", "model.vocab: token \"x1\" has the id \"7\"; expected an integer"},
      {"/model/vocab/x1", json::array(), "model.vocab: token \"x1\" has the id an array"},
      {"/model/vocab/x1", 97, "model.vocab: token "},
      {"/model/vocab", json::object(), "model.merges:1: token \"a\" of the merge"},
      {"/model/merges", nullptr, "model.merges: missing"},
      {"/model/merges/0", 5, "model.merges:1: not a merge; expected \"LEFT RIGHT\" or"},
      {"/model/merges/1", {"a", "b", "c"}, "model.merges:2: not a merge"},
      {"/model/merges/1", "a\n b", "model.merges:2: not a merge"},
      {"/model/merges/1", "b a", "model.merges:2: token \"ba\" of the merge \"b a\" isn't in"},
      {"/model/merges/1", "a b", "model.merges:2: the merge \"a b\" is in entry 1 already"},
  };
  for (const auto& [pointer, value, error] : cases) {
    EXPECT_THAT(ErrorWith(pointer, value), StartsWith(absl::StrCat("t.json: ", error))) << pointer;
  }
  json steps = Split(kLlama3Regex);
  steps["pretokenizers"][0]["behavior"] = "Removed";
  EXPECT_THAT(ErrorWith("/pre_tokenizer", steps), HasSubstr("[0].behavior: \"Removed\" isn't"));
  steps["pretokenizers"][1] = steps["pretokenizers"][0];
  EXPECT_THAT(ErrorWith("/pre_tokenizer", steps), HasSubstr("[1].type: \"Split\" isn't"));
}

TEST(TokenizerJsonTest, RefusesAddedTokensThatTakeLongToFind) {
  json added = json::array();
  const auto add = [&added](size_t size, bool special) {
    const std::string text = absl::StrCat("<", std::string(size, 'x'), added.size(), ">");
    added.push_back(Added(text.c_str(), static_cast<uint32_t>(300 + added.size()), special));
  };
  for (size_t i = 0; i < 256; ++i) add(0, false);
  for (size_t i = 0; i < 768; ++i) add(100, true);
  EXPECT_EQ(Parse(With("/added_tokens", added))->added().size(), 256u);
  added[300]["special"] = false;
  EXPECT_THAT(ErrorWith("/added_tokens", added),
              HasSubstr("added_tokens: 257 tokens with special: false, of "));
  add(1, true);
  EXPECT_EQ(ErrorWith("/added_tokens", added),
            "t.json: added_tokens: 1025 tokens; expected at most 1024");
  added = json::array();
  for (size_t i = 0; i < 5; ++i) add(900, false);
  EXPECT_THAT(ErrorWith("/added_tokens", added),
              HasSubstr("5 tokens with special: false, of 4515 bytes together; expected at most"));
}

TEST(TokenizerJsonTest, RefusesDamagedFiles) {
  for (const char* text : {"", "{", "{\"model\" 0}", "{}x", "\xFF"}) {
    EXPECT_THAT(ErrorOfText(text), StartsWith("t.json:1: not JSON at byte ")) << text;
  }
  EXPECT_THAT(ErrorOfText("[]"), StartsWith("t.json: not an object"));
  EXPECT_THAT(ErrorOfText("{}"), StartsWith("t.json: model.merges: missing"));
  const std::string many = absl::StrCat("[", std::string(300'000, '['));
  EXPECT_THAT(ErrorOfText(many), HasSubstr("more than 100000 values"));
}

TEST(WordPatternTest, NamesThePartThatIsntKnown) {
  EXPECT_TRUE(ParseWordPattern(kLlama3Regex)->any_case);
  EXPECT_EQ(ParseWordPattern(kLlama3Regex)->max_numbers, 3u);
  EXPECT_THAT(std::string(ParseWordPattern(absl::StrCat(kLlama3Regex, "|.")).status().message()),
              HasSubstr("isn't supported at \"|.\"; expected its end there"));
  EXPECT_EQ(ParseWordPattern(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+|\d+)").status().message(),
            "the pattern isn't supported at \"\\\\d+\"; expected  ?\\p{N}+| or \\p{N}+| or \\p{N}| "
            "or \\p{N}{1,3}| there");
}

TEST(TokenizerFilesTest, PrefersTheFileWithThePattern) {
  const TestFolder folder;
  const SmallTokenizer small = {{"a b"}, {}};
  folder.Write("vocab.json", small.VocabularyFile().text);
  folder.Write("merges.txt", small.MergesFile().text);
  EXPECT_THAT(FileNamesIn(folder.path()), ElementsAre("vocab.json", "merges.txt"));
  EXPECT_EQ(ReadTokenizerFolder(folder.path())->encoding->vocabulary(), 257u);
  folder.Write("tokenizer.json", Small().dump());
  const auto read = ReadTokenizerFolder(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->encoding->vocabulary(), 260u);
  EXPECT_EQ(read->files().vocabulary, "");
  EXPECT_EQ((*ParseFiles(read->files()))->vocabulary(), 260u);
  folder.Write("tokenizer.json", "{}");
  const std::string error(ReadTokenizerFolder(folder.path()).status().message());
  EXPECT_THAT(error, StartsWith(folder / "tokenizer.json: model.merges: missing"));
  EXPECT_THAT(error,
              HasSubstr(". Without tokenizer.json the folder is read as GPT-2's vocab.json"));
}

}  // namespace
}  // namespace ablate::tokenizer
