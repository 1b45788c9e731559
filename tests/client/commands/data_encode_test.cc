// Tests `ablate data encode`.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/tokenizer/encoder.h"
#include "client/context.h"
#include "gmock/gmock.h"
#include "tests/client/fixture.h"
#include "tests/tokenizer/mixed_text.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using tokenizer::Encoder;
using tokenizer::SmallTokenizer;

class DataEncodeTest : public ClientTest {
 protected:
  DataEncodeTest() { WriteTokenizer({{"a b", "ab c"}, {"<end>"}}); }

  void WriteTokenizer(const SmallTokenizer& small) {
    Write("vocab.json", small.VocabularyFile().text);
    Write("merges.txt", small.MergesFile().text);
    encoding_ = small.Make();
  }
  std::vector<std::string> Arguments(const std::string& file,
                                     const std::vector<std::string>& more) const {
    return With({"data", "encode", file, "--tokenizer", folder_}, more);
  }
  // Returns the ids of `text` as integers of `bytes` bytes.
  std::string Expected(const std::string& text, size_t bytes) const {
    std::vector<uint32_t> ids;
    Encoder(encoding_).Encode(text, &ids);
    std::string expected;
    for (const uint32_t id : ids) {
      for (size_t i = 0; i < bytes; ++i) expected += static_cast<char>(id >> (8 * i));
    }
    return expected;
  }

  std::shared_ptr<const tokenizer::BytePairEncoding> encoding_;
  const std::string out_ = folder_ + "/out.bin";
};

TEST_F(DataEncodeTest, WritesIdsOf16Bits) {
  const Outcome outcome = Run(Arguments(Write("text", "abc a"), {"-o", out_}));
  EXPECT_EQ(outcome.err, out_ + ": 3 tokens of 5 bytes, uint16\n");
  EXPECT_EQ(outcome.code, kSuccess);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(Read(out_), std::string("\x01\x01\x20\0\x61\0", 6));
}

TEST_F(DataEncodeTest, RefusesWideEncodings) {
  const std::string text = Write("text", std::string("\xFF\xFE"
                                                     "a\0b\0",
                                                     6));
  const Outcome outcome = Run(Arguments(text, {"-o", out_}));
  EXPECT_EQ(outcome.code, kFailure);
  EXPECT_EQ(outcome.err, "error: " + text +
                             ": the text is in UTF-16; expected UTF-8. Convert it: "
                             "`iconv -f UTF-16 -t UTF-8 OLD > NEW`\n");
}

TEST_F(DataEncodeTest, WritesIdsOf32BitsOfALargeVocabulary) {
  std::string vocabulary = SmallTokenizer{{"a b"}, {}}.VocabularyFile().text;
  vocabulary.pop_back();
  Write("merges.txt", "");
  Write("vocab.json", vocabulary + ",\"<x>\":65535}");
  EXPECT_THAT(Run(Arguments(Write("text", "<x>"), {"--special", "<x>", "-o", out_})).err,
              HasSubstr("uint16"));
  EXPECT_EQ(Read(out_), "\xFF\xFF");
  Write("vocab.json", vocabulary + ",\"<x>\":65536}");
  EXPECT_THAT(Run(Arguments(Write("text", "<x>"), {"--special", "<x>", "-o", out_, "--force"})).err,
              HasSubstr("1 token of 3 bytes, uint32"));
  EXPECT_EQ(Read(out_), std::string("\0\0\x01\0", 4));
}

TEST_F(DataEncodeTest, EncodesLongTextsBlockByBlock) {
  WriteTokenizer({tokenizer::RandomMerges(1, 60), {}});
  const std::string text = tokenizer::DamagedText(1, 2'000'000);
  EXPECT_EQ(Run(Arguments(Write("text", text), {"-o", out_})).code, kSuccess);
  EXPECT_TRUE(Read(out_) == Expected(text, 2));
  const std::string from_stdin = folder_ + "/stdin.bin";
  EXPECT_EQ(Run(Arguments("-", {"-o", from_stdin}), text).code, kSuccess);
  EXPECT_TRUE(Read(from_stdin) == Read(out_));
}

TEST_F(DataEncodeTest, ReadsATokenizerJson) {
  const SmallTokenizer small = {{"a b", "! ab"}, {"<end>"}};
  Write("tokenizer.json", small.JsonFile().text);
  EXPECT_EQ(Run(Arguments("-", {"--json", "--special", "<end>"}), "!ab12<end>").out,
            "{\"vocabulary\": 259, \"ids\": [257, 49, 50, 258]}\n");
  encoding_ = *tokenizer::BytePairEncoding::ParseJson(small.JsonFile());
  const std::string text = tokenizer::DamagedText(1, 1'000'000);
  EXPECT_EQ(Run(Arguments(Write("text", text), {"-o", out_})).code, kSuccess);
  EXPECT_TRUE(Read(out_) == Expected(text, 2));
  Write("tokenizer.json", "{}");
  EXPECT_EQ(Run(Arguments("-", {"--json"}), "a").err,
            "error: " + folder_ +
                "/tokenizer.json: model.merges: missing; expected an array of merges. Without "
                "tokenizer.json the folder is read as GPT-2's vocab.json and merges.txt\n");
}

TEST_F(DataEncodeTest, EncodesAnEmptyFile) {
  EXPECT_EQ(Run(Arguments(Write("text", ""), {"-o", out_})).err,
            out_ + ": 0 tokens of 0 bytes, uint16\n");
  EXPECT_TRUE(std::filesystem::exists(out_));
  EXPECT_EQ(Run(Arguments("-", {"--json"})).out, "{\"vocabulary\": 259, \"ids\": []}\n");
}

TEST_F(DataEncodeTest, PrintsJson) {
  const Outcome outcome = Run(Arguments("-", {"--json"}), "abc<end>");
  EXPECT_EQ(outcome.out, "{\"vocabulary\": 259, \"ids\": [257, 60, 101, 110, 100, 62]}\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(Run(Arguments("-", {"--json", "--special", "<end>"}), "abc<end>").out,
            "{\"vocabulary\": 259, \"ids\": [257, 258]}\n");
}

TEST_F(DataEncodeTest, WantsEitherAFileOrJson) {
  const std::string text = Write("text", "abc");
  const Outcome neither = Run(Arguments(text, {}));
  EXPECT_EQ(neither.code, kUsage);
  EXPECT_THAT(neither.err, HasSubstr("ablate data encode: -o: missing without --json"));
  const Outcome both = Run(Arguments(text, {"--json", "-o", out_}));
  EXPECT_EQ(both.code, kUsage);
  EXPECT_THAT(both.err, HasSubstr("-o: given with --json; expected either -o OUT or --json"));
  EXPECT_EQ(Run({"data", "encode", text, "-o", out_}).code, kUsage);
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(DataEncodeTest, ReplacesAFileOnlyIfAsked) {
  const std::string text = Write("text", "abc");
  Write("out.bin", "old");
  const Outcome refused = Run(Arguments(text, {"-o", out_}));
  EXPECT_EQ(refused.code, kFailure);
  EXPECT_EQ(refused.err, "error: " + out_ + " exists already: --force replaces it\n");
  EXPECT_EQ(Read(out_), "old");
  EXPECT_EQ(Run(Arguments(text, {"-o", out_, "--force"})).code, kSuccess);
  EXPECT_EQ(Read(out_), "\x01\x01");
}

TEST_F(DataEncodeTest, SaysWhyAFileCantBeEncoded) {
  const auto error = [this](const std::string& file, const std::vector<std::string>& more = {}) {
    const Outcome outcome = Run(With(Arguments(file, {"-o", out_}), more));
    EXPECT_EQ(outcome.code, kFailure);
    EXPECT_FALSE(std::filesystem::exists(out_));
    return outcome.err;
  };
  EXPECT_EQ(error(folder_ + "/gone"), "error: " + folder_ + "/gone: No such file or directory\n");
  EXPECT_EQ(error(folder_), "error: " + folder_ + " is a folder; expected a file\n");
  const std::string text = Write("text", "abc");
  EXPECT_EQ(error(text, {"--special", "<x>"}),
            "error: --special: \"<x>\" isn't a special token; expected one of \"<end>\"\n");
  Write("merges.txt", "a b\na  b\n");
  EXPECT_THAT(error(text),
              StartsWith("error: " + folder_ + "/merges.txt:2: \"a  b\" isn't a merge"));
  Write("vocab.json", "[]");
  EXPECT_THAT(error(text), StartsWith("error: " + folder_ + "/vocab.json: not an object"));
  std::filesystem::remove(folder_ + "/vocab.json");
  EXPECT_THAT(error(text), StartsWith("error: " + folder_ + "/vocab.json: can't be read"));
}

}  // namespace
}  // namespace ablate::client
