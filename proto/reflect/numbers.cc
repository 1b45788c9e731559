// Checks numbers against the range and exactness of their type.
#include "proto/reflect/numbers.h"

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"

namespace ablate::reflect {
namespace {

using google::protobuf::Value;

// Whole numbers up to here are exact in a double.
constexpr int64_t kExact = int64_t{1} << 53;

// A whole number that a double holds exactly.
std::optional<int64_t> Whole(const Value& value, const std::string& allowed, Refusal* refusal) {
  const bool whole = value.has_number_value() &&
                     std::trunc(value.number_value()) == value.number_value() &&
                     !std::isinf(value.number_value());
  if (!whole) {
    *refusal = {absl::StrCat(Quoted(value), " is not a whole number"), allowed};
    return std::nullopt;
  }
  if (std::fabs(value.number_value()) > static_cast<double>(kExact)) {
    *refusal = {
        absl::StrCat(Quoted(value), value.number_value() < 0 ? " is too small" : " is too large"),
        allowed};
    return std::nullopt;
  }
  return static_cast<int64_t>(value.number_value());
}

// Whether `text` is an integer as proto JSON writes it, without blanks or a plus.
bool LooksWhole(absl::string_view text, bool is_signed) {
  if (is_signed && !text.empty() && text.front() == '-') text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

template <typename T>
std::optional<T> FromDigits(const Value& value, const std::string& allowed, Refusal* refusal) {
  T number = 0;
  if (LooksWhole(value.string_value(), std::numeric_limits<T>::is_signed) &&
      absl::SimpleAtoi(value.string_value(), &number)) {
    return number;
  }
  *refusal = {absl::StrCat(Quoted(value), " is not a whole number in range"), allowed};
  return std::nullopt;
}

// "12.5" without sign as seconds and nanoseconds.
bool ParseSeconds(absl::string_view text, int64_t* seconds, int32_t* nanos) {
  const size_t point = text.find('.');
  const absl::string_view whole = text.substr(0, point);
  absl::string_view fraction = point == absl::string_view::npos ? "0" : text.substr(point + 1);
  if (!LooksWhole(whole, false) || !LooksWhole(fraction, false) || fraction.size() > 9)
    return false;
  const std::string padded = absl::StrCat(fraction, std::string(9 - fraction.size(), '0'));
  return absl::SimpleAtoi(whole, seconds) && absl::SimpleAtoi(padded, nanos);
}

}  // namespace

std::optional<int64_t> ToInt(const Value& value, int64_t low, int64_t high, Refusal* refusal) {
  const std::string allowed = low == 0
                                  ? absl::StrCat("a whole number, 0 or more and at most ", high)
                                  : absl::StrCat("a whole number from ", low, " to ", high);
  const std::optional<int64_t> number = Whole(value, allowed, refusal);
  if (!number.has_value() || (*number >= low && *number <= high)) return number;
  const char* complaint =
      *number > high ? " is too large" : (low == 0 ? " is negative" : " is too small");
  *refusal = {absl::StrCat(*number, complaint), allowed};
  return std::nullopt;
}

std::optional<int64_t> ToInt64(const Value& value, Refusal* refusal) {
  static constexpr char kAllowed[] = "a whole number, in quotes if it is beyond 9007199254740992";
  if (value.has_string_value()) return FromDigits<int64_t>(value, kAllowed, refusal);
  return Whole(value, kAllowed, refusal);
}

std::optional<uint64_t> ToUint64(const Value& value, Refusal* refusal) {
  static constexpr char kAllowed[] =
      "a whole number, 0 or more, in quotes if it is beyond 9007199254740992";
  if (value.has_string_value()) return FromDigits<uint64_t>(value, kAllowed, refusal);
  const std::optional<int64_t> number = Whole(value, kAllowed, refusal);
  if (!number.has_value()) return std::nullopt;
  if (*number >= 0) return static_cast<uint64_t>(*number);
  *refusal = {absl::StrCat(*number, " is negative"), kAllowed};
  return std::nullopt;
}

std::optional<double> ToDouble(const Value& value, double largest, Refusal* refusal) {
  if (!value.has_number_value()) {
    *refusal = {absl::StrCat(Quoted(value), " is not a number"), "a number"};
    return std::nullopt;
  }
  if (std::isfinite(value.number_value()) && std::fabs(value.number_value()) <= largest) {
    return value.number_value();
  }
  *refusal = {absl::StrCat(Quoted(value), " is not finite"), "a finite number"};
  return std::nullopt;
}

std::optional<google::protobuf::Duration> ToDuration(const Value& value, Refusal* refusal) {
  constexpr int64_t kLongest = 315'576'000'000;  // seconds; the format's limit
  absl::string_view text = value.string_value();
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  int64_t seconds = 0;
  int32_t nanos = 0;
  const bool ok = !text.empty() && text.back() == 's' &&
                  ParseSeconds(text.substr(0, text.size() - 1), &seconds, &nanos) &&
                  seconds <= kLongest && (seconds < kLongest || nanos == 0);
  if (!ok) {
    *refusal = {absl::StrCat(Quoted(value), " is not a duration"),
                "seconds followed by s, such as 7200s"};
    return std::nullopt;
  }
  google::protobuf::Duration duration;
  duration.set_seconds(negative ? -seconds : seconds);
  duration.set_nanos(negative ? -nanos : nanos);
  return duration;
}

}  // namespace ablate::reflect
