// Counts what is queued.
#include <vector>

#include "storage/sqlite/database.h"
#include "storage/sqlite/runs.h"
#include "storage/store.h"

namespace ablate::storage {

absl::StatusOr<std::vector<QueuedGroup>> Store::QueuedGroups() {
  return db_->Read([](Connection& db) {
    std::vector<QueuedGroup> groups;
    Statement row(db,
                  "SELECT experiments.name, title, owner, experiments.private_to, "
                  "experiments.priority, paused, leased, charged, device_kind, trainer, shape, "
                  "lanes, whole_seconds, min(runs.place), count(*), sum(iif(open_steps, 1, "
                  "max(steps - step, 0))) FROM "
                  "experiments JOIN cells ON cells.experiment = experiments.id JOIN runs ON "
                  "runs.id = cells.run WHERE experiments.state = 0 AND deleted = 0 AND queued > 0 "
                  "AND runs.shown = 0 GROUP BY experiments.id, charged, device_kind, trainer, "
                  "shape, lanes, whole_seconds ORDER BY experiments.id");
    while (row.Row()) {
      QueuedGroup& group = groups.emplace_back();
      group.experiment = row.Text(0);
      group.title = row.Text(1);
      group.owner = row.Text(2);
      group.private_to = row.Text(3);
      group.priority = row.As<int>(4);
      group.paused = row.Int(5) != 0;
      group.running = row.As<uint32_t>(6);
      group.user = row.Text(7);
      group.device_kind = row.Text(8);
      group.trainer = row.Text(9);
      group.shape = row.Text(10);
      group.lanes = row.As<uint32_t>(11);
      group.whole_seconds = row.As<uint32_t>(12);
      group.place = row.Int(13);
      group.runs = row.As<uint32_t>(14);
      group.steps = row.As<uint64_t>(15);
    }
    return groups;
  });
}

absl::StatusOr<RunStates> Store::CountRuns() {
  return db_->Read([](Connection& db) {
    RunStates states;
    uint64_t* const fields[] = {&states.queued,   &states.leased, &states.done,
                                &states.diverged, &states.failed, &states.cancelled};
    Statement row(db, "SELECT state, count(*) FROM runs GROUP BY state");
    while (row.Row()) *fields[row.Int(0)] = row.As<uint64_t>(1);
    return states;
  });
}

absl::StatusOr<std::vector<QueuedLanes>> Store::CountQueuedLanes(absl::string_view device_kind) {
  return db_->Read([&](Connection& db) {
    std::vector<QueuedLanes> counts;
    Statement row(db,
                  "SELECT charged, trainer, sum(lanes) FROM runs WHERE state = 0 AND device_kind = "
                  "?1 AND priority < ?2 GROUP BY charged, trainer",
                  device_kind, kPausedPriority);
    while (row.Row()) counts.push_back({row.Text(0), row.Text(1), row.As<uint64_t>(2)});
    return counts;
  });
}

}  // namespace ablate::storage
