#include "proto/reflect/option.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/decimal.h"
#include "proto/reflect/read.h"

namespace ablate::reflect {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::string BoundText(double value) {
  constexpr double kMaxGrouped = 1e15;
  if (value != std::trunc(value) || std::abs(value) > kMaxGrouped) {
    return text::ShortestDecimal(value);
  }
  return text::Grouped(static_cast<int64_t>(value));
}

// Returns nullopt if the value isn't a number.
std::optional<double> NumberOf(const FieldValue& value) {
  return std::visit(
      [](const auto& held) -> std::optional<double> {
        using Type = std::decay_t<decltype(held)>;
        constexpr bool kNumber = std::is_arithmetic_v<Type> && !std::is_same_v<Type, bool>;
        if constexpr (kNumber) return static_cast<double>(held);
        return std::nullopt;
      },
      value);
}

class Finder {
 public:
  void Visit(const Message& message, const std::string& path) {
    for (const FieldDescriptor* field : SetFields(message)) {
      if (!field->is_map()) VisitField(message, field, Below(path, field->name()));
    }
  }
  std::vector<NotAllowed> Take() { return std::move(found_); }

 private:
  void VisitField(const Message& message, const FieldDescriptor* field, const std::string& path) {
    const v1::OptionInfo& info = OptionOf(field);
    if (!field->is_repeated()) return VisitValue(Read(message, field), info, path);
    const int size = message.GetReflection()->FieldSize(message, field);
    if (info.most() > 0 && static_cast<uint32_t>(size) > info.most()) {
      found_.push_back({path, absl::StrCat(size), absl::StrCat(text::Grouped(size), " entries"),
                        absl::StrCat("at most ", text::Grouped(info.most()))});
      return;
    }
    for (int i = 0; i < size; ++i) {
      VisitValue(Read(message, field, i), info, absl::StrCat(path, "[", i, "]"));
    }
  }

  void VisitValue(const FieldValue& value, const v1::OptionInfo& info, const std::string& path) {
    if (const auto* message = std::get_if<const Message*>(&value)) return Visit(**message, path);
    const std::optional<double> number = NumberOf(value);
    if (!number.has_value() || InRange(info, *number)) return;
    const std::string text = TextOf(value);
    found_.push_back({path, text, absl::StrCat(text, " is out of range"), RangeText(info)});
  }

  std::vector<NotAllowed> found_;
};

}  // namespace

const v1::OptionInfo& OptionOf(const FieldDescriptor* field) {
  return field->options().GetExtension(v1::option);
}

google::protobuf::Value DefaultOf(const FieldDescriptor* field) {
  const std::string& text = OptionOf(field).default_();
  google::protobuf::Value value;
  double number = 0;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    value.set_bool_value(text == "true");
  } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM &&
             absl::SimpleAtod(text, &number)) {
    value.set_number_value(number);
  } else {
    value.set_string_value(text);
  }
  return value;
}

bool InRange(const v1::OptionInfo& info, double value) {
  return std::isfinite(value) && !(info.has_min() && value < info.min()) &&
         !(info.has_max() && value > info.max()) && !(info.has_above() && value <= info.above()) &&
         !(info.has_below() && value >= info.below());
}

std::string RangeText(const v1::OptionInfo& info) {
  const std::string low = info.has_min()     ? BoundText(info.min())
                          : info.has_above() ? absl::StrCat("above ", BoundText(info.above()))
                                             : "";
  const std::string high = BoundText(info.has_max() ? info.max() : info.below());
  if (!info.range().empty()) {
    return absl::StrReplaceAll(info.range(), {{"{min}", low}, {"{max}", high}});
  }
  if (info.has_max()) return absl::StrCat(low, info.has_min() ? " to " : ", at most ", high);
  if (info.has_below())
    return absl::StrCat(low, info.has_min() ? " to below " : " and below ", high);
  return low.empty() || info.has_above() ? low : absl::StrCat("at least ", low);
}

std::vector<NotAllowed> FindNotAllowed(const Message& message, const std::string& path) {
  Finder finder;
  finder.Visit(message, path);
  return finder.Take();
}

}  // namespace ablate::reflect
