#include "server/engine/core/pretrained/float_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"

namespace ablate::engine {
namespace {

// Returns the float32 of a binary16.
float FromHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const uint32_t exponent = (bits >> 10) & 0x1F;
  const uint32_t fraction = bits & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: fraction · 2^-24
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign == 0 ? magnitude : -magnitude;
  }
  const uint32_t wide = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

float FromBfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

template <typename Element>
Element ElementAt(absl::string_view bytes, size_t i) {
  Element element;
  std::memcpy(&element, bytes.data() + i * sizeof(Element), sizeof(Element));
  return element;
}

// Returns an element in float64, which holds every type's values.
double ValueAt(const TensorView& tensor, size_t i) {
  switch (tensor.type) {
    case TensorType::kF16:
      return FromHalf(ElementAt<uint16_t>(tensor.bytes, i));
    case TensorType::kBF16:
      return FromBfloat16(ElementAt<uint16_t>(tensor.bytes, i));
    case TensorType::kF32:
      return ElementAt<float>(tensor.bytes, i);
    case TensorType::kF64:
      return ElementAt<double>(tensor.bytes, i);
    case TensorType::kBool:
    case TensorType::kU8:
    case TensorType::kU16:
    case TensorType::kU32:
    case TensorType::kI64:
    case TensorType::kU64:
      break;
  }
  return 0;
}

// Converts elements [begin, begin + floats.size()).
void ConvertRange(const TensorView& tensor, size_t begin, absl::Span<float> floats) {
  if (tensor.type == TensorType::kF32) {
    if (floats.empty()) return;
    std::memcpy(floats.data(), tensor.bytes.data() + begin * sizeof(float),
                floats.size() * sizeof(float));
    return;
  }
  for (size_t i = 0; i < floats.size(); ++i) {
    floats[i] = static_cast<float>(ValueAt(tensor, begin + i));
  }
}

// Returns an error if a converted element isn't finite.
absl::Status CheckFinite(absl::string_view file, const TensorView& tensor, size_t begin,
                         absl::Span<const float> floats) {
  const auto is_bad = [](float value) { return !std::isfinite(value); };
  const auto bad = std::find_if(floats.begin(), floats.end(), is_bad);
  if (bad == floats.end()) return absl::OkStatus();
  const size_t i = begin + static_cast<size_t>(bad - floats.begin());
  const double value = ValueAt(tensor, i);
  return absl::InvalidArgumentError(absl::StrCat(
      file, ": tensor ", Quoted(tensor.name), " has ", text::ShortestDecimal(value), " at element ",
      i, "; expected ", std::isfinite(value) ? "values that float32 can hold." : "finite values."));
}

absl::Status CheckFloatType(absl::string_view file, const TensorView& tensor) {
  if (IsFloatType(tensor.type)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file, ": tensor ", Quoted(tensor.name), " is ",
                                                 NameOf(tensor.type),
                                                 "; expected F16, BF16, F32 or F64."));
}

}  // namespace

bool IsFloatType(TensorType type) {
  return type == TensorType::kF16 || type == TensorType::kBF16 || type == TensorType::kF32 ||
         type == TensorType::kF64;
}

absl::Status CopyFloats(absl::string_view file, const TensorView& tensor,
                        absl::Span<float> floats) {
  RETURN_IF_ERROR(CheckFloatType(file, tensor));
  ConvertRange(tensor, 0, floats);
  return CheckFinite(file, tensor, 0, floats);
}

absl::Status CopySwapped(absl::string_view file, const TensorView& tensor, int64_t a, int64_t b,
                         absl::Span<float> floats) {
  if (a == 1 || b == 1) return CopyFloats(file, tensor, floats);
  RETURN_IF_ERROR(CheckFloatType(file, tensor));
  const auto rows = static_cast<size_t>(a), columns = static_cast<size_t>(b);
  const size_t part = floats.size() / (rows * columns);
  // As many rows at a time as fill a cache line of a transposed matrix, unless they are long.
  constexpr size_t kMostRows = 16, kMostFloats = 1 << 18;
  const size_t rows_at_once = std::clamp(kMostFloats / (columns * part), size_t{1}, kMostRows);
  std::vector<float> buffer(std::min(rows_at_once, rows) * columns * part);
  for (size_t row = 0; row < rows; row += rows_at_once) {
    const size_t count = std::min(rows_at_once, rows - row);
    const absl::Span<float> piece = absl::MakeSpan(buffer).subspan(0, count * columns * part);
    ConvertRange(tensor, row * columns * part, piece);
    RETURN_IF_ERROR(CheckFinite(file, tensor, row * columns * part, piece));
    for (size_t column = 0; column < columns; ++column) {
      for (size_t i = 0; i < count; ++i) {
        std::copy_n(&piece[(i * columns + column) * part], part,
                    &floats[(column * rows + row + i) * part]);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ablate::engine
