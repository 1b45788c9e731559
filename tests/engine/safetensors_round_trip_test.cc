// Safetensors files that are written: round trips, damage to them, and what can't be written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "server/engine/safetensors.h"
#include "tests/engine/header_length.h"

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string Sample() {
  const std::string bytes(64, '\x42');
  const absl::string_view view = bytes;
  auto file =
      WriteSafetensors({{"token_embedding.weight", TensorType::kF32, {2, 3}, view.substr(0, 24)},
                        {"generator", TensorType::kU8, {5}, view.substr(0, 5)},
                        {"step", TensorType::kU64, {}, view.substr(0, 8)},
                        {"cursor", TensorType::kI64, {2}, view.substr(0, 16)},
                        {"none", TensorType::kF64, {0, 7}, ""}},
                       {{"step", "3"}, {"config", "{\"a\": \"\xC3\xA9\\\n\"}"}});
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

TEST(SafetensorsTest, ReadsBackWhatItWrote) {
  const std::string file = Sample();
  EXPECT_EQ(static_cast<unsigned char>(file[0]) % 8, 0) << "the header is not padded";
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->metadata,
              ElementsAre(Pair("config", "{\"a\": \"\xC3\xA9\\\n\"}"), Pair("step", "3")));
  std::vector<std::string> names;
  for (const TensorView& tensor : parsed->tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("token_embedding.weight", "generator", "step", "cursor", "none"));
  const TensorView* cursor = parsed->Find("cursor");
  ASSERT_NE(cursor, nullptr);
  EXPECT_EQ(cursor->type, TensorType::kI64);
  EXPECT_THAT(cursor->shape, ElementsAre(2));
  EXPECT_EQ(cursor->bytes, std::string(16, '\x42'));
  EXPECT_EQ(cursor->bytes.data(), file.data() + file.size() - 16);
  EXPECT_THAT(parsed->Find("step")->shape, IsEmpty());
  EXPECT_EQ(parsed->Find("momentum"), nullptr);
  EXPECT_EQ(*WriteSafetensors(parsed->tensors, parsed->metadata), file);
}

TEST(SafetensorsTest, WritesTheDocumentedBytes) {
  const std::string header =
      "{\"__metadata__\":{\"k\":\"v\"},\"a\\\"\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":["
      "0,2]}}";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(*WriteSafetensors({{"a\"", TensorType::kU8, {2}, "xy"}}, {{"k", "v"}}),
            Length(padded.size()) + padded + "xy");
  EXPECT_EQ(*WriteSafetensors({}, {}), Length(8) + "{}      ");
}

TEST(SafetensorsTest, EveryTruncationIsRefused) {
  const std::string file = Sample();
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseSafetensors(absl::string_view(file).substr(0, size)).ok()) << size;
  }
}

TEST(SafetensorsTest, ViewsStayInsideTheFileWhateverBitFlips) {
  const std::string original = Sample();
  int accepted = 0;
  for (size_t bit = 0; bit < original.size() * 8; ++bit) {
    std::string file = original;
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ (1 << (bit % 8)));
    const auto parsed = ParseSafetensors(file);
    if (!parsed.ok()) continue;
    ++accepted;
    for (const TensorView& tensor : parsed->tensors) {
      ASSERT_GE(tensor.bytes.data(), file.data()) << bit;
      ASSERT_LE(tensor.bytes.data() + tensor.bytes.size(), file.data() + file.size()) << bit;
    }
  }
  EXPECT_GE(accepted, 53 * 8) << "a flip in the data cannot be seen";
}

TEST(WriteSafetensorsTest, RefusesWhatCannotBeRead) {
  const struct {
    std::vector<TensorView> tensors;
    std::map<std::string, std::string> metadata;
    const char* message;
  } cases[] = {
      {{{"a", TensorType::kU8, {1}, "x"}, {"a", TensorType::kU8, {1}, "y"}},
       {},
       "safetensors: tensor 'a' is there twice"},
      {{{"a", TensorType::kF32, {2}, "1234"}},
       {},
       "safetensors: tensor 'a' is F32 [2], but has 4 bytes"},
      {{{"a", TensorType::kU8, {-1}, ""}},
       {},
       "safetensors: tensor 'a' is U8 [-1], but has 0 bytes"},
      {{{"a", TensorType::kU8, {1LL << 62, 4}, ""}},
       {},
       "safetensors: tensor 'a' is U8 [4611686018427387904,4], but has 0 bytes"},
      {{{"__metadata__", TensorType::kU8, {0}, ""}},
       {},
       "safetensors: no tensor may be called '__metadata__'"},
      {{{"\xFF", TensorType::kU8, {0}, ""}},
       {},
       "safetensors: the tensor name '\\xff' is not UTF-8"},
      {{}, {{"k", "\xC3"}}, "safetensors: the metadata '\\xc3' is not UTF-8"},
      {{}, {{"\xC3", "v"}}, "safetensors: the metadata '\\xc3' is not UTF-8"},
  };
  for (const auto& item : cases) {
    const auto file = WriteSafetensors(item.tensors, item.metadata);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(file.status().message()), item.message);
  }
}

TEST(WriteSafetensorsTest, RefusesAHeaderAboveTheLimit) {
  const auto file = WriteSafetensors({}, {{"k", std::string(100000000, 'x')}});
  EXPECT_EQ(std::string(file.status().message()),
            "safetensors: the header would have 100000032 bytes, but must have at most 100000000");
}

}  // namespace
}  // namespace ablate::engine
