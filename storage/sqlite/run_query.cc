#include "storage/run_query.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "storage/sqlite/cell_fields.h"
#include "storage/sqlite/cells.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/final_values.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/run_condition.h"
#include "storage/sqlite/run_values.h"
#include "storage/store.h"

// A query is answered in two steps. First every test of its condition becomes a set: of
// experiments, variants or runs, by one statement that reads an index. Then cells are read in the
// query's order until the page is full, and only from experiments, or of runs, that can match. Both
// steps read narrow rows; what a page shows is read for its rows alone.
namespace ablate::storage {
namespace {

// Entries of an index that are read in its order in the hope that a page fills. 2,000 take some
// milliseconds, and fill a page of 100 if one cell in 20 matches.
constexpr int kWalkedEntries = 2000;
// Runs that are looked up one by one.
constexpr size_t kFewRuns = 1000;

// A matching cell and its place in the order.
struct Match {
  ScannedCell cell;
  SortKey key;
  RunValue value;
};

// The order of a query's rows.
class RowOrder {
 public:
  explicit RowOrder(const QueriedStore& store) : store_(store) {}

  bool Before(const Match& a, const Match& b) const {
    const int order = Compare(a.key, b.key, store_.query.descending);
    if (order != 0) return order < 0;
    // Experiments are newest first.
    return std::pair(a.cell.experiment, a.cell.place) < std::pair(b.cell.experiment, b.cell.place);
  }

  // Returns true if the row comes after the position at which the page begins.
  bool IsAfter(const Match& match) const {
    const std::optional<RunPosition>& after = store_.query.after;
    if (!after.has_value()) return true;
    const int order = Compare(match.key, SortKeyOf(after->value), store_.query.descending);
    if (order != 0) return order > 0;
    const int64_t id = store_.experiments[match.cell.experiment].id;
    return id != store_.after ? id < store_.after : match.cell.place > after->place;
  }

 private:
  const QueriedStore& store_;
};

bool NamesMetric(const RunCondition& condition) {
  if (condition.kind == RunCondition::Kind::kTest) return IsMetric(condition.test.key.kind);
  return std::any_of(condition.operands.begin(), condition.operands.end(), NamesMetric);
}

// Returns the values of private_to that the viewer sees in the table of runs. Other runs aren't
// read, so that the time of a query doesn't depend on them.
std::set<std::string> ReadPrivacy(Connection& db, const Viewer& viewer) {
  if (!viewer.sees_all) return {"", viewer.user};
  std::set<std::string> all;
  // Reads one entry of the index runs_ends for each value.
  Statement row(db,
                "WITH RECURSIVE next (value) AS (SELECT min(private_to) FROM runs UNION ALL SELECT "
                "(SELECT min(private_to) FROM runs WHERE private_to > value) FROM next WHERE value "
                "IS NOT NULL) SELECT value FROM next WHERE value IS NOT NULL");
  while (row.Row()) all.insert(row.Text(0));
  return all;
}

// Reads the summaries of runs that have started and not ended. The index runs_ends has these next
// to each other, apart from queued ones that never started, which may be many.
OpenSummaries ReadOpenRuns(Connection& db, const std::set<std::string>& privacy) {
  OpenSummaries open;
  for (const std::string& private_to : privacy) {
    Statement row(db,
                  "SELECT runs.id, runs.name, data FROM runs JOIN summaries ON run = runs.id WHERE "
                  "private_to = ?1 AND state IN (0, 1) AND end_time = 0 AND start_time > 0",
                  private_to);
    while (row.Row()) {
      auto summaries = DecodeSummaries(row.View(1), row.View(2));
      if (summaries.ok()) open.emplace_back(row.Int(0), *std::move(summaries));
    }
  }
  return open;
}

absl::StatusOr<QueriedStore> ReadExperiments(Connection& db, const RunQuery& query) {
  QueriedStore store{db, query};
  if (query.after.has_value()) {
    // It may be about to be removed.
    Statement after(db, "SELECT id, private_to FROM experiments WHERE name = ?1",
                    query.after->experiment);
    if (!after.Row() || !Sees(query.viewer, after.Text(1))) {
      return NotFound("experiment", query.after->experiment);
    }
    store.after = after.Int(0);
  }
  int64_t only = 0;
  if (!query.experiment.empty()) {
    ASSIGN_OR_RETURN(only, FindExperimentRow(db, query.experiment));
  }
  Statement row(
      db,
      "SELECT id, name, title, owner, create_time, iif(tags = '', '', ' ' || replace(tags, "
      "char(10), ' ')) FROM experiments WHERE deleted = 0 AND (?1 OR private_to IN ('', ?2)) AND "
      "?3 IN (0, id) AND (?4 OR archived = 0) ORDER BY id DESC",
      query.viewer.sees_all, query.viewer.user, only, query.archived || only != 0);
  while (row.Row()) {
    store.place_of.emplace(row.Int(0), store.experiments.size());
    store.experiments.push_back(
        {row.Int(0), row.Text(1), row.Text(2), row.Text(3), row.Int(4), row.Text(5)});
  }
  store.private_to = ReadPrivacy(db, query.viewer);
  const bool by_metric = query.order_by.has_value() && IsMetric(query.order_by->kind);
  if (by_metric || NamesMetric(query.where)) store.open = ReadOpenRuns(db, store.private_to);
  return store;
}

// Calls `visit` with the matching cells of an experiment from `first` on, in grid order, until it
// returns false. Returns what it returned last.
template <typename Visit>
bool VisitExperiment(const QueriedStore& store, const CompiledCondition& condition,
                     size_t experiment, uint32_t first, const Visit& visit) {
  if (condition.OfExperiment(experiment) == Truth::kFalse) return true;
  ScannedCell cell;
  cell.experiment = experiment;
  uint32_t variant = UINT32_MAX;
  Truth truth = Truth::kUnknown;
  Statement row(store.db,
                "SELECT place, variant, seed, run FROM cells WHERE experiment = ?1 AND place >= ?2 "
                "ORDER BY place",
                store.experiments[experiment].id, first);
  while (row.Row()) {
    cell.place = row.As<uint32_t>(0);
    cell.variant = row.As<uint32_t>(1);
    cell.seed = row.As<uint32_t>(2);
    cell.run = row.Int(3);
    // Seeds of a variant follow each other.
    if (cell.variant != variant) truth = condition.OfVariant(experiment, variant = cell.variant);
    const bool matches =
        truth == Truth::kTrue || (truth == Truth::kUnknown && condition.OfCell(cell));
    if (matches && !visit(cell)) return false;
  }
  return true;
}

// Calls `visit` with the matching cells of a run.
template <typename Visit>
void VisitRun(const QueriedStore& store, const CompiledCondition& condition, int64_t run,
              const Visit& visit) {
  Statement row(store.db, "SELECT experiment, place, variant, seed FROM cells WHERE run = ?1", run);
  while (row.Row()) {
    const auto experiment = store.place_of.find(row.Int(0));
    if (experiment == store.place_of.end()) continue;
    const ScannedCell cell{experiment->second, row.As<uint32_t>(1), row.As<uint32_t>(2),
                           row.As<uint32_t>(3), run};
    if (condition.OfCell(cell)) visit(cell);
  }
}

// Reads rows in the order of lists until the page is full.
std::vector<Match> ReadInListOrder(const QueriedStore& store, const CompiledCondition& condition) {
  std::vector<Match> matches;
  const std::optional<RunPosition>& after = store.query.after;
  for (size_t i = 0; i < store.experiments.size(); ++i) {
    const int64_t id = store.experiments[i].id;
    if (after.has_value() && id > store.after) continue;
    const uint32_t first = after.has_value() && id == store.after ? after->place + 1 : 0;
    const bool more = VisitExperiment(store, condition, i, first, [&](const ScannedCell& cell) {
      matches.push_back({cell, {}, {}});
      return matches.size() < store.query.limit;
    });
    if (!more) break;
  }
  return matches;
}

void KeepFirst(const RowOrder& order, uint32_t limit, std::vector<Match>* matches) {
  const size_t kept = std::min<size_t>(limit, matches->size());
  std::partial_sort(matches->begin(), matches->begin() + static_cast<std::ptrdiff_t>(kept),
                    matches->end(),
                    [&](const Match& a, const Match& b) { return order.Before(a, b); });
  matches->resize(kept);
}

// Reads all rows and keeps the page's.
std::vector<Match> ReadAndSort(const QueriedStore& store, const CompiledCondition& condition) {
  const RowOrder order(store);
  const RunValues values = RunValues::Load(store, *store.query.order_by);
  constexpr size_t kSpare = 4096;  // beside the page's rows, so that they are seldom sorted
  std::vector<Match> matches;
  for (size_t i = 0; i < store.experiments.size(); ++i) {
    VisitExperiment(store, condition, i, 0, [&](const ScannedCell& cell) {
      Match match{cell, {}, values.Of(cell)};
      match.key = SortKeyOf(match.value);
      if (!order.IsAfter(match)) return true;
      matches.push_back(std::move(match));
      if (matches.size() >= kSpare + store.query.limit) {
        KeepFirst(order, store.query.limit, &matches);
      }
      return true;
    });
  }
  KeepFirst(order, store.query.limit, &matches);
  return matches;
}

// Reads the page by the index of final values. It often has a page's rows among its first entries,
// whatever the number of runs.
class Walk {
 public:
  Walk(const QueriedStore& store, const CompiledCondition& condition)
      : store_(store), condition_(condition), order_(store) {}

  // Returns nothing if the page isn't full after kWalkedEntries, or after all: then rows without a
  // value follow.
  std::optional<std::vector<Match>> Read() {
    for (const int64_t name : VisibleNames(store_.db, store_.query.viewer, NameKind::kMetric,
                                           store_.query.order_by->name)) {
      if (!ReadName(name)) return std::nullopt;
    }
    for (const auto& [run, summaries] : store_.open) {
      for (const KeySummary& entry : summaries) {
        const Summary& summary = entry.summary;
        const bool found = summary.key == store_.query.order_by->name;
        if (found && summary.count > 0 && std::isfinite(summary.last)) AddRun(run, summary.last);
      }
    }
    if (matches_.size() < store_.query.limit) return std::nullopt;
    KeepFirst(order_, store_.query.limit, &matches_);
    return std::move(matches_);
  }

 private:
  // Reads a name's entries from the page's beginning until `limit` rows and all equal to the last
  // one are there. Returns false if the walk is too long.
  bool ReadName(int64_t name) {
    const std::optional<RunPosition>& after = store_.query.after;
    const double* from = after.has_value() ? std::get_if<double>(&after->value) : nullptr;
    if (after.has_value() && from == nullptr) return false;  // among rows without a value
    return store_.query.descending ? ReadEntries(
                                         "SELECT last, run FROM final_values WHERE name = ?1 AND "
                                         "last <= ?2 ORDER BY last DESC LIMIT ?3",
                                         name, from == nullptr ? DBL_MAX : *from)
                                   : ReadEntries(
                                         "SELECT last, run FROM final_values WHERE name = ?1 AND "
                                         "last >= ?2 ORDER BY last LIMIT ?3",
                                         name, from == nullptr ? -HUGE_VAL : *from);
  }

  bool ReadEntries(const char* sql, int64_t name, double from) {
    const size_t enough = matches_.size() + store_.query.limit;
    std::optional<double> last;
    int entries = 0;
    Statement row(store_.db, sql, name, from, kWalkedEntries);
    for (; row.Row(); ++entries) {
      const double value = row.Real(0);
      if (value == kNoFinalValue) return true;  // as in all after it
      if (last.has_value() && value != *last) return true;
      AddRun(row.Int(1), value);
      if (matches_.size() >= enough) last = value;
    }
    return entries < kWalkedEntries;
  }

  void AddRun(int64_t run, double value) {
    if (condition_.OfRun(run) == Truth::kFalse) return;
    VisitRun(store_, condition_, run, [&](const ScannedCell& cell) {
      Match match{cell, SortKeyOf(value), value};
      if (order_.IsAfter(match)) matches_.push_back(std::move(match));
    });
  }

  const QueriedStore& store_;
  const CompiledCondition& condition_;
  const RowOrder order_;
  std::vector<Match> matches_;
};

// Returns the summaries of a cell's run if one of the keys needs them. Damaged ones have no values;
// Store::Summaries says why.
KeySummaries SummariesFor(const QueriedStore& store, const std::vector<RunKey>& keys,
                          const ScannedCell& cell) {
  const bool needed =
      std::any_of(keys.begin(), keys.end(), [](const RunKey& key) { return IsMetric(key.kind); });
  if (!needed) return {};
  Statement run(store.db, "SELECT name FROM runs WHERE id = ?1", cell.run);
  if (!run.Row()) return {};
  auto summaries = LoadSummaries(store.db, cell.run, run.View(0));
  return summaries.ok() ? *std::move(summaries) : KeySummaries();
}

// Reads the page from the cells of these runs alone.
std::vector<Match> ReadRuns(const QueriedStore& store, const CompiledCondition& condition,
                            const std::vector<int64_t>& runs) {
  const RowOrder order(store);
  std::vector<Match> matches;
  for (const int64_t run : runs) {
    VisitRun(store, condition, run, [&](const ScannedCell& cell) {
      Match match{cell, {}, {}};
      if (const std::optional<RunKey>& key = store.query.order_by) {
        match.value = ReadValue(store, *key, cell, SummariesFor(store, {*key}, cell));
        match.key = SortKeyOf(match.value);
      }
      if (order.IsAfter(match)) matches.push_back(std::move(match));
    });
  }
  KeepFirst(order, store.query.limit, &matches);
  return matches;
}

std::vector<Match> ReadPage(const QueriedStore& store) {
  const CompiledCondition condition(store, store.query.where);
  if (const auto runs = condition.FewRuns(kFewRuns)) return ReadRuns(store, condition, *runs);
  if (!store.query.order_by.has_value()) return ReadInListOrder(store, condition);
  if (store.query.order_by->kind == RunKey::Kind::kLast && store.query.experiment.empty()) {
    if (auto page = Walk(store, condition).Read()) return *std::move(page);
  }
  return ReadAndSort(store, condition);
}

// Reads what the page shows of a row.
absl::StatusOr<FoundCell> ReadRow(const QueriedStore& store, const Match& match) {
  const QueriedExperiment& experiment = store.experiments[match.cell.experiment];
  FoundCell found;
  std::optional<CellRecord> cell = LoadCell(store.db, experiment.id, match.cell.place);
  if (!cell.has_value()) return NotFound("experiment", experiment.name);
  found.cell = *std::move(cell);
  found.experiment = experiment.name;
  found.position = {match.value, experiment.name, match.cell.place};
  const std::vector<RunKey>& columns = store.query.columns;
  const KeySummaries summaries = SummariesFor(store, columns, match.cell);
  for (const RunKey& key : columns) {
    found.values.push_back(ReadValue(store, key, match.cell, summaries));
  }
  return found;
}

std::vector<std::string> ReadNames(Connection& db, const Viewer& viewer, NameKind kind) {
  std::vector<std::string> names;
  Statement row(db,
                "SELECT DISTINCT name FROM names WHERE kind = ?1 AND (?2 OR private_to IN ('', "
                "?3)) ORDER BY name",
                static_cast<int>(kind), viewer.sees_all, viewer.user);
  while (row.Row()) names.push_back(row.Text(0));
  return names;
}

}  // namespace

absl::StatusOr<std::vector<FoundCell>> Store::FindCells(const RunQuery& query) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<std::vector<FoundCell>> {
    ASSIGN_OR_RETURN(const auto store, ReadExperiments(db, query));
    std::vector<FoundCell> found;
    for (const Match& match : ReadPage(store)) {
      ASSIGN_OR_RETURN(auto row, ReadRow(store, match));
      found.push_back(std::move(row));
    }
    return found;
  });
}

absl::StatusOr<QueryNames> Store::ListQueryNames(const Viewer& viewer) {
  return db_->Read([&](Connection& db) {
    QueryNames names;
    names.axes = ReadNames(db, viewer, NameKind::kAxis);
    names.settings = ReadNames(db, viewer, NameKind::kField);
    std::erase_if(names.settings,
                  [](const std::string& name) { return !absl::StartsWith(name, "settings."); });
    const std::vector<std::string> final = ReadNames(db, viewer, NameKind::kMetric);
    std::set<std::string> metrics(final.begin(), final.end());
    for (const auto& [run, summaries] : ReadOpenRuns(db, ReadPrivacy(db, viewer))) {
      for (const KeySummary& entry : summaries) metrics.insert(entry.summary.key);
    }
    names.metrics.assign(metrics.begin(), metrics.end());
    return names;
  });
}

absl::StatusOr<std::vector<std::string>> Store::ListLabels(const Viewer& viewer,
                                                           absl::string_view axis) {
  return db_->Read([&](Connection& db) {
    std::set<std::string> labels;
    for (const int64_t name : VisibleNames(db, viewer, NameKind::kAxis, axis)) {
      Statement row(db, "SELECT DISTINCT value FROM cell_fields WHERE name = ?1", name);
      while (row.Row()) labels.insert(row.Text(0));
    }
    return std::vector<std::string>(labels.begin(), labels.end());
  });
}

}  // namespace ablate::storage
