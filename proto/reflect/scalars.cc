#include "proto/reflect/scalars.h"

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "proto/reflect/option.h"
#include "proto/reflect/text.h"

namespace ablate::reflect {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;
using google::protobuf::Value;
using Problems = std::vector<FieldProblem>;

// Integers up to this one are exact in a double.
constexpr int64_t kExact = int64_t{1} << 53;

// Returns true if `text` is an integer as proto JSON writes it, without blanks or a plus sign.
bool LooksWhole(absl::string_view text, bool is_signed) {
  if (is_signed && !text.empty() && text.front() == '-') text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

template <typename T>
std::optional<T> FromDigits(const Value& value, Refusal* refusal) {
  T number = 0;
  if (LooksWhole(value.string_value(), std::numeric_limits<T>::is_signed) &&
      absl::SimpleAtoi(value.string_value(), &number)) {
    return number;
  }
  *refusal = {absl::StrCat(Quoted(value), " is not a whole number in range"),
              absl::StrCat(std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max())};
  return std::nullopt;
}

// Parses "12.5", without sign, as seconds and nanoseconds.
bool ParseSeconds(absl::string_view text, int64_t* seconds, int32_t* nanos) {
  const size_t point = text.find('.');
  const absl::string_view whole = text.substr(0, point);
  absl::string_view fraction = point == absl::string_view::npos ? "0" : text.substr(point + 1);
  if (!LooksWhole(whole, false) || !LooksWhole(fraction, false) || fraction.size() > 9)
    return false;
  const std::string padded = absl::StrCat(fraction, std::string(9 - fraction.size(), '0'));
  return absl::SimpleAtoi(whole, seconds) && absl::SimpleAtoi(padded, nanos);
}

// Returns the number of a value. A whole number with too many digits for a double is a text.
std::optional<double> NumberOf(const Value& value) {
  if (value.has_number_value()) return value.number_value();
  double number = 0;
  if (!LooksWhole(value.string_value(), true) || !absl::SimpleAtod(value.string_value(), &number) ||
      std::fabs(number) < static_cast<double>(kExact)) {
    return std::nullopt;
  }
  return number;
}

// The functions below return the value, or nullopt and the reason.
std::optional<int64_t> ToInt(const Value& value, int64_t low, int64_t high, Refusal* refusal) {
  const double number = NumberOf(value).value_or(std::nan(""));
  const bool too_long = value.has_string_value();
  const std::string text = ShortText(value);
  if ((std::isinf(number) && !too_long) || std::trunc(number) != number) {
    *refusal = {absl::StrCat(Quoted(value), " is not a whole number"), "a whole number"};
  } else if (number > static_cast<double>(high)) {
    const char* wider = high == kExact ? ", or more in quotes" : "";
    *refusal = {absl::StrCat(text, " is too large"), absl::StrCat("at most ", high, wider)};
  } else if (number < static_cast<double>(low)) {
    *refusal = low == 0 ? Refusal{text + " is negative", "a whole number, 0 or more"}
                        : Refusal{text + " is too small", absl::StrCat("at least ", low)};
  } else {
    return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

std::optional<int64_t> ToInt64(const Value& value, Refusal* refusal) {
  return value.has_string_value() ? FromDigits<int64_t>(value, refusal)
                                  : ToInt(value, -kExact, kExact, refusal);
}

std::optional<uint64_t> ToUint64(const Value& value, Refusal* refusal) {
  if (value.has_string_value()) return FromDigits<uint64_t>(value, refusal);
  const std::optional<int64_t> number = ToInt(value, 0, kExact, refusal);
  if (!number.has_value()) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

// Returns a finite value of at most `largest` in magnitude.
std::optional<double> ToDouble(const Value& value, double largest, Refusal* refusal) {
  const std::optional<double> number = NumberOf(value);
  if (!number.has_value()) {
    *refusal = {absl::StrCat(Quoted(value), " is not a number"), "a number"};
    return std::nullopt;
  }
  if (std::isfinite(*number) && std::fabs(*number) <= largest) return number;
  *refusal = {absl::StrCat(Quoted(value), " is not finite"), "a finite number"};
  return std::nullopt;
}

bool PutEnum(const Target& target, const Value& value, const std::string& path,
             Problems* problems) {
  const google::protobuf::EnumDescriptor* type = target.field->enum_type();
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() == 0) continue;  // unspecified
    names.push_back(type->value(i)->name());
    if (value.has_string_value() && value.string_value() == names.back()) {
      return target.Put(type->value(i)->number(), &Reflection::SetEnumValue,
                        &Reflection::AddEnumValue);
    }
  }
  const std::string guess = DidYouMean(value.string_value(), names, " (", ")");
  return Refuse(value, path, {absl::StrCat(Quoted(value), " is unknown", guess), AnyOf(names)},
                problems);
}

bool PutString(const Target& target, const Value& value, const std::string& path,
               Problems* problems) {
  if (!value.has_string_value()) {
    return Refuse(value, path,
                  {absl::StrCat(ShortText(value), " is not text"),
                   "text, in quotes if it looks like something else"},
                  problems);
  }
  std::string text = value.string_value();
  if (target.field->type() == FieldDescriptor::TYPE_BYTES) {
    if (!absl::Base64Unescape(value.string_value(), &text)) {
      return Refuse(value, path, {absl::StrCat(Quoted(value), " is not base64"), "bytes in base64"},
                    problems);
    }
  } else if (!CheckUtf8(text, path, problems)) {
    return false;
  }
  return target.Put(text, &Reflection::SetString, &Reflection::AddString);
}

bool PutInteger(const Target& target, const Value& value, Refusal* refusal) {
  switch (target.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      if (const auto number = ToInt(value, INT32_MIN, INT32_MAX, refusal)) {
        return target.Put(static_cast<int32_t>(*number), &Reflection::SetInt32,
                          &Reflection::AddInt32);
      }
      return false;
    case FieldDescriptor::CPPTYPE_UINT32:
      if (const auto number = ToInt(value, 0, UINT32_MAX, refusal)) {
        return target.Put(static_cast<uint32_t>(*number), &Reflection::SetUInt32,
                          &Reflection::AddUInt32);
      }
      return false;
    case FieldDescriptor::CPPTYPE_INT64:
      if (const auto number = ToInt64(value, refusal)) {
        return target.Put(*number, &Reflection::SetInt64, &Reflection::AddInt64);
      }
      return false;
    default:
      if (const auto number = ToUint64(value, refusal)) {
        return target.Put(*number, &Reflection::SetUInt64, &Reflection::AddUInt64);
      }
      return false;
  }
}

bool PutNumber(const Target& target, const Value& value, const std::string& path,
               Problems* problems) {
  Refusal refusal;
  bool ok = false;
  if (target.field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    const auto number = ToDouble(value, DBL_MAX, &refusal);
    ok = number && target.Put(*number, &Reflection::SetDouble, &Reflection::AddDouble);
  } else if (target.field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
    const auto number = ToDouble(value, FLT_MAX, &refusal);
    ok = number &&
         target.Put(static_cast<float>(*number), &Reflection::SetFloat, &Reflection::AddFloat);
  } else {
    ok = PutInteger(target, value, &refusal);
  }
  // The digits of a large number are a text, so a text may be meant as a number in another form.
  const bool may_be_text = target.field->type() == FieldDescriptor::TYPE_UINT64 ||
                           target.field->type() == FieldDescriptor::TYPE_INT64;
  if (!ok && may_be_text && value.has_string_value()) refusal = WithRange(target.field, refusal);
  return ok || Refuse(value, path, refusal, problems);
}

bool PutBool(const Target& target, const Value& value, const std::string& path,
             Problems* problems) {
  if (value.has_bool_value()) {
    return target.Put(value.bool_value(), &Reflection::SetBool, &Reflection::AddBool);
  }
  return Refuse(value, path, {absl::StrCat(Quoted(value), " is not a boolean"), "true or false"},
                problems);
}

}  // namespace

std::optional<google::protobuf::Duration> ToDuration(const Value& value, Refusal* refusal) {
  constexpr int64_t kMaxSeconds = 315'576'000'000;  // seconds; the format's limit
  absl::string_view text = value.string_value();
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  int64_t seconds = 0;
  int32_t nanos = 0;
  const bool ok = !text.empty() && text.back() == 's' &&
                  ParseSeconds(text.substr(0, text.size() - 1), &seconds, &nanos) &&
                  seconds <= kMaxSeconds && (seconds < kMaxSeconds || nanos == 0);
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

Refusal WithRange(const FieldDescriptor* field, Refusal refusal) {
  const v1::OptionInfo& option = OptionOf(field);
  if (!option.range().empty()) refusal.allowed = RangeText(option);
  return refusal;
}

bool Refuse(const Value& value, const std::string& path, const Refusal& refusal,
            Problems* problems) {
  problems->push_back(MakeProblem(path, ShortText(value), refusal.complaint, refusal.allowed));
  return false;
}

bool CheckUtf8(absl::string_view text, const std::string& path, Problems* problems) {
  if (text::IsUtf8(text)) return true;
  problems->push_back(MakeProblem(path, ShortText(text),
                                  absl::StrCat(Quoted(text), " is not UTF-8"), "text in UTF-8"));
  return false;
}

bool PutScalar(const Target& target, const Value& value, const std::string& path,
               Problems* problems) {
  switch (target.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM:
      return PutEnum(target, value, path, problems);
    case FieldDescriptor::CPPTYPE_STRING:
      return PutString(target, value, path, problems);
    case FieldDescriptor::CPPTYPE_BOOL:
      return PutBool(target, value, path, problems);
    default:
      return PutNumber(target, value, path, problems);
  }
}

}  // namespace ablate::reflect
