#include "server/service/run_names.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "ablate/v1/run.pb.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "proto/reflect/field_hints.h"
#include "proto/reflect/text.h"
#include "server/experiment/field_values.h"
#include "server/experiment/metrics.h"
#include "server/lookup/errors.h"
#include "server/results/trained_grid.h"
#include "server/service/convert.h"

namespace ablate::service {
namespace {

using filter::Comparison;
using filter::Mistake;
using filter::Operator;
using storage::RunKey;
using storage::RunTest;
using Kind = storage::RunKey::Kind;

struct Property {
  absl::string_view name;
  Kind kind;
};
constexpr Property kProperties[] = {{"experiment", Kind::kExperiment},
                                    {"owner", Kind::kOwner},
                                    {"tags", Kind::kTags},
                                    {"state", Kind::kState},
                                    {"seed", Kind::kSeed},
                                    {"parameters", Kind::kParameters},
                                    {"created", Kind::kCreated},
                                    {"started", Kind::kStarted},
                                    {"ended", Kind::kEnded}};

// Each name of a filter costs a pass over all runs.
constexpr size_t kMaxNames = 8;

// Most labels of an axis that an error lists.
constexpr size_t kShownLabels = 12;

constexpr absl::string_view kFunctions = "axis, last, min, max or best";

// Types of values: the form of a constant, and the operators. A label, or a program's setting, is a
// text that may be a number.
enum class Type { kNumber, kTime, kState, kText, kTags, kEnum, kBoolean, kLabel };

bool Refuse(size_t column, std::string complaint, std::string expected, Mistake* mistake) {
  *mistake = {column, std::move(complaint), std::move(expected)};
  return false;
}

absl::Status ToStatus(absl::string_view field, const Mistake& mistake) {
  return lookup::InvalidField(
      field, absl::StrCat("column ", mistake.column, ": ", mistake.complaint), mistake.expected);
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsTime(Kind kind) {
  return kind == Kind::kCreated || kind == Kind::kStarted || kind == Kind::kEnded;
}

// Returns the field that a key names; null for other keys, also for a program's setting, whose
// values are texts, numbers or booleans as programs have them.
const spec::SpecPath* PathOf(const RunKey& key) {
  if (key.kind != Kind::kField) return nullptr;
  const auto path = spec::SpecPaths().find(key.name);
  return path == spec::SpecPaths().end() ? nullptr : &path->second;
}

Type TypeOf(const RunKey& key) {
  if (const spec::SpecPath* path = PathOf(key)) {
    switch (path->kind) {
      case spec::SpecPath::Kind::kNumber:
        return Type::kNumber;
      case spec::SpecPath::Kind::kBoolean:
        return Type::kBoolean;
      case spec::SpecPath::Kind::kEnum:
        return Type::kEnum;
      default:
        return Type::kText;
    }
  }
  if (key.kind == Kind::kAxis || key.kind == Kind::kField) return Type::kLabel;
  if (key.kind == Kind::kState) return Type::kState;
  if (key.kind == Kind::kExperiment || key.kind == Kind::kOwner) return Type::kText;
  if (key.kind == Kind::kTags) return Type::kTags;
  return IsTime(key.kind) ? Type::kTime : Type::kNumber;
}

bool IsOrder(Operator op) {
  return op == Operator::kLess || op == Operator::kLessEqual || op == Operator::kGreater ||
         op == Operator::kGreaterEqual;
}

// Checks that the operator suits the type.
bool CheckOperator(const Comparison& comparison, Type type, Mistake* mistake) {
  const Operator op = comparison.op;
  constexpr char kTimeOperators[] = "< <= > or >=";
  const bool is_time = type == Type::kTime;
  const bool is_list = type == Type::kTags;
  const bool has_order = type == Type::kNumber || is_time || type == Type::kLabel;
  const bool has_parts = type == Type::kText || type == Type::kLabel || is_list;
  if (is_list && op != Operator::kHas) {
    return Refuse(comparison.op_column,
                  absl::StrCat("'", filter::NameOf(op), "' doesn't look into ",
                               comparison.name.text, ", which is a list"),
                  absl::StrCat("':', as in ", comparison.name.text, ":paper"), mistake);
  }
  if (IsOrder(op) && !has_order) {
    return Refuse(comparison.op_column,
                  absl::StrCat("'", filter::NameOf(op), "' needs a number or a time, which ",
                               comparison.name.text, " isn't"),
                  has_parts ? "=, != or :" : "= or !=", mistake);
  }
  if (op == Operator::kHas && !has_parts) {
    return Refuse(
        comparison.op_column,
        absl::StrCat("':' looks for a part of a text, which ", comparison.name.text, " isn't"),
        absl::StrCat("* after ':', or ", is_time     ? kTimeOperators
                                         : has_order ? "= != < <= > or >="
                                                     : "= or !="),
        mistake);
  }
  if (is_time && (op == Operator::kEqual || op == Operator::kNotEqual)) {
    return Refuse(comparison.op_column,
                  absl::StrCat("'", filter::NameOf(op), "' would compare ", comparison.name.text,
                               " with one microsecond"),
                  kTimeOperators, mistake);
  }
  return true;
}

bool ParseNumber(const Comparison& comparison, double* number, Mistake* mistake) {
  if (absl::SimpleAtod(comparison.value, number) && std::isfinite(*number) &&
      text::DecimalProblem(comparison.value).empty()) {
    return true;
  }
  return Refuse(comparison.value_column,
                absl::StrCat(reflect::Quoted(comparison.value), " isn't a number"),
                absl::StrCat("a number for ", comparison.name.text), mistake);
}

// Parses -2d: a number of seconds, minutes, hours, days or weeks before now.
bool ParseAge(absl::string_view text, absl::Duration* age) {
  constexpr std::pair<char, int64_t> kUnits[] = {
      {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86'400}, {'w', 604'800}};
  uint32_t count = 0;
  if (!absl::ConsumePrefix(&text, "-") || text.empty()) return false;
  for (const auto& [unit, seconds] : kUnits) {
    if (text.back() != unit || !absl::SimpleAtoi(text.substr(0, text.size() - 1), &count)) continue;
    *age = count * absl::Seconds(seconds);
    return true;
  }
  return false;
}

bool ParseTime(const Comparison& comparison, absl::Time now, double* micros, Mistake* mistake) {
  absl::Time time;
  absl::Duration age;
  std::string ignored;
  if (ParseAge(comparison.value, &age)) {
    time = now - age;
  } else if (!absl::ParseTime(absl::RFC3339_full, comparison.value, &time, &ignored) &&
             !absl::ParseTime("%Y-%m-%d", comparison.value, absl::UTCTimeZone(), &time, &ignored)) {
    return Refuse(
        comparison.value_column, absl::StrCat(reflect::Quoted(comparison.value), " isn't a time"),
        "2026-11-26, 2026-11-26T10:00:00Z, or -2d for two days ago (s, m, h, d, w)", mistake);
  }
  *micros = static_cast<double>(absl::ToUnixMicros(time));
  return true;
}

constexpr storage::RunState kStates[] = {storage::RunState::kQueued, storage::RunState::kLeased,
                                         storage::RunState::kDone,   storage::RunState::kDiverged,
                                         storage::RunState::kFailed, storage::RunState::kCancelled};

bool ParseState(const Comparison& comparison, double* number, Mistake* mistake) {
  std::vector<std::string> names;
  for (const storage::RunState state : kStates) {
    const std::string& name = v1::RunState::Value_Name(ToProto(state));
    if (absl::EqualsIgnoreCase(name, comparison.value)) {
      *number = static_cast<double>(state);
      return true;
    }
    names.push_back(name);
  }
  return Refuse(comparison.value_column,
                absl::StrCat(reflect::Quoted(comparison.value), " isn't a state",
                             reflect::DidYouMean(comparison.value, names)),
                reflect::AnyOf(names), mistake);
}

// Checks that a value is one of the field's or axis's.
bool CheckValue(const Comparison& comparison, const std::vector<std::string>& values,
                Mistake* mistake) {
  if (Contains(values, comparison.value)) return true;
  return Refuse(comparison.value_column,
                absl::StrCat(reflect::Quoted(comparison.value), " isn't a value of ",
                             comparison.name.text, reflect::DidYouMean(comparison.value, values)),
                reflect::AnyOf(values), mistake);
}

RunTest::Op ToOp(Operator op) {
  switch (op) {
    case Operator::kEqual:
      return RunTest::Op::kEqual;
    case Operator::kNotEqual:
      return RunTest::Op::kNotEqual;
    case Operator::kLess:
      return RunTest::Op::kLess;
    case Operator::kLessEqual:
      return RunTest::Op::kLessEqual;
    case Operator::kGreater:
      return RunTest::Op::kGreater;
    case Operator::kGreaterEqual:
      return RunTest::Op::kGreaterEqual;
    case Operator::kHas:
      break;
  }
  return RunTest::Op::kContains;
}

void AddKeys(const storage::RunCondition& condition, std::set<std::pair<Kind, std::string>>* keys) {
  if (condition.kind == storage::RunCondition::Kind::kTest) {
    keys->emplace(condition.test.key.kind, condition.test.key.name);
  }
  for (const storage::RunCondition& operand : condition.operands) AddKeys(operand, keys);
}

// Returns the text as the store has it: without the collection of a resource's name.
std::string StoredText(Kind kind, const std::string& text) {
  absl::string_view rest = text;
  if (kind == Kind::kOwner) absl::ConsumePrefix(&rest, "users/");
  if (kind == Kind::kExperiment) absl::ConsumePrefix(&rest, "experiments/");
  return std::string(rest);
}

}  // namespace

bool RunNames::ResolveMetric(const filter::Name& name, RunKey* key, Mistake* mistake) const {
  *key = {Kind::kLast, name.text};
  if (!Contains(names_.metrics, name.text) && !spec::FindMetric(name.text).has_value()) {
    std::vector<std::string> known = names_.metrics;
    known.insert(known.end(), spec::Metrics().begin(), spec::Metrics().end());
    return Refuse(name.column,
                  absl::StrCat("no run has the metric ", reflect::Quoted(name.text),
                               reflect::DidYouMean(name.text, known)),
                  "a metric that training records, such as eval/loss", mistake);
  }
  if (name.function == "min") key->kind = Kind::kMin;
  if (name.function == "max") key->kind = Kind::kMax;
  if (name.function != "best") return true;
  const report::Better better = results::BetterOf(v1::ExperimentSpec(), name.text);
  if (better == report::Better::kNeither) {
    return Refuse(name.column,
                  absl::StrCat("neither direction of ", reflect::Quoted(name.text), " is better"),
                  "min() or max()", mistake);
  }
  key->kind = better == report::Better::kHigher ? Kind::kMax : Kind::kMin;
  return true;
}

std::vector<std::string> RunNames::SettingsEnding(const std::string& name) const {
  std::vector<std::string> found;
  std::copy_if(
      names_.settings.begin(), names_.settings.end(), std::back_inserter(found),
      [&name](const std::string& path) { return absl::EndsWith(path, absl::StrCat(".", name)); });
  return found;
}

bool RunNames::Resolve(const filter::Name& name, RunKey* key, Mistake* mistake) const {
  const std::string& text = name.text;
  const bool is_axis = Contains(names_.axes, text);
  if (name.function == "axis") {
    *key = {Kind::kAxis, text};
    return is_axis || Refuse(name.column,
                             absl::StrCat("no experiment has the axis ", reflect::Quoted(text),
                                          reflect::DidYouMean(text, names_.axes)),
                             "the name of an axis", mistake);
  }
  if (name.function == "last" || name.function == "min" || name.function == "max" ||
      name.function == "best") {
    return ResolveMetric(name, key, mistake);
  }
  if (!name.function.empty()) {
    return Refuse(name.column, absl::StrCat(reflect::Quoted(name.function), " isn't a function"),
                  std::string(kFunctions), mistake);
  }
  std::vector<std::string> known;
  for (const Property& property : kProperties) {
    if (property.name == text) {
      *key = {property.kind, ""};
      return true;
    }
    known.emplace_back(property.name);
  }
  if (spec::SpecPaths().count(text) > 0 || Contains(names_.settings, text)) {
    *key = {Kind::kField, text};
    return true;
  }
  if (is_axis) {
    *key = {Kind::kAxis, text};
    return true;
  }
  // Metrics have a slash, and nothing else has.
  if (absl::StrContains(text, '/') || Contains(names_.metrics, text)) {
    return ResolveMetric(name, key, mistake);
  }
  const std::vector<std::string> settings = SettingsEnding(text);
  if (settings.size() == 1) {
    *key = {Kind::kField, settings.front()};
    return true;
  }
  std::vector<std::string> meant = reflect::PathsEnding(v1::BaseSpec::descriptor(), text);
  const auto is_message = [](const std::string& path) {
    return spec::SpecPaths().count(path) == 0;
  };
  meant.erase(std::remove_if(meant.begin(), meant.end(), is_message), meant.end());
  meant.insert(meant.end(), settings.begin(), settings.end());
  for (const auto& [path, ignored] : spec::SpecPaths()) known.push_back(path);
  known.insert(known.end(), names_.settings.begin(), names_.settings.end());
  known.insert(known.end(), names_.axes.begin(), names_.axes.end());
  known.insert(known.end(), names_.metrics.begin(), names_.metrics.end());
  known.insert(known.end(), spec::Metrics().begin(), spec::Metrics().end());
  return Refuse(
      name.column,
      absl::StrCat("unknown name ", reflect::Quoted(text),
                   meant.empty() ? reflect::DidYouMean(text, known)
                                 : absl::StrCat("; did you mean ", reflect::AnyOf(meant), "?")),
      "a field such as model.layers, an axis, a metric such as eval/loss, experiment, owner, tags, "
      "state, seed, parameters, created, started or ended",
      mistake);
}

bool RunNames::CheckLabel(const Comparison& comparison, const std::string& axis,
                          Mistake* mistake) const {
  const std::vector<std::string> labels = labels_(axis);
  if (labels.empty() || CheckValue(comparison, labels, mistake)) return true;
  if (labels.size() > kShownLabels) mistake->expected = "a label of the axis";
  return false;
}

bool RunNames::ConvertTest(const Comparison& comparison, RunTest* test, Mistake* mistake) const {
  if (!Resolve(comparison.name, &test->key, mistake)) return false;
  test->op = ToOp(comparison.op);
  if (comparison.op == Operator::kHas && comparison.value == "*" && !comparison.quoted) {
    test->op = RunTest::Op::kExists;
    return true;
  }
  const Type type = TypeOf(test->key);
  if (!CheckOperator(comparison, type, mistake)) return false;
  double number = 0;
  switch (type) {
    case Type::kNumber:
      if (!ParseNumber(comparison, &number, mistake)) return false;
      test->constant = number;
      return true;
    case Type::kTime:
      if (!ParseTime(comparison, now_, &number, mistake)) return false;
      test->constant = number;
      return true;
    case Type::kState:
      if (!ParseState(comparison, &number, mistake)) return false;
      test->constant = number;
      return true;
    case Type::kLabel:
      // lr = 1e-3 means the label 0.001, too; inf and nan are texts.
      if (IsOrder(comparison.op) ||
          (comparison.op != Operator::kHas && !comparison.quoted &&
           absl::SimpleAtod(comparison.value, &number) && std::isfinite(number))) {
        if (!ParseNumber(comparison, &number, mistake)) return false;
        test->constant = number;
        return true;
      }
      if (test->key.kind == Kind::kAxis && comparison.op != Operator::kHas &&
          !CheckLabel(comparison, test->key.name, mistake)) {
        return false;
      }
      break;
    case Type::kBoolean:
      if (!CheckValue(comparison, {"true", "false"}, mistake)) return false;
      break;
    case Type::kEnum:
      if (!CheckValue(comparison, PathOf(test->key)->values, mistake)) return false;
      break;
    case Type::kTags:
      test->constant = absl::StrCat(" ", comparison.value, " ");
      return true;
    case Type::kText:
      break;
  }
  test->constant = StoredText(test->key.kind, comparison.value);
  return true;
}

void RunNames::NameDatasets(const Comparison& comparison, storage::RunCondition* condition) const {
  const RunTest test = condition->test;
  const bool equals = comparison.op == Operator::kEqual;
  if (datasets_ == nullptr || test.key.kind != Kind::kField ||
      (!equals && comparison.op != Operator::kNotEqual) ||
      !(absl::EndsWith(test.key.name, ".dataset") || absl::EndsWith(test.key.name, ".tokenizer"))) {
    return;
  }
  const std::vector<std::string> names = datasets_(comparison.value);
  if (names.empty()) return;  // a value that is stored, perhaps of a data set that was deleted
  using To = storage::RunCondition::Kind;
  condition->kind = equals ? To::kOr : To::kAnd;
  for (const std::string& name : names) {
    storage::RunCondition& operand = condition->operands.emplace_back();
    operand.kind = To::kTest;
    operand.test = test;
    operand.test.constant = name;
  }
}

bool RunNames::Convert(const filter::Expression& expression, storage::RunCondition* condition,
                       Mistake* mistake) const {
  using From = filter::Expression::Kind;
  using To = storage::RunCondition::Kind;
  if (expression.kind == From::kComparison) {
    condition->kind = To::kTest;
    if (!ConvertTest(expression.comparison, &condition->test, mistake)) return false;
    NameDatasets(expression.comparison, condition);
    return true;
  }
  condition->kind = expression.kind == From::kAnd  ? To::kAnd
                    : expression.kind == From::kOr ? To::kOr
                                                   : To::kNot;
  for (const filter::Expression& operand : expression.operands) {
    if (!Convert(operand, &condition->operands.emplace_back(), mistake)) return false;
  }
  return true;
}

absl::StatusOr<storage::RunCondition> RunNames::Filter(absl::string_view field,
                                                       absl::string_view text) const {
  std::optional<filter::Expression> expression;
  storage::RunCondition condition;
  Mistake mistake;
  if (!filter::Parse(text, &expression, &mistake)) return ToStatus(field, mistake);
  if (expression.has_value() && !Convert(*expression, &condition, &mistake)) {
    return ToStatus(field, mistake);
  }
  std::set<std::pair<Kind, std::string>> keys;
  AddKeys(condition, &keys);
  if (keys.size() > kMaxNames) {
    return lookup::InvalidField(field, absl::StrCat("it has ", keys.size(), " different names"),
                                absl::StrCat("at most ", kMaxNames));
  }
  return condition;
}

absl::StatusOr<RunOrder> RunNames::Order(absl::string_view field, absl::string_view text) const {
  filter::Order parsed;
  RunOrder order;
  Mistake mistake;
  if (!filter::ParseOrder(text, &parsed, &mistake) || !Resolve(parsed.name, &order.key, &mistake)) {
    return ToStatus(field, mistake);
  }
  const spec::SpecPath* path = PathOf(order.key);
  if (path != nullptr && path->kind == spec::SpecPath::Kind::kList) {
    return ToStatus(field, {parsed.name.column, absl::StrCat(parsed.name.text, " is a list"),
                            "a number or a text to sort by"});
  }
  using Direction = filter::Order::Direction;
  order.descending = parsed.direction == Direction::kDescending;
  if (parsed.direction != Direction::kBest) return order;
  const report::Better better = results::BetterOf(v1::ExperimentSpec(), order.key.name);
  if (better == report::Better::kNeither) {
    return ToStatus(field, {parsed.name.column,
                            absl::StrCat("neither direction of ", parsed.name.text, " is better"),
                            "asc or desc"});
  }
  order.descending = better == report::Better::kHigher;
  return order;
}

absl::StatusOr<RunKey> RunNames::Column(absl::string_view field, absl::string_view text) const {
  filter::Name name;
  RunKey key;
  Mistake mistake;
  if (!filter::ParseName(text, &name, &mistake) || !Resolve(name, &key, &mistake)) {
    return ToStatus(field, mistake);
  }
  return key;
}

google::protobuf::Value ToColumn(const RunKey& key, const storage::RunValue& value) {
  google::protobuf::Value column;
  column.set_null_value(google::protobuf::NULL_VALUE);
  if (const auto* number = std::get_if<double>(&value)) {
    if (key.kind == Kind::kState) {
      const auto state = static_cast<storage::RunState>(static_cast<int>(*number));
      column.set_string_value(v1::RunState::Value_Name(ToProto(state)));
    } else if (IsTime(key.kind)) {
      const absl::Time time = absl::FromUnixMicros(static_cast<int64_t>(*number));
      column.set_string_value(absl::FormatTime(absl::RFC3339_full, time, absl::UTCTimeZone()));
    } else {
      column.set_number_value(*number);
    }
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    double parsed = 0;
    const bool may_be_number =
        TypeOf(key) == Type::kNumber || (key.kind == Kind::kField && PathOf(key) == nullptr);
    if (may_be_number && absl::SimpleAtod(*text, &parsed) && std::isfinite(parsed)) {
      column.set_number_value(parsed);
    } else {
      const bool is_list = key.kind == Kind::kTags;  // with spaces around it
      column.set_string_value(is_list ? std::string(absl::StripAsciiWhitespace(*text)) : *text);
    }
  }
  return column;
}

}  // namespace ablate::service
