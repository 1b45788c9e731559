// Holds an experiment in a store in memory whose runs end as a test decides, without server or
// worker.
#include "tests/results/stored_grid.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "server/experiment/resolve.h"
#include "server/submit/plan.h"
#include "tests/storage/waiting.h"

namespace ablate::results {
namespace {

constexpr storage::Micros kSecond = 1'000'000;

storage::NewExperiment ToExperiment(const spec::Resolution& resolution) {
  storage::NewExperiment experiment;
  experiment.name = resolution.spec.name();
  experiment.owner = "ada";
  experiment.spec = resolution.spec.SerializeAsString();
  std::set<std::string> known;
  for (const spec::ResolvedCell& cell : resolution.cells) {
    experiment.cells.push_back({cell.name, cell.labels, cell.seed, cell.fingerprint});
    if (known.insert(cell.fingerprint).second) {
      experiment.runs.push_back(submit::ToRun(cell));
      // The store here has no data sets.
      experiment.runs.back().dataset_blob.clear();
    }
  }
  return experiment;
}

uint32_t LastStep(const StoredGrid::Curves& curves) {
  uint32_t last = 1;
  for (const auto& [key, curve] : curves) last = std::max(last, curve.rbegin()->first);
  return last;
}

storage::PointsEvent PointsOf(const StoredGrid::Curves& curves, uint32_t step) {
  storage::PointsEvent points;
  for (const auto& [key, curve] : curves) {
    storage::Column column{key, {}, {}};
    for (const auto& [at, value] : curve) {
      column.steps.push_back(at);
      column.values.push_back(value);
    }
    points.columns.push_back(std::move(column));
  }
  points.step = step;
  points.spent = {kSecond, kSecond / 20, 100};
  return points;
}

}  // namespace

StoredGrid::StoredGrid(const std::string& text, const std::string& folder) {
  storage::StoreOptions options;
  options.folder = folder;
  store_ = *storage::Store::Open(std::move(options));
  Submit(text);
}

void StoredGrid::Submit(const std::string& text) {
  v1::ExperimentSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  spec::Surroundings surroundings;
  surroundings.find_dataset = [](absl::string_view, bool) -> absl::StatusOr<spec::DatasetFacts> {
    return absl::NotFoundError("there are no data sets here");
  };
  surroundings.environments["cpu"] = {{"default", "python 3.11"}};
  const spec::Resolution resolution = spec::Resolve(spec, {}, surroundings);
  for (const spec::Problem& problem : resolution.problems) ADD_FAILURE() << problem.message;
  storage::NewExperiment experiment = ToExperiment(resolution);
  experiment.request_id = absl::StrCat("request", ++submits_);
  const auto created = store_->CreateExperiment(experiment);
  EXPECT_TRUE(created.ok()) << created.status();
  experiment_ = created->id;
  const auto cells = store_->ListCells(experiment_, 0, 100'000);
  for (const storage::CellRecord& cell : *cells) cells_[cell.name] = cell;
}

void StoredGrid::Start(const std::string& cell) {
  EXPECT_EQ(cells_.count(cell), 1u) << cell;
  const std::string& run = cells_[cell].run;
  const auto granted =
      GrantAndWait(*store_, {{absl::StrCat("l", ++leases_),
                              {"cpu-train", "i1", "EPYC, 2 lanes", "0.1", "torch", "e", 0},
                              run}});
  EXPECT_TRUE(granted.ok() && granted->front().has_value()) << cell << " can't be granted";
}

void StoredGrid::Send(const std::string& cell, std::vector<storage::LeaseEvent> events) {
  Start(cell);
  events.insert(events.begin(), {"", 0, storage::StartedEvent{}});
  for (size_t i = 0; i < events.size(); ++i) {
    events[i].lease = absl::StrCat("l", leases_);
    events[i].seq = i + 1;
  }
  const auto applied = ApplyAndWait(*store_, "i1", events);
  ASSERT_TRUE(applied.ok()) << applied.status();
  for (const storage::Applied one : *applied) ASSERT_EQ(one, storage::Applied::kApplied);
}

std::string StoredGrid::Publish(const std::string& bytes) {
  if (store_->blobs() == nullptr) return Sha256Hex(bytes);
  auto writer = store_->blobs()->Create();
  EXPECT_TRUE(writer.ok() && (*writer)->Append(bytes).ok());
  auto pin = (*writer)->Publish("");
  EXPECT_TRUE(pin.ok()) << pin.status();
  pins_.push_back(*std::move(pin));
  return pins_.back()->sha256();
}

void StoredGrid::Finish(const std::string& cell, const Curves& curves, bool diverged) {
  uint32_t steps = cells_[cell].steps;
  if (steps == 0) steps = LastStep(curves);  // a program's
  const std::string weights = "weights";
  Send(cell, {{"", 0, PointsOf(curves, steps)},
              {"", 0, storage::CheckpointEvent{steps, Publish(weights), weights.size()}},
              {"", 0, storage::FinishedEvent{diverged, steps}}});
}

void StoredGrid::Report(const std::string& cell, const Curves& curves) {
  Send(cell, {{"", 0, PointsOf(curves, LastStep(curves))}});
}

void StoredGrid::Analyze(const std::string& cell, const std::string& label,
                         const std::string& result, const std::string& request,
                         const std::string& arrays) {
  storage::NewAnalysis analysis;
  analysis.id = absl::StrCat(label, "-", cell);
  analysis.signature = label;
  analysis.request = request;
  analysis.subjects = {{cells_[cell].run, cells_[cell].steps}};
  analysis.labels = {{experiment_, label}};
  const auto asker = store_->GetExperiment(experiment_);
  if (asker.ok() && asker->state == storage::ExperimentState::kActive) {
    analysis.asked_by = experiment_;
    analysis.asked_as = label;
  }
  const auto created = store_->CreateAnalysis(analysis, 100);
  ASSERT_TRUE(created.ok()) << created.status();
  storage::AnalysisEnd end;
  end.result = result;
  if (!arrays.empty()) end.artifact = Publish(arrays);
  end.artifact_bytes = arrays.size();
  EXPECT_TRUE(store_->EndAnalysis(analysis.id, end).ok());
}

void StoredGrid::Fail(const std::string& cell) {
  Send(cell, {{"", 0, storage::FailedEvent{"it broke"}}});
}

}  // namespace ablate::results
