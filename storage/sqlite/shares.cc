#include "storage/sqlite/shares.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/sqlite/database.h"
#include "storage/store.h"

namespace ablate::storage {
namespace {

// Guess for a run whose shape nobody has measured.
constexpr double kUnknownRun = 10e6;

// Returns the part of `device_time` that still counts at this age. A clock that was set back
// doesn't reduce it.
double Decayed(double device_time, Micros age) {
  return device_time * std::exp2(-static_cast<double>(std::max<Micros>(age, 0)) / kShareHalfLife);
}

// Calls `add` with name and number for the rows of a user, or of all.
template <typename Add>
void ForEachOf(Connection& db, const char* sql, absl::string_view user, const Add& add) {
  Statement row(db, sql, user.empty(), user);  // one of a few literals
  while (row.Row()) add(row.Text(0), row.As<uint64_t>(1));
}

// Returns the open runs of active experiments by user; of all if `user` is empty. Counts all runs,
// whoever is charged, because a cancel moves the charge to others. CROSS JOIN fixes the order; any
// other would read all cells.
std::map<std::string, uint64_t> ReadOpenRuns(Connection& db, absl::string_view user) {
  std::map<std::string, uint64_t> open;
  ForEachOf(db,
            "SELECT owner, count(DISTINCT run) FROM experiments CROSS JOIN cells ON "
            "cells.experiment = experiments.id CROSS JOIN runs ON runs.id = cells.run WHERE "
            "experiments.state = 0 AND deleted = 0 AND runs.state IN (0, 1) AND (?1 OR owner = ?2) "
            "GROUP BY owner",
            user, [&](const std::string& name, uint64_t runs) { open[name] = runs; });
  return open;
}

// `user` empty: everybody's.
std::map<std::string, Holdings> ReadHoldings(Connection& db, absl::string_view user) {
  std::map<std::string, Holdings> holdings;
  for (const auto& [name, runs] : ReadOpenRuns(db, user)) holdings[name].open_runs = runs;
  const auto add_bytes = [&](const std::string& name, uint64_t bytes) {
    holdings[name].bytes += bytes;
  };
  for (const char* bytes :
       {"SELECT charged, sum(expected_bytes) FROM runs WHERE state IN (0, 1) AND (?1 OR charged = "
        "?2) GROUP BY charged",
        "SELECT charged, sum(bytes) FROM runs JOIN artifacts ON artifacts.run = runs.id WHERE "
        "state NOT IN (0, 1) AND (?1 OR charged = ?2) GROUP BY charged",
        "SELECT charged, sum(bytes) FROM runs JOIN resume_states ON resume_states.run = runs.id "
        "WHERE (?1 OR charged = ?2) GROUP BY charged",
        "SELECT owner, sum(bytes) FROM datasets WHERE (?1 OR owner = ?2) GROUP BY owner",
        "SELECT owner, sum(bytes) FROM models WHERE (?1 OR owner = ?2) GROUP BY owner",
        "SELECT owner, sum(artifact_bytes + state_bytes) FROM analyses WHERE (?1 OR owner = ?2) "
        "GROUP BY owner"}) {
    ForEachOf(db, bytes, user, add_bytes);
  }
  return holdings;
}

}  // namespace

void Charge(Transaction& t, const std::string& user, Micros device_time) {
  if (device_time <= 0) return;
  device_time = std::min(device_time, kMaxDeviceTime);
  double used = 0;
  {
    Statement row(t.db, "SELECT device_time, time FROM shares WHERE user = ?1", user);
    if (row.Row()) used = Decayed(row.Real(0), t.now - row.Int(1));
  }
  Statement(t.db, "REPLACE INTO shares VALUES (?1, ?2, ?3)", user,
            used + static_cast<double>(device_time), t.now)
      .Run();
}

uint64_t OpenRuns(Connection& db, absl::string_view user) {
  const auto holdings = ReadOpenRuns(db, user);
  const auto found = holdings.find(std::string(user));
  return found == holdings.end() ? 0 : found->second;
}

absl::Status TooManyOpenRuns(absl::string_view user, uint64_t would_be, int64_t most) {
  return absl::ResourceExhaustedError(absl::StrCat(user, " would have ", would_be,
                                                   " queued or training runs; expected at most ",
                                                   most, " (quota queued_runs)"));
}

absl::StatusOr<DeviceShares> Store::GetShares() {
  const Micros now = options_.now();
  return db_->Read([&](Connection& db) {
    DeviceShares shares;
    Statement used(db, "SELECT user, device_time, time FROM shares");
    while (used.Row()) shares[used.Text(0)].used = Decayed(used.Real(1), now - used.Int(2));
    Statement training(db,
                       "SELECT charged, iif(open_steps, 1, runs.steps - step), iif(open_steps, 1, "
                       "runs.steps), iif(own, runs.device_time, step_times.device_time), iif(own, "
                       "step, step_times.steps), runs.lanes FROM (SELECT *, step > 0 AND "
                       "device_time >= ?1 AND NOT open_steps AS own FROM runs WHERE state = 1) AS "
                       "runs LEFT JOIN step_times ON step_times.shape = runs.shape",
                       kLeastMeasured);
    while (training.Row()) {
      DeviceShare& share = shares[training.Text(0)];
      share.training += training.As<uint32_t>(5);
      const double left = training.Real(1), steps = std::max(training.Real(2), 1.0);
      const double measured = training.Real(4);
      share.expected +=
          measured > 0 ? left * training.Real(3) / measured : left / steps * kUnknownRun;
    }
    return shares;
  });
}

absl::StatusOr<std::map<std::string, Holdings>> Store::GetHoldings() {
  return db_->Read([](Connection& db) { return ReadHoldings(db, ""); });
}

absl::StatusOr<Holdings> Store::HoldingsOf(absl::string_view user) {
  return db_->Read([&](Connection& db) {
    return user.empty() ? Holdings() : ReadHoldings(db, user)[std::string(user)];
  });
}

}  // namespace ablate::storage
