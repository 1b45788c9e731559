#include "storage/sqlite/run_values.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "storage/sqlite/cell_fields.h"
#include "storage/sqlite/final_values.h"

namespace ablate::storage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns a finite number, or nothing.
std::optional<double> NumberIn(const RunValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  const auto* text = std::get_if<std::string>(&value);
  double parsed = 0;
  if (text == nullptr || !absl::SimpleAtod(*text, &parsed) || !std::isfinite(parsed)) {
    return std::nullopt;
  }
  return parsed;
}

template <typename T>
bool HoldsInOrder(RunTest::Op op, const T& value, const T& constant) {
  switch (op) {
    case RunTest::Op::kEqual:
      return value == constant;
    case RunTest::Op::kNotEqual:
      return value != constant;
    case RunTest::Op::kLess:
      return value < constant;
    case RunTest::Op::kLessEqual:
      return value <= constant;
    case RunTest::Op::kGreater:
      return value > constant;
    case RunTest::Op::kGreaterEqual:
      return value >= constant;
    default:
      return false;
  }
}

// The closed interval outside of which a test doesn't hold.
struct Bounds {
  double low = -kInfinity;
  double high = kInfinity;
};

Bounds BoundsOf(const RunTest* test) {
  Bounds bounds;
  const auto* constant = test == nullptr ? nullptr : std::get_if<double>(&test->constant);
  if (constant == nullptr) return bounds;
  switch (test->op) {
    case RunTest::Op::kEqual:
      return {*constant, *constant};
    case RunTest::Op::kLess:
    case RunTest::Op::kLessEqual:
      bounds.high = *constant;
      return bounds;
    case RunTest::Op::kGreater:
    case RunTest::Op::kGreaterEqual:
      bounds.low = *constant;
      return bounds;
    default:
      return bounds;
  }
}

NameKind NameKindOf(RunKey::Kind kind) {
  if (kind == RunKey::Kind::kField) return NameKind::kField;
  return kind == RunKey::Kind::kAxis ? NameKind::kAxis : NameKind::kMetric;
}

// Returns a time, or nothing if it hasn't come.
RunValue Time(int64_t micros) {
  return micros == 0 ? RunValue() : RunValue(static_cast<double>(micros));
}

std::optional<double> StatisticOf(RunKey::Kind kind, const Summary& summary) {
  if (summary.count == summary.nonfinite) return std::nullopt;
  if (kind == RunKey::Kind::kMin) return summary.min;
  if (kind == RunKey::Kind::kMax) return summary.max;
  return std::isfinite(summary.last) ? std::optional(summary.last) : std::nullopt;
}

std::optional<double> StatisticIn(const RunKey& key, const KeySummaries& summaries) {
  for (const KeySummary& entry : summaries) {
    if (entry.summary.key == key.name) return StatisticOf(key.kind, entry.summary);
  }
  return std::nullopt;
}

RunValue ExperimentValue(const QueriedExperiment& experiment, RunKey::Kind kind) {
  if (kind == RunKey::Kind::kOwner) return experiment.owner;
  if (kind == RunKey::Kind::kCreated) return Time(experiment.create_time);
  if (kind == RunKey::Kind::kTags) {
    return experiment.tags.empty() ? RunValue() : RunValue(experiment.tags);
  }
  return experiment.title;
}

// Reads a number of a run from a statement's columns: id, shown, start_time, end_time, parameters.
RunValue RunNumber(const Statement& row, RunKey::Kind kind) {
  switch (kind) {
    case RunKey::Kind::kState:
      return static_cast<double>(row.Int(1));
    case RunKey::Kind::kStarted:
      return Time(row.Int(2));
    case RunKey::Kind::kEnded:
      return Time(row.Int(3));
    default:
      return row.Int(4) == 0 ? RunValue() : RunValue(static_cast<double>(row.Int(4)));
  }
}

}  // namespace

Level LevelOf(RunKey::Kind kind) {
  switch (kind) {
    case RunKey::Kind::kField:
    case RunKey::Kind::kAxis:
      return Level::kVariant;
    case RunKey::Kind::kExperiment:
    case RunKey::Kind::kOwner:
    case RunKey::Kind::kTags:
    case RunKey::Kind::kCreated:
      return Level::kExperiment;
    case RunKey::Kind::kSeed:
      return Level::kCell;
    default:
      return Level::kRun;
  }
}

bool IsMetric(RunKey::Kind kind) {
  return kind == RunKey::Kind::kLast || kind == RunKey::Kind::kMin || kind == RunKey::Kind::kMax;
}

SortKey SortKeyOf(const RunValue& value) {
  if (const std::optional<double> number = NumberIn(value)) {
    return {SortKey::Rank::kNumber, *number, ""};
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return {SortKey::Rank::kText, 0, *text};
  }
  return {};
}

int Compare(const SortKey& a, const SortKey& b, bool descending) {
  if (a.rank != b.rank) return a.rank < b.rank ? -1 : 1;
  int order = a.text.compare(b.text);
  if (a.number != b.number) order = a.number < b.number ? -1 : 1;
  return descending ? -order : order;
}

bool Holds(const RunTest& test, const RunValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return false;
  if (test.op == RunTest::Op::kExists) return true;
  if (const auto* constant = std::get_if<double>(&test.constant)) {
    const std::optional<double> number = NumberIn(value);
    if (!number.has_value()) return test.op == RunTest::Op::kNotEqual;
    return HoldsInOrder(test.op, *number, *constant);
  }
  const auto* text = std::get_if<std::string>(&value);
  const auto* constant = std::get_if<std::string>(&test.constant);
  if (text == nullptr || constant == nullptr) return false;
  if (test.op != RunTest::Op::kContains) return HoldsInOrder(test.op, *text, *constant);
  return absl::StrContains(absl::AsciiStrToLower(*text), absl::AsciiStrToLower(*constant));
}

RunValues RunValues::Load(const QueriedStore& store, const RunKey& key, const RunTest* test) {
  RunValues values;
  values.level_ = LevelOf(key.kind);
  if (values.level_ == Level::kExperiment) values.LoadExperiments(store, key.kind);
  if (values.level_ == Level::kVariant) values.LoadFields(store, key);
  if (values.level_ == Level::kRun && IsMetric(key.kind)) values.LoadMetric(store, key, test);
  if (values.level_ == Level::kRun && !IsMetric(key.kind)) values.LoadRuns(store, key.kind, test);
  return values;
}

void RunValues::LoadExperiments(const QueriedStore& store, RunKey::Kind kind) {
  of_variant_.resize(store.experiments.size());
  for (const QueriedExperiment& experiment : store.experiments) {
    of_experiment_.push_back(ExperimentValue(experiment, kind));
  }
}

void RunValues::LoadFields(const QueriedStore& store, const RunKey& key) {
  of_experiment_.resize(store.experiments.size());
  of_variant_.resize(store.experiments.size());
  for (const int64_t name :
       VisibleNames(store.db, store.query.viewer, NameKindOf(key.kind), key.name)) {
    Statement row(store.db, "SELECT experiment, variant, value FROM cell_fields WHERE name = ?1",
                  name);
    while (row.Row()) {
      const auto place = store.place_of.find(row.Int(0));
      if (place == store.place_of.end()) continue;
      const auto variant = row.As<size_t>(1);
      if (variant == 0) {
        of_experiment_[place->second] = row.Text(2);
        continue;
      }
      std::vector<RunValue>& variants = of_variant_[place->second];
      if (variants.size() <= variant) variants.resize(variant + 1);
      variants[variant] = row.Text(2);
    }
  }
}

void RunValues::KeepRuns(const RunNumbers& numbers) {
  if (numbers.empty()) return;
  const auto [first, last] = std::minmax_element(numbers.begin(), numbers.end());
  first_run_ = first->first;
  of_run_.assign(static_cast<size_t>(last->first - first_run_ + 1), kNone);
  for (const auto& [run, number] : numbers) of_run_[static_cast<size_t>(run - first_run_)] = number;
}

void RunValues::LoadRuns(const QueriedStore& store, RunKey::Kind kind, const RunTest* test) {
  const Bounds states = kind == RunKey::Kind::kState ? BoundsOf(test) : Bounds();
  RunNumbers numbers;
  for (const std::string& private_to : store.private_to) {
    // The index runs_ends has all columns of runs that aren't leased. Leased ones may be shown as
    // queued.
    Statement row(store.db,
                  "SELECT id, shown, start_time, end_time, parameters FROM runs WHERE private_to = "
                  "?1 AND state BETWEEN ?2 AND max(?3, 1)",
                  private_to, states.low, states.high);
    while (row.Row()) {
      const RunValue value = RunNumber(row, kind);
      const auto* number = std::get_if<double>(&value);
      if (number != nullptr) numbers.emplace_back(row.Int(0), *number);
    }
  }
  KeepRuns(numbers);
}

void RunValues::LoadMetric(const QueriedStore& store, const RunKey& key, const RunTest* test) {
  const bool by_last = key.kind == RunKey::Kind::kLast;
  const Bounds bounds = by_last ? BoundsOf(test) : Bounds();
  const int column = by_last ? 1 : key.kind == RunKey::Kind::kMin ? 2 : 3;
  RunNumbers numbers;
  for (const int64_t name :
       VisibleNames(store.db, store.query.viewer, NameKind::kMetric, key.name)) {
    Statement row(
        store.db,
        "SELECT run, last, min, max FROM final_values WHERE name = ?1 AND last BETWEEN ?2 AND ?3",
        name, bounds.low, bounds.high);
    while (row.Row()) {
      if (by_last && row.Real(column) == kNoFinalValue) continue;
      numbers.emplace_back(row.Int(0), row.Real(column));
    }
  }
  for (const auto& [run, summaries] : store.open) {
    const std::optional<double> number = StatisticIn(key, summaries);
    if (number.has_value()) numbers.emplace_back(run, *number);
  }
  KeepRuns(numbers);
}

RunValue RunValues::Of(const ScannedCell& cell) const {
  switch (level_) {
    case Level::kExperiment:
      return of_experiment_[cell.experiment];
    case Level::kVariant: {
      const std::vector<RunValue>& variants = of_variant_[cell.experiment];
      if (variants.empty()) return of_experiment_[cell.experiment];
      return cell.variant < variants.size() ? variants[cell.variant] : RunValue();
    }
    case Level::kRun: {
      const double number = OfRun(cell.run);
      return std::isnan(number) ? RunValue() : RunValue(number);
    }
    case Level::kCell:
      return static_cast<double>(cell.seed);
  }
  return {};
}

namespace {

RunValue ReadField(const QueriedStore& store, const RunKey& key, const ScannedCell& cell) {
  const int64_t experiment = store.experiments[cell.experiment].id;
  for (const int64_t name :
       VisibleNames(store.db, store.query.viewer, NameKindOf(key.kind), key.name)) {
    Statement row(
        store.db,
        "SELECT value FROM cell_fields WHERE name = ?1 AND experiment = ?2 AND variant IN (0, ?3)",
        name, experiment, cell.variant);
    if (row.Row()) return row.Text(0);
  }
  return {};
}

}  // namespace

RunValue ReadValue(const QueriedStore& store, const RunKey& key, const ScannedCell& cell,
                   const KeySummaries& summaries) {
  switch (LevelOf(key.kind)) {
    case Level::kExperiment:
      return ExperimentValue(store.experiments[cell.experiment], key.kind);
    case Level::kVariant:
      return ReadField(store, key, cell);
    case Level::kCell:
      return static_cast<double>(cell.seed);
    case Level::kRun:
      break;
  }
  if (IsMetric(key.kind)) {
    const std::optional<double> number = StatisticIn(key, summaries);
    return number.has_value() ? RunValue(*number) : RunValue();
  }
  Statement row(store.db,
                "SELECT id, shown, start_time, end_time, parameters FROM runs WHERE id = ?1",
                cell.run);
  return row.Row() ? RunNumber(row, key.kind) : RunValue();
}

}  // namespace ablate::storage
