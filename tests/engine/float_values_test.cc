// Tests conversions to float32: exact from half precision, rounded from float64.
#include "server/engine/core/pretrained/float_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace ablate::engine {
namespace {

using ::testing::ElementsAre;

template <typename Number>
std::string BytesOfAll(const std::vector<Number>& numbers) {
  std::string bytes(numbers.size() * sizeof(Number), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TensorView ViewOfBytes(TensorType type, const std::string& bytes) {
  const auto count = static_cast<int64_t>(bytes.size()) / WidthOf(type);
  return {"a", type, {count}, bytes};
}

// Returns the value of a binary format with these numbers of bits, by its definition.
double ValueOf(uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = bits & ((1u << fraction_bits) - 1);
  const double sign = bits >> (exponent_bits + fraction_bits) ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

TEST(CopyFloatsTest, KeepsEveryHalfPrecisionValue) {
  const struct {
    TensorType type;
    int exponent_bits;
    int fraction_bits;
  } formats[] = {{TensorType::kF16, 5, 10}, {TensorType::kBF16, 8, 7}};
  for (const auto& [type, exponent_bits, fraction_bits] : formats) {
    const uint32_t all_ones = (1u << exponent_bits) - 1;
    for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
      const std::string bytes = BytesOfAll<uint16_t>({static_cast<uint16_t>(bits)});
      float value = 0;
      const absl::Status copied = CopyFloats("f", ViewOfBytes(type, bytes), {&value, 1});
      const bool is_finite = (bits >> fraction_bits & all_ones) != all_ones;
      ASSERT_EQ(copied.ok(), is_finite) << bits;
      if (!is_finite) continue;
      const double exact = ValueOf(bits, exponent_bits, fraction_bits);
      ASSERT_EQ(double{value}, exact) << bits;
      ASSERT_EQ(std::signbit(value), std::signbit(exact)) << bits;
    }
  }
}

TEST(CopyFloatsTest, RoundsFloat64ToNearestEven) {
  const double ulp = std::ldexp(1, -23);
  const std::string bytes = BytesOfAll<double>(
      {1 + ulp / 2, 1 + 1.5 * ulp, 1 + 0.50001 * ulp, 1e-60, -std::numeric_limits<float>::max()});
  std::vector<float> values(5);
  ASSERT_TRUE(CopyFloats("f", ViewOfBytes(TensorType::kF64, bytes), absl::MakeSpan(values)).ok());
  const auto one_and = [&](int ulps) { return static_cast<float>(1 + ulps * ulp); };
  EXPECT_THAT(values,
              ElementsAre(1, one_and(2), one_and(1), 0, -std::numeric_limits<float>::max()));
}

TEST(CopyFloatsTest, RefusesValuesByNameAndElement) {
  const struct {
    double value;
    const char* message;
  } cases[] = {
      {3.5e38, "f: tensor 'a' has 3.5e+38 at element 1; expected values that float32 can hold."},
      {-INFINITY, "f: tensor 'a' has -inf at element 1; expected finite values."},
      {NAN, "f: tensor 'a' has nan at element 1; expected finite values."}};
  for (const auto& [value, message] : cases) {
    const std::string bytes = BytesOfAll<double>({0, value});
    std::vector<float> values(2);
    const absl::Status copied =
        CopyFloats("f", ViewOfBytes(TensorType::kF64, bytes), absl::MakeSpan(values));
    EXPECT_EQ(std::string(copied.message()), message);
  }
}

TEST(CopyFloatsTest, ReadsUnalignedBytes) {
  const std::string bytes = "x" + BytesOfAll<double>({0.5, -2});
  std::vector<float> values(2);
  const TensorView view = {"a", TensorType::kF64, {2}, absl::string_view(bytes).substr(1)};
  ASSERT_TRUE(CopyFloats("f", view, absl::MakeSpan(values)).ok());
  EXPECT_THAT(values, ElementsAre(0.5f, -2.0f));
}

TEST(CopySwappedTest, MovesEachPart) {
  const struct {
    int64_t a;
    int64_t b;
    int64_t part;
  } shapes[] = {{1, 1, 4}, {1, 9, 1}, {16, 3, 1}, {17, 5, 1}, {40, 2, 1}, {4, 3, 10}, {20, 3, 2}};
  for (const auto& [a, b, part] : shapes) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < a * b * part; ++i) numbers.push_back(static_cast<float>(i));
    const std::string bytes = BytesOfAll(numbers);
    std::vector<float> values(numbers.size());
    const TensorView view = {"a", TensorType::kF32, {a * b, part}, bytes};
    ASSERT_TRUE(CopySwapped("f", view, a, b, absl::MakeSpan(values)).ok());
    for (int64_t i = 0; i < a * b * part; ++i) {
      const int64_t row = i / (b * part), column = i / part % b;
      ASSERT_EQ(values[static_cast<size_t>((column * a + row) * part + i % part)],
                static_cast<float>(i));
    }
  }
}

TEST(CopySwappedTest, NamesTheElementOfTheFile) {
  std::vector<float> numbers(60);
  numbers[53] = NAN;
  const std::string bytes = BytesOfAll(numbers);
  std::vector<float> values(60);
  const TensorView view = {"a", TensorType::kF32, {20, 3}, bytes};
  EXPECT_EQ(std::string(CopySwapped("f", view, 20, 3, absl::MakeSpan(values)).message()),
            "f: tensor 'a' has nan at element 53; expected finite values.");
}

}  // namespace
}  // namespace ablate::engine
