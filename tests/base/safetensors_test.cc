// Tests safetensors files that must be rejected with a reason, and files of other programs that
// must not; written files: round trips, damage, and contents that can't be written.
#include "base/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ablate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Returns the beginning of a file: the header's length.
std::string Length(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

// Returns a file with this header and `data` bytes of data.
std::string File(const std::string& header, size_t data = 0) {
  return Length(header.size()) + header + std::string(data, '\x11');
}

// Returns a file with one tensor "a" with these fields.
std::string One(const std::string& fields, size_t data = 0) {
  return File(absl::StrCat("{\"a\":{", fields, "}}"), data);
}

// Returns a file with the U8 tensors "a", "b", … at these ranges.
std::string Ranges(const std::vector<std::pair<int, int>>& ranges, size_t data) {
  std::string header = "{";
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto [begin, end] = ranges[i];
    absl::StrAppend(&header, i == 0 ? "" : ",", "\"", std::string(1, static_cast<char>('a' + i)),
                    "\":{\"dtype\":\"U8\",\"shape\":[", end - begin, "],\"data_offsets\":[", begin,
                    ",", end, "]}");
  }
  return File(header + "}", data);
}

struct HostileFile {
  const char* what;
  std::string file;
  std::string message;  // after "safetensors: "
};

void ExpectRefused(const std::vector<HostileFile>& files) {
  for (const HostileFile& item : files) {
    const auto parsed = ParseSafetensors(item.file);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << item.what;
    EXPECT_EQ(std::string(parsed.status().message()), "safetensors: " + item.message) << item.what;
  }
}

TEST(ParseSafetensorsTest, RefusesAnImpossibleHeaderLength) {
  ExpectRefused({
      {"empty file", "", "the file has 0 bytes, but must have at least 8"},
      {"cut in the length", "\x02", "the file has 1 bytes, but must have at least 8"},
      {"length only", Length(2), "the header's length is 2, but only 0 bytes follow"},
      {"cut in the header", Length(3) + "{}", "the header's length is 3, but only 2 bytes follow"},
      {"largest allowed, missing", Length(16777216) + "{}",
       "the header's length is 16777216, but only 2 bytes follow"},
      {"above the limit", Length(16777217) + "{}",
       "the header's length is 16777217, but must be at most 16777216"},
      {"would overflow", Length(~uint64_t{0}) + "{}",
       "the header's length is 18446744073709551615, but must be at most 16777216"},
      {"empty header", Length(0), "the header does not begin with '{'"},
  });
}

TEST(ParseSafetensorsTest, RefusesAHeaderThatIsNotJson) {
  const std::string nested(1000000, '[');
  ExpectRefused({
      {"blank before", File(" {}"), "the header does not begin with '{'"},
      {"byte order mark", File("\xEF\xBB\xBF{}"), "the header does not begin with '{'"},
      {"another file", File("\x80\x02}q"), "the header is not UTF-8 at byte 0"},
      {"a list", File("[]"), "the header does not begin with '{'"},
      {"unclosed", File("{"), "the header is not JSON at byte 2"},
      {"two documents", File("{}{}"), "the header is not JSON at byte 3"},
      {"comma at the end", File("{\"__metadata__\":{},}"), "the header is not JSON at byte 20"},
      {"comment", File("{/**/}"), "the header is not JSON at byte 2"},
      {"name is not UTF-8", File("{\"\xFF\":{}}"), "the header is not UTF-8 at byte 2"},
      {"lone surrogate", File("{\"\\ud800\":{}}"), "the header is not JSON at byte 9"},
      {"NUL behind", File(std::string("{}\0", 3)), "the header has a NUL at byte 2"},
      {"NUL hides a tail", File(std::string("{}\0garbage", 10)), "the header has a NUL at byte 2"},
      {"deep in the shape", One("\"shape\":" + nested),
       "shape of tensor 'a' holds a list, but must be a list of non-negative integers"},
      {"deep instead of a tensor", File("{\"a\":" + nested),
       "tensor 'a' holds a list, but must be an object"},
      {"deep objects", One("\"shape\":[{\"a\":{\"a\":{\"a\":{"),
       "shape of tensor 'a' holds an object, but must be a list of non-negative integers"},
  });
}

TEST(ParseSafetensorsTest, RefusesEntriesOfAnotherForm) {
  const std::string digits(1000, '9');
  ExpectRefused({
      {"a number for a tensor", File("{\"a\":1}"),
       "tensor 'a' holds the number 1, but must be an object"},
      {"null for a tensor", File("{\"a\":null}"), "tensor 'a' holds null, but must be an object"},
      {"no dtype", One("\"shape\":[],\"data_offsets\":[0,0]"), "tensor 'a' has no dtype"},
      {"no shape", One("\"dtype\":\"U8\",\"data_offsets\":[0,0]"), "tensor 'a' has no shape"},
      {"no data_offsets", One("\"dtype\":\"U8\",\"shape\":[0]"), "tensor 'a' has no data_offsets"},
      {"field of ours? no", One("\"dtype\":\"U8\",\"stride\":[0]"),
       "tensor 'a' has the field 'stride'; allowed are dtype, shape, data_offsets"},
      {"unknown dtype", One("\"dtype\":\"F8_E5M2\""),
       "dtype of tensor 'a' is 'F8_E5M2', but must be one of F32, F64, F16, BF16, BOOL, U8, U16, "
       "U32, I64, U64"},
      {"dtype in lower case", One("\"dtype\":\"f32\""),
       "dtype of tensor 'a' is 'f32', but must be one of F32, F64, F16, BF16, BOOL, U8, U16, U32, "
       "I64, U64"},
      {"dtype a number", One("\"dtype\":4"),
       "dtype of tensor 'a' holds the number 4, but must be a string"},
      {"dtype a list", One("\"dtype\":[\"U8\"]"),
       "dtype of tensor 'a' holds a list, but must be a string"},
      {"shape a number", One("\"shape\":4"),
       "shape of tensor 'a' holds the number 4, but must be a list of non-negative integers"},
      {"shape a string", One("\"shape\":\"[4]\""),
       "shape of tensor 'a' holds a string, but must be a list of non-negative integers"},
      {"negative extent", One("\"shape\":[-4]"),
       "shape of tensor 'a' holds the number -4, but must be a list of non-negative integers"},
      {"extent a fraction", One("\"shape\":[4.0]"),
       "shape of tensor 'a' holds the number '4.0', but must be a list of non-negative integers"},
      {"extent a boolean", One("\"shape\":[true]"),
       "shape of tensor 'a' holds a boolean, but must be a list of non-negative integers"},
      {"extent above 63 bits", One("\"shape\":[9223372036854775808]"),
       "shape of tensor 'a' has 9223372036854775808, which is above 2^63-1"},
      {"extent above 64 bits", One("\"shape\":[18446744073709551616]"),
       "shape of tensor 'a' holds the number '18446744073709551616', but must be a list of "
       "non-negative integers"},
      {"a very long number", One("\"shape\":[" + digits + "]"),
       "shape of tensor 'a' holds a number that fits no type, but must be a list of non-negative "
       "integers"},
      {"one offset", One("\"data_offsets\":[0]"),
       "data_offsets of tensor 'a' has 1 numbers, but must have 2"},
      {"three offsets", One("\"data_offsets\":[0,0,0]"),
       "data_offsets of tensor 'a' has more than 2 numbers"},
      {"negative offset", One("\"data_offsets\":[-1,0]"),
       "data_offsets of tensor 'a' holds the number -1, but must be a list of non-negative "
       "integers"},
  });
}

TEST(ParseSafetensorsTest, RefusesTooManyDimensions) {
  std::string shape = "1";
  for (int i = 1; i < 64; ++i) shape += ",1";
  const std::string rest = "],\"dtype\":\"U8\",\"data_offsets\":[0,1]";
  EXPECT_TRUE(ParseSafetensors(One("\"shape\":[" + shape + rest, 1)).ok());
  ExpectRefused({{"65 dimensions", One("\"shape\":[1," + shape + rest, 1),
                  "shape of tensor 'a' has more than 64 numbers"}});
}

TEST(ParseSafetensorsTest, RefusesRepeatedKeys) {
  const std::string tensor = "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  ExpectRefused({
      {"tensor", File("{\"a\":" + tensor + ",\"a\":" + tensor + "}"), "the key 'a' is there twice"},
      {"tensor, escaped", File("{\"a\":" + tensor + ",\"\\u0061\":" + tensor + "}"),
       "the key 'a' is there twice"},
      {"metadata", File("{\"__metadata__\":{},\"__metadata__\":{}}"),
       "the key '__metadata__' is there twice"},
      {"in the metadata", File("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}"),
       "__metadata__ 'k' is there twice"},
      {"field", One("\"dtype\":\"U8\",\"dtype\":\"U8\""), "dtype of tensor 'a' is there twice"},
  });
}

// Returns a file with so many empty tensors, or with so many metadata.
std::string WithTensors(int count) {
  std::string header = "{\"__metadata__\":{}";
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&header, ",\"", i,
                    "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}");
  }
  return File(header + "}");
}
std::string WithMetadata(int count) {
  std::string header = "{\"__metadata__\":{\"0\":\"\"";
  for (int i = 1; i < count; ++i) absl::StrAppend(&header, ",\"", i, "\":\"\"");
  return File(header + "}}");
}

TEST(ParseSafetensorsTest, RefusesMoreEntriesThanTheLimit) {
  EXPECT_EQ(ParseSafetensors(WithTensors(16384))->tensors.size(), 16384);
  EXPECT_EQ(ParseSafetensors(WithMetadata(16384))->metadata.size(), 16384);
  ExpectRefused({
      {"tensors", WithTensors(16385),
       "the header has more tensors than the 16384 that it may have"},
      {"metadata", WithMetadata(16385),
       "the header has more metadata than the 16384 that it may have"},
  });
}

TEST(ParseSafetensorsTest, RefusesMetadataThatIsNotStrings) {
  ExpectRefused({
      {"a string", File("{\"__metadata__\":\"x\"}"),
       "__metadata__ holds a string, but must be an object"},
      {"null", File("{\"__metadata__\":null}"), "__metadata__ holds null, but must be an object"},
      {"a number inside", File("{\"__metadata__\":{\"step\":3}}"),
       "__metadata__ 'step' holds the number 3, but must be a string"},
      {"an object inside", File("{\"__metadata__\":{\"k\":{}}}"),
       "__metadata__ 'k' holds an object, but must be a string"},
      {"a list inside", File("{\"__metadata__\":{\"k\":[]}}"),
       "__metadata__ 'k' holds a list, but must be a string"},
  });
}

TEST(ParseSafetensorsTest, RefusesShapesThatDoNotFitTheirRange) {
  ExpectRefused({
      {"too short", One("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]", 4),
       "data_offsets of tensor 'a' span 4 bytes, but F32 [2] has 8"},
      {"scalar of no bytes", One("\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,0]"),
       "data_offsets of tensor 'a' span 0 bytes, but F64 [] has 8"},
      {"product overflows",
       One("\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]"),
       "tensor 'a' is U8 [4294967296,4294967296], which is more than 2^63-1 bytes"},
      {"element size overflows",
       One("\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]"),
       "tensor 'a' is F32 [4611686018427387904], which is more than 2^63-1 bytes"},
      {"overflow hidden by a zero",
       One("\"dtype\":\"U8\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,0]"),
       "tensor 'a' is U8 [4294967296,4294967296,0], which is more than 2^63-1 bytes"},
      {"ends before it begins", One("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]", 1),
       "data_offsets of tensor 'a' are [1,0], which end before they begin"},
  });
}

TEST(ParseSafetensorsTest, RefusesRangesThatDoNotCoverTheData) {
  ExpectRefused({
      {"past the end", Ranges({{0, 4}}, 3), "tensor 'a' ends at byte 4 of the data, which has 3"},
      {"far past the end",
       One("\"dtype\":\"U8\",\"shape\":[9223372036854775807],\"data_offsets\":[0,"
           "9223372036854775807]"),
       "tensor 'a' ends at byte 9223372036854775807 of the data, which has 0"},
      {"hole at the start", Ranges({{1, 4}}, 4),
       "tensor 'a' begins at byte 1 of the data, which leaves a hole: expected 0"},
      {"hole between", Ranges({{0, 2}, {3, 4}}, 4),
       "tensor 'b' begins at byte 3 of the data, which leaves a hole: expected 2"},
      {"overlap", Ranges({{0, 3}, {2, 4}}, 4),
       "tensor 'b' begins at byte 2 of the data, which overlaps another: expected 3"},
      {"same range", Ranges({{0, 4}, {0, 4}}, 4),
       "tensor 'b' begins at byte 0 of the data, which overlaps another: expected 4"},
      {"empty tensor inside another", Ranges({{0, 4}, {2, 2}}, 4),
       "tensor 'b' begins at byte 2 of the data, which overlaps another: expected 4"},
      {"bytes behind", Ranges({{0, 3}}, 4), "1 bytes follow the last tensor's data"},
      {"bytes but no tensor", File("{}", 5), "5 bytes follow the last tensor's data"},
  });
}

TEST(ParseSafetensorsTest, MessageStaysShortAndPrintable) {
  const std::string name = std::string("\x1B[31m\xC3\xA9") + std::string(1000000, 'x');
  const auto parsed = ParseSafetensors(
      File("{\"" + std::string("\\u001b[31m\xC3\xA9") + std::string(1000000, 'x') + "\":1}"));
  EXPECT_EQ(std::string(parsed.status().message()),
            "safetensors: tensor '\\x1b[31m\\xc3\\xa9" + std::string(57, 'x') +
                "...' holds the number 1, but must be an object");
  const auto written = WriteSafetensors({{name, TensorType::kU8, {1}, ""}}, {});
  EXPECT_LT(written.status().message().size(), 200u);
}

TEST(ParseSafetensorsTest, AcceptsForeignForms) {
  // The header's order differs from the data's; blanks, padding by line ends, an odd header length,
  // empty tensors.
  const std::string header =
      "{ \"b\" : {\"data_offsets\":[3,7], \"shape\":[1], \"dtype\":\"F32\"},\n"
      "\"e\":{\"dtype\":\"I64\",\"shape\":[2,0],\"data_offsets\":[3,3]},"
      "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}} \n ";
  ASSERT_NE(header.size() % 8, 0u);
  const std::string file = Length(header.size()) + header + "abcdefg";
  const auto parsed = ParseSafetensors(file);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->tensors.size(), 3u);
  EXPECT_EQ(parsed->tensors[0].name, "a");
  EXPECT_EQ(parsed->tensors[0].bytes, "abc");
  EXPECT_EQ(parsed->tensors[1].name, "e");
  EXPECT_THAT(parsed->tensors[1].shape, ElementsAre(2, 0));
  EXPECT_EQ(parsed->tensors[2].name, "b");
  EXPECT_EQ(parsed->tensors[2].type, TensorType::kF32);
  EXPECT_EQ(parsed->tensors[2].bytes, "defg");
  EXPECT_THAT(parsed->metadata, IsEmpty());
}

TEST(ParseSafetensorsTest, AcceptsTypesOfOtherPrograms) {
  const struct {
    std::string name;
    TensorType type;
    int width;
  } types[] = {
      {"F16", TensorType::kF16, 2}, {"BF16", TensorType::kBF16, 2}, {"BOOL", TensorType::kBool, 1}};
  for (const auto& [name, type, width] : types) {
    const std::string fields = "\"dtype\":\"" + name + "\",\"shape\":[3],\"data_offsets\":[0,";
    const std::string file = One(fields + std::to_string(3 * width) + "]", 3 * width);
    const auto parsed = ParseSafetensors(file);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->tensors[0].type, type);
    EXPECT_EQ(WidthOf(type), width);
  }
}

std::string SampleFile() {
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
  const std::string file = SampleFile();
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
  const std::string file = SampleFile();
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ParseSafetensors(absl::string_view(file).substr(0, size)).ok()) << size;
  }
}

TEST(SafetensorsTest, ViewsStayInsideTheFileWhateverBitFlips) {
  const std::string original = SampleFile();
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

TEST(WriteSafetensorsTest, RefusesMoreTensorsThanTheLimit) {
  const std::vector<TensorView> tensors(16385, {"a", TensorType::kU8, {0}, ""});
  EXPECT_EQ(std::string(WriteSafetensors(tensors, {{"k", "v"}}).status().message()),
            "safetensors: the file would have 16385 tensors and 1 metadata, but must have at most "
            "16384 of each");
}

TEST(WriteSafetensorsTest, RefusesAHeaderAboveTheLimit) {
  const auto file = WriteSafetensors({}, {{"k", std::string(16777216, 'x')}});
  EXPECT_EQ(std::string(file.status().message()),
            "safetensors: the header would have 16777248 bytes, but must have at most 16777216");
}

}  // namespace
}  // namespace ablate
