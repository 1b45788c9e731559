#include "storage/sqlite/leases.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/origins.h"
#include "storage/sqlite/shares.h"
#include "storage/sqlite/summaries.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// Returns true if a run had points before a change number.
bool HasPoints(Connection& db, int64_t run, uint64_t before) {
  return Statement(db, "SELECT 1 FROM row_groups WHERE run = ?1 AND id < ?2 LIMIT 1", run, before)
      .Row();
}

// Returns why the holder can't continue a run from its resume state; empty if it can. A restored
// database may name a blob that was swept since; no worker could ever start from it. In another
// environment a state would give numbers that don't match the run's first steps. If a state's
// environment is unknown, the worker checks it.
std::string WhyUnusable(Connection& db, int64_t run, absl::string_view name,
                        const ResumeState& state, Blobs* blobs, const LeaseHolder& holder) {
  if (blobs != nullptr && absl::IsNotFound(blobs->Size(state.blob).status())) {
    return "the blob of its resume state is gone";
  }
  const auto summaries = DecodeSummaries(name, state.summaries);
  if (!summaries.ok()) {
    return absl::StrCat("the summaries of its resume state are damaged in the database: ",
                        summaries.status().message());
  }
  if (summaries->empty() && HasPoints(db, run, state.change)) {
    return "its resume state was stored when its summaries were gone from the database";
  }
  if (state.environment.empty() || state.environment == holder.environment) return "";
  return absl::StrCat("its resume state was made by ", state.environment, "; this worker has ",
                      holder.environment);
}

// Returns the run's resume state; deletes it if the holder can't continue from it.
std::optional<ResumeState> UsableState(Transaction& t, Blobs* blobs, const LeaseHolder& holder,
                                       absl::string_view name, const RunRow& run) {
  std::optional<ResumeState> state = FindResumeState(t.db, run.id);
  if (!state.has_value()) return state;
  const std::string why = WhyUnusable(t.db, run.id, name, *state, blobs, holder);
  if (why.empty()) return state;
  DropResumeState(t, run.id);
  RecordEvent(t, run, "rewound", absl::StrCat(why, ". It starts again from step 0"));
  return std::nullopt;
}

// Rewinds a run to its resume state: deletes everything later and restores the summaries stored
// with the state.
void Rewind(Transaction& t, const ResumeState& state, RunRow* run) {
  run->step = state.step;
  run->spent = state.spent;
  Statement(t.db, "DELETE FROM row_groups WHERE run = ?1 AND id > ?2", run->id, state.change).Run();
  RemoveArtifacts(t, run->id, state.change);
  if (state.summaries.empty()) {
    Statement(t.db, "DELETE FROM summaries WHERE run = ?1", run->id).Run();
  } else {
    Statement(t.db, "REPLACE INTO summaries VALUES (?1, ?2)", run->id, Bytes{state.summaries})
        .Run();
  }
}

// Puts a run without a resume state at step 0, or at its origin's end if it has not begun yet and
// can start there. Returns the state that it continues from, if any.
std::optional<ResumeState> BeginAnew(Transaction& t, Blobs* blobs, const LeaseHolder& holder,
                                     absl::string_view name, RunRow* run) {
  Rewind(t, ResumeState(), run);
  const std::optional<Origin> origin = FindOrigin(t.db, run->id);
  if (!origin.has_value()) return std::nullopt;
  if (!origin->taken) {
    const absl::Status begun = BeginFromOrigin(t, blobs, holder, *origin, name, run);
    if (begun.ok()) {
      RecordEvent(t, *run, "continued",
                  absl::StrCat("from step ", origin->step, " of run ", origin->name));
      return FindResumeState(t.db, run->id);
    }
    Rewind(t, ResumeState(), run);
    RecordEvent(t, *run, "rewound",
                absl::StrCat("it can't go on from step ", origin->step, " of run ", origin->name,
                             ": ", begun.message(), ". It starts again from step 0"));
  }
  ForgetOrigin(t, run->id);
  return std::nullopt;
}

// The immutable part of a run.
struct FixedRun {
  std::string spec;
  std::string dataset_blob;
  std::string data_blob;
  std::string initial_blob;
  uint32_t numerics_version = 0;
  bool grows = false;
};

FixedRun ReadFixed(Connection& db, int64_t run) {
  Statement row(
      db,
      "SELECT spec, datasets.sha256, data.sha256, initial_blob, numerics, growth != '' "
      "FROM run_specs JOIN runs ON runs.id = run_specs.run LEFT JOIN datasets ON "
      "datasets.id = runs.dataset LEFT JOIN datasets data ON data.id = runs.program_data WHERE "
      "run_specs.run = ?1",
      run);
  if (!row.Row()) return {};
  return {row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.As<uint32_t>(4), row.Int(5) != 0};
}

// Returns true and ends the run if the holder would compute other numbers than its fingerprint
// identifies: it was queued before an upgrade, and no present worker can train it.
bool EndIfOutdated(Transaction& t, const LeaseHolder& holder, uint32_t version, RunRow* run) {
  if (version == 0 || holder.numerics_version == 0 || version == holder.numerics_version) {
    return false;
  }
  run->failure = absl::StrCat("it was queued for numerics version ", version,
                              ", and the workers compute version ", holder.numerics_version,
                              ", which gives other numbers: submit its experiment again");
  RecordEvent(t, *run, "failed", run->failure);
  DropResumeState(t, run->id);
  EndRun(t, run, RunState::kFailed);
  return true;
}

void MarkLeased(Transaction& t, const NewLease& wanted, RunRow* run) {
  const RunState before = std::exchange(run->state, RunState::kLeased);
  run->lease = wanted.lease;
  run->incarnation = wanted.holder.incarnation;
  run->acked = 0;
  run->worker = wanted.holder.worker;
  run->device = wanted.holder.device;
  run->build = wanted.holder.build;
  run->environment = wanted.holder.environment;
  SaveRun(t, *run, before);
  RecordEvent(t, *run, "granted");
}

absl::StatusOr<std::optional<GrantedRun>> GrantOne(Transaction& t, Blobs* blobs, bool keeps_states,
                                                   const NewLease& wanted) {
  const LeaseHolder& holder = wanted.holder;
  if (FindRunOfLease(t.db, wanted.lease).has_value()) {
    return absl::AlreadyExistsError(absl::StrCat("lease '", wanted.lease, "' exists"));
  }
  std::optional<RunRow> run = FindRun(t.db, wanted.run);
  if (!run.has_value() || run->state != RunState::kQueued) return std::nullopt;
  FixedRun fixed = ReadFixed(t.db, run->id);
  if (EndIfOutdated(t, holder, fixed.numerics_version, &*run)) return std::nullopt;
  std::optional<ResumeState> state = UsableState(t, blobs, holder, wanted.run, *run);
  if (state.has_value()) {
    Rewind(t, *state, &*run);
  } else {
    state = BeginAnew(t, blobs, holder, wanted.run, &*run);
  }
  MarkLeased(t, wanted, &*run);
  GrantedRun granted;
  granted.spec = std::move(fixed.spec);
  granted.dataset_blob = std::move(fixed.dataset_blob);
  granted.data_blob = std::move(fixed.data_blob);
  granted.initial_blob = std::move(fixed.initial_blob);
  granted.keep_state = fixed.grows && keeps_states;
  if (state.has_value()) {
    granted.resume_blob = std::move(state->blob);
    granted.resume_step = state->step;
  }
  return granted;
}

void LoseRun(Transaction& t, RunRow* run, absl::string_view message) {
  RecordEvent(t, *run, "lost", message);
  ++t.losses;
  if (++run->losses < kMaxLossesWithoutProgress) return Requeue(t, run);
  run->failure = absl::StrCat("lost by its worker ", kMaxLossesWithoutProgress,
                              " times in a row without progress; at last: ", message);
  RecordEvent(t, *run, "failed", run->failure);
  EndRun(t, run, RunState::kFailed);
}

// Does nothing if the lease has ended.
void EndOne(Transaction& t, absl::string_view lease, const LeaseEnding& ending) {
  std::optional<RunRow> run = FindRunOfLease(t.db, lease);
  if (!run.has_value() || run->state != RunState::kLeased) return;
  run->lease.clear();
  const absl::string_view message = ShortenMessage(ending.message);
  switch (ending.end) {
    case LeaseEnd::kLost:
      return LoseRun(t, &*run, message);
    case LeaseEnd::kDied:
      return FailRun(t, &*run, message);
    case LeaseEnd::kReleased:
      RecordEvent(t, *run, "released", message);
      return Requeue(t, &*run);
  }
}

// Returns the next user with queued runs, by name; nothing after the last. Uses the index to skip.
std::optional<std::string> NextQueuedUser(Connection& db, absl::string_view device_kind,
                                          const std::optional<std::string>& after) {
  // One statement for both would read every queued run, because no index answers an OR.
  Statement next(db,
                 after.has_value() ? "SELECT charged FROM runs WHERE state = 0 AND device_kind = "
                                     "?1 AND charged > ?2 ORDER BY charged LIMIT 1"
                                   : "SELECT charged FROM runs WHERE state = 0 AND device_kind = "
                                     "?1 AND charged >= ?2 ORDER BY charged LIMIT 1",
                 device_kind, after.value_or(""));
  if (!next.Row()) return std::nullopt;
  return next.Text(0);
}

void AddQueueOf(Connection& db, absl::string_view device_kind, const std::string& user,
                const std::set<std::string>& trainers, uint32_t limit,
                std::vector<QueuedRun>* queue) {
  Statement row(
      db,
      "SELECT name, shape, trainer, priority, steps, place, lanes, whole_seconds FROM "
      "runs WHERE state = 0 AND device_kind = ?1 AND charged = ?2 AND priority < ?3 ORDER "
      "BY priority, place",
      device_kind, user, kPausedPriority);
  uint32_t added = 0;
  while (added < limit && row.Row()) {
    std::string trainer = row.Text(2);
    if (trainers.count(trainer) == 0) continue;
    queue->push_back({row.Text(0), row.Text(1), std::string(device_kind), std::move(trainer),
                      row.As<int>(3), row.As<uint32_t>(4), user, row.Int(5), row.As<uint32_t>(6),
                      row.As<uint32_t>(7)});
    ++added;
  }
}

}  // namespace

absl::string_view ShortenMessage(absl::string_view message) {
  constexpr size_t kMaxMessageBytes = 4000;
  if (message.size() <= kMaxMessageBytes) return message;
  size_t size = kMaxMessageBytes;
  while (size > 0 && (message[size] & 0xc0) == 0x80) --size;
  return message.substr(0, size);
}

void FailRun(Transaction& t, RunRow* run, absl::string_view message, bool is_final) {
  message = ShortenMessage(message);
  RecordEvent(t, *run, "failed", message);
  ++run->failures;
  if (!is_final && run->failures < kMaxFailuresWithoutProgress) return Requeue(t, run);
  run->failure = std::string(message);
  EndRun(t, run, RunState::kFailed);
}

absl::StatusOr<std::vector<QueuedRun>> Store::Queue(absl::string_view device_kind,
                                                    const std::set<std::string>& trainers,
                                                    uint32_t limit) {
  return db_->Read([&](Connection& db) {
    std::vector<QueuedRun> queue;
    std::optional<std::string> user = NextQueuedUser(db, device_kind, std::nullopt);
    while (user.has_value()) {
      AddQueueOf(db, device_kind, *user, trainers, limit, &queue);
      user = NextQueuedUser(db, device_kind, user);
    }
    return queue;
  });
}

absl::StatusOr<std::optional<double>> Store::MeasuredStepTime(absl::string_view shape) {
  return db_->Read([&](Connection& db) -> std::optional<double> {
    Statement finished(db, "SELECT device_time, steps FROM step_times WHERE shape = ?1", shape);
    if (finished.Row()) return finished.Real(0) / finished.Real(1);
    Statement training(db,
                       "SELECT sum(device_time), sum(step) FROM runs WHERE state = 1 AND shape = "
                       "?1 AND step > 0 AND device_time >= ?2 AND open_steps = 0",
                       shape, kLeastMeasured);
    training.Row();
    const double steps = training.Real(1);
    return steps > 0 ? std::optional(training.Real(0) / steps) : std::nullopt;
  });
}

void Store::OnWithdrawn(OnWithdrawnFunction on_withdrawn) {
  db_->writer().OnWithdrawn(std::move(on_withdrawn));
}

void Store::GrantAsync(std::vector<NewLease> leases, Done<Grants> done) {
  db_->WriteAsync(
      [blobs = blobs_.get(), keeps_states = options_.last_states_bytes > 0,
       leases = std::move(leases)](Transaction& t) -> absl::StatusOr<Grants> {
        Grants granted;
        granted.reserve(leases.size());
        for (const NewLease& wanted : leases) {
          ASSIGN_OR_RETURN(auto one, GrantOne(t, blobs, keeps_states, wanted));
          granted.push_back(std::move(one));
        }
        return granted;
      },
      std::move(done));
}

absl::StatusOr<HeldLeaseDecision> Store::CheckLease(absl::string_view lease,
                                                    absl::string_view incarnation,
                                                    uint64_t first_unacked) {
  return db_->Read([&](Connection& db) {
    const std::optional<RunRow> run = FindRunOfLease(db, lease);
    HeldLeaseDecision decision;
    decision.drop =
        !run.has_value() || run->incarnation != incarnation || first_unacked > run->acked + 1;
    if (!decision.drop) decision.acked = run->acked;
    return decision;
  });
}

void Store::EndLeaseAsync(std::string lease, LeaseEnding ending, DoneEnding done) {
  db_->writer().Post(
      [lease = std::move(lease), ending = std::move(ending)](Transaction& t) {
        EndOne(t, lease, ending);
        return absl::OkStatus();
      },
      std::move(done));
}

absl::StatusOr<std::vector<LeaseRecord>> Store::ListLeases() {
  return db_->Read([](Connection& db) {
    std::vector<LeaseRecord> leases;
    Statement row(db,
                  "SELECT lease, worker, incarnation, device, build, trainer, acked, name FROM "
                  "runs WHERE state = 1 ORDER BY change");
    while (row.Row()) {
      // The rest of the holder is needed for granting only.
      leases.push_back({row.Text(0),
                        {row.Text(1), row.Text(2), row.Text(3), row.Text(4), row.Text(5), "", 0},
                        row.As<uint64_t>(6),
                        row.Text(7)});
    }
    return leases;
  });
}

absl::StatusOr<std::optional<LeaseRights>> Store::FindLeaseRights(absl::string_view lease) {
  return db_->Read([&](Connection& db) -> std::optional<LeaseRights> {
    Statement run(
        db,
        "SELECT worker, parameters, datasets.sha256, data.sha256, initial_blob, resume_states.blob "
        "FROM runs LEFT JOIN datasets ON datasets.id = runs.dataset LEFT JOIN datasets data ON "
        "data.id = runs.program_data LEFT JOIN resume_states ON resume_states.run = runs.id WHERE "
        "runs.lease = ?1 AND runs.state = 1",
        lease);
    if (!run.Row()) return std::nullopt;
    LeaseRights rights;
    rights.worker = run.Text(0);
    rights.parameters = run.As<uint64_t>(1);
    for (const int column : {2, 3, 4, 5}) {
      if (std::string blob = run.Text(column); !blob.empty()) rights.reads.insert(std::move(blob));
    }
    return rights;
  });
}

}  // namespace ablate::storage
