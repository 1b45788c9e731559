#include "storage/sqlite/run_logs.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/runs.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

constexpr int64_t kMaxReadBytes = 256 << 10;

// Returns the position behind the last byte.
int64_t EndOf(Connection& db, int64_t run) {
  Statement last(db,
                 "SELECT begin + length(text) FROM run_logs WHERE run = ?1 ORDER BY begin DESC "
                 "LIMIT 1",
                 run);
  return last.Row() ? last.Int(0) : 0;
}

}  // namespace

void AppendLog(Transaction& t, int64_t run, absl::string_view text) {
  if (text.empty()) return;
  const int64_t begin = EndOf(t.db, run);
  Statement(t.db, "INSERT INTO run_logs VALUES (?1, ?2, ?3)", run, begin, Bytes{text}).Run();
  const auto end = begin + static_cast<int64_t>(text.size());
  Statement(t.db, "DELETE FROM run_logs WHERE run = ?1 AND begin + length(text) <= ?2", run,
            end - kMaxLogBytes)
      .Run();
}

absl::StatusOr<RunLog> Store::ReadRunLog(absl::string_view run, uint64_t position) {
  return db_->Read([&](Connection& db) -> absl::StatusOr<RunLog> {
    const std::optional<RunRow> found = FindRun(db, run);
    if (!found.has_value()) return NotFound("run", run);
    RunLog log;
    log.next = std::min(position, static_cast<uint64_t>(EndOf(db, found->id)));
    Statement part(db,
                   "SELECT begin, text FROM run_logs WHERE run = ?1 AND begin + length(text) > ?2 "
                   "ORDER BY begin",
                   found->id, log.next);
    while (static_cast<int64_t>(log.text.size()) < kMaxReadBytes && part.Row()) {
      const auto begin = part.As<uint64_t>(0);
      const uint64_t skipped = log.next > begin ? log.next - begin : 0;
      absl::StrAppend(&log.text, part.View(1).substr(skipped));
      log.next = begin + part.View(1).size();
    }
    const bool live = found->state == RunState::kQueued || found->state == RunState::kLeased;
    log.complete = !live && log.next == static_cast<uint64_t>(EndOf(db, found->id));
    return log;
  });
}

}  // namespace ablate::storage
