#include "client/imports/table_runs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr size_t kMaxCellBytes = 1'000;
constexpr const char* kKeyColumns[] = {"key", "metric"};
constexpr const char* kStepColumns[] = {"step", "_step", "global_step", "iteration", "epoch"};
constexpr const char* kNameColumns[] = {"run", "run_name", "name", "run_id", "id"};
constexpr const char* kStateColumns[] = {"state", "status"};
// Times, which are neither settings nor results.
constexpr const char* kTimeColumns[] = {"wall time",  "wall_time", "time",    "timestamp",
                                        "_timestamp", "_runtime",  "runtime", "created"};

struct StateRow {
  absl::string_view word;
  v1::ImportedState::Value state;
};
constexpr StateRow kStates[] = {
    {"finished", v1::ImportedState::finished},    {"completed", v1::ImportedState::finished},
    {"complete", v1::ImportedState::finished},    {"done", v1::ImportedState::finished},
    {"diverged", v1::ImportedState::finished},    {"failed", v1::ImportedState::failed},
    {"crashed", v1::ImportedState::failed},       {"killed", v1::ImportedState::failed},
    {"running", v1::ImportedState::unfinished},   {"queued", v1::ImportedState::unfinished},
    {"cancelled", v1::ImportedState::unfinished}, {"pruned", v1::ImportedState::pruned}};

template <size_t n>
const TableColumn* FindAny(const ResultTable& table, const char* const (&names)[n]) {
  for (const char* name : names) {
    if (const TableColumn* column = table.Find(name)) return column;
  }
  return nullptr;
}

std::string Names(const std::vector<const TableColumn*>& columns) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(columns.size(), 8); ++i) {
    names.push_back(reflect::ShortText(columns[i]->name, 60));
  }
  if (columns.size() > names.size()) names.push_back("…");
  return absl::StrJoin(names, ", ");
}

// The parts of a long or wide table.
struct Layout {
  const TableColumn* key = nullptr;    // of a long table
  const TableColumn* value = nullptr;  // likewise
  const TableColumn* step = nullptr;
  const TableColumn* name = nullptr;
  const TableColumn* state = nullptr;
  const TableColumn* item = nullptr;
  const TableColumn* group = nullptr;
  std::vector<const TableColumn*> settings;  // with the seed
  std::vector<const TableColumn*> metrics;   // of a wide table
};

// Finds the parts of a table.
class LayoutFinder {
 public:
  LayoutFinder(const ResultTable& table, const TableOptions& options, TableRuns* runs)
      : table_(table), options_(options), runs_(*runs) {}

  absl::StatusOr<Layout> Find() {
    ASSIGN_OR_RETURN(layout_.item, Named("item", options_.item));
    ASSIGN_OR_RETURN(layout_.group, Named("group", options_.group));
    ASSIGN_OR_RETURN(const TableColumn* seed, Named("seed", options_.seed));
    if (seed == nullptr) seed = table_.Find("seed");
    const std::vector<const TableColumn*> named = NamedSettings();
    const bool has_metric = table_.Find(options_.metric) != nullptr;
    if (!has_metric) FindLong();
    if (!options_.metric.empty() && !has_metric && layout_.key == nullptr) {
      return NoColumn("metric", options_.metric);
    }
    layout_.step = Unless(FindStep(), named);
    layout_.state = Unless(FindAny(table_, kStateColumns), named);
    layout_.name = Unless(FindAny(table_, kNameColumns), named);
    if (seed != nullptr && seed != layout_.item) layout_.settings.push_back(seed);
    RETURN_IF_ERROR(named.empty() ? FindSettings() : UseSettings(named));
    return layout_;
  }

 private:
  absl::StatusOr<const TableColumn*> Named(const char* option, const std::string& name) const {
    if (name.empty()) return nullptr;
    const TableColumn* column = table_.Find(name);
    // The seed may also be in the names of runs.
    if (column != nullptr || option == absl::string_view("seed")) return column;
    return NoColumn(option, name);
  }

  absl::Status NoColumn(const char* option, const std::string& name) const {
    std::vector<std::string> names;
    for (const TableColumn& column : table_.columns) names.push_back(column.name);
    return absl::InvalidArgumentError(
        absl::StrCat("--", option, ": ", table_.file, " has no column ", reflect::Quoted(name),
                     reflect::DidYouMean(name, names), "; expected one of ",
                     reflect::ShortText(absl::StrJoin(names, ", "))));
  }

  std::vector<const TableColumn*> NamedSettings() const {
    std::vector<const TableColumn*> named;
    for (const std::string& name : options_.settings) {
      // A setting may also be in the names of runs, or come from the file's name.
      if (const TableColumn* column = table_.Find(name)) named.push_back(column);
    }
    return named;
  }

  static const TableColumn* Unless(const TableColumn* column,
                                   const std::vector<const TableColumn*>& named) {
    return std::find(named.begin(), named.end(), column) == named.end() ? column : nullptr;
  }

  // Returns the first column of steps that are whole numbers; one of others if there is none.
  const TableColumn* FindStep() const {
    const TableColumn* found = nullptr;
    for (const char* name : kStepColumns) {
      const TableColumn* column = table_.Find(name);
      if (column == nullptr) continue;
      if (found == nullptr) found = column;
      const bool whole =
          std::all_of(column->cells.begin(), column->cells.end(), [](const absl::string_view cell) {
            double step = 0;
            return ReadNumber(cell, &step) && step == std::floor(step);
          });
      if (whole) return column;
    }
    return found;
  }

  void FindLong() {
    const TableColumn* key = FindAny(table_, kKeyColumns);
    const TableColumn* value = table_.Find("value");
    if (key == nullptr || value == nullptr) return;
    layout_.key = key;
    layout_.value = value;
  }

  bool HasRole(const TableColumn& column) const {
    for (const TableColumn* role : {layout_.key, layout_.value, layout_.step, layout_.name,
                                    layout_.state, layout_.item, layout_.group}) {
      if (role == &column) return true;
    }
    return std::find(layout_.settings.begin(), layout_.settings.end(), &column) !=
           layout_.settings.end();
  }

  bool IsTime(const TableColumn& column) const {
    const auto is = [&column](const char* name) {
      return absl::EqualsIgnoreCase(column.name, name);
    };
    return std::any_of(std::begin(kTimeColumns), std::end(kTimeColumns), is) ||
           std::any_of(std::begin(kStepColumns), std::end(kStepColumns), is);
  }

  // Takes the named columns as settings, and other columns of numbers as metrics.
  absl::Status UseSettings(const std::vector<const TableColumn*>& named) {
    std::vector<const TableColumn*> others;
    for (const TableColumn* column : named) {
      if (!HasRole(*column)) layout_.settings.push_back(column);
    }
    for (const TableColumn& column : table_.columns) {
      if (HasRole(column) || IsTime(column)) continue;
      const bool is_metric = layout_.key == nullptr && column.numeric;
      (is_metric ? layout_.metrics : others).push_back(&column);
    }
    if (!others.empty()) {
      runs_.notes.push_back(
          absl::StrCat("left out, because they weren't named as settings: ", Names(others)));
    }
    return CheckMetrics();
  }

  absl::Status FindSettings() {
    std::vector<const TableColumn*> numbers, constants;
    for (const TableColumn& column : table_.columns) {
      if (HasRole(column) || IsTime(column)) continue;
      const bool is_metric =
          layout_.key == nullptr && absl::EqualsIgnoreCase(column.name, options_.metric);
      if (is_metric) {
        layout_.metrics.push_back(&column);
      } else if (layout_.key != nullptr || !column.numeric) {
        layout_.settings.push_back(&column);
      } else {
        (column.constant ? constants : numbers).push_back(&column);
      }
    }
    TakeNamesAsSettings();
    if (layout_.key != nullptr) return absl::OkStatus();
    // A metric may be constant, as at its ceiling.
    std::vector<const TableColumn*>& candidates = numbers.empty() ? constants : numbers;
    if (layout_.metrics.empty() && candidates.size() == 1) layout_.metrics.swap(candidates);
    const bool known = !layout_.metrics.empty();
    if (!numbers.empty() || (!known && !constants.empty())) {
      return absl::InvalidArgumentError(absl::StrCat(
          known ? "--setting" : "--metric", ": ", table_.file, " has columns of numbers that may ",
          "be settings or metrics: ", Names(candidates), "; expected ",
          known ? "" : "--metric KEY, and ", "--setting with the keys of the settings"));
    }
    layout_.settings.insert(layout_.settings.end(), constants.begin(), constants.end());
    return CheckMetrics();
  }

  // Without other settings, names that repeat are those of settings and not of runs.
  void TakeNamesAsSettings() {
    const bool alone = std::all_of(
        layout_.settings.begin(), layout_.settings.end(), [](const TableColumn* column) {
          return column->constant || absl::EqualsIgnoreCase(column->name, "seed");
        });
    if (!alone || layout_.name == nullptr || layout_.step != nullptr) return;
    const std::set<absl::string_view> names(layout_.name->cells.begin(), layout_.name->cells.end());
    if (names.size() == table_.rows) return;
    layout_.settings.push_back(std::exchange(layout_.name, nullptr));
  }

  absl::Status CheckMetrics() const {
    if (layout_.key != nullptr || !layout_.metrics.empty()) return absl::OkStatus();
    for (const TableColumn* column : layout_.settings) {
      double number = 0;
      const auto is_number = [&number](absl::string_view cell) {
        return cell.empty() || ReadNumber(cell, &number);
      };
      const auto bad = std::find_if_not(column->cells.begin(), column->cells.end(), is_number);
      const auto numbers = std::count_if(column->cells.begin(), column->cells.end(), is_number);
      if (2 * static_cast<size_t>(numbers) < table_.rows || bad == column->cells.end()) continue;
      const auto row = static_cast<size_t>(bad - column->cells.begin());
      return absl::InvalidArgumentError(absl::StrCat(table_.file, ": line ", table_.lines[row],
                                                     ": ", reflect::Quoted(*bad), " in column ",
                                                     column->name,
                                                     " isn't a number; expected one, or an empty "
                                                     "cell if there is no value"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        table_.file, ": no column has the values of a metric; expected one of numbers"));
  }

  const ResultTable& table_;
  const TableOptions& options_;
  TableRuns& runs_;
  Layout layout_;
};

google::protobuf::Value ValueOf(const TableColumn& column, absl::string_view cell) {
  google::protobuf::Value value;
  double number = 0;
  if (cell.empty()) {
    value.set_null_value(google::protobuf::NULL_VALUE);
  } else if (column.numeric && ReadNumber(cell, &number)) {
    value.set_number_value(number);
  } else if (cell == "true" || cell == "True" || cell == "false" || cell == "False") {
    value.set_bool_value(absl::ascii_tolower(static_cast<unsigned char>(cell[0])) == 't');
  } else {
    value.set_string_value(std::string(cell));
  }
  return value;
}

// Collects the rows of a table as runs.
class RowCollector {
 public:
  RowCollector(const ResultTable& table, const Layout& layout, TableRuns* runs)
      : table_(table), layout_(layout), runs_(*runs) {
    identity_ = layout.settings;
    if (layout.name != nullptr) identity_.push_back(layout.name);
  }

  absl::Status Collect() {
    for (size_t row = 0; row < table_.rows; ++row) {
      ASSIGN_OR_RETURN(const size_t run, RunOf(row));
      if (layout_.key != nullptr) {
        const absl::string_view key = layout_.key->cells[row];
        if (key.empty()) return Wrong(row, "the key of the metric is empty");
        RETURN_IF_ERROR(AddPoint(row, run, key, *layout_.value));
        continue;
      }
      for (const TableColumn* metric : layout_.metrics) {
        RETURN_IF_ERROR(AddPoint(row, run, metric->name, *metric));
      }
    }
    return SortPoints();
  }

 private:
  absl::Status Wrong(size_t row, absl::string_view problem) const {
    return absl::InvalidArgumentError(
        absl::StrCat(table_.file, ": line ", table_.lines[row], ": ", problem));
  }

  // Returns the index of the row's run, a new one if the table has neither steps nor items.
  absl::StatusOr<size_t> RunOf(size_t row) {
    std::string identity;
    for (const TableColumn* column : identity_) {
      absl::StrAppend(&identity, column->cells[row], "\x1f");
    }
    // Rows of one run mostly follow each other.
    if (identity == last_ && !runs_.runs.empty()) return last_run_;
    const bool own = layout_.step == nullptr && layout_.item == nullptr && layout_.key == nullptr;
    const auto [place, is_new] = places_.emplace(identity, runs_.runs.size());
    if (!is_new && !own) {
      last_ = std::move(identity);
      return last_run_ = place->second;
    }
    v1::ImportedRun& run = runs_.runs.emplace_back();
    for (const TableColumn* column : layout_.settings) {
      if (column->cells[row].size() > kMaxCellBytes) {
        return Wrong(row, absl::StrCat("the cell in column ", column->name,
                                       " is too long for a setting; expected at most 1,000 bytes"));
      }
      (*run.mutable_settings())[column->name] = ValueOf(*column, column->cells[row]);
    }
    run.set_name(NameOf(row));
    RETURN_IF_ERROR(SetState(row, &run));
    if (!own) last_ = std::move(identity);
    return last_run_ = runs_.runs.size() - 1;
  }

  // Returns the name of the run in its column, or else "line 12".
  std::string NameOf(size_t row) {
    const std::string line = absl::StrCat("line ", table_.lines[row]);
    if (layout_.name == nullptr || layout_.name->cells[row].empty()) return line;
    std::string name = reflect::ShortText(layout_.name->cells[row]);
    if (names_.insert(name).second) return name;
    return *names_.insert(absl::StrCat(name, " (", line, ")")).first;
  }

  absl::Status SetState(size_t row, v1::ImportedRun* run) const {
    run->set_state(v1::ImportedState::finished);
    if (layout_.state == nullptr || layout_.state->cells[row].empty()) return absl::OkStatus();
    const absl::string_view word = layout_.state->cells[row];
    for (const StateRow& known : kStates) {
      if (!absl::EqualsIgnoreCase(known.word, word)) continue;
      run->set_state(known.state);
      return absl::OkStatus();
    }
    return Wrong(row, absl::StrCat(layout_.state->name, " ", reflect::Quoted(word),
                                   " is unknown; expected a word such as finished, failed or "
                                   "running, or the column as --setting"));
  }

  absl::Status AddPoint(size_t row, size_t run, absl::string_view key, const TableColumn& column) {
    const absl::string_view cell = column.cells[row];
    if (cell.empty()) return absl::OkStatus();
    double value = 0;
    if (!ReadNumber(cell, &value)) {
      return Wrong(
          row, absl::StrCat(reflect::Quoted(cell), " in column ", column.name, " isn't a number"));
    }
    v1::ImportedSeries* series = SeriesOf(run, key);
    series->add_values(value);
    if (layout_.item != nullptr) {
      series->add_items(std::string(layout_.item->cells[row]));
      if (layout_.group != nullptr) series->add_groups(std::string(layout_.group->cells[row]));
      return absl::OkStatus();
    }
    double step = 0;
    if (layout_.step != nullptr && !ReadNumber(layout_.step->cells[row], &step)) {
      return Wrong(
          row, absl::StrCat("step ", reflect::Quoted(layout_.step->cells[row]), " isn't a number"));
    }
    if (!(step >= 0) || step > std::numeric_limits<uint32_t>::max() || step != std::floor(step)) {
      return Wrong(row, absl::StrCat("step ", layout_.step->cells[row],
                                     " is out of range; expected a whole number below 2³²"));
    }
    series->add_steps(static_cast<uint32_t>(step));
    return absl::OkStatus();
  }

  v1::ImportedSeries* SeriesOf(size_t run, absl::string_view key) {
    series_.resize(runs_.runs.size());
    v1::ImportedRun& of = runs_.runs[run];
    const auto [place, is_new] = series_[run].try_emplace(key, of.series_size());
    if (is_new) of.add_series()->set_key(std::string(key));
    return of.mutable_series(place->second);
  }

  // Puts the points of each series in order of their steps.
  absl::Status SortPoints() {
    for (v1::ImportedRun& run : runs_.runs) {
      for (v1::ImportedSeries& series : *run.mutable_series()) {
        RETURN_IF_ERROR(SortSeries(run, &series));
      }
    }
    return absl::OkStatus();
  }

  absl::Status SortSeries(const v1::ImportedRun& run, v1::ImportedSeries* series) const {
    auto& steps = *series->mutable_steps();
    if (!std::is_sorted(steps.begin(), steps.end())) {
      std::vector<std::pair<uint32_t, double>> points;
      for (int i = 0; i < steps.size(); ++i) points.emplace_back(steps[i], series->values(i));
      std::stable_sort(points.begin(), points.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (int i = 0; i < steps.size(); ++i) {
        steps[i] = points[static_cast<size_t>(i)].first;
        series->set_values(i, points[static_cast<size_t>(i)].second);
      }
    }
    const auto twice = std::adjacent_find(steps.begin(), steps.end());
    if (twice == steps.end()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        table_.file, ": ", reflect::ShortText(run.name()), " has ", series->key(), " twice",
        layout_.step == nullptr ? "" : absl::StrCat(" at step ", *twice),
        "; expected one value. Name the settings or the seed that tell these rows apart"));
  }

  const ResultTable& table_;
  const Layout& layout_;
  TableRuns& runs_;
  std::vector<const TableColumn*> identity_;
  std::unordered_map<std::string, size_t> places_;
  std::set<std::string> names_;
  std::vector<std::map<absl::string_view, int>> series_;  // place of each metric, by run
  std::string last_;                                      // identity of the last row
  size_t last_run_ = 0;
};

}  // namespace

absl::StatusOr<TableRuns> RunsOf(const ResultTable& table, const TableOptions& options) {
  TableRuns runs;
  runs.notes = table.notes;
  ASSIGN_OR_RETURN(const Layout layout, LayoutFinder(table, options, &runs).Find());
  RETURN_IF_ERROR(RowCollector(table, layout, &runs).Collect());
  return runs;
}

}  // namespace ablate::client
