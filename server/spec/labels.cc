#include "server/spec/labels.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "text/decimal.h"

namespace ablate::spec {
namespace {

bool IsName(absl::string_view text) {
  const auto allowed = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  };
  return !text.empty() && text.size() <= kMaxLabelLength && absl::ascii_islower(text.front()) &&
         std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace

bool IsLabel(absl::string_view text) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '+' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxLabelLength &&
         std::all_of(text.begin(), text.end(), allowed);
}

void CheckName(const std::string& field, absl::string_view text, Problems* problems) {
  if (text.empty()) return problems->Add(field, "", "there is no name", kNameGrammar);
  if (IsName(text)) return;
  problems->Add(field, reflect::ShortText(text),
                absl::StrCat(reflect::Quoted(text), " is not a name"), kNameGrammar);
}

bool HasLabel(const google::protobuf::Value& value) {
  return value.has_number_value() || value.has_bool_value() || value.has_string_value();
}

std::string ValueLabel(const google::protobuf::Value& value) {
  if (value.has_number_value()) return text::ShortestDecimal(value.number_value());
  if (value.has_bool_value()) return value.bool_value() ? "true" : "false";
  return value.string_value();
}

}  // namespace ablate::spec
