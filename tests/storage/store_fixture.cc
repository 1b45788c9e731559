// Implements the fixture of the store's tests.
#include "tests/storage/store_fixture.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "storage/sqlite/connection.h"

namespace ablate::storage {

std::shared_ptr<Blobs::Pin> PublishIn(Blobs* blobs, const std::string& bytes) {
  auto writer = Value(blobs->Create());
  EXPECT_TRUE(writer->Append(bytes).ok());
  return Value(writer->Publish(""));
}

void Alter(const std::string& database, const std::string& sql) {
  auto db = Value(Connection::OpenFile(database, Connection::Access::kReadWrite));
  db->Execute(sql.c_str());
  ASSERT_TRUE(db->error().ok()) << db->error();
}

LeaseHolder HolderIn(const std::string& environment, uint32_t numerics_version) {
  return {"cpu-train", "i1", "2 cores", "0.1", "torch", environment, numerics_version};
}

NewRun MakeRun(const std::string& fingerprint, uint32_t steps) {
  NewRun run;
  run.fingerprint = fingerprint;
  run.trajectory = "t-" + fingerprint;
  run.seed = 7;
  run.steps = steps;
  run.parameters = 1234;
  run.device_kind = "cpu";
  run.trainer = "torch";
  run.shape = "shape";
  run.spec = "spec of " + fingerprint;
  return run;
}

NewExperiment MakeExperiment(const std::vector<std::string>& fingerprints, uint32_t steps) {
  static int requests = 0;
  NewExperiment experiment;
  experiment.name = "names";
  experiment.owner = "ann";
  experiment.request_id = absl::StrCat("request-", ++requests);
  experiment.request_hash = "hash";
  experiment.spec = "the spec";
  for (const std::string& fingerprint : fingerprints) {
    NewCell cell;
    cell.name = absl::StrCat("c", experiment.cells.size());
    cell.labels = {{"norm", "pre"}, {"lr", absl::StrCat("0.", experiment.cells.size())}};
    cell.seed = 7;
    cell.fingerprint = fingerprint;
    experiment.cells.push_back(cell);
    const bool known =
        std::any_of(experiment.runs.begin(), experiment.runs.end(),
                    [&](const NewRun& run) { return run.fingerprint == fingerprint; });
    if (!known) experiment.runs.push_back(MakeRun(fingerprint, steps));
  }
  return experiment;
}

Column MakeColumn(const std::string& key, const std::vector<uint32_t>& steps,
                  const std::vector<double>& values) {
  return {key, steps, values};
}

PointsEvent MakePoints(uint32_t step, std::vector<Column> columns) {
  for (const Column& column : columns) {
    if (!column.steps.empty()) step = std::max(step, column.steps.back());
  }
  return {std::move(columns), step, {/*device_time=*/1000, /*contended_time=*/50, /*tokens=*/7}};
}

PointsEvent MakeLosses(uint32_t from, uint32_t to) {
  Column column{"train/loss", {}, {}};
  for (uint32_t step = from; step < to; ++step) {
    column.steps.push_back(step);
    column.values.push_back(100.0 - step);
  }
  return MakePoints(to, {column});
}

Lease::Lease(Store* store, std::string name, const std::vector<std::string>& runs,
             std::string worker, std::string incarnation)
    : Lease(store, std::move(name), runs,
            {std::move(worker), std::move(incarnation), "2 cores", "0.1", "torch", "", 0}) {}

Lease::Lease(Store* store, std::string name, const std::vector<std::string>& runs,
             const LeaseHolder& holder)
    : store_(store), name_(std::move(name)), incarnation_(holder.incarnation) {
  std::vector<NewLease> leases;
  for (const std::string& run : runs) {
    leases.push_back({leases.empty() ? name_ : absl::StrCat(name_, " of ", run), holder, run});
    runs_.try_emplace(run, OfRun{leases.back().lease});
  }
  for (std::optional<GrantedRun>& granted : Value(GrantAndWait(*store_, std::move(leases)))) {
    if (granted.has_value()) granted_.push_back(*std::move(granted));
  }
}

Applied Lease::Send(const LeaseEvent& event) {
  const auto results = Value(ApplyAndWait(*store_, incarnation_, {event}));
  EXPECT_EQ(results.size(), 1u);
  return results.empty() ? Applied::kNoLease : results[0];
}

StoreTest::StoreTest() { store_ = Value(Store::Open(Options())); }

StoreOptions StoreTest::Options() {
  StoreOptions options;
  if (on_file()) options.folder = folder_.path();
  options.last_states_bytes = last_states_bytes_;
  options.now = [this] { return now_.load(); };
  options.log = [this](const std::string& line) {
    MutexLock lock(&log_mutex_);
    log_.push_back(line);
  };
  return options;
}

void StoreTest::Reopen() {
  StoreOptions options = Options();
  if (!on_file()) options.image = Value(store_->Image());
  store_.reset();
  store_ = Value(Store::Open(options));
}

std::string StoreTest::Publish(const std::string& bytes) {
  if (!on_file()) return Sha256Hex(bytes);
  pins_.push_back(PublishIn(store().blobs(), bytes));
  return pins_.back()->sha256();
}

ResumeStateEvent StoreTest::Resume(uint32_t step) {
  const std::string bytes = absl::StrCat("state at ", step);
  return {step, Publish(bytes), bytes.size()};
}

CheckpointEvent StoreTest::Checkpoint(uint32_t step) {
  const std::string bytes = absl::StrCat("weights at ", step);
  return {step, Publish(bytes), bytes.size()};
}

// Looks at the file: asking the store would take it back from the trash.
bool StoreTest::BlobExists(const std::string& sha256) {
  return std::filesystem::exists(folder() + "/blobs/" + sha256);
}

CreatedExperiment StoreTest::Create(const NewExperiment& experiment) {
  return Value(store().CreateExperiment(experiment));
}

void StoreTest::Train(const std::vector<std::string>& runs, bool diverged) {
  Lease lease(&store(), absl::StrCat("train-", ++leases_), runs);
  ASSERT_EQ(lease.granted().size(), runs.size());
  for (const std::string& run : runs) {
    lease.Send(run, StartedEvent{});
    lease.Send(run, MakePoints(100, {MakeColumn("train/loss", {0, 50, 99}, {3, 2, 1})}));
    EXPECT_EQ(lease.Send(run, FinishedEvent{diverged, 100}), Applied::kApplied);
  }
}

std::vector<std::string> StoreTest::History(const std::string& run) {
  std::vector<std::string> kinds;
  for (const RunEventRecord& event : Value(store().RunEvents(run))) kinds.push_back(event.kind);
  return kinds;
}

std::string StoreTest::LastMessage(const std::string& run, const std::string& kind) {
  std::string message;
  for (const RunEventRecord& event : Value(store().RunEvents(run))) {
    if (event.kind == kind) message = event.message;
  }
  return message;
}

std::vector<std::pair<uint32_t, double>> StoreTest::Series(const std::string& run,
                                                           const std::string& key, uint32_t first,
                                                           uint32_t last) {
  std::vector<std::pair<uint32_t, double>> points;
  const absl::Status status =
      store().ReadSeries({run, key, first, last}, [&](const auto& steps, const auto& values) {
        EXPECT_EQ(steps.size(), values.size());
        for (size_t i = 0; i < steps.size(); ++i) points.emplace_back(steps[i], values[i]);
        return true;
      });
  EXPECT_TRUE(status.ok()) << status;
  return points;
}

void StoreTest::ExpectConsistent(const std::string& experiment) {
  const ExperimentRecord record = Value(store().GetExperiment(experiment));
  RunCounts counts;
  uint32_t* const fields[] = {&counts.queued,   &counts.running, &counts.done,
                              &counts.diverged, &counts.failed,  &counts.cancelled};
  const auto cells = Value(store().ListCells(experiment, 0, UINT32_MAX));
  for (const CellRecord& cell : cells) ++*fields[static_cast<int>(cell.state)];
  const auto flat = [](const RunCounts& c) {
    return std::vector<uint32_t>{c.queued, c.running, c.done, c.diverged, c.failed, c.cancelled};
  };
  EXPECT_EQ(flat(record.counts), flat(counts));
  if (record.state == ExperimentState::kCancelled) return;
  const bool live = counts.queued + counts.running > 0;
  EXPECT_EQ(record.state, live ? ExperimentState::kActive : ExperimentState::kEnded);
  EXPECT_EQ(record.end_time == 0, live);
}

std::string WhereName(const ::testing::TestParamInfo<Where>& info) {
  return info.param == Where::kFile ? "OnFile" : "InMemory";
}

}  // namespace ablate::storage
