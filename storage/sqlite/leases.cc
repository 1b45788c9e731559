// Grants, verdicts and ends of leases; the rewind of a run to its resume state.
#include "storage/sqlite/leases.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/artifacts.h"
#include "storage/sqlite/ids.h"
#include "storage/sqlite/statement.h"
#include "storage/sqlite/summaries.h"

namespace ablate::storage {
namespace {

constexpr int kSliceLeases = 2000;  // deleted on the writer's thread, as in removal.cc

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

// Why a run can't go on from its resume state; empty if it can, or has none. A restored database
// may name a blob that was swept since: no worker could ever begin from it.
std::string WhyUnreadable(Connection& db, Blobs* blobs, const RunRow& run) {
  Statement resume(db, "SELECT blob, summaries FROM resume_states WHERE run = ?1", run.id);
  if (!resume.Row()) return "";
  if (blobs != nullptr && absl::IsNotFound(blobs->Size(resume.View(0)).status())) {
    return "the blob of its resume state is gone";
  }
  const auto summaries = DecodeSummaries(resume.View(1));
  if (summaries.ok()) return "";
  return absl::StrCat("the summaries of its resume state are damaged in the database: ",
                      summaries.status().message());
}

void DropUnreadableState(Transaction& t, Blobs* blobs, const RunRow& run) {
  const std::string why = WhyUnreadable(t.db, blobs, run);
  if (why.empty()) return;
  DropResumeState(t, run.id);
  Record(t, run, "rewound", absl::StrCat(why, ": it begins anew"));
}

// Continued elsewhere, a state would not give the numbers that the run's first steps belong to.
// States of older files don't say where they were made: the worker looks into them.
void DropForeignState(Transaction& t, const LeaseHolder& holder, const RunRow& run) {
  std::string environment;
  {
    Statement resume(t.db, "SELECT environment FROM resume_states WHERE run = ?1", run.id);
    if (resume.Row()) environment = resume.Text(0);
  }
  if (environment.empty() || environment == holder.environment) return;
  DropResumeState(t, run.id);
  Record(t, run, "rewound",
         absl::StrCat("its resume state was made by ", environment, "; this worker has ",
                      holder.environment, ": it begins anew"));
}

// Takes a run back to its resume state's place in the order of events: what came later goes, and
// the summaries stored with it return.
void Rewind(Transaction& t, RunRow* run, GrantedRun* granted) {
  std::string summaries;
  uint64_t change = 0;
  run->step = 0;
  run->spent = {};
  Statement resume(t.db,
                   "SELECT step, blob, change, device_time, contended_time, tokens, summaries "
                   "FROM resume_states WHERE run = ?1",
                   run->id);
  if (resume.Row()) {
    run->step = granted->resume_step = resume.As<uint32_t>(0);
    granted->resume_blob = resume.Text(1);
    change = resume.As<uint64_t>(2);
    run->spent = {resume.Int(3), resume.Int(4), resume.As<uint64_t>(5)};
    summaries = resume.Text(6);
  }
  Statement(t.db, "DELETE FROM row_groups WHERE run = ?1 AND id > ?2", run->id, change).Run();
  RemoveArtifacts(t, run->id, change);
  if (summaries.empty()) {
    Statement(t.db, "DELETE FROM summaries WHERE run = ?1", run->id).Run();
  } else {
    Statement(t.db, "REPLACE INTO summaries VALUES (?1, ?2)", run->id, Bytes{summaries}).Run();
  }
}

void Lend(Transaction& t, int64_t lease, const LeaseHolder& holder, RunRow* run,
          GrantedRun* granted) {
  Statement fixed(t.db,
                  "SELECT spec, sha256 FROM run_specs JOIN runs ON runs.id = run_specs.run "
                  "LEFT JOIN datasets ON datasets.id = runs.dataset WHERE run_specs.run = ?1",
                  run->id);
  if (fixed.Row()) {
    granted->spec = fixed.Text(0);
    granted->dataset_blob = fixed.Text(1);
  }
  Rewind(t, run, granted);
  const RunState before = std::exchange(run->state, RunState::kLeased);
  run->lease = lease;
  run->worker = holder.worker;
  run->device = holder.device;
  run->build = holder.build;
  run->trainer = holder.trainer;
  run->environment = holder.environment;
  SaveRun(t, *run, before);
  Record(t, *run, "granted");
}

void Lose(Transaction& t, RunRow* run, absl::string_view message) {
  Record(t, *run, "lost", message);
  if (++run->losses < kLossesWithoutProgress) return Requeue(t, run);
  run->failure = absl::StrCat("lost by its worker ", kLossesWithoutProgress,
                              " times in a row without progress; at last: ", message);
  Record(t, *run, "failed", run->failure);
  End(t, run, RunState::kFailed);
}

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

std::string NameOf(Connection& db, int64_t run) {
  Statement row(db, "SELECT name FROM runs WHERE id = ?1", run);
  return row.Row() ? row.Text(0) : "";
}

// Whether the holder would give other numbers than the run's fingerprint stands for: a run that was
// queued before an upgrade. It ends, for no worker of today can train it.
bool EndIfOutdated(Transaction& t, const LeaseHolder& holder, RunRow* run) {
  uint32_t version = 0;
  {
    Statement read(t.db, "SELECT numerics FROM runs WHERE id = ?1", run->id);
    if (read.Row()) version = read.As<uint32_t>(0);
  }
  if (version == 0 || holder.numerics_version == 0 || version == holder.numerics_version) {
    return false;
  }
  run->failure = absl::StrCat("it was queued for numerics version ", version,
                              ", and the workers compute version ", holder.numerics_version,
                              ", which gives other numbers: submit its experiment again");
  Record(t, *run, "failed", run->failure);
  DropResumeState(t, run->id);
  End(t, run, RunState::kFailed);
  return true;
}

absl::StatusOr<std::vector<GrantedRun>> GrantOne(Transaction& t, Blobs* blobs,
                                                 const NewLease& wanted) {
  const LeaseHolder& holder = wanted.holder;
  if (FindLease(t.db, wanted.lease).has_value()) {
    return absl::AlreadyExistsError(absl::StrCat("lease '", wanted.lease, "' exists"));
  }
  std::vector<GrantedRun> granted;
  int64_t id = 0;
  for (const std::string& name : wanted.runs) {
    std::optional<RunRow> run = FindRun(t.db, name);
    if (!run.has_value() || run->state != RunState::kQueued) continue;
    if (EndIfOutdated(t, holder, &*run)) continue;
    if (granted.empty()) id = InsertLease(t, wanted.lease, holder);
    granted.emplace_back().run = name;
    DropUnreadableState(t, blobs, *run);
    DropForeignState(t, holder, *run);
    Lend(t, id, holder, &*run, &granted.back());
  }
  return granted;
}

}  // namespace

std::optional<LeaseRow> FindLease(Connection& db, absl::string_view name) {
  Statement row(db, "SELECT id, incarnation, acked FROM leases WHERE name = ?1", name);
  if (!row.Row()) return std::nullopt;
  return LeaseRow{row.Int(0), row.Text(1), row.As<uint64_t>(2)};
}

absl::StatusOr<std::vector<std::vector<GrantedRun>>> Grant(Transaction& t, Blobs* blobs,
                                                           const std::vector<NewLease>& leases) {
  std::vector<std::vector<GrantedRun>> granted;
  granted.reserve(leases.size());
  for (const NewLease& wanted : leases) {
    auto one = GrantOne(t, blobs, wanted);
    if (!one.ok()) return one.status();
    granted.push_back(*std::move(one));
  }
  return granted;
}

LeaseVerdict CheckLease(Connection& db, absl::string_view lease, absl::string_view incarnation,
                        uint64_t first_unacked) {
  const std::optional<LeaseRow> row = FindLease(db, lease);
  LeaseVerdict verdict;
  verdict.drop =
      !row.has_value() || row->incarnation != incarnation || first_unacked > row->acked + 1;
  if (!verdict.drop) verdict.acked = row->acked;
  return verdict;
}

absl::Status EndLease(Transaction& t, absl::string_view lease, LeaseEnd end,
                      const std::vector<std::string>& stepping, absl::string_view message) {
  const std::optional<LeaseRow> row = FindLease(t.db, lease);
  if (!row.has_value()) return absl::OkStatus();
  message = Shorten(message);
  for (RunRow& run : RunsOfLease(t.db, row->id)) {
    if (end == LeaseEnd::kLost) {
      Lose(t, &run, message);
    } else if (end == LeaseEnd::kDied && Holds(stepping, NameOf(t.db, run.id))) {
      Fail(t, &run, message);
    } else {
      Record(t, run, "released", message);
      Requeue(t, &run);
    }
  }
  Statement(t.db, "DELETE FROM leases WHERE id = ?1", row->id).Run();
  return absl::OkStatus();
}

absl::string_view Shorten(absl::string_view message) {
  constexpr size_t kLongestMessage = 4000;
  if (message.size() <= kLongestMessage) return message;
  size_t size = kLongestMessage;
  while (size > 0 && (message[size] & 0xc0) == 0x80) --size;
  return message.substr(0, size);
}

void Fail(Transaction& t, RunRow* run, absl::string_view message) {
  message = Shorten(message);
  Record(t, *run, "failed", message);
  if (++run->failures < kFailuresWithoutProgress) return Requeue(t, run);
  run->failure = std::string(message);
  End(t, run, RunState::kFailed);
}

std::vector<LeaseRecord> ListLeases(Connection& db) {
  std::vector<LeaseRecord> leases;
  Statement row(db,
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
}

bool PruneLeases(Transaction& t, Micros before) {
  Statement gone(t.db,
                 "DELETE FROM leases WHERE id IN (SELECT id FROM leases "
                 "WHERE settled IS NOT NULL AND settled < ?1 LIMIT ?2) RETURNING 1",
                 before, kSliceLeases);
  bool any = false;
  while (gone.Row()) any = true;
  return any;
}

}  // namespace ablate::storage
