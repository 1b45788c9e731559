// Tests CSV and JSON lines: columns, exact values, texts that need quoting.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/decimal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/report/export/encoder.h"

namespace ablate::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ExportedCell MakeCell(std::vector<std::string> labels = {"post", "0.01"}) {
  return {0, "post-lr0.01-s42", std::move(labels), 42, "runs/abc", 0};
}

std::string Encode(Encoder* encoder, const ExportedCell& cell, const std::string& key,
                   const std::vector<double>& values) {
  std::vector<uint32_t> steps;
  for (size_t i = 0; i < values.size(); ++i) steps.push_back(static_cast<uint32_t>(i));
  std::string bytes;
  encoder->Begin(cell, &bytes);
  encoder->Add(key, steps, values, &bytes);
  return bytes;
}

TEST(CsvTest, WritesALineAPoint) {
  const auto encoder = MakeCsvEncoder({"placement", "lr"});
  EXPECT_EQ(encoder->Head(), "cell,placement,lr,seed,run,key,step,value\n");
  EXPECT_EQ(encoder->Path(MakeCell()), "");
  EXPECT_EQ(Encode(encoder.get(), MakeCell(), "train/loss", {3.5, 1e-7}),
            "post-lr0.01-s42,post,0.01,42,runs/abc,train/loss,0,3.5\n"
            "post-lr0.01-s42,post,0.01,42,runs/abc,train/loss,1,1e-07\n");
}

TEST(CsvTest, QuotesWhatWouldBreakALine) {
  const auto encoder = MakeCsvEncoder({"a"});
  EXPECT_THAT(Encode(encoder.get(), MakeCell({"x,\"y\"\n"}), "k,2", {1}),
              HasSubstr("\"x,\"\"y\"\"\n\",42,runs/abc,\"k,2\",0,1\n"));
}

TEST(CsvTest, NamesAnAxisApartFromTheOtherColumns) {
  EXPECT_THAT(ColumnNames({"seed", "lr"}),
              ElementsAre("cell", "axis_seed", "lr", "seed", "run", "key", "step", "value"));
}

TEST(CsvTest, NamesValuesThatAreNotFinite) {
  const auto encoder = MakeCsvEncoder({"placement", "lr"});
  const std::string lines = Encode(encoder.get(), MakeCell(), "k", {NAN, INFINITY, -INFINITY});
  EXPECT_THAT(lines, HasSubstr(",0,nan\n"));
  EXPECT_THAT(lines, HasSubstr(",1,inf\n"));
  EXPECT_THAT(lines, HasSubstr(",2,-inf\n"));
}

TEST(DecimalTest, ReadsBackAsTheSameDouble) {
  uint64_t bits = 0x9E3779B97F4A7C15ULL;
  for (int i = 0; i < 10'000; ++i) {
    bits = bits * 6364136223846793005ULL + 1442695040888963407ULL;
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    std::string text;
    text::AppendDecimal(value, &text);
    const double back = std::strtod(text.c_str(), nullptr);
    ASSERT_EQ(std::memcmp(&value, &back, sizeof value), 0) << text;
  }
}

TEST(JsonLinesTest, WritesAnObjectAPoint) {
  const auto encoder = MakeJsonLinesEncoder({"placement", "lr"});
  EXPECT_EQ(encoder->Head(), "");
  EXPECT_EQ(Encode(encoder.get(), MakeCell(), "train/loss", {-0.0}),
            "{\"cell\":\"post-lr0.01-s42\",\"placement\":\"post\",\"lr\":\"0.01\",\"seed\":42,"
            "\"run\":\"runs/abc\",\"key\":\"train/loss\",\"step\":0,\"value\":-0}\n");
}

TEST(JsonLinesTest, IsJsonWhateverTheTextsAndValues) {
  const auto encoder = MakeJsonLinesEncoder({"a\"}", "step"});
  const std::string hostile = "\"},{\\\n\x01\xff\xe2\x80\xae</script>";
  const std::string lines =
      Encode(encoder.get(), MakeCell({hostile, "b"}), hostile, {NAN, INFINITY, -INFINITY, 1e308});
  std::istringstream stream(lines);
  std::vector<nlohmann::json> values;
  for (std::string line; std::getline(stream, line);) {
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_EQ(object.size(), 8u);
    EXPECT_EQ(object["axis_step"], "b");
    EXPECT_EQ(object["key"], object["a\"}"]);
    values.push_back(object["value"]);
  }
  EXPECT_THAT(values, ElementsAre("NaN", "Infinity", "-Infinity", 1e308));
}

}  // namespace
}  // namespace ablate::report
