#include "server/engine/core/pretrained/json_members.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/safetensors.h"

namespace ablate::engine {
namespace {

using nlohmann::json;

constexpr size_t kMaxJsonDepth = 16;
constexpr size_t kMaxJsonValues = 100'000;

// Returns the word at a byte of a text, such as -Infinity; empty if there is none.
absl::string_view WordAt(absl::string_view bytes, size_t at) {
  const auto is_part = [&](size_t i) {
    return absl::ascii_isalnum(static_cast<unsigned char>(bytes[i])) ||
           absl::StrContains("+-._", bytes[i]);
  };
  size_t begin = at, end = at;
  while (begin > 0 && is_part(begin - 1)) --begin;
  while (end < bytes.size() && is_part(end)) ++end;
  return is_part(at) ? bytes.substr(begin, end - begin) : "";
}

// Receives the parts of a JSON text, and checks what must hold before a value is built of it.
class JsonChecker : public nlohmann::json_sax<json> {
 public:
  // Both must outlive this.
  JsonChecker(absl::string_view file, absl::string_view bytes) : file_(file), bytes_(bytes) {}

  const absl::Status& status() const { return status_; }

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool start_object(size_t) override {
    if (levels_.empty()) return Open();
    return Value() && Open();
  }
  bool start_array(size_t) override { return Value() && Open(); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    levels_.back().key = name;
    if (levels_.back().keys.insert(name).second) return true;
    std::string path;
    for (const Level& level : levels_) {
      absl::StrAppend(&path, path.empty() || level.key.empty() ? "" : ".", level.key);
    }
    return Fail(": ", Quoted(path), " is there twice; expected it once.");
  }

  // `position` is the number of bytes that were read.
  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    constexpr int kNumberOverflow = 406;  // nlohmann's code
    const size_t at = position == 0 ? 0 : position - 1;
    const auto line =
        1 + std::count(bytes_.begin(), bytes_.begin() + std::min(at, bytes_.size()), '\n');
    if (at >= bytes_.size()) return Fail(":", line, ": the file ends early; expected more JSON.");
    const char byte = bytes_[at];
    const absl::string_view word = WordAt(bytes_, at);
    if (error.id == kNumberOverflow) {
      return Fail(":", line, ": the number ", Quoted(word),
                  " is too large; expected at most 1e308.");
    }
    if (byte == '/' || byte == '#') {
      return Fail(":", line, ": a comment isn't JSON; expected none. Remove it.");
    }
    return Fail(":", line, ": ", Quoted(word.empty() ? bytes_.substr(at, 1) : word),
                " isn't JSON there; expected an object {…} in UTF-8, with finite numbers.");
  }

 private:
  struct Level {
    std::string key;  // the last one; empty in a list
    absl::flat_hash_set<std::string> keys;
  };

  bool Value() {
    if (levels_.empty()) return Fail(": the file isn't a JSON object; expected {…} in UTF-8.");
    if (++values_ <= kMaxJsonValues) return true;
    return Fail(": the file has more values than the ", kMaxJsonValues, " that it may have.");
  }
  bool Open() {
    levels_.emplace_back();
    if (levels_.size() <= kMaxJsonDepth) return true;
    return Fail(": ", Quoted(levels_[0].key), " is nested too deep; expected at most ",
                kMaxJsonDepth, " levels.");
  }
  bool Close() {
    levels_.pop_back();
    return true;
  }
  template <typename... Parts>
  bool Fail(const Parts&... parts) {
    status_ = absl::InvalidArgumentError(absl::StrCat(file_, parts...));
    return false;
  }

  const absl::string_view file_;
  const absl::string_view bytes_;
  std::vector<Level> levels_;
  size_t values_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<json> ParseJsonObject(absl::string_view file, absl::string_view bytes,
                                     size_t max_bytes) {
  if (bytes.size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": the file has ", bytes.size(),
                                                   " bytes; expected at most ", max_bytes, "."));
  }
  // nlohmann takes a NUL for the end of its input.
  if (const size_t nul = bytes.find('\0'); nul != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": the file has a NUL at byte ", nul, "; expected JSON in UTF-8."));
  }
  JsonChecker checker(file, bytes);
  json::sax_parse(bytes.begin(), bytes.end(), &checker);
  if (!checker.status().ok()) return checker.status();
  return json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
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
