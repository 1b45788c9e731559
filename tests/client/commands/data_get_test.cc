// Tests `ablate data get`, and `ablate data encode` with a tokenizer of the server.
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/dataset_file.h"
#include "base/file_set.h"
#include "base/sha256.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;

class DataGetTest : public ClientTest {
 protected:
  using Send = std::function<bool(const v1::DatasetChunk&)>;

  DataGetTest() {
    answers_.dataset = [this](const v1::GetDatasetRequest& request, v1::Dataset* dataset) {
      if (request.name() != "plays") return absl::NotFoundError("there is no data set");
      dataset->set_name("datasets/plays-1a2b3c");
      dataset->set_kind(kind_);
      dataset->set_documents(documents_);
      dataset->set_bytes(size_.value_or(stored_.size()));
      dataset->set_sha256(Sha256Hex(stored_));
      return absl::OkStatus();
    };
    answers_.download = [this](const v1::DownloadDatasetRequest& request, const Send& send) {
      EXPECT_EQ(request.name(), "datasets/plays-1a2b3c");
      const uint64_t half = stored_.size() / 2;
      v1::DatasetChunk chunk;
      chunk.set_data(request.offset() < half ? stored_.substr(request.offset(), half)
                                             : stored_.substr(request.offset()));
      if (damaged_) (*chunk.mutable_data())[0] ^= 1;
      send(chunk);
      return request.offset() < half ? absl::UnavailableError("cut") : absl::OkStatus();
    };
    StartServer();
    for (const char* const name : {"vocab.json", "merges.txt"}) {
      Write(absl::StrCat("from/", name),
            Read(absl::StrCat(ABLATE_EXAMPLES_DATA, "/shakespeare-bpe/", name)));
    }
    vocabulary_ = Read(folder_ + "/from/vocab.json");
    merges_ = Read(folder_ + "/from/merges.txt");
  }

  void StoreTokens(const std::vector<uint32_t>& ids, uint32_t vocabulary = 512) {
    kind_ = v1::DatasetKind::tokens;
    stored_ = WriteTokenFile({vocabulary_, merges_}, vocabulary, ids);
  }
  void StoreTokenizer() {
    kind_ = v1::DatasetKind::tokenizer;
    stored_ = WriteTokenizerFile({vocabulary_, merges_});
  }
  Outcome Get(const std::vector<std::string>& more = {}) {
    return Run(With({"data", "get", "plays", "-o", to_}, more));
  }
  // Expects that `ablate data add` makes the same data set of what was written.
  void ExpectAddsTheSame() {
    std::string sent;
    answers_.dataset = [](const v1::GetDatasetRequest&, v1::Dataset*) {
      return absl::NotFoundError("new");
    };
    answers_.upload = [&](const std::vector<v1::UploadDatasetRequest>& messages, v1::Dataset*) {
      for (const auto& message : messages) sent += message.data();
      return absl::OkStatus();
    };
    const Outcome outcome = Run({"data", "add", to_});
    EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
    EXPECT_TRUE(sent == stored_);
  }

  v1::DatasetKind::Value kind_ = v1::DatasetKind::text;
  std::string stored_ = "a text of a few lines\nof which this is one\n";
  std::string vocabulary_, merges_;
  uint64_t documents_ = 0;
  std::optional<uint64_t> size_;
  bool damaged_ = false;
  const std::string to_ = folder_ + "/to";
};

TEST_F(DataGetTest, WritesATextAsAFileAndContinuesABrokenStream) {
  const Outcome outcome = Get();
  EXPECT_EQ(outcome.code, kSuccess) << outcome.err;
  EXPECT_EQ(outcome.err, to_ + ": 43 B\n");
  EXPECT_EQ(Read(to_), stored_);
  const Outcome refused = Get();
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + to_ + " exists already: --force replaces it\n");
  EXPECT_EQ(Get({"--force"}).code, kSuccess);
  EXPECT_THAT(Get({"--force", "--json"}).out, HasSubstr("\"name\": \"datasets/plays-1a2b3c\""));
}

TEST_F(DataGetTest, WritesNothingOfADamagedFile) {
  damaged_ = true;
  for (const bool is_text : {true, false}) {
    if (!is_text) StoreTokens({1, 2, 3});
    const Outcome outcome = Get();
    EXPECT_EQ(outcome.code, kFailure);
    EXPECT_THAT(outcome.err, HasSubstr("datasets/plays-1a2b3c arrived damaged"));
    EXPECT_FALSE(std::filesystem::exists(to_));
  }
}

TEST_F(DataGetTest, WritesATokenizerAsItsFolder) {
  StoreTokenizer();
  const Outcome outcome = Get();
  EXPECT_EQ(outcome.err, to_ + ": a tokenizer\n");
  EXPECT_EQ(Read(to_ + "/vocab.json"), vocabulary_);
  EXPECT_EQ(Read(to_ + "/merges.txt"), merges_);
  EXPECT_FALSE(std::filesystem::exists(to_ + "/train.bin"));
}

TEST_F(DataGetTest, WritesATokenizerOfOneFile) {
  kind_ = v1::DatasetKind::tokens;
  const std::string json = tokenizer::SmallTokenizer{{"a b"}, {}}.JsonFile().text;
  stored_ = WriteTokenFile({"", "", json}, 257, {1, 256, 7});
  EXPECT_EQ(Get({"--validation", "0.5"}).err,
            to_ + ": a tokenizer and 3 tokens, of which 2 in val.bin\n");
  EXPECT_EQ(Read(to_ + "/tokenizer.json"), json);
  EXPECT_FALSE(std::filesystem::exists(to_ + "/vocab.json"));
}

TEST_F(DataGetTest, WritesTokensAsTheFolderThatAddTook) {
  StoreTokens({1, 511, 300, 256, 7, 7, 7, 9, 8, 511});
  EXPECT_EQ(Get({"--validation", "0.3"}).err,
            to_ + ": a tokenizer and 10 tokens, of which 3 in val.bin\n");
  EXPECT_EQ(Read(to_ + "/train.bin"), std::string("\1\0\xff\1\x2c\1\0\1\7\0\7\0\7\0", 14));
  EXPECT_EQ(Read(to_ + "/val.bin"), std::string("\x9\0\x8\0\xff\1", 6));
  EXPECT_EQ(Get().code, kFailure);
  EXPECT_THAT(Get({"--force"}).err, HasSubstr("of which 1 in val.bin"));
  ExpectAddsTheSame();
}

TEST_F(DataGetTest, ReplacesOnlyAFolderThatItWrote) {
  StoreTokenizer();
  std::filesystem::create_directory(to_);
  EXPECT_EQ(Get({"--force"}).code, kSuccess) << "nothing is lost with an empty folder";
  EXPECT_EQ(Get({"--force"}).code, kSuccess);
  std::filesystem::remove(to_ + "/.ablate");
  const Outcome refused = Get({"--force"});
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, absl::StrCat("error: ", to_,
                                      " is not replaced: it lacks the mark of a folder that ablate "
                                      "wrote. Remove the folder, or choose another one\n"));
  EXPECT_EQ(Read(to_ + "/merges.txt"), merges_);
}

TEST_F(DataGetTest, WritesIdsOfALargeVocabularyAsUint32) {
  vocabulary_.insert(vocabulary_.rfind('}'), ", \"large\": 69999");
  StoreTokens({1, 65'536, 2, 69'999}, 70'000);
  EXPECT_EQ(Get({"--validation", "0.5"}).code, kSuccess);
  EXPECT_EQ(Read(to_ + "/train.bin"), std::string("\1\0\0\0\0\0\1\0", 8));
  EXPECT_EQ(Read(to_ + "/val.bin"), std::string("\2\0\0\0\x6f\x11\1\0", 8));
  // Also where no id needs it.
  StoreTokens({1, 2}, 70'000);
  EXPECT_EQ(Get({"--force", "--validation", "0.5"}).code, kSuccess);
  EXPECT_EQ(Read(to_ + "/val.bin"), std::string("\2\0\0\0", 4));
  ExpectAddsTheSame();
}

TEST_F(DataGetTest, WritesTokensOfDocumentsAsAFile) {
  kind_ = v1::DatasetKind::tokens;
  documents_ = 2;
  stored_ = WriteTokenFile({vocabulary_, merges_}, 512, {1, 2, 3, 4, 5}, {2, 3});
  EXPECT_THAT(Get({"--validation", "0.5"}).err, HasSubstr("has no tokens of a whole text;"));
  EXPECT_EQ(Get().code, kSuccess);
  EXPECT_TRUE(Read(to_) == stored_);
  ExpectAddsTheSame();
}

TEST_F(DataGetTest, WritesTheFilesOfAProgramAsAFolder) {
  kind_ = v1::DatasetKind::files;
  stored_ = *PackFiles({{"lib/a.py", "print(1)\n"}, {"train.py", "print(2)\n"}});
  EXPECT_EQ(Get().err, to_ + ": 2 files\n");
  EXPECT_EQ(Read(to_ + "/lib/a.py"), "print(1)\n");
  EXPECT_EQ(Read(to_ + "/train.py"), "print(2)\n");
  EXPECT_EQ(Get().code, kFailure);
  EXPECT_EQ(Get({"--force"}).code, kSuccess);
}

TEST_F(DataGetTest, RefusesAShareThatDoesntFit) {
  EXPECT_THAT(Get({"--validation", "0.5"}).err,
              HasSubstr("has no tokens of a whole text; expected"));
  StoreTokens({1, 2, 3});
  EXPECT_THAT(Get({"--validation", "1"}).err, HasSubstr("expected a number above 0 and below 1"));
  EXPECT_THAT(Get({"--validation", "0.999"}).err, HasSubstr("leaves a file empty"));
  EXPECT_FALSE(std::filesystem::exists(to_));
}

TEST_F(DataGetTest, EncodesWithATokenizerOfTheServer) {
  const std::string text = Write("text", "To be, or not to be");
  const std::string expected =
      Run({"data", "encode", text, "--tokenizer", folder_ + "/from", "--json"}).out;
  EXPECT_THAT(expected, HasSubstr("\"vocabulary\": 512"));
  StoreTokenizer();
  EXPECT_EQ(Run({"data", "encode", text, "--tokenizer", "plays", "--json"}).out, expected);
  StoreTokens({1, 2, 3});
  EXPECT_EQ(Run({"data", "encode", text, "--tokenizer", "plays", "--json"}).out, expected);
}

TEST_F(DataGetTest, SaysWhyAStoredTokenizerCantBeUsed) {
  const auto error = [this](const std::string& tokenizer) {
    return Run({"data", "encode", "-", "--tokenizer", tokenizer, "--json"}).err;
  };
  EXPECT_EQ(error("plays"),
            "error: --tokenizer: no folder plays here, and on the server: datasets/plays-1a2b3c is "
            "a text; expected a tokenizer, or tokens with theirs\n");
  kind_ = v1::DatasetKind::tagged;
  EXPECT_THAT(error("plays"), HasSubstr("is a file of tagged sentences"));
  EXPECT_THAT(error("play"), HasSubstr("no folder play here, and on the server: there is no data"));
  EXPECT_THAT(error("./play"), HasSubstr("./play/vocab.json"));
  StoreTokenizer();
  size_ = (uint64_t{256} << 20) + 1;
  EXPECT_THAT(error("plays"), HasSubstr("268,435,457 bytes; expected at most 268,435,456"));
  size_ = 10;
  EXPECT_THAT(error("plays"), HasSubstr("longer than its size"));
}

}  // namespace
}  // namespace ablate::client
