#include "storage/sqlite/final_values.h"

#include <string>
#include <utility>
#include <vector>

#include "storage/sqlite/cell_fields.h"
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
    Statement(t.db, "REPLACE INTO final_values VALUES (?1, ?2, ?3, ?4, ?5)", key, summary.last, run,
              summary.min, summary.max)
        .Run();
  }
}

void KeepFinalValuesOf(Transaction& t, int64_t experiment, int64_t begin, int64_t end) {
  std::vector<std::pair<int64_t, std::string>> ended;
  Statement row(t.db,
                "SELECT DISTINCT runs.id, runs.name FROM cells JOIN runs ON runs.id = cells.run "
                "WHERE experiment = ?1 AND cells.place >= ?2 AND cells.place < ?3 "
                "AND runs.state NOT IN (0, 1)",
                experiment, begin, end);
  while (row.Row()) ended.emplace_back(row.Int(0), row.Text(1));
  for (const auto& [run, name] : ended) KeepFinalValues(t, run, name);
}

void ForgetFinalValues(Transaction& t, int64_t run) {
  Statement(t.db, "DELETE FROM final_values WHERE run = ?1", run).Run();
}

}  // namespace ablate::storage
