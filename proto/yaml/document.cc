#include "proto/yaml/document.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ablate::yaml {
namespace {

using google::protobuf::Value;

template <size_t N>
bool IsOneOf(absl::string_view text, const std::array<absl::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<absl::string_view, 5> kNull = {"", "~", "null", "Null", "NULL"};
constexpr std::array<absl::string_view, 3> kTrue = {"true", "True", "TRUE"};
constexpr std::array<absl::string_view, 3> kFalse = {"false", "False", "FALSE"};
constexpr std::array<absl::string_view, 3> kInfinity = {".inf", ".Inf", ".INF"};
constexpr std::array<absl::string_view, 3> kNan = {".nan", ".NaN", ".NAN"};

// Returns the number of decimal digits at the beginning of `text`.
size_t CountDigits(absl::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
  return static_cast<size_t>(end - text.begin());
}

// Returns true if `text` is empty or an exponent such as e-3.
bool IsExponentOrEmpty(absl::string_view text) {
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (!absl::ConsumePrefix(&text, "-")) absl::ConsumePrefix(&text, "+");
  return !text.empty() && CountDigits(text) == text.size();
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool IsDecimal(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "-")) absl::ConsumePrefix(&text, "+");
  const size_t whole = CountDigits(text);
  text.remove_prefix(whole);
  size_t fraction = 0;
  if (absl::ConsumePrefix(&text, ".")) {
    fraction = CountDigits(text);
    text.remove_prefix(fraction);
  }
  return whole + fraction > 0 && IsExponentOrEmpty(text);
}

std::optional<double> InBase(absl::string_view digits, int base) {
  if (digits.empty()) return std::nullopt;
  double number = 0;
  for (const char c : digits) {
    const int digit = absl::ascii_isdigit(c)    ? c - '0'
                      : absl::ascii_isxdigit(c) ? absl::ascii_tolower(c) - 'a' + 10
                                                : base;
    if (digit >= base) return std::nullopt;
    number = number * base + digit;
  }
  return number;
}

std::optional<double> Number(absl::string_view text) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "0o")) return InBase(rest, 8);
  if (absl::ConsumePrefix(&rest, "0x")) return InBase(rest, 16);
  if (IsOneOf(text, kNan)) return std::numeric_limits<double>::quiet_NaN();
  const bool negative = absl::ConsumePrefix(&rest, "-");
  if (!negative) absl::ConsumePrefix(&rest, "+");
  if (IsOneOf(rest, kInfinity)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return negative ? -infinity : infinity;
  }
  double number = 0;
  if (!IsDecimal(text) || !absl::SimpleAtod(text, &number)) return std::nullopt;
  constexpr double kExact = int64_t{1} << 53;  // up to here every whole number is a double
  const bool whole = rest.find_first_not_of("0123456789") == absl::string_view::npos;
  if (whole && std::fabs(number) >= kExact) return std::nullopt;
  return number;
}

constexpr absl::string_view kMergeKey = "<<";

// Counts the values of a tree, and its levels of lists and maps.
void Measure(const Value& value, int level, size_t* values, int* depth) {
  ++*values;
  if (value.has_list_value() || value.has_struct_value()) *depth = std::max(*depth, level + 1);
  for (const Value& member : value.list_value().values()) {
    Measure(member, level + 1, values, depth);
  }
  for (const auto& [key, member] : value.struct_value().fields()) {
    Measure(member, level + 1, values, depth);
  }
}

}  // namespace

Value PlainScalar(absl::string_view text) {
  Value value;
  if (IsOneOf(text, kNull)) {
    value.set_null_value(google::protobuf::NULL_VALUE);
  } else if (IsOneOf(text, kTrue) || IsOneOf(text, kFalse)) {
    value.set_bool_value(IsOneOf(text, kTrue));
  } else if (const std::optional<double> number = Number(text)) {
    value.set_number_value(*number);
  } else {
    return StringValue(text);
  }
  return value;
}

Value StringValue(absl::string_view text) {
  Value value;
  value.set_string_value(std::string(text));
  return value;
}

const Value* FindMember(const Value& value, const char* name) {
  const auto& fields = value.struct_value().fields();
  const auto found = fields.find(name);
  return found == fields.end() ? nullptr : &found->second;
}

void TreeBuilder::Problem(Position position, std::string message) {
  document_->problems.push_back({position, std::move(message), ""});
  document_->unread.push_back(path_);
}

Value* TreeBuilder::Replace(Value* value) {
  if (value->kind_case() != Value::KIND_NOT_SET) document_->unread.push_back(path_);
  value->Clear();
  return value;
}

std::string TreeBuilder::Where() const {
  std::string where;
  for (size_t i = 0; i < path_.size(); ++i) {
    if (i < levels_.size() && !levels_[i].is_map) {
      absl::StrAppend(&where, "[", path_[i], "]");
    } else {
      absl::StrAppend(&where, i == 0 ? "" : ".", path_[i]);
    }
  }
  return where;
}

bool TreeBuilder::ExpectsKey() const {
  if (ignored_levels_ > 0 || levels_.empty()) return false;
  return levels_.back().is_map && levels_.back().next == nullptr;
}

void TreeBuilder::Key(const std::string& key, Position position) {
  if (ignored_levels_ > 0) return;
  Level& level = levels_.back();
  const auto [first, is_new] = level.keys.emplace(key, position);
  if (!is_new) {
    document_->problems.push_back(
        {position,
         absl::StrCat("duplicate key \"", key, "\": it is already at line ", first->second.line,
                      ", column ", first->second.column),
         ""});
  }
  level.next = &(*level.value->mutable_struct_value()->mutable_fields())[key];
  path_.push_back(key);
  if (is_new) document_->positions.Add(path_, position);
}

Value* TreeBuilder::NextSlot(Position position) {
  if (levels_.empty()) return &document_->root;
  Level& level = levels_.back();
  if (level.is_map) return level.next;
  google::protobuf::ListValue* list = level.value->mutable_list_value();
  path_.push_back(absl::StrCat(list->values_size()));
  document_->positions.Add(path_, position);
  return list->add_values();
}

void TreeBuilder::FinishValue() {
  if (levels_.empty()) return;
  levels_.back().next = nullptr;
  path_.pop_back();
}

void TreeBuilder::Scalar(Value value, Position position) {
  const size_t anchor = std::exchange(anchor_, 0);
  if (ignored_levels_ > 0) return;
  if (anchor != 0) Remember(anchor, value, position);
  *Replace(NextSlot(position)) = std::move(value);
  FinishValue();
}

bool TreeBuilder::TakeExpanded(size_t values, Position position) {
  const bool before = expanded_ <= kMaxExpandedValues;
  expanded_ += values;
  if (expanded_ <= kMaxExpandedValues) return true;
  if (before) {  // one complaint is enough
    Problem(position, absl::StrCat("anchors and aliases expand to more than ", kMaxExpandedValues,
                                   " values; expected fewer. Write the values out"));
  }
  return false;
}

void TreeBuilder::Remember(size_t anchor, const Value& value, Position position) {
  Anchored anchored;
  Measure(value, 0, &anchored.values, &anchored.depth);
  if (!TakeExpanded(anchored.values, position)) return;
  anchored.value = value;
  anchored_[anchor] = std::move(anchored);
}

void TreeBuilder::Alias(size_t anchor, Position position) {
  if (ignored_levels_ > 0) return;
  const auto found = anchored_.find(anchor);
  if (found == anchored_.end()) {
    if (expanded_ <= kMaxExpandedValues) Problem(position, "an alias within its own value");
    return Skip();
  }
  const Anchored& anchored = found->second;
  if (static_cast<int>(levels_.size()) + anchored.depth > kMaxDepth) {
    Problem(position, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    return Skip();
  }
  if (!TakeExpanded(anchored.values, position)) return Skip();
  Scalar(anchored.value, position);
}

void TreeBuilder::Merge(Level* level) {
  auto* fields = level->value->mutable_struct_value()->mutable_fields();
  const auto found = fields->find(std::string(kMergeKey));
  const auto key = level->keys.find(std::string(kMergeKey));
  if (found == fields->end() || key == level->keys.end()) return;
  Value merged = std::move(found->second);
  fields->erase(found);
  google::protobuf::ListValue sources;
  if (merged.has_list_value()) {
    sources = std::move(*merged.mutable_list_value());
  } else {
    *sources.add_values() = std::move(merged);
  }
  for (Value& source : *sources.mutable_values()) {
    if (!source.has_struct_value()) {
      return Problem(key->second, absl::StrCat("<<: ", reflect::Quoted(source),
                                               " is not a mapping; expected an alias of one, such "
                                               "as *name, or a list of such aliases"));
    }
    for (auto& [name, value] : *source.mutable_struct_value()->mutable_fields()) {
      if (fields->contains(name)) continue;
      (*fields)[name] = std::move(value);
      path_.push_back(name);
      document_->positions.Add(path_, key->second);
      path_.pop_back();
    }
  }
}

void TreeBuilder::Skip() {
  if (ignored_levels_ > 0 || levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.is_map) return;
  level.value->mutable_struct_value()->mutable_fields()->erase(path_.back());
  FinishValue();
}

void TreeBuilder::Begin(Position position, bool is_map) {
  const size_t anchor = std::exchange(anchor_, 0);
  if (ignored_levels_ > 0 || levels_.size() == kMaxDepth) {
    if (!std::exchange(too_deep_, true)) {
      Problem(position, absl::StrCat("nested deeper than ", kMaxDepth, " levels"));
    }
    ++ignored_levels_;
    return;
  }
  Value* slot = NextSlot(position);
  if (is_map && !slot->has_struct_value()) {
    Replace(slot)->mutable_struct_value();
  } else if (!is_map) {
    Replace(slot)->mutable_list_value();
  }
  levels_.push_back({slot, is_map, nullptr, {}, anchor, position});
}

void TreeBuilder::End() {
  if (ignored_levels_ > 0) {
    --ignored_levels_;
    Skip();
    return;
  }
  Level& level = levels_.back();
  if (level.is_map) Merge(&level);
  if (level.anchor != 0) Remember(level.anchor, *level.value, level.begin);
  levels_.pop_back();
  FinishValue();
}

}  // namespace ablate::yaml
