#include "proto/yaml/shorthands.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "proto/reflect/read.h"
#include "proto/reflect/text.h"
#include "proto/yaml/dataset_paths.h"
#include "proto/yaml/document.h"
#include "proto/yaml/seeds.h"
#include "proto/yaml/values_by_label.h"

namespace ablate::yaml {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Value;

constexpr char kRangeForm[] = "{log: [FIRST, LAST], count: N} or {linear: [FIRST, LAST], count: N}";

// Returns true if the field of this path below base has whole numbers.
bool IsWhole(absl::string_view path) {
  const google::protobuf::Descriptor* type = v1::BaseSpec::descriptor();
  const FieldDescriptor* field = nullptr;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    field = type == nullptr ? nullptr : type->FindFieldByName(std::string(name));
    if (field == nullptr) return false;
    type = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE ? field->message_type() : nullptr;
  }
  return field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
         field->cpp_type() == FieldDescriptor::CPPTYPE_INT32;
}

double Rounded(double value, int digits) {
  double rounded = value;
  (void)absl::SimpleAtod(absl::StrFormat("%.*g", digits, value), &rounded);
  return rounded;
}

absl::Status BadRange(absl::string_view complaint, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(complaint, "; expected ", allowed));
}

// The two numbers of `linear` or `log`.
absl::StatusOr<std::pair<double, double>> ReadEnds(const std::string& kind, const Value& ends) {
  const auto& list = ends.list_value().values();
  const bool numbers = list.size() == 2 && list[0].has_number_value() && list[1].has_number_value();
  const double first = numbers ? list[0].number_value() : 0;
  const double last = numbers ? list[1].number_value() : 0;
  const bool good = numbers && std::isfinite(first) && std::isfinite(last) && first != last &&
                    std::isfinite(last - first);
  if (good && (kind == "linear" || (first > 0 && last > 0))) return std::pair(first, last);
  return BadRange(absl::StrCat(kind, ": ", reflect::Quoted(ends), " is not a range"),
                  kind == "log" ? "two different numbers above 0, such as [1e-4, 1e-2]"
                                : "two different numbers, such as [0, 1]");
}

size_t Different(const std::vector<double>& values) {
  return std::set<double>(values.begin(), values.end()).size();
}

// Appends the problem of a value at `path`; `error` is "COMPLAINT; expected ALLOWED".
void AddProblem(const std::string& path, const Value& value, const absl::Status& error,
                std::vector<reflect::FieldProblem>* problems) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(error.message(), absl::MaxSplits("; expected ", 1));
  problems->push_back(
      reflect::MakeProblem(path, reflect::ShortText(value), parts.first, parts.second));
}

// Returns the message Seeds that a text, a number or a list stands for.
absl::StatusOr<Value> SeedsOf(const Value& given) {
  Value expanded;
  auto* fields = expanded.mutable_struct_value()->mutable_fields();
  if (given.has_list_value()) {
    (*fields)["list"] = given;
    return expanded;
  }
  if (given.string_value().find_first_of(".,") != std::string::npos) {
    ASSIGN_OR_RETURN(const v1::Seeds seeds, ParseSeeds(given.string_value()));
    if (seeds.has_first()) (*fields)["first"].set_number_value(seeds.first());
    if (seeds.has_count()) (*fields)["count"].set_number_value(seeds.count());
    for (const uint32_t seed : seeds.list()) {
      (*fields)["list"].mutable_list_value()->add_values()->set_number_value(seed);
    }
    return expanded;
  }
  const double count = given.number_value();
  if (count < 1 || count > kMaxSeeds || count != std::floor(count)) {  // 0 for anything else
    const std::string complaint = given.kind_case() == Value::KIND_NOT_SET
                                      ? "the value is missing"
                                      : reflect::Quoted(given) + " is not a number of seeds";
    return absl::InvalidArgumentError(
        absl::StrCat(complaint, "; expected a whole number from 1 to ", kMaxSeeds,
                     ", a range such as 0..9, a list, or the fields first, count and list"));
  }
  (*fields)["count"].set_number_value(count);
  return expanded;
}

void ExpandSeeds(Value* seeds, std::vector<reflect::FieldProblem>* problems) {
  if (seeds->has_struct_value() || seeds->has_null_value()) return;
  absl::StatusOr<Value> expanded = SeedsOf(*seeds);
  if (!expanded.ok()) {
    AddProblem("seeds", *seeds, expanded.status(), problems);
    expanded = Value();
    expanded->set_null_value(google::protobuf::NULL_VALUE);
  }
  *seeds = *std::move(expanded);
}

// A command of one text is a line for the shell, which gets the arguments as "$@".
void ExpandCommand(Value* command) {
  if (!command->has_string_value()) return;
  const std::string line = command->string_value();
  auto* parts = command->mutable_list_value();
  for (const std::string& part :
       {std::string("sh"), std::string("-c"), absl::StrCat(line, " \"$@\""), std::string("sh")}) {
    parts->add_values()->set_string_value(part);
  }
}

// Several patterns of files are one text, divided by commas.
void ExpandFiles(Value* files) {
  if (!files->has_list_value()) return;
  std::vector<std::string> patterns;
  for (const Value& one : files->list_value().values()) {
    if (!one.has_string_value()) return;
    patterns.push_back(one.string_value());
  }
  files->set_string_value(absl::StrJoin(patterns, ", "));
}

// A unit of a number, such as GB, and its size.
struct Unit {
  absl::string_view name;
  double size;
};
constexpr Unit kTimes[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
constexpr Unit kSizes[] = {{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};

// Returns the number that a text such as 1.5h stands for, in the units' base; nothing if it has
// none of them.
std::optional<double> ReadUnit(const Value& value, absl::Span<const Unit> units) {
  for (const Unit& unit : units) {
    absl::string_view text = value.string_value();
    double number = 0;
    if (!absl::ConsumeSuffix(&text, unit.name)) continue;
    if (!absl::SimpleAtod(absl::StripAsciiWhitespace(text), &number)) continue;
    if (std::isfinite(number) && number >= 0 && number < 1e9) return number * unit.size;
  }
  return std::nullopt;
}

// Replaces the shorthands of a map's members, whose paths are below `path`.
void ExpandProgramMembers(const std::string& path, Value* map) {
  if (!map->has_struct_value()) return;
  for (auto& [name, member] : *map->mutable_struct_value()->mutable_fields()) {
    ExpandProgramValue(reflect::Below(path, name), &member);
  }
}

// Replaces a number with a unit: of a time by one as 600s, of a size by bytes.
void ExpandLimit(bool is_time, Value* value) {
  const auto number = ReadUnit(*value, is_time ? absl::MakeSpan(kTimes) : absl::MakeSpan(kSizes));
  if (!number.has_value()) return;
  if (is_time) {
    value->set_string_value(absl::StrFormat("%.0fs", *number));
  } else {
    value->set_number_value(std::round(*number));
  }
}

// Returns the member of fields in `value`; null if it has none.
Value* MutableFields(Value* value, const char* name) {
  auto* fields = value->mutable_struct_value()->mutable_fields();
  const auto found = fields->find(name);
  return found == fields->end() || !found->second.has_struct_value() ? nullptr : &found->second;
}

// Replaces shorthands in the values of an axis. A range becomes a list; after a problem an empty
// one.
void ExpandValues(const std::string& field, const std::string& path, Value* values,
                  std::vector<reflect::FieldProblem>* problems) {
  if (values->has_struct_value()) {
    const absl::StatusOr<Value> list = ExpandRange(*values, field);
    if (!list.ok()) AddProblem(path, *values, list.status(), problems);
    values->mutable_list_value()->Clear();
    if (list.ok()) *values = *list;
  }
  if (!values->has_list_value()) return;
  for (Value& value : *values->mutable_list_value()->mutable_values()) {
    ExpandProgramValue(field, &value);
  }
}

// Does the same for each list of an axis whose values depend on another axis.
void ExpandLists(const std::string& field, const std::string& path, Value* values,
                 std::vector<reflect::FieldProblem>* problems) {
  for (auto& [label, list] : *values->mutable_struct_value()->mutable_fields()) {
    const std::string place = absl::StrCat(path, reflect::Subscript(label));
    if (!list.has_struct_value() && list.list_value().values().empty()) {
      problems->push_back(
          reflect::MakeProblem(place, reflect::ShortText(list),
                               absl::StrCat(reflect::Quoted(list), " isn't a list with values"),
                               absl::StrCat("a list of values, ", kRangeForm)));
    }
    ExpandValues(field, place, &list, problems);
  }
}

// Replaces {LABEL: {PATH: VALUE, …}} by its label and set, and the shorthands of programs in it.
void ExpandSetting(Value* setting) {
  if (!setting->has_struct_value()) return;
  auto* fields = setting->mutable_struct_value()->mutable_fields();
  const bool is_short = fields->size() == 1 && fields->begin()->second.has_struct_value() &&
                        fields->begin()->first != "set";
  if (is_short) {
    const std::string label = fields->begin()->first;
    Value set = std::move(fields->begin()->second);
    fields->clear();
    (*fields)["label"].set_string_value(label);
    (*fields)["set"] = std::move(set);
  }
  if (Value* set = MutableFields(setting, "set")) ExpandProgramMembers("", set);
}

void ExpandAxis(Value* axis, const std::string& path,
                std::vector<reflect::FieldProblem>* problems) {
  const Value* named = FindMember(*axis, "field");
  const std::string field = named == nullptr ? "" : named->string_value();
  auto* fields = axis->mutable_struct_value()->mutable_fields();
  const auto by = fields->find("by"), values = fields->find("values");
  const std::string place = absl::StrCat(path, ".values");
  if (by == fields->end()) {
    if (values != fields->end()) ExpandValues(field, place, &values->second, problems);
  } else if (values != fields->end() && values->second.has_struct_value()) {
    ExpandLists(field, place, &values->second, problems);
  } else {
    problems->push_back(reflect::MakeProblem(
        absl::StrCat(path, ".by"), reflect::ShortText(by->second),
        absl::StrCat(reflect::Quoted(by->second), " needs a list of values for each setting"),
        "values: {LABEL: [VALUE, …], …} with the labels of that axis"));
    fields->erase(by);
  }
  for (const char* name : {"settings", "switches"}) {
    const auto settings = fields->find(name);
    if (settings == fields->end() || !settings->second.has_list_value()) continue;
    for (Value& setting : *settings->second.mutable_list_value()->mutable_values()) {
      ExpandSetting(&setting);
    }
  }
}

}  // namespace

std::vector<double> RangeValues(double first, double last, uint32_t count, bool log, bool whole) {
  constexpr int kFewestDigits = 3, kMostDigits = 15;
  constexpr double kTolerance = 0.01;  // of the distance between neighbours
  constexpr double kZero = 1e-9;       // likewise
  std::vector<double> exact;
  for (uint32_t i = 0; i < count; ++i) {
    const double part = static_cast<double>(i) / (count - 1);
    exact.push_back(log ? std::exp(std::log(first) + part * (std::log(last) - std::log(first)))
                        : first + part * (last - first));
  }
  exact.front() = first;
  exact.back() = last;
  std::vector<double> values = exact;
  for (int digits = kFewestDigits; digits <= kMostDigits; ++digits) {
    bool good = true;
    for (uint32_t i = 1; i + 1 < count; ++i) {
      values[i] = whole ? std::round(exact[i]) : Rounded(exact[i], digits);
      const double step =
          std::min(std::abs(exact[i + 1] - exact[i]), std::abs(exact[i] - exact[i - 1]));
      if (std::abs(values[i]) < kZero * step) values[i] = 0;  // linear, on both sides of 0
      good = good && (whole || std::abs(values[i] - exact[i]) <= kTolerance * step);
    }
    if (good) break;
  }
  return values;
}

absl::StatusOr<Value> ExpandRange(const Value& range, absl::string_view field) {
  const Value* log = FindMember(range, "log");
  const Value* linear = FindMember(range, "linear");
  const Value* count = FindMember(range, "count");
  const bool complete = (log == nullptr) != (linear == nullptr) && count != nullptr &&
                        range.struct_value().fields_size() == 2;
  if (!complete) {
    return BadRange(absl::StrCat(reflect::ShortText(range), " is not a range"),
                    absl::StrCat("a list of values, ", kRangeForm));
  }
  ASSIGN_OR_RETURN(const auto ends,
                   ReadEnds(log != nullptr ? "log" : "linear", log != nullptr ? *log : *linear));
  const double number = count->number_value();
  if (number < 2 || number > kMaxAxisValues || number != std::floor(number)) {
    return BadRange(absl::StrCat("count: ", reflect::Quoted(*count), " is not a number of values"),
                    absl::StrCat("a whole number from 2 to ", kMaxAxisValues));
  }
  const auto values_of = [&](uint32_t wanted) {
    return RangeValues(ends.first, ends.second, wanted, log != nullptr, IsWhole(field));
  };
  const std::vector<double> numbers = values_of(static_cast<uint32_t>(number));
  if (const size_t whole = Different(numbers); IsWhole(field) && whole < numbers.size()) {
    auto most = static_cast<uint32_t>(whole);
    while (Different(values_of(most)) < most) --most;  // ends at 2, for the ends differ
    return BadRange(absl::StrCat("the range has only ", whole,
                                 " different whole numbers, fewer than count: ", numbers.size()),
                    absl::StrCat("a count of at most ", most, ", or a list of values"));
  }
  Value values;
  for (const double value : numbers) {
    values.mutable_list_value()->add_values()->set_number_value(value);
  }
  return values;
}

void ExpandProgramValue(const std::string& path, Value* value) {
  if (path == "program" || path == "program.limits") {
    ExpandProgramMembers(path, value);
  } else if (path == "program.command") {
    ExpandCommand(value);
  } else if (IsFilesPath(path)) {
    ExpandFiles(value);
  } else if (absl::StartsWith(path, "program.limits.")) {
    ExpandLimit(path == "program.limits.time", value);
  }
}

void ExpandShorthands(Value* root, std::vector<reflect::FieldProblem>* problems) {
  auto* fields = root->mutable_struct_value()->mutable_fields();
  if (const auto seeds = fields->find("seeds"); seeds != fields->end()) {
    ExpandSeeds(&seeds->second, problems);
  }
  if (Value* base = MutableFields(root, "base")) ExpandProgramMembers("", base);
  const auto axes = fields->find("axes");
  if (axes == fields->end() || !axes->second.has_list_value()) return;
  int index = 0;
  for (Value& axis : *axes->second.mutable_list_value()->mutable_values()) {
    if (axis.has_struct_value()) ExpandAxis(&axis, absl::StrCat("axes[", index, "]"), problems);
    ++index;
  }
  ExpandValuesByLabel(root, problems);
}

}  // namespace ablate::yaml
