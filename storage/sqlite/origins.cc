#include "storage/sqlite/origins.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/last_states.h"
#include "storage/sqlite/row_groups.h"
#include "storage/sqlite/series.h"
#include "storage/sqlite/summaries.h"

namespace ablate::storage {
namespace {

// Points per row group of the copy: reading one key reads the whole group.
constexpr size_t kGroupPoints = 65536;

// Collects points for a run, in row groups like those that a worker sends.
class RowGroups {
 public:
  RowGroups(Transaction& t, const NamedRun& run) : t_(t), run_(run) {}

  absl::Status Add(Column column) {
    if (column.steps.empty()) return absl::OkStatus();
    // A key occurs once in a row group.
    if (!columns_.empty() && columns_.back().key == column.key) {
      if (absl::Status flushed = Flush(); !flushed.ok()) return flushed;
    }
    points_ += column.steps.size();
    columns_.push_back(std::move(column));
    return points_ < kGroupPoints ? absl::OkStatus() : Flush();
  }

  absl::Status Flush() {
    if (columns_.empty()) return absl::OkStatus();
    points_ = 0;
    return AddRowGroup(t_, run_, t_.NextChange(), std::exchange(columns_, {}));
  }

 private:
  Transaction& t_;
  const NamedRun run_;
  std::vector<Column> columns_;
  size_t points_ = 0;
};

// Returns the points of a page before a step.
Column Before(uint32_t step, const std::string& key, const SeriesPage& page) {
  const auto end = std::lower_bound(page.steps.begin(), page.steps.end(), step);
  const auto count = end - page.steps.begin();
  return {key, {page.steps.begin(), end}, {page.values.begin(), page.values.begin() + count}};
}

// Reads each series to its end, because only there missing points are detected.
absl::Status CopyPoints(Transaction& t, const Origin& origin, const NamedRun& to) {
  const auto keys = LoadSummaries(t.db, origin.run, origin.name);
  if (!keys.ok()) return DamagedSummaries(origin.name, keys.status());
  RowGroups groups(t, to);
  for (const KeySummary& key : *keys) {
    SeriesPage page;
    while (!page.at_end) {
      absl::Status copied = ReadPage(t.db, {origin.name, key.summary.key}, &page);
      if (copied.ok()) copied = groups.Add(Before(origin.step, key.summary.key, page));
      if (!copied.ok()) return copied;
    }
  }
  return groups.Flush();
}

absl::Status CheckBlob(Blobs* blobs, absl::string_view what, const std::string& blob) {
  if (blobs == nullptr || blobs->Size(blob).ok()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("the blob of ", what, " is gone"));
}

absl::Status CopyCheckpoints(Transaction& t, Blobs* blobs, const Origin& origin,
                             const RunRow& run) {
  std::vector<CheckpointEvent> checkpoints;
  Statement row(t.db,
                "SELECT step, blob, bytes FROM artifacts WHERE run = ?1 AND kind = 'checkpoint' "
                "AND step < ?2 ORDER BY step",
                origin.run, origin.step);
  while (row.Row()) {
    checkpoints.push_back({row.As<uint32_t>(0), row.Text(1), row.As<uint64_t>(2)});
  }
  for (const CheckpointEvent& checkpoint : checkpoints) {
    const std::string what = absl::StrCat("its checkpoint at step ", checkpoint.step);
    RETURN_IF_ERROR(CheckBlob(blobs, what, checkpoint.blob));
    AddCheckpoint(t, run, checkpoint, t.NextChange());
  }
  return absl::OkStatus();
}

// Returns the saved training state, if the holder can continue from it.
absl::StatusOr<LastState> UsableLastState(Connection& db, Blobs* blobs, const LeaseHolder& holder,
                                          const Origin& origin) {
  std::optional<LastState> state = FindLastState(db, origin.run);
  if (!state.has_value()) {
    return absl::NotFoundError(absl::StrCat("its saved training state ", WhyLost(db, origin.run)));
  }
  RETURN_IF_ERROR(CheckBlob(blobs, "its saved training state", state->blob));
  if (state->environment.empty() || state->environment == holder.environment) {
    return *std::move(state);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("its saved training state is from ", state->environment, "; expected ",
                   holder.environment, ", the environment of this worker"));
}

}  // namespace

std::optional<Origin> FindOrigin(Connection& db, int64_t run) {
  Statement row(db, "SELECT origin, name, step, taken FROM origins WHERE run = ?1", run);
  if (!row.Row()) return std::nullopt;
  return Origin{row.Int(0), row.Text(1), row.As<uint32_t>(2), row.Int(3) != 0};
}

void SetOrigin(Transaction& t, int64_t run, const NewRun& wanted) {
  ForgetOrigin(t, run);
  if (wanted.origin.empty()) return;
  Statement(t.db,
            "INSERT INTO origins (run, origin, name, step) SELECT ?1, runs.id, name, "
            "last_states.step FROM last_states JOIN runs ON runs.id = last_states.run WHERE name = "
            "?2 AND last_states.growth = ?3 AND last_states.step < ?4",
            run, wanted.origin, wanted.growth, wanted.steps)
      .Run();
}

void ForgetOrigin(Transaction& t, int64_t run) {
  Statement(t.db, "DELETE FROM origins WHERE run = ?1", run).Run();
}

absl::Status BeginFromOrigin(Transaction& t, Blobs* blobs, const LeaseHolder& holder,
                             const Origin& origin, absl::string_view name, RunRow* run) {
  const std::optional<RunRow> shorter = LoadRun(t.db, origin.run);
  if (!shorter.has_value()) return absl::NotFoundError("it was removed");
  ASSIGN_OR_RETURN(const LastState state, UsableLastState(t.db, blobs, holder, origin));
  absl::Status copied = CopyPoints(t, origin, {run->id, name});
  if (copied.ok()) copied = CopyCheckpoints(t, blobs, origin, *run);
  if (!copied.ok()) return copied;
  run->step = origin.step;
  // The cost of training up to this step.
  run->spent = shorter->spent;
  run->environment = state.environment;
  SaveResumeState(t, *run, {state.step, state.blob, state.bytes}, t.NextChange());
  Statement(t.db, "UPDATE origins SET taken = 1 WHERE run = ?1", run->id).Run();
  return absl::OkStatus();
}

}  // namespace ablate::storage
