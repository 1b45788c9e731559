// Tests the files of data sets that aren't plain text.
#include "base/dataset_file.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/safetensors.h"

namespace ablate {
namespace {

using ::testing::ElementsAre;

constexpr TokenizerFiles kFiles = {"{\"a\": 0}", "#version: 0.2\n"};

std::string MessageOf(const std::string& file) {
  const auto read = ReadDatasetFile(file);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(read.status().message());
}

// Returns a file of these metadata and tensors.
std::string FileOf(const std::map<std::string, std::string>& metadata,
                   const std::vector<TensorView>& tensors) {
  return *WriteSafetensors(tensors, metadata);
}

const std::vector<TensorView> kParts = {{"vocab.json", TensorType::kU8, {2}, "{}"},
                                        {"merges.txt", TensorType::kU8, {0}, ""}};

TEST(DatasetFileTest, KeepsATokenizer) {
  const std::string file = WriteTokenizerFile(kFiles);
  EXPECT_FALSE(IsText(file));
  const auto read = ReadDatasetFile(file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->kind, DatasetKind::kTokenizer);
  EXPECT_EQ(read->tokenizer.vocabulary, kFiles.vocabulary);
  EXPECT_EQ(read->tokenizer.merges, kFiles.merges);
  EXPECT_TRUE(read->tokens.empty());
  EXPECT_EQ(file, WriteTokenizerFile(kFiles)) << "its hash names it";
}

TEST(DatasetFileTest, KeepsATokenizerOfOneFile) {
  const TokenizerFiles files = {"", "", "{\"model\": {}}"};
  for (const std::string& file :
       {WriteTokenizerFile(files), WriteTokenFile(files, 4, {0, 3}, {1, 1})}) {
    const auto read = ReadDatasetFile(file);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->tokenizer.json, files.json);
    EXPECT_EQ(read->tokenizer.vocabulary, "");
    EXPECT_EQ(read->tokens.size(), read->kind == DatasetKind::kTokens ? 2u : 0u);
  }
  EXPECT_EQ(MessageOf(FileOf({{"ablate.dataset", "tokenizer"}},
                             {{"tokenizer.json", TensorType::kU8, {0}, ""}})),
            "its tokenizer.json is empty");
}

TEST(DatasetFileTest, KeepsTokensInAsManyBitsAsTheVocabularyNeeds) {
  const std::vector<uint32_t> tokens = {0, 65'535, 7};
  const std::string narrow = WriteTokenFile(kFiles, 65'536, tokens);
  const std::string wide = WriteTokenFile(kFiles, 65'537, tokens);
  EXPECT_LT(narrow.size(), wide.size());
  for (const std::string& file : {narrow, wide}) {
    EXPECT_FALSE(IsText(file));
    const auto read = ReadDatasetFile(file);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->kind, DatasetKind::kTokens);
    EXPECT_THAT(read->tokens, ElementsAre(0, 65'535, 7));
    EXPECT_EQ(read->tokenizer.vocabulary, kFiles.vocabulary);
  }
  const auto large = ReadDatasetFile(WriteTokenFile(kFiles, 1'000'000, {999'999}));
  EXPECT_THAT(large->tokens, ElementsAre(999'999));
}

TEST(DatasetFileTest, KeepsTheLengthsOfDocuments) {
  const std::vector<uint32_t> tokens = {4, 7, 5}, lengths = {1, 2};
  for (const uint32_t vocabulary : {8u, 100'000u}) {
    const auto read = ReadDatasetFile(WriteTokenFile(kFiles, vocabulary, tokens, lengths));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->kind, DatasetKind::kTokens);
    EXPECT_THAT(read->tokens, ElementsAre(4, 7, 5));
    EXPECT_THAT(read->lengths, ElementsAre(1, 2));
  }
  EXPECT_THAT(ReadDatasetFile(WriteTokenFile(kFiles, 8, tokens))->lengths, ElementsAre());
  for (const std::vector<uint32_t>& wrong :
       std::vector<std::vector<uint32_t>>{{1, 1}, {2, 2}, {3, 0}, {4'294'967'295, 4}}) {
    EXPECT_EQ(MessageOf(WriteTokenFile(kFiles, 8, tokens, wrong)),
              "lengths doesn't divide the tokens into documents; expected numbers of at least 1 "
              "that add up to 3");
  }
}

// Returns ids 1, 2, … with `zeros` zeros after each.
std::vector<uint32_t> Spread(size_t ids, size_t zeros) {
  std::vector<uint32_t> spread(ids * (zeros + 1));
  for (size_t i = 0; i < ids; ++i) spread[i * (zeros + 1)] = static_cast<uint32_t>(i + 1);
  return spread;
}

TEST(DatasetFileTest, FindsTheWidthOfIdsByTheirZeros) {
  EXPECT_EQ(FindIdBytes(Spread(100, 0), 2), 2u);
  EXPECT_EQ(FindIdBytes(Spread(100, 1), 2), 4u);
  EXPECT_EQ(FindIdBytes(Spread(8, 1), 2), 4u);
  EXPECT_EQ(FindIdBytes(Spread(100, 1), 4), 8u);
  EXPECT_EQ(FindIdBytes(Spread(100, 3), 2), 8u);
  EXPECT_EQ(FindIdBytes(Spread(100, 2), 2), 2u) << "no width has three numbers";
}

TEST(DatasetFileTest, TakesIdsAsTheyAreUnlessZerosSayOtherwise) {
  EXPECT_EQ(FindIdBytes({}, 2), 2u);
  EXPECT_EQ(FindIdBytes(Spread(7, 1), 2), 2u) << "too few to tell";
  EXPECT_EQ(FindIdBytes(std::vector<uint32_t>(100), 2), 2u) << "one token, again and again";
  std::vector<uint32_t> ids = Spread(100, 1);
  ids[101] = 5;
  EXPECT_EQ(FindIdBytes(ids, 2), 2u);
  ids = Spread(100, 1);
  ids.push_back(0);
  EXPECT_EQ(FindIdBytes(ids, 2), 2u) << "half an id at the end";
}

TEST(DatasetFileTest, TellsTextFromFiles) {
  EXPECT_TRUE(IsText(""));
  EXPECT_TRUE(IsText("emma\nolivia\n"));
  EXPECT_TRUE(IsText("eight by" + std::string(1, '\0')));
}

TEST(DatasetFileTest, NamesWhatIsWrong) {
  EXPECT_THAT(MessageOf("no such file"), ::testing::HasSubstr("safetensors"));
  EXPECT_EQ(MessageOf(FileOf({}, kParts)),
            "its metadata don't say what it is; expected ablate.dataset to be tokenizer, tokens or "
            "files");
  EXPECT_EQ(MessageOf(FileOf({{"ablate.dataset", "tokenizer"}}, {kParts[0]})),
            "it has no merges.txt");
  EXPECT_EQ(MessageOf(FileOf({{"ablate.dataset", "tokens"}}, kParts)), "it has no tensor tokens");
  std::vector<TensorView> parts = kParts;
  parts.push_back({"tokens", TensorType::kU64, {1}, absl::string_view("\0\0\0\0\0\0\0\0", 8)});
  EXPECT_EQ(MessageOf(FileOf({{"ablate.dataset", "tokens"}}, parts)),
            "tokens has another form; expected a tensor of type U16 or U32 with one axis");
  parts.back() = {"tokens", TensorType::kU16, {1}, absl::string_view("\1\0", 2)};
  parts.push_back({"lengths", TensorType::kU16, {1}, absl::string_view("\1\0", 2)});
  EXPECT_EQ(MessageOf(FileOf({{"ablate.dataset", "tokens"}}, parts)),
            "lengths has another form; expected a tensor of type U32 with one axis");
  parts.pop_back();
  parts.back() = {"tokens", TensorType::kU16, {0}, ""};
  EXPECT_EQ(MessageOf(FileOf({{"ablate.dataset", "tokens"}}, parts)), "it has no tokens");
  parts = {{"vocab.json", TensorType::kU8, {1, 2}, "{}"}, kParts[1]};
  EXPECT_EQ(MessageOf(FileOf({{"ablate.dataset", "tokenizer"}}, parts)),
            "vocab.json isn't stored as bytes; expected a tensor of type U8 with one axis");
}

}  // namespace
}  // namespace ablate
