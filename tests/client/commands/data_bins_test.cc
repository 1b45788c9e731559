// Tests `ablate data add` of a folder with the token files of nanoGPT's prepare scripts.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/sha256.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;

// Returns ids as little-endian uint16.
std::string Bin(const std::vector<uint32_t>& ids) {
  std::string bytes;
  for (const uint32_t id : ids) {
    bytes += static_cast<char>(id & 0xff);
    bytes += static_cast<char>(id >> 8);
  }
  return bytes;
}

class DataBinsTest : public ClientTest {
 protected:
  DataBinsTest() {
    answers_.dataset = [](const v1::GetDatasetRequest&, v1::Dataset*) {
      return absl::NotFoundError("no such data set");
    };
    answers_.upload = [this](const std::vector<v1::UploadDatasetRequest>& messages,
                             v1::Dataset* dataset) {
      first_ = messages[0];
      for (const auto& message : messages) sent_ += message.data();
      dataset->set_name("datasets/plays-1a2b3c");
      dataset->set_kind(v1::DatasetKind::tokens);
      dataset->set_vocabulary(512);
      dataset->set_bytes(8'000);
      return absl::OkStatus();
    };
    StartServer();
    for (const char* const name : {"vocab.json", "merges.txt"}) {
      Put(name, Read(absl::StrCat(ABLATE_EXAMPLES_DATA, "/shakespeare-bpe/", name)));
    }
    Put("train.bin", Bin({1, 511, 300, 256, 7, 7, 7}));
    Put("val.bin", Bin({9, 8, 511}));
  }

  void Put(const std::string& name, const std::string& bytes) { Write("plays/" + name, bytes); }
  void Remove(const std::string& name) { std::filesystem::remove(plays_ + "/" + name); }
  Outcome Add(const std::vector<std::string>& more = {}) {
    return Run(With({"data", "add", plays_}, more));
  }
  // Expects that the folder is refused before anything is sent.
  void ExpectRefused(const std::string& message) {
    const Outcome outcome = Add();
    EXPECT_EQ(outcome.code, kFailure);
    EXPECT_EQ(outcome.err, absl::StrCat("error: ", message, "\n"));
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(sent_, "");
  }

  const std::string plays_ = folder_ + "/plays";
  v1::UploadDatasetRequest first_;
  std::string sent_;
};

TEST_F(DataBinsTest, MakesADataSetOfTokens) {
  const Outcome outcome = Add();
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, "datasets/plays-1a2b3c\n");
  EXPECT_EQ(outcome.err,
            "uploaded 8.0 kB, tokens with a vocabulary of 512\n"
            "task.text.validation: 0.3 holds out exactly val.bin: 3 of 10 tokens\n");
  EXPECT_EQ(first_.display_name(), "plays");
  EXPECT_EQ(first_.sha256(), Sha256Hex(sent_));
  EXPECT_FALSE(first_.private_());
  const absl::StatusOr<DatasetFile> file = ReadDatasetFile(sent_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->kind, DatasetKind::kTokens);
  EXPECT_EQ(file->tokens, std::vector<uint32_t>({1, 511, 300, 256, 7, 7, 7, 9, 8, 511}));
  EXPECT_EQ(file->tokenizer.vocabulary, Read(plays_ + "/vocab.json"));
  EXPECT_EQ(file->tokenizer.merges, Read(plays_ + "/merges.txt"));
}

TEST_F(DataBinsTest, ReadsATokenizerJsonInPlaceOfTheOtherFiles) {
  const std::string json =
      tokenizer::SmallTokenizer{tokenizer::RandomMerges(1, 300), {}}.JsonFile().text;
  Put("tokenizer.json", json);
  Remove("vocab.json");
  Put("train.bin", Bin({1, 300, 256}));
  Put("val.bin", Bin({7}));
  EXPECT_EQ(Add().code, kSuccess);
  const absl::StatusOr<DatasetFile> file = ReadDatasetFile(sent_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tokenizer.json, json);
  EXPECT_EQ(file->tokens, std::vector<uint32_t>({1, 300, 256, 7}));
}

TEST_F(DataBinsTest, TakesTheOptionsOfOtherDataSets) {
  const Outcome outcome = Add({"--private", "--json"});
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_THAT(outcome.out, HasSubstr("\"vocabulary\": 512"));
  EXPECT_THAT(outcome.err, HasSubstr("task.text.validation: "));
  EXPECT_TRUE(first_.private_());
}

TEST_F(DataBinsTest, ReadsNoPickle) {
  Put("meta.pkl", "\x80\x04not a pickle");
  EXPECT_EQ(Add().code, kSuccess);
  sent_.clear();
  for (const char* const name : {"vocab.json", "train.bin", "val.bin"}) {
    Remove(name);
    ExpectRefused(
        plays_ +
        " has meta.pkl and no vocab.json: its ids are characters; expected the text itself, such "
        "as input.txt. `ablate data add FILE` uploads it, and a text task reads its characters");
  }
}

TEST_F(DataBinsTest, NamesTheWidthOfIdsThatAreTooWide) {
  std::vector<uint32_t> wide;
  for (uint32_t id = 0; id < 20; ++id) wide.insert(wide.end(), {id, 0});
  Put("val.bin", Bin(wide));
  const std::string file = absl::StrCat("\"", plays_, "/val.bin\"");
  ExpectRefused(absl::StrCat(
      plays_, "/val.bin: its ids have 4 bytes each, because every second number of 2 bytes is 0; ",
      "expected ids of 2 bytes, by the size of the vocabulary. Convert the file: `python3 -c ",
      "'import numpy; numpy.fromfile(", file, ", \"<u4\").astype(\"<u2\").tofile(", file, ")'`"));
}

TEST_F(DataBinsTest, NamesTheFileThatIsMissing) {
  for (const std::string name : {"train.bin", "val.bin", "vocab.json", "merges.txt"}) {
    const std::string bytes = Read(plays_ + "/" + name);
    Remove(name);
    ExpectRefused(
        absl::StrCat(plays_, " has no ", name,
                     "; expected train.bin and val.bin, and tokenizer.json, or vocab.json "
                     "and merges.txt, of the tokenizer that made them"));
    Put(name, bytes);
  }
}

TEST_F(DataBinsTest, NamesTheFileThatCannotBeRead) {
  Put("val.bin", Bin({1, 2}) + "x");
  ExpectRefused(plays_ +
                "/val.bin: it ends within an id, after 5 bytes; expected ids of two bytes each");
  Put("val.bin", "");
  ExpectRefused(plays_ + "/val.bin: it is empty; expected ids of two bytes each");
  Put("val.bin", Bin({9, 512, 600}));
  ExpectRefused(plays_ +
                "/val.bin: id 512 at position 1 is not in the vocabulary; expected ids below 512, "
                "its size");
  Put("train.bin", Bin({65'535}));
  ExpectRefused(plays_ +
                "/train.bin: id 65535 at position 0 is not in the vocabulary; expected ids below "
                "512, its size");
  Remove("train.bin");
  std::filesystem::create_directory(plays_ + "/train.bin");
  ExpectRefused(plays_ + "/train.bin: not a file; expected a file of ids");
}

// The files have holes, so that they need no disk.
TEST_F(DataBinsTest, RefusesMoreThanADataSetHolds) {
  const auto resize = [this](const std::string& name, uint64_t bytes) {
    std::filesystem::resize_file(plays_ + "/" + name, bytes);
  };
  const std::string most = "; expected at most 268,435,456 bytes of ids and tokenizer together";
  resize("train.bin", kMaxDatasetFileBytes + 2);
  ExpectRefused(plays_ + "/train.bin: too large (268,435,458 bytes)" + most);
  resize("train.bin", kMaxDatasetFileBytes - 2);
  ExpectRefused(plays_ + ": too large (268,435,460 bytes)" + most);
}

}  // namespace
}  // namespace ablate::client
