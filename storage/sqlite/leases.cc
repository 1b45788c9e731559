#include "storage/sqlite/leases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/origins.h"
#include "storage/sqlite/summaries.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

constexpr int kMaxPrunedLeases = 2000;  // at once, on the writer's thread

int64_t InsertLease(Transaction& t, absl::string_view lease, const LeaseHolder& holder) {
  Statement insert(t.db,
                   "INSERT INTO leases (name, worker, incarnation, device, build, trainer) "
                   "VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
                   lease, holder.worker, holder.incarnation, holder.device, holder.build,
                   holder.trainer);
  const int64_t id = insert.Row() ? insert.Int(0) : 0;
  insert.Run();
  return id;
}

// Whether a run had points before a change number.
bool HasPoints(Connection& db, int64_t run, uint64_t before) {
  return Statement(db, "SELECT 1 FROM row_groups WHERE run = ?1 AND id < ?2 LIMIT 1", run, before)
      .Row();
}

// Why the holder can't continue a run from its resume state; empty if it can. A restored database
// may name a blob that was swept since: no worker could ever begin from it. Continued in another
// environment, a state would not give the numbers that the run's first steps belong to; if it is not
// known where a state was made, the worker looks into it.
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

// The run's resume state, which goes if the holder can't continue from it.
std::optional<ResumeState> UsableState(Transaction& t, Blobs* blobs, const LeaseHolder& holder,
                                       absl::string_view name, const RunRow& run) {
  std::optional<ResumeState> state = FindResumeState(t.db, run.id);
  if (!state.has_value()) return state;
  const std::string why = WhyUnusable(t.db, run.id, name, *state, blobs, holder);
  if (why.empty()) return state;
  DropResumeState(t, run.id);
  RecordEvent(t, run, "rewound", absl::StrCat(why, ": it begins anew"));
  return std::nullopt;
}

// Takes a run back to its resume state's place in the order of events: what came later goes, and
// the summaries stored with it return.
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

// Puts a run that has no resume state at step 0, or where its origin ended if it has not begun yet
// and can begin there. What it then goes on from, if anything.
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
                             ": ", begun.message(), ": it begins anew"));
  }
  ForgetOrigin(t, run->id);
  return std::nullopt;
}

// What of a run never changes.
struct FixedRun {
  std::string spec;
  std::string dataset_blob;
  uint32_t numerics_version = 0;
  bool grows = false;
};

FixedRun ReadFixed(Connection& db, int64_t run) {
  Statement row(db,
                "SELECT spec, sha256, numerics, growth != '' FROM run_specs "
                "JOIN runs ON runs.id = run_specs.run "
                "LEFT JOIN datasets ON datasets.id = runs.dataset WHERE run_specs.run = ?1",
                run);
  if (!row.Row()) return {};
  return {row.Text(0), row.Text(1), row.As<uint32_t>(2), row.Int(3) != 0};
}

// Whether the holder would give other numbers than the run's fingerprint stands for: a run that was
// queued before an upgrade. It ends, for no worker of today can train it.
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

// Into the lease, whose row is `lease`.
void MarkLeased(Transaction& t, int64_t lease, const LeaseHolder& holder, RunRow* run) {
  const RunState before = std::exchange(run->state, RunState::kLeased);
  run->lease = lease;
  run->worker = holder.worker;
  run->device = holder.device;
  run->build = holder.build;
  run->environment = holder.environment;
  SaveRun(t, *run, before);
  RecordEvent(t, *run, "granted");
}

absl::StatusOr<std::vector<GrantedRun>> GrantOne(Transaction& t, Blobs* blobs, bool keeps_states,
                                                 const NewLease& wanted) {
  const LeaseHolder& holder = wanted.holder;
  if (FindLease(t.db, wanted.lease).has_value()) {
    return absl::AlreadyExistsError(absl::StrCat("lease '", wanted.lease, "' exists"));
  }
  std::vector<GrantedRun> granted;
  int64_t lease = 0;
  for (const std::string& name : wanted.runs) {
    std::optional<RunRow> run = FindRun(t.db, name);
    if (!run.has_value() || run->state != RunState::kQueued) continue;
    FixedRun fixed = ReadFixed(t.db, run->id);
    if (EndIfOutdated(t, holder, fixed.numerics_version, &*run)) continue;
    if (granted.empty()) lease = InsertLease(t, wanted.lease, holder);
    std::optional<ResumeState> state = UsableState(t, blobs, holder, name, *run);
    if (state.has_value()) {
      Rewind(t, *state, &*run);
    } else {
      state = BeginAnew(t, blobs, holder, name, &*run);
    }
    MarkLeased(t, lease, holder, &*run);
    GrantedRun& one = granted.emplace_back();
    one.run = name;
    one.spec = std::move(fixed.spec);
    one.dataset_blob = std::move(fixed.dataset_blob);
    one.keep_state = fixed.grows && keeps_states;
    if (!state.has_value()) continue;
    one.resume_blob = std::move(state->blob);
    one.resume_step = state->step;
  }
  return granted;
}

void LoseRun(Transaction& t, RunRow* run, absl::string_view message) {
  RecordEvent(t, *run, "lost", message);
  if (++run->losses < kMaxLossesWithoutProgress) return Requeue(t, run);
  run->failure = absl::StrCat("lost by its worker ", kMaxLossesWithoutProgress,
                              " times in a row without progress; at last: ", message);
  RecordEvent(t, *run, "failed", run->failure);
  EndRun(t, run, RunState::kFailed);
}

// Whether `stepping`, where empty stands for all, names a run.
bool Names(const std::vector<std::string>& stepping, const std::string& run) {
  return stepping.empty() || std::find(stepping.begin(), stepping.end(), run) != stepping.end();
}

std::string RunName(Connection& db, int64_t run) {
  Statement row(db, "SELECT name FROM runs WHERE id = ?1", run);
  return row.Row() ? row.Text(0) : "";
}

// Nothing is to be done for a lease that has ended.
void EndOne(Transaction& t, absl::string_view lease, const LeaseEnding& ending) {
  const std::optional<LeaseRow> row = FindLease(t.db, lease);
  if (!row.has_value()) return;
  const absl::string_view message = ShortenMessage(ending.message);
  for (RunRow& run : RunsOfLease(t.db, row->id)) {
    if (ending.end == LeaseEnd::kLost) {
      LoseRun(t, &run, message);
    } else if (ending.end == LeaseEnd::kDied && Names(ending.stepping, RunName(t.db, run.id))) {
      FailRun(t, &run, message);
    } else {
      RecordEvent(t, run, "released", message);
      Requeue(t, &run);
    }
  }
  Statement(t.db, "DELETE FROM leases WHERE id = ?1", row->id).Run();
}

// By name; nothing behind the last. The index leads from one to the next.
std::optional<std::string> NextQueuedUser(Connection& db, absl::string_view device_kind,
                                          const std::optional<std::string>& after) {
  Statement next(db,
                 "SELECT charged FROM runs WHERE state = 0 AND device_kind = ?1 "
                 "AND (?2 OR charged > ?3) ORDER BY charged LIMIT 1",
                 device_kind, !after.has_value(), after.value_or(""));
  if (!next.Row()) return std::nullopt;
  return next.Text(0);
}

void AddQueueOf(Connection& db, absl::string_view device_kind, const std::string& user,
                const std::set<std::string>& trainers, uint32_t limit,
                std::vector<QueuedRun>* queue) {
  Statement row(db,
                "SELECT name, shape, trainer, priority, steps, place FROM runs "
                "WHERE state = 0 AND device_kind = ?1 AND charged = ?2 ORDER BY priority, place",
                device_kind, user);
  uint32_t added = 0;
  while (added < limit && row.Row()) {
    std::string trainer = row.Text(2);
    if (trainers.count(trainer) == 0) continue;
    queue->push_back({row.Text(0), row.Text(1), std::string(device_kind), std::move(trainer),
                      row.As<int>(3), row.As<uint32_t>(4), user, row.As<uint64_t>(5)});
    ++added;
  }
}

}  // namespace

std::optional<LeaseRow> FindLease(Connection& db, absl::string_view name) {
  Statement row(db, "SELECT id, incarnation, acked FROM leases WHERE name = ?1", name);
  if (!row.Row()) return std::nullopt;
  return LeaseRow{row.Int(0), row.Text(1), row.As<uint64_t>(2)};
}

absl::string_view ShortenMessage(absl::string_view message) {
  constexpr size_t kMaxMessageBytes = 4000;
  if (message.size() <= kMaxMessageBytes) return message;
  size_t size = kMaxMessageBytes;
  while (size > 0 && (message[size] & 0xc0) == 0x80) --size;
  return message.substr(0, size);
}

void FailRun(Transaction& t, RunRow* run, absl::string_view message) {
  message = ShortenMessage(message);
  RecordEvent(t, *run, "failed", message);
  if (++run->failures < kMaxFailuresWithoutProgress) return Requeue(t, run);
  run->failure = std::string(message);
  EndRun(t, run, RunState::kFailed);
}

bool PruneLeases(Transaction& t, Micros before) {
  Statement gone(t.db,
                 "DELETE FROM leases WHERE id IN (SELECT id FROM leases "
                 "WHERE settled IS NOT NULL AND settled < ?1 LIMIT ?2) RETURNING 1",
                 before, kMaxPrunedLeases);
  bool any = false;
  while (gone.Row()) any = true;
  return any;
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
    Statement row(db, "SELECT device_time, steps FROM step_times WHERE shape = ?1", shape);
    if (!row.Row()) return std::nullopt;
    return static_cast<double>(row.Int(0)) / static_cast<double>(row.Int(1));
  });
}

void Store::GrantAsync(std::vector<NewLease> leases, Done<Grants> done) {
  db_->WriteAsync(
      [blobs = blobs_.get(), keeps_states = options_.last_states_bytes > 0,
       leases = std::move(leases)](Transaction& t) -> absl::StatusOr<Grants> {
        Grants granted;
        granted.reserve(leases.size());
        for (const NewLease& wanted : leases) {
          auto one = GrantOne(t, blobs, keeps_states, wanted);
          if (!one.ok()) return one.status();
          granted.push_back(*std::move(one));
        }
        return granted;
      },
      std::move(done));
}

absl::StatusOr<LeaseVerdict> Store::CheckLease(absl::string_view lease,
                                               absl::string_view incarnation,
                                               uint64_t first_unacked) {
  return db_->Read([&](Connection& db) {
    const std::optional<LeaseRow> row = FindLease(db, lease);
    LeaseVerdict verdict;
    verdict.drop =
        !row.has_value() || row->incarnation != incarnation || first_unacked > row->acked + 1;
    if (!verdict.drop) verdict.acked = row->acked;
    return verdict;
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
    Statement row(
        db,
        "SELECT leases.name, leases.worker, incarnation, leases.device, leases.build, "
        "leases.trainer, acked, runs.name FROM runs JOIN leases ON leases.id = runs.lease "
        "WHERE runs.lease IS NOT NULL ORDER BY runs.lease, runs.id");
    while (row.Row()) {
      if (leases.empty() || leases.back().lease != row.View(0)) {
        // The rest of the holder is for granting alone.
        leases.push_back({row.Text(0),
                          {row.Text(1), row.Text(2), row.Text(3), row.Text(4), row.Text(5), "", 0},
                          row.As<uint64_t>(6),
                          {}});
      }
      leases.back().runs.push_back(row.Text(7));
    }
    return leases;
  });
}

absl::StatusOr<std::optional<LeaseRights>> Store::FindLeaseRights(absl::string_view lease) {
  return db_->Read([&](Connection& db) -> std::optional<LeaseRights> {
    Statement holder(db, "SELECT id, worker FROM leases WHERE name = ?1", lease);
    if (!holder.Row()) return std::nullopt;
    LeaseRights rights;
    rights.worker = holder.Text(1);
    Statement run(db,
                  "SELECT datasets.sha256, resume_states.blob, parameters FROM runs "
                  "LEFT JOIN datasets ON datasets.id = runs.dataset "
                  "LEFT JOIN resume_states ON resume_states.run = runs.id WHERE runs.lease = ?1",
                  holder.Int(0));
    while (run.Row()) {
      for (const int column : {0, 1}) {
        if (std::string blob = run.Text(column); !blob.empty())
          rights.reads.insert(std::move(blob));
      }
      rights.parameters += run.As<uint64_t>(2);
    }
    return rights;
  });
}

}  // namespace ablate::storage
