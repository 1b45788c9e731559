// Compares encoders of GPT-2's vocabulary with the tokenizers package, and with known ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/tokenizer/encoder.h"
#include "tests/test_folder.h"
#include "tests/tokenizer/mixed_text.h"

namespace ablate::tokenizer {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<uint32_t>;

const std::string& TokenizerFolder() {
  static const std::string folder = ABLATE_TEST_DATA "/gpt2-bpe";
  return folder;
}

class Gpt2Test : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(TokenizerFolder())) {
      GTEST_SKIP() << "no vocabulary in " << TokenizerFolder();
    }
    auto read = BytePairEncoding::Read(TokenizerFolder() + "/vocab.json",
                                       TokenizerFolder() + "/merges.txt");
    ASSERT_TRUE(read.ok()) << read.status();
    encoding_ = *read;
  }

  Ids Encode(absl::string_view text) {
    Ids ids;
    Encoder(encoding_).Encode(text, &ids);
    return ids;
  }

  Ids EncodeSpecial(absl::string_view text) {
    Ids ids;
    Encoder::WithSpecial(encoding_, {"<|endoftext|>"})->Encode(text, &ids);
    return ids;
  }

  // Writes a text for the reference. Names that begin with "special" have special tokens.
  void Add(const std::string& name, const std::string& text) {
    files_.push_back(folder_.Write(name, text));
  }

  // Compares the ids of all added texts.
  void ExpectReferenceIds() {
    std::string command = "'" ABLATE_PYTHON "' '" ABLATE_SOURCE
                          "/tests/tokenizer/reference_ids.py' '" +
                          TokenizerFolder() + "'";
    for (const std::string& file : files_) command += " '" + file + "'";
    const int status = std::system(command.c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "Python lacks tokenizers";
    ASSERT_EQ(status, 0) << command;
    for (const std::string& file : files_) {
      SCOPED_TRACE(file);
      const std::string text = process::ReadWholeFile(file);
      const Ids ids = absl::StrContains(file, "/special") ? EncodeSpecial(text) : Encode(text);
      ExpectEqual(ids, process::ReadWholeFile(file + ".ids"));
      EXPECT_EQ(*encoding_->Decode(ids), text);
    }
  }

  std::shared_ptr<const BytePairEncoding> encoding_;
  TestFolder folder_;
  std::vector<std::string> files_;

 private:
  void ExpectEqual(const Ids& ids, const std::string& bytes) {
    Ids expected(bytes.size() / sizeof(uint32_t));
    std::memcpy(expected.data(), bytes.data(), bytes.size());
    ASSERT_FALSE(expected.empty());
    if (ids == expected) return;
    size_t at = 0;
    while (at < ids.size() && at < expected.size() && ids[at] == expected[at]) ++at;
    const auto around = [&](const Ids& all) {
      const size_t begin = std::min(at - std::min<size_t>(at, 3), all.size());
      const size_t end = std::min(at + 4, all.size());
      return *encoding_->Decode(absl::MakeSpan(all).subspan(begin, end - begin));
    };
    FAIL() << "id " << at << " of " << ids.size() << " and " << expected.size() << " differs in "
           << testing::PrintToString(around(ids)) << " and "
           << testing::PrintToString(around(expected));
  }
};

TEST_F(Gpt2Test, EncodesKnownTexts) {
  EXPECT_EQ(encoding_->vocabulary(), 50257u);
  EXPECT_THAT(encoding_->special(), ElementsAre(50256));
  EXPECT_EQ(encoding_->TextOf(50256), "<|endoftext|>");
  EXPECT_THAT(Encode("Hello world"), ElementsAre(15496, 995));
  EXPECT_THAT(Encode("Hello, world!"), ElementsAre(15496, 11, 995, 0));
  EXPECT_THAT(Encode("<|endoftext|>"), ElementsAre(27, 91, 437, 1659, 5239, 91, 29));
  EXPECT_EQ(Encode(""), Ids());
}

TEST_F(Gpt2Test, EncodesDataSetsAsTokenizersDoes) {
  Add("names", process::ReadWholeFile(ABLATE_SOURCE "/examples/data/names.txt"));
  Add("plays", process::ReadWholeFile(ABLATE_SOURCE "/examples/data/tinyshakespeare.txt"));
  const std::string sentences = process::ReadWholeFile(ABLATE_TEST_DATA "/en_ewt-ud-dev.conllu");
  if (!sentences.empty()) Add("sentences", sentences);
  ExpectReferenceIds();
}

TEST_F(Gpt2Test, EncodesVeryLongWordsAsTokenizersDoes) {
  Add("letter", std::string(1'000'000, 'a'));
  Add("spaces", std::string(200'000, ' ') + "x" + std::string(200'000, '\n'));
  std::string letters;
  for (size_t i = 0; i < 1'000'000; ++i) letters += static_cast<char>('a' + i * i % 1009 % 26);
  Add("letters", letters);
  ExpectReferenceIds();
}

TEST_F(Gpt2Test, EncodesSpecialTokensAsTokenizersDoes) {
  Add("special1", "<|endoftext|>a b<|endoftext|><|endoftext|>  <|endoftext|> \n <|endoftext|>x'");
  Add("special2", "it'<|endoftext|>s <|endoftext| > <<|endoftext|>> <|endoftext|>\n\n\n");
  ExpectReferenceIds();
}

TEST_P(Gpt2Test, EncodesMixedTextAsTokenizersDoes) {
  for (int i = 0; i < GetParam(); ++i) Add("text" + std::to_string(i), MixedText(i, 500'000));
  if (GetParam() > 1) Add("characters", EveryCodePoint());
  ExpectReferenceIds();
}

INSTANTIATE_TEST_SUITE_P(Short, Gpt2Test, ::testing::Values(1));
INSTANTIATE_TEST_SUITE_P(Long, Gpt2Test, ::testing::Values(24));

}  // namespace
}  // namespace ablate::tokenizer
