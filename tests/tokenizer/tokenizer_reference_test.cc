// Compares encoders of tokenizer.json files with the tokenizers package, which makes the files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/tokenizer/encoder.h"
#include "tests/test_folder.h"
#include "tests/tokenizer/mixed_text.h"

namespace ablate::tokenizer {
namespace {

using Ids = std::vector<uint32_t>;
using Encoding = std::shared_ptr<const BytePairEncoding>;

constexpr const char* kKinds[] = {"gpt2",    "neox",  "llama3", "qwen2",
                                  "numbers", "split", "lines",  "plain"};

class TokenizerReferenceTest : public ::testing::TestWithParam<int> {
 protected:
  // Writes a text for the reference. See reference_json.py for the meaning of names.
  void Add(const std::string& name, const std::string& text) {
    files_.push_back(folder_.Write(name, text));
  }

  // Compares the ids of all added texts, and the texts that they decode to.
  void ExpectReferenceIds() {
    std::string command = "'" ABLATE_PYTHON "' '" ABLATE_SOURCE
                          "/tests/tokenizer/reference_json.py' '" +
                          folder_.path() + "'";
    for (const std::string& file : files_) command += " '" + file + "'";
    const int status = std::system(command.c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "Python lacks tokenizers";
    ASSERT_EQ(status, 0) << command;
    for (const char* kind : kKinds) {
      const std::string path = folder_ / (std::string(kind) + ".json");
      const auto encoding = BytePairEncoding::ParseJson({path, process::ReadWholeFile(path)});
      ASSERT_TRUE(encoding.ok()) << encoding.status();
      for (const std::string& file : files_) {
        SCOPED_TRACE(absl::StrCat(kind, " ", file));
        const std::string reference = absl::StrCat(file, ".", kind);
        if (std::filesystem::exists(reference + ".ids")) Compare(*encoding, file, reference);
      }
    }
  }

 private:
  static void Compare(const Encoding& encoding, const std::string& file,
                      const std::string& reference) {
    const std::string text = process::ReadWholeFile(file);
    std::vector<std::string> names;
    if (absl::StrContains(file, "/special")) {
      for (const uint32_t id : encoding->special()) names.emplace_back(encoding->TextOf(id));
    }
    auto encoder = Encoder::WithSpecial(encoding, names);
    ASSERT_TRUE(encoder.ok()) << encoder.status();
    Ids ids, pieces;
    encoder->Encode(text, &ids);
    const std::string bytes = process::ReadWholeFile(reference + ".ids");
    Ids expected(bytes.size() / sizeof(uint32_t));
    std::memcpy(expected.data(), bytes.data(), bytes.size());
    ASSERT_FALSE(expected.empty());
    ExpectEqual(*encoding, ids, expected);
    EXPECT_TRUE(*encoding->Decode(ids) == process::ReadWholeFile(reference + ".txt"));
    for (size_t at = 0, size = 1; at < text.size(); at += size, size = size * 7 % 4001) {
      encoder->Add(absl::string_view(text).substr(at, size), &pieces);
    }
    encoder->Finish(&pieces);
    EXPECT_TRUE(pieces == ids);
  }

  static void ExpectEqual(const BytePairEncoding& encoding, const Ids& ids, const Ids& expected) {
    if (ids == expected) return;
    size_t at = 0;
    while (at < ids.size() && at < expected.size() && ids[at] == expected[at]) ++at;
    const auto around = [&](const Ids& all) {
      const size_t begin = std::min(at - std::min<size_t>(at, 3), all.size());
      const size_t end = std::min(at + 4, all.size());
      std::string tokens;
      for (size_t i = begin; i < end; ++i) {
        absl::StrAppend(&tokens, "[", encoding.TextOf(all[i]), "]");
      }
      return testing::PrintToString(tokens);
    };
    ADD_FAILURE() << "id " << at << " of " << ids.size() << " and " << expected.size()
                  << " differs in " << around(ids) << " and " << around(expected);
  }

  TestFolder folder_;
  std::vector<std::string> files_;
};

TEST_F(TokenizerReferenceTest, EncodesEdgesAsTokenizersDoes) {
  Add("plays", process::ReadWholeFile(ABLATE_SOURCE "/examples/data/tinyshakespeare.txt")
                   .substr(0, 300'000));
  Add("numbers", "1 12 123 1234 12345 x1234567y ½²34 ٣٣٣٣ 1,234.5\n1 \n12 \r\n123 4 5 67 8 ");
  Add("contractions", "IT'S it'Re WE'LL 'S 'sx x'ſ 'ſx 'T''T' 'l 'L 'v 'V 'VE'ď ’S 'D\n'M\r\n'");
  Add("lines",
      "a\r\n\r\n b \n\n  c\r\r!!\n\n;\r\n  ;\n \t\n\tx\n  \n\n   y\u00A0\nz\u3000w \u2028\n v  ");
  Add("spaces", "  a   b    !     c\t\td \te\u00A0f\u00A0\u00A0g" + std::string(60, ' ') + "h  ");
  Add("other", "!a !!a ?b\u200Bc \u200Bd “e” é\u0301f \u0301g _h__ -i—j ½k\u00ADl");
  Add("words", "<think>a</think> <think>< think> <|endoftext|> <|endoftext| > !!!!! a!!b");
  Add("special1", "<|endoftext|>a b<|endoftext|><|endoftext|>  <|endoftext|> \n <|endoftext|>x'");
  Add("special2", "it'<|endoftext|>s e<|endoftext|>\u0301<think><|endoftext|>\n\n\n");
  Add("marks", CombiningText(1, 200'000));
  Add("long", std::string(100'000, 'a') + std::string(50'000, '!') + std::string(50'000, '\n'));
  ExpectReferenceIds();
}

TEST_P(TokenizerReferenceTest, EncodesMixedTextAsTokenizersDoes) {
  for (int i = 0; i < GetParam(); ++i) Add(absl::StrCat("text", i), MixedText(i, 300'000));
  if (GetParam() > 1) {
    Add("marks", CombiningText(2, 1'000'000));
    Add("characters", EveryCodePoint());
  }
  ExpectReferenceIds();
}

INSTANTIATE_TEST_SUITE_P(Short, TokenizerReferenceTest, ::testing::Values(1));
INSTANTIATE_TEST_SUITE_P(Long, TokenizerReferenceTest, ::testing::Values(6));

}  // namespace
}  // namespace ablate::tokenizer
