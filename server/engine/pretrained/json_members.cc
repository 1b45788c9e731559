#include "server/engine/pretrained/json_members.h"

#include <limits>

#include "base/safetensors.h"

namespace ablate::engine {
namespace {

using nlohmann::json;

constexpr int kMaxJsonDepth = 16;

}  // namespace

absl::StatusOr<json> ParseJsonObject(absl::string_view file, absl::string_view bytes,
                                     size_t max_bytes) {
  if (bytes.size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": the file has ", bytes.size(),
                                                   " bytes; expected at most ", max_bytes, "."));
  }
  // nlohmann takes a NUL for the end of its input.
  const size_t nul = bytes.find('\0');
  bool too_deep = false;
  const auto check_depth = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxJsonDepth;
    return !too_deep;
  };
  json parsed = nul == absl::string_view::npos
                    ? json::parse(bytes.begin(), bytes.end(), check_depth, false)
                    : json(json::value_t::discarded);
  if (too_deep || !parsed.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": the file is not a JSON object; expected {…} in UTF-8, nested at most ",
        kMaxJsonDepth, " deep."));
  }
  return parsed;
}

std::string ShownJson(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return Quoted(value.get_ref<const std::string&>());
  return value.dump();
}

const json* JsonMembers::Find(absl::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonMembers::Require(absl::string_view key, absl::string_view expected) {
  if (!Has(key)) Add(key, "is missing", expected);
}

void JsonMembers::Integer(absl::string_view key, int min, int max, int* value) {
  const json* member = Find(key);
  if (member == nullptr) return;
  // A negative number has a type of its own.
  const bool fits = member->is_number_unsigned() &&
                    member->get<uint64_t>() >= static_cast<uint64_t>(min) &&
                    member->get<uint64_t>() <= static_cast<uint64_t>(max);
  if (!fits) return Refuse(key, absl::StrCat("an integer from ", min, " to ", max));
  *value = static_cast<int>(member->get<uint64_t>());
}

void JsonMembers::Number(absl::string_view key, double min, double max, absl::string_view expected,
                         double* value) {
  const json* member = Find(key);
  if (member == nullptr) return;
  const double number =
      member->is_number() ? member->get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!(number >= min && number <= max)) return Refuse(key, expected);
  *value = number;
}

void JsonMembers::Boolean(absl::string_view key, bool* value) {
  const json* member = Find(key);
  if (member == nullptr) return;
  if (!member->is_boolean()) return Refuse(key, "true or false");
  *value = member->get<bool>();
}

void JsonMembers::Text(absl::string_view key, std::string* value) {
  const json* member = Find(key);
  if (member == nullptr) return;
  if (!member->is_string()) return Refuse(key, "a string");
  *value = member->get<std::string>();
}

void JsonMembers::Refuse(absl::string_view key, absl::string_view expected) {
  const json* member = Find(key);
  Add(key, absl::StrCat("is ", member == nullptr ? "missing" : ShownJson(*member)), expected);
}

void JsonMembers::Add(absl::string_view key, absl::string_view problem,
                      absl::string_view expected) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat(file_, ": ", prefix_, key, " ", problem, "; expected ", expected, "."));
}

}  // namespace ablate::engine
