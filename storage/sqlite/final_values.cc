#include "storage/sqlite/final_values.h"

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "storage/sqlite/cell_fields.h"
#include "storage/sqlite/series.h"
#include "storage/sqlite/summaries.h"

namespace ablate::storage {

void KeepFinalValues(Transaction& t, int64_t run, absl::string_view name) {
  const auto summaries = LoadSummaries(t.db, run, name);
  if (!summaries.ok()) return;
  Statement row(t.db, "SELECT private_to FROM runs WHERE id = ?1", run);
  const std::string private_to = row.Row() ? row.Text(0) : "";
  for (const KeySummary& entry : *summaries) {
    const Summary& summary = entry.summary;
    if (summary.count == summary.nonfinite) continue;
    const int64_t key = InternName(t, NameKind::kMetric, summary.key, private_to);
    const double last = std::isfinite(summary.last) ? summary.last : kNoFinalValue;
    Statement(t.db, "REPLACE INTO final_values VALUES (?1, ?2, ?3, ?4, ?5)", key, last, run,
              summary.min, summary.max)
        .Run();
  }
}

void KeepFinalValuesOf(Transaction& t, int64_t experiment, int64_t begin, int64_t end) {
  std::vector<std::pair<int64_t, std::string>> ended;
  Statement row(t.db,
                "SELECT DISTINCT runs.id, runs.name FROM cells JOIN runs ON runs.id = cells.run "
                "WHERE experiment = ?1 AND cells.place >= ?2 AND cells.place < ?3 AND runs.state "
                "NOT IN (0, 1)",
                experiment, begin, end);
  while (row.Row()) ended.emplace_back(row.Int(0), row.Text(1));
  for (const auto& [run, name] : ended) KeepFinalValues(t, run, name);
}

void ForgetFinalValues(Transaction& t, int64_t run) {
  Statement(t.db, "DELETE FROM final_values WHERE run = ?1", run).Run();
}

namespace {

// Returns the value of a key's last point; NaN if it can't be read.
double ReadLastPoint(Connection& db, const std::string& run, const KeySummary& entry) {
  const SeriesQuery query{run, entry.summary.key, entry.last_step};
  SeriesPage page;
  page.next.next_step = query.first_step;
  double last = NAN;
  while (!page.at_end) {
    if (!ReadPage(db, query, &page).ok()) return NAN;
    if (!page.values.empty()) last = page.values.back();
  }
  return last;
}

}  // namespace

void CorrectLastValues(Connection& db) {
  std::vector<std::tuple<int64_t, std::string, bool>>
      runs;  // row, name, ended before its last step
  Statement row(db,
                "SELECT runs.id, runs.name, state = ?1 AND step < steps FROM summaries JOIN runs "
                "ON runs.id = run",
                static_cast<int>(RunState::kDiverged));
  while (row.Row()) runs.emplace_back(row.Int(0), row.Text(1), row.Int(2) != 0);
  Transaction t{db};
  for (const auto& [run, name, ended_early] : runs) {
    auto summaries = LoadSummaries(db, run, name);
    if (!summaries.ok()) continue;
    bool changed = ended_early;
    for (KeySummary& entry : *summaries) {
      if (entry.summary.nonfinite == 0 || ended_early) continue;
      entry.summary.last = ReadLastPoint(db, name, entry);
      changed = true;
    }
    if (!changed) continue;
    SaveSummaries(db, run, name, *summaries);
    if (ended_early) ForgetLastValues(db, run, name);
    if (!Statement(db, "SELECT 1 FROM final_values WHERE run = ?1 LIMIT 1", run).Row()) continue;
    ForgetFinalValues(t, run);
    KeepFinalValues(t, run, name);
  }
}

}  // namespace ablate::storage
