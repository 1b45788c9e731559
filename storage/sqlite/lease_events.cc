#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/last_states.h"
#include "storage/sqlite/leases.h"
#include "storage/sqlite/row_groups.h"
#include "storage/sqlite/run_logs.h"
#include "storage/sqlite/runs.h"
#include "storage/sqlite/shares.h"
#include "storage/sqlite/summaries.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// Device time by user, so that a batch of events charges each user once.
using Charges = std::map<std::string, Micros>;

// Context of an event, whose run is leased under the event's lease.
struct Context {
  Transaction& t;
  Blobs* blobs;  // null in memory; then blobs aren't checked
  uint64_t last_states_bytes;
  RunRow* run;
  Charges& charges;
};

absl::Status CheckStep(const Context& c, uint32_t step) {
  if (step <= c.run->steps || c.run->open_steps) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("step: ", step, "; expected at most ", c.run->steps));
}

// Checks the step of an event that reports a run's progress.
absl::Status CheckProgress(const Context& c, uint32_t step) {
  if (step >= c.run->step) return CheckStep(c, step);
  return absl::InvalidArgumentError(absl::StrCat("step: ", step, "; expected at least ",
                                                 c.run->step, ", which the run has reached"));
}

// A point of step s is sent by the event that ends there or later: an evaluation at s by one that
// ends at s, the loss of the update s → s+1 by one that ends at s+1, or at s if the run diverges
// there. A program may count its progress in other steps than its points.
absl::Status CheckPlaces(const Context& c, const PointsEvent& event) {
  const uint32_t first = c.run->open_steps ? 0 : c.run->step;
  for (const Column& column : event.columns) {
    for (const uint32_t step : column.steps) {
      if (step >= first && step <= event.step) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("points: key '", absl::CHexEscape(column.key.substr(0, kMaxKeyBytes)),
                       "': step ", step, "; expected ", first, " to ", event.step));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEnd(const Context& c, const FinishedEvent& event) {
  if (event.diverged || c.run->open_steps || event.step >= c.run->steps)
    return CheckProgress(c, event.step);
  return absl::InvalidArgumentError(
      absl::StrCat("finished.step: ", event.step, "; expected ", c.run->steps));
}

absl::Status CheckSpent(const Context& c, const Spent& spent) {
  if (spent.device_time > kMaxDeviceTime - c.run->spent.device_time) {
    return absl::InvalidArgumentError(absl::StrCat("spent: ", spent.device_time, " µs after ",
                                                   c.run->spent.device_time, "; expected at most ",
                                                   kMaxDeviceTime, " in all"));
  }
  if (spent.contended_time >= 0 && spent.contended_time <= spent.device_time) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("spent: contended for ", spent.contended_time,
                                                 " µs; expected 0 to ", spent.device_time));
}

absl::Status ApplyTo(const Context& c, const StartedEvent&) {
  if (c.run->start_time == 0) c.run->start_time = c.t.now;
  RecordEvent(c.t, *c.run, c.run->step > 0 ? "resumed" : "started");
  SaveRun(c.t, *c.run, c.run->state);
  return absl::OkStatus();
}

// Drops points that a run with open steps reports again after it has continued from a state: those
// at or before the last step of their key.
absl::Status KeepNew(const Context& c, std::vector<Column>* columns) {
  ASSIGN_OR_RETURN(const auto summaries, LoadSummaries(c.t.db, c.run->id, c.run->name));
  std::map<absl::string_view, uint32_t> last;
  for (const KeySummary& known : summaries) last[known.summary.key] = known.last_step;
  for (Column& column : *columns) {
    const auto known = last.find(column.key);
    if (known == last.end()) continue;
    const auto kept = std::upper_bound(column.steps.begin(), column.steps.end(), known->second);
    column.values.erase(column.values.begin(),
                        column.values.begin() + (kept - column.steps.begin()));
    column.steps.erase(column.steps.begin(), kept);
  }
  std::erase_if(*columns, [](const Column& column) { return column.steps.empty(); });
  return absl::OkStatus();
}

// Takes the last value of a program's metric `parameters` as the run's number of parameters.
void KeepParameters(const Context& c, const std::vector<Column>& columns) {
  constexpr double kMost = 9e15;  // exact in a double
  for (const Column& column : columns) {
    if (column.key != "parameters" || column.values.empty()) continue;
    const double value = column.values.back();
    if (!(value >= 0 && value <= kMost)) continue;  // also if it isn't a number
    Statement(c.t.db, "UPDATE runs SET parameters = ?2 WHERE id = ?1", c.run->id,
              static_cast<int64_t>(std::llround(value)))
        .Run();
  }
}

absl::Status ApplyTo(const Context& c, const PointsEvent& sent) {
  PointsEvent event = sent;
  if (c.run->open_steps) {
    RETURN_IF_ERROR(KeepNew(c, &event.columns));
  }
  absl::Status valid = CheckProgress(c, event.step);
  if (valid.ok()) valid = CheckPlaces(c, event);
  if (valid.ok()) valid = CheckSpent(c, event.spent);
  if (!valid.ok()) return valid;
  c.run->step = event.step;
  // Otherwise they stay 0: a client couldn't tell a run that is done from one that goes on.
  if (c.run->open_steps && event.expected_steps > 0) {
    c.run->steps = std::max(event.expected_steps, event.step);
  }
  if (c.run->open_steps) KeepParameters(c, event.columns);
  Spent& spent = c.run->spent;
  spent.device_time += event.spent.device_time;
  spent.contended_time += event.spent.contended_time;
  spent.tokens += event.spent.tokens;
  c.charges[c.run->charged] += event.spent.device_time;
  const uint64_t change = SaveProgress(c.t, *c.run);
  if (event.columns.empty()) return absl::OkStatus();
  for (const Column& column : event.columns) c.t.points += column.values.size();
  return AddRowGroup(c.t, {c.run->id, c.run->name}, change, event.columns);
}

// Bounds a checkpoint by the planned size of the run, because a worker may report any size.
absl::Status CheckRoomOfRun(const Context& c, const CheckpointEvent& event) {
  constexpr uint64_t kSlack = uint64_t{16} << 20;
  Statement row(c.t.db,
                "SELECT expected_bytes, (SELECT coalesce(sum(bytes), 0) FROM artifacts WHERE run = "
                "?1 AND step != ?2) FROM runs WHERE id = ?1",
                c.run->id, event.step);
  if (!row.Row()) return absl::OkStatus();
  const auto expected = row.As<uint64_t>(0), has = row.As<uint64_t>(1);
  if (expected == 0 || has + event.bytes <= 2 * expected + kSlack) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("checkpoint: ", has + event.bytes, " bytes in all; expected about ", expected));
}

absl::Status ApplyTo(const Context& c, const CheckpointEvent& event) {
  absl::Status valid = CheckStep(c, event.step);
  if (valid.ok()) valid = CheckPublished(c.blobs, event.blob);
  if (!valid.ok()) return valid;
  CheckpointEvent checkpoint = event;
  checkpoint.bytes = SizeOf(c.blobs, event.blob, event.bytes);
  valid = CheckRoomOfRun(c, checkpoint);
  if (!valid.ok()) return valid;
  AddCheckpoint(c.t, *c.run, checkpoint, SaveProgress(c.t, *c.run));
  return absl::OkStatus();
}

absl::Status ApplyTo(const Context& c, const ResumeStateEvent& event) {
  RunRow& run = *c.run;
  // A program may count its progress in other steps than its checkpoints.
  absl::Status valid = run.open_steps ? absl::OkStatus() : CheckProgress(c, event.step);
  if (valid.ok()) valid = CheckPublished(c.blobs, event.blob);
  if (!valid.ok()) return valid;
  run.step = std::max(run.step, event.step);
  ResumeStateEvent state = event;
  state.bytes = SizeOf(c.blobs, event.blob, event.bytes);
  const uint32_t before = SaveResumeState(c.t, run, state, c.t.NextChange());
  if (event.step > before) run.failures = run.losses = 0;
  SaveRun(c.t, run, run.state);
  return absl::OkStatus();
}

absl::Status ApplyTo(const Context& c, const FinishedEvent& event) {
  RETURN_IF_ERROR(CheckEnd(c, event));
  RunRow& run = *c.run;
  run.step = event.step;
  if (run.open_steps) run.steps = run.step;
  run.failures = run.losses = 0;
  RecordEvent(c.t, run, event.diverged ? "diverged" : "done");
  if (event.diverged) {
    // A diverged run that made all its updates was evaluated at its end.
    if (event.step < run.steps) ForgetLastValues(c.t.db, run.id, run.name);
    DropResumeState(c.t, run.id);
  } else {
    KeepLastState(c.t, c.blobs, run.id, c.last_states_bytes);
  }
  // A run with open steps counts as one: its steps can't be foreseen.
  const uint32_t measured = run.open_steps ? 1 : run.step;
  if (measured > 0 && run.spent.device_time > 0) {
    Statement(c.t.db,
              "INSERT INTO step_times SELECT shape, ?2, ?3 FROM runs WHERE id = ?1 ON CONFLICT "
              "(shape) DO UPDATE SET device_time = device_time + ?2, steps = steps + ?3",
              run.id, run.spent.device_time, measured)
        .Run();
  }
  Statement(c.t.db, "INSERT OR IGNORE INTO uncompacted VALUES (?1)", run.id).Run();
  c.t.needs_maintenance = true;
  EndRun(c.t, &run, event.diverged ? RunState::kDiverged : RunState::kDone);
  return absl::OkStatus();
}

absl::Status ApplyTo(const Context& c, const FailedEvent& event) {
  FailRun(c.t, c.run, event.message, event.is_final);
  return absl::OkStatus();
}

absl::Status ApplyTo(const Context& c, const LogEvent& event) {
  AppendLog(c.t, c.run->id, event.text);
  SaveProgress(c.t, *c.run);
  return absl::OkStatus();
}

// Deletes a refused state, so that the next worker starts from step 0. If there is none, there is
// nothing to refuse, and accepting it would let a run circulate forever.
absl::Status ApplyTo(const Context& c, const ReleasedEvent& event) {
  if (!event.state_refused.empty()) {
    if (!DropResumeState(c.t, c.run->id)) {
      FailRun(c.t, c.run, event.state_refused);
      return absl::OkStatus();
    }
    RecordEvent(c.t, *c.run, "rewound",
                absl::StrCat(ShortenMessage(event.state_refused), ". It starts again from step 0"));
  }
  RecordEvent(c.t, *c.run, "released");
  Requeue(c.t, c.run);
  return absl::OkStatus();
}

// The parts of the store that events need.
struct Surroundings {
  Blobs* blobs = nullptr;
  uint64_t last_states_bytes = 0;
};

absl::StatusOr<Applied> ApplyOne(Transaction& t, const Surroundings& store,
                                 absl::string_view incarnation, const LeaseEvent& event,
                                 Charges* charges) {
  std::optional<RunRow> run = FindRunOfLease(t.db, event.lease);
  if (!run.has_value() || run->incarnation != incarnation) return Applied::kNoLease;
  if (event.seq <= run->acked) return Applied::kRepeated;
  if (run->state != RunState::kLeased) return Applied::kNoLease;
  if (event.seq > run->acked + 1) return Applied::kGap;
  if (run->acked == 0) BeginRun(t, &*run);
  run->acked = event.seq;
  const Context context{t, store.blobs, store.last_states_bytes, &*run, *charges};
  const absl::Status status =
      std::visit([&](const auto& kind) { return ApplyTo(context, kind); }, event.event);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("run ", run->name, ": ", status.message()));
  }
  return Applied::kApplied;
}

// Returns one answer each, in the order of the events.
absl::StatusOr<std::vector<Applied>> ApplyAll(Transaction& t, const Surroundings& store,
                                              absl::string_view incarnation,
                                              const std::vector<LeaseEvent>& events) {
  Charges charges;
  std::vector<Applied> results;
  results.reserve(events.size());
  for (const LeaseEvent& event : events) {
    ASSIGN_OR_RETURN(const auto result, ApplyOne(t, store, incarnation, event, &charges));
    results.push_back(result);
  }
  for (const auto& [user, device_time] : charges) Charge(t, user, device_time);
  return results;
}

}  // namespace

void Store::ApplyAsync(std::string holder_incarnation, std::vector<LeaseEvent> events,
                       Done<std::vector<Applied>> done) {
  db_->WriteAsync([surroundings = Surroundings{blobs_.get(), options_.last_states_bytes},
                   incarnation = std::move(holder_incarnation), events = std::move(events)](
                      Transaction& t) { return ApplyAll(t, surroundings, incarnation, events); },
                  std::move(done));
}

}  // namespace ablate::storage
