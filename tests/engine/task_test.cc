// Tests the facts of a text of documents, and which texts are rejected.
#include "server/engine/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/dataset_file.h"
#include "base/tokenizer/encoder.h"
#include "server/engine/core/data/batches.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/whole_text.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::engine {
namespace {

TEST(InspectDocumentsTest, CountsDocumentsAndCharacters) {
  const auto facts = InspectDocuments("ab\n\nb\xC3\xA9\xF0\x9F\x99\x82\tz\n");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->documents, 2u);
  EXPECT_EQ(facts->characters, 6u);  // a b é 🙂 tab z
  EXPECT_EQ(facts->longest, 5u);
  EXPECT_EQ(facts->code_points, 7u);
}

TEST(InspectDocumentsTest, LineEndsAreNotCharacters) {
  for (const char* text : {"ab\ncd", "ab\ncd\n", "ab\r\ncd\r\n", "ab\r\n\r\ncd\r", "\n\nab\ncd\n\n",
                           "\xEF\xBB\xBF"
                           "ab\ncd\n"}) {
    const auto facts = InspectDocuments(text);
    ASSERT_TRUE(facts.ok()) << facts.status();
    EXPECT_EQ(facts->documents, 2u) << text;
    EXPECT_EQ(facts->characters, 4u) << text;
    EXPECT_EQ(facts->code_points, 4u) << text;
  }
}

TEST(InspectDocumentsTest, RefusesWhatIsNotText) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"", "the text has no document (a non-empty line)"},
      {"\n\r\n\n", "the text has no document (a non-empty line)"},
      {"ab\n\xFF", "line 2, column 1: byte 0xff isn't UTF-8"},
      {"a\x80", "line 1, column 2: byte 0x80 isn't UTF-8"},
      {"a\xC3", "line 1, column 2: byte 0xc3 isn't UTF-8"},             // cut short
      {"\xC0\xAF", "line 1, column 1: byte 0xc0 isn't UTF-8"},          // overlong
      {"\xE0\x9F\xBF", "line 1, column 1: byte 0xe0 isn't UTF-8"},      // overlong
      {"\xF0\x8F\xBF\xBF", "line 1, column 1: byte 0xf0 isn't UTF-8"},  // overlong
      {"\xED\xA0\x80", "line 1, column 1: byte 0xed isn't UTF-8"},      // surrogate
      {"\xF4\x90\x80\x80", "line 1, column 1: byte 0xf4 isn't UTF-8"},  // above U+10FFFF
      {"\xE2\x82g", "line 1, column 1: byte 0xe2 isn't UTF-8"},         // the third byte isn't a
                                                                        // continuation
      {std::string("a\0b", 3), "line 1, column 2: control character U+0000"},
      {"a\rb\n", "line 1, column 2: control character U+000D, CR without LF"},
      {"ab\x7F", "line 1, column 3: control character U+007F"},
      {"a\xC2\x85", "line 1, column 2: control character U+0085"},
  };
  for (const auto& item : cases) {
    const auto facts = InspectDocuments(item.text);
    EXPECT_EQ(facts.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(facts.status().message()), item.message);
  }
}

TEST(InspectDocumentsTest, ListsTheLinesThatAreNotText) {
  EXPECT_EQ(InspectDocuments("\xEF\xBB\xBF"
                             "ok\n\xFF\n\r\n\xC3\xA9\f\f\nlast\x01")
                .status()
                .message(),
            "line 2, column 1: byte 0xff isn't UTF-8; line 4, column 2: control character U+000C; "
            "line 5, column 5: control character U+0001");
  std::string bad, first;
  for (int line = 1; line <= 12; ++line) {
    bad += "\f\n";
    if (line > 10) continue;
    first += absl::StrCat("line ", line, ", column 1: control character U+000C; ");
  }
  EXPECT_EQ(InspectDocuments(bad).status().message(), first + "and more");
}

TEST(DocumentInspectorTest, FindsTheSameInPiecesOfAnySize) {
  const std::string texts[] = {
      "ok\nbad\f\nfine\n\xFF\r\nworse\x01\n",
      "\f\n\f\n\f\n\f\n\f\n\f\n\f\n\f\n\f\n\f\n\f\n\f\n",
      "\xEF\xBB\xBF"
      "ab\r\n\nb\xC3\xA9\xF0\x9F\x99\x82\tz\r\nlast",
      "a\n\xEF\xBB\xBF\n\xE2\x82g",  // a byte order mark inside is a character
      "one\ntwo\rthree\n",
      "",
      "ends\n\xC3",
  };
  for (const std::string& text : texts) {
    const auto whole = InspectDocuments(text);
    for (size_t size = 1; size <= text.size() + 1; ++size) {
      DocumentInspector inspector;
      absl::Status status;
      for (size_t at = 0; at < text.size(); at += size) {
        status.Update(inspector.Add(absl::string_view(text).substr(at, size)));
      }
      const auto facts = status.ok() ? inspector.Finish() : status;
      ASSERT_EQ(facts.status(), whole.status()) << "pieces of " << size;
      if (!whole.ok()) continue;
      EXPECT_EQ(facts->documents, whole->documents);
      EXPECT_EQ(facts->characters, whole->characters);
      EXPECT_EQ(facts->longest, whole->longest);
      EXPECT_EQ(facts->code_points, whole->code_points);
      EXPECT_EQ(facts->line_ends, whole->line_ends);
    }
  }
}

TEST(InspectDocumentsTest, AcceptsTheEdgesOfUtf8) {
  // U+00A0, U+07FF, U+0800, U+D7FF, U+E000, U+FFFF, U+10000, U+10FFFF
  const auto facts = InspectDocuments(
      "\xC2\xA0\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF"
      "\xBF");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->characters, 8u);
}

TEST(TaskShapeTest, HasVocabularySequenceAndLossOfEachTask) {
  const struct {
    TaskShape shape;
    int vocabulary, sequence;
    LossPositions loss;
  } cases[] = {
      {DocumentsShape(27), 27, 0, LossPositions::kAll},  // with the boundary
      {LegacyRecallShape({400, 40}), 402, 41, LossPositions::kLast},
      {RecallShape({20, 20, 20}), 440, 21, LossPositions::kLast},  // pairs, entities, attributes
      {TextShape({1'115'394, 65}), 65, 0, LossPositions::kAll},
  };
  for (const auto& [shape, vocabulary, sequence, loss] : cases) {
    EXPECT_EQ(shape.vocabulary, vocabulary);
    EXPECT_EQ(shape.sequence, sequence) << vocabulary;
    EXPECT_EQ(shape.loss, loss) << vocabulary;
  }
}

TEST(TokenizeTextTest, LineEndsAreOneCharacterHoweverTheyAreWritten) {
  for (const char* written : {"ba\n\nb\n", "ba\r\n\r\nb\r\n",
                              "\xEF\xBB\xBF"
                              "ba\n\r\nb\n"}) {
    const auto text = TokenizeText(written);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(text->alphabet, U"\nab");
    EXPECT_EQ(text->tokens, std::vector<uint32_t>({2, 1, 0, 0, 2, 0})) << written;
  }
  EXPECT_EQ(TokenizeText("b\xC3\xA9\ta")->alphabet, U"\tab\u00e9");
}

TEST(TokenizeTextTest, RefusesWhatDocumentsRefuse) {
  for (const char* written : {"ab\n\xFF", "a\rb\n", "ab\x7F", "\n\n\x01"}) {
    const auto text = TokenizeText(written);
    EXPECT_EQ(text.status(), InspectDocuments(written).status()) << written;
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(TokenizeText("").status().message(), "the text is empty");
  EXPECT_EQ(TokenizeText("\xEF\xBB\xBF").status().message(), "the text is empty");
}

std::string TokenizerPart(const std::string& path) {
  std::ifstream in(absl::StrCat(ABLATE_EXAMPLES_DATA, "/shakespeare-bpe/", path));
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ReadTextTest, ReadsTokensWithTheirTokenizer) {
  const std::string vocabulary = TokenizerPart("vocab.json"), merges = TokenizerPart("merges.txt");
  const auto text = ReadText(WriteTokenFile({vocabulary, merges}, 512, {5, 511, 5}));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->tokens, std::vector<uint32_t>({5, 511, 5}));
  EXPECT_EQ(text->vocabulary(), 512u);
  EXPECT_TRUE(text->alphabet.empty());
  EXPECT_EQ(ReadText(WriteTokenFile({vocabulary, merges}, 512, {5, 512})).status().message(),
            "token 1 is 512; expected an ID below 512, the size of the vocabulary");
  EXPECT_EQ(ReadText("ab")->alphabet, U"ab");
}

TEST(ReadTextTest, ReadsATokenizerAsATextWithoutTokens) {
  const auto text =
      ReadText(WriteTokenizerFile({TokenizerPart("vocab.json"), TokenizerPart("merges.txt")}));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->vocabulary(), 512u);
  EXPECT_TRUE(text->tokens.empty());
  RunConfig run;
  run.model.context = 8;
  run.task = TextTask{true, std::make_shared<const TokenizedText>(*text), 0.1};
  EXPECT_EQ(KindOf(run.task).batches(run).status().message(),
            "the text has 0 tokens to train on and 0 to validate on, but model.context 8 needs 9 "
            "of each")
      << "it can only be sampled with";
}

std::shared_ptr<const tokenizer::BytePairEncoding> ExampleEncoding() {
  const std::string vocabulary = TokenizerPart("vocab.json"), merges = TokenizerPart("merges.txt");
  return *ReadEncoding({vocabulary, merges});
}

// Encodes a word of letters by the files of the tokenizer: the earliest merge first, the leftmost
// of several.
class PlainEncoder {
 public:
  PlainEncoder() : ids_(nlohmann::json::parse(TokenizerPart("vocab.json"))) {
    std::istringstream lines(TokenizerPart("merges.txt"));
    std::string line;
    while (std::getline(lines, line)) {
      if (line.empty() || line[0] == '#') continue;
      const int rank = static_cast<int>(ranks_.size());
      ranks_[{line.substr(0, line.find(' ')), line.substr(line.find(' ') + 1)}] = rank;
    }
  }

  std::vector<uint32_t> Encode(const std::string& word) const {
    std::vector<std::string> parts;
    for (const char letter : word) parts.emplace_back(1, letter);
    while (true) {
      size_t best = parts.size();
      int best_rank = std::numeric_limits<int>::max();
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks_.find({parts[i], parts[i + 1]});
        if (found == ranks_.end() || found->second >= best_rank) continue;
        best = i;
        best_rank = found->second;
      }
      if (best == parts.size()) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<uint32_t> tokens;
    for (const std::string& part : parts) tokens.push_back(ids_.at(part).get<uint32_t>());
    return tokens;
  }

 private:
  const nlohmann::json ids_;
  std::map<std::pair<std::string, std::string>, int> ranks_;
};

TEST(EncodeDocumentsTest, EncodesEachNameByItself) {
  const PlainEncoder plain;
  std::ifstream file(absl::StrCat(ABLATE_EXAMPLES_DATA, "/names.txt"));
  std::string text, line;
  std::vector<uint32_t> tokens;
  std::vector<size_t> starts = {0};
  while (starts.size() <= 3000 && std::getline(file, line)) {
    absl::StrAppend(&text, line, "\n");
    const std::vector<uint32_t> encoded = plain.Encode(line);
    tokens.insert(tokens.end(), encoded.begin(), encoded.end());
    starts.push_back(tokens.size());
  }
  const auto documents = EncodeDocuments(text, ExampleEncoding());
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ(documents->documents(), 3000u);
  EXPECT_EQ(documents->tokens, tokens);
  EXPECT_EQ(documents->starts, starts);
  EXPECT_LT(tokens.size(), text.size() - 3000) << "merges occur";
}

// Lines are those of documents of characters. A document's ids are those of its bytes.
TEST(EncodeDocumentsTest, ReadsTheLinesThatCharactersRead) {
  const auto encoding = ExampleEncoding();
  const std::string text =
      "\xEF\xBB\xBFthe king \r\n\n a <|endoftext|>\n\xF0\x9F\x99\x82\xC3\xA9\n\nking";
  const auto documents = EncodeDocuments(text, encoding);
  ASSERT_TRUE(documents.ok()) << documents.status();
  std::vector<std::string> read;
  for (size_t i = 0; i < documents->documents(); ++i) {
    const auto ids =
        absl::MakeConstSpan(documents->tokens)
            .subspan(documents->starts[i], documents->starts[i + 1] - documents->starts[i]);
    read.push_back(*encoding->Decode(ids));
    std::vector<uint32_t> alone;
    tokenizer::Encoder(encoding).Encode(read.back(), &alone);
    EXPECT_EQ(ids, absl::MakeConstSpan(alone)) << i;
  }
  EXPECT_EQ(read, (std::vector<std::string>{"the king ", " a <|endoftext|>",
                                            "\xF0\x9F\x99\x82\xC3\xA9", "king"}));
  for (const char* wrong : {"ab\n\xFF", "a\rb\n", "\n\n", ""}) {
    EXPECT_EQ(EncodeDocuments(wrong, encoding).status(), TokenizeDocuments(wrong).status());
  }
}

TEST(EncodeDocumentsTest, TheBoundaryIsEndOfTextOrOneMoreToken) {
  const auto known =
      tokenizer::SmallTokenizer{{"a b"}, {"<|start|>", "<|endoftext|>", "<|more|>"}}.Make();
  const auto documents = EncodeDocuments("ab\na", known);
  EXPECT_EQ(known->TextOf(documents->bos()), "<|endoftext|>");
  EXPECT_EQ(documents->bos(), 258u);
  EXPECT_EQ(documents->vocabulary(), 260u) << "that of the tokenizer";
  EXPECT_EQ(documents->tokens, std::vector<uint32_t>({256, 'a'}));
  const auto unknown = tokenizer::SmallTokenizer{{"a b"}, {"<|start|>"}}.Make();
  const auto more = EncodeDocuments("ab\na", unknown);
  EXPECT_EQ(more->bos(), 258u);
  EXPECT_EQ(more->vocabulary(), 259u);

  RunConfig run;
  run.task = DocumentsTask{true, std::make_shared<const TokenizedDocuments>(*documents), 1};
  run.model.context = 8;
  const auto vocabulary_with = [&](std::shared_ptr<const tokenizer::BytePairEncoding> tokens) {
    run.task = DocumentsTask{
        true, std::make_shared<const TokenizedDocuments>(*EncodeDocuments("ab\na", tokens)), 1};
    return KindOf(run.task).vocabulary(run.task);
  };
  const std::string said = vocabulary_with(known);
  EXPECT_THAT(said, testing::MatchesRegex(
                        R"(\{"tokenizer":"byte_level_bpe","tokens":260,"hash":"[0-9a-f]{16}",)"
                        R"("bos":258\})"));
  const auto other =
      tokenizer::SmallTokenizer{{"a c"}, {"<|start|>", "<|endoftext|>", "<|more|>"}}.Make();
  EXPECT_NE(vocabulary_with(other), said) << "a token of another text";
  run.task = DocumentsTask{true, std::make_shared<const TokenizedDocuments>(*documents), 1};
  EXPECT_EQ(KindOf(run.task).shape(run.task)->vocabulary, 260);
  const auto batches = KindOf(run.task).batches(run);
  ASSERT_TRUE(batches.ok()) << batches.status();
  const TokenBatch batch = (*batches)->HeldOut(0);
  EXPECT_EQ(batch.inputs, std::vector<int64_t>({258, batch.targets[0]}));
  EXPECT_EQ(batch.targets[1], 258);
}

TEST(ReadDocumentsTest, ReadsTokensWithTheirTokenizer) {
  const std::string vocabulary = TokenizerPart("vocab.json"), merges = TokenizerPart("merges.txt");
  const TokenizerFiles files = {vocabulary, merges};
  const auto documents = ReadDocuments(WriteTokenFile(files, 512, {5, 511, 5}, {2, 1}));
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ(documents->tokens, std::vector<uint32_t>({5, 511, 5}));
  EXPECT_EQ(documents->starts, std::vector<size_t>({0, 2, 3}));
  EXPECT_EQ(documents->bos(), 512u);
  EXPECT_EQ(ReadDocuments(WriteTokenFile(files, 512, {5, 512}, {2})).status().message(),
            "token 1 is 512; expected an ID below 512, the size of the vocabulary");
  EXPECT_EQ(ReadDocuments(WriteTokenFile(files, 512, {5})).status().message(),
            "it has no documents; expected the lengths of its documents");
  EXPECT_EQ(ReadDocuments("ab")->alphabet, U"ab");
  const tokenizer::SmallTokenizer special = {{"a b"}, {"<|endoftext|>"}};
  const std::string ids = special.VocabularyFile().text, rules = special.MergesFile().text;
  EXPECT_EQ(ReadDocuments(WriteTokenFile({ids, rules}, 258, {5, 257}, {2})).status().message(),
            "token 1 is 257, which ends each document; expected documents without it");

  const DocumentFacts facts = FactsOfEncoded(*documents);
  EXPECT_EQ(facts.documents, 2u);
  EXPECT_EQ(facts.characters, 513u) << "with the boundary";
  EXPECT_EQ(facts.code_points, 3u);
  EXPECT_EQ(facts.longest, 2u);
  EXPECT_EQ(facts.lengths, std::vector<uint64_t>({0, 1, 1}));
}

// Facts counted when a text arrives must agree with those of training.
TEST(FactsOfTextTest, AreThoseOfTheTokens) {
  for (const char* written : {"ab\n\nba\n", "one line", "a\r\nb\r\n\r\n", "a\r\nb\r", "ab\ncd"}) {
    const auto text = TokenizeText(written);
    const auto documents = InspectDocuments(written);
    ASSERT_TRUE(text.ok() && documents.ok()) << written;
    const TextFacts facts = FactsOfText(*documents);
    EXPECT_EQ(facts.tokens, text->tokens.size()) << written;
    EXPECT_EQ(facts.characters, text->alphabet.size()) << written;
  }
}

TEST(SplitTextTest, EveryWindowHasTheTargetOfItsLastPosition) {
  for (uint64_t tokens = 1; tokens < 60; ++tokens) {
    for (const uint64_t context : {1u, 2u, 5u, 8u}) {
      const TextSplit split = SplitText(tokens, 0.25, context);
      EXPECT_EQ(split.training, tokens * 3 / 4);
      EXPECT_EQ(split.training + split.validation, tokens);
      EXPECT_EQ(split.starts, split.training > context ? split.training - context : 0);
      EXPECT_LT(split.windows * context, std::max<uint64_t>(split.validation, 1));
      EXPECT_GE((split.windows + 1) * context, split.validation);
    }
  }
}

TEST(SplitTextTest, EvaluatesWholeBatchesOfWindows) {
  const TextSplit split = SplitText(1'115'394, 0.1, 64);
  EXPECT_EQ(WindowsToEvaluate(split, 64, {.batches = 0}).windows, 1'742u);
  EXPECT_EQ(WindowsToEvaluate(split, 64, {.batches = 1}).windows, 32u);
  EXPECT_EQ(WindowsToEvaluate(split, 64, {.batches = 54}).windows, 1'728u);
  EXPECT_EQ(WindowsToEvaluate(split, 64, {.batches = 55}).windows, 1'742u);
  EXPECT_EQ(WindowsToEvaluate(split, 64, {.batches = UINT32_MAX}).windows, 1'742u);
}

TEST(VocabularyTest, SaysWhatTokensOfATextMean) {
  const TaskConfig task = *ReadTextTask("b\na", 0.5);
  EXPECT_EQ(KindOf(task).vocabulary(task), R"({"characters":["\n","a","b"]})");
  EXPECT_EQ(KindOf(RecallTask()).vocabulary(RecallTask()), "");
}

TEST(TokenizeDocumentsTest, CountsAllMemoryThatItHolds) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "é\n";
  const auto documents = TokenizeDocuments(text);
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ(documents->starts.capacity(), 5001u) << "room that is not used";
  EXPECT_GE(documents->bytes(), sizeof(*documents) + documents->tokens.capacity() * 4 +
                                    documents->starts.capacity() * 8);
}

TEST(CutDocumentsTest, ADocumentTakesOnePositionMoreThanCharacters) {
  const auto facts = InspectDocuments("ab\r\n\nc\u00e9d\nabcdefg\nxy");
  ASSERT_TRUE(facts.ok()) << facts.status();
  ASSERT_EQ(facts->lengths.size(), 8u);
  EXPECT_EQ(facts->lengths[2], 2u);
  EXPECT_EQ(facts->lengths[3], 1u);
  EXPECT_EQ(facts->lengths[7], 1u);
  EXPECT_EQ(CutDocuments(facts->lengths, 8), 0u);
  EXPECT_EQ(CutDocuments(facts->lengths, 7), 1u);
  EXPECT_EQ(CutDocuments(facts->lengths, 3), 2u);
  EXPECT_EQ(CutDocuments(facts->lengths, 2), 4u);
  EXPECT_EQ(CutDocuments({}, 2), 0u);
}

TEST(CutDocumentsTest, LengthsBeyondEveryContextAreCountedTogether) {
  const auto facts = InspectDocuments(std::string(8191, 'a') + "\n" + std::string(8192, 'a') +
                                      "\n" + std::string(100'000, 'a') + "\n");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->lengths.size(), DocumentFacts::kCountedLength + 1);
  EXPECT_EQ(CutDocuments(facts->lengths, 8192), 2u);
  EXPECT_EQ(CutDocuments(facts->lengths, 8191), 3u);
  EXPECT_EQ(facts->longest, 100'000u);
}

}  // namespace
}  // namespace ablate::engine
