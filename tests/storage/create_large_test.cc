// Tests the creation of experiments that takes several transactions: what others see and change
// between them, and what is left if it doesn't succeed.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kCells = 1'600;

// In memory: what happens after a commit uses the store between two transactions.
class CreateLargeTest : public ::testing::Test {
 protected:
  CreateLargeTest() { Open({}); }

  void Open(StoreOptions options) {
    options.on_commit = [this](uint64_t) { Committed(); };
    store_ = Value(Store::Open(std::move(options)));
  }
  // Calls `between` once, after so many further commits.
  void After(int commits, std::function<void()> between) {
    left_ = commits;
    between_ = std::move(between);
  }
  static NewExperiment Large() {
    std::vector<std::string> runs;
    for (int i = 0; i < kCells; ++i) runs.push_back(absl::StrCat("r", i));
    return MakeExperiment(runs);
  }
  std::vector<std::string> Queued(uint32_t limit) {
    std::vector<std::string> runs;
    for (const QueuedRun& run : Value(store_->Queue("cpu", {"torch"}, limit))) {
      runs.push_back(run.run);
    }
    return runs;
  }
  // Expects that maintenance leaves no experiment, run or cell.
  void ExpectNothing() {
    ASSERT_TRUE(store_->Maintain().ok());
    EXPECT_THAT(Value(store_->ListExperiments(kServer, {}, "", 10)), IsEmpty());
    EXPECT_EQ(Value(store_->CountRuns()).queued, 0u);
    EXPECT_EQ(CodeOf(store_->GetRun("r0")), absl::StatusCode::kNotFound);
  }

  std::unique_ptr<Store> store_;

 private:
  void Committed() {
    if (left_ == 0 || --left_ > 0) return;
    std::exchange(between_, nullptr)();
  }

  int left_ = 0;
  std::function<void()> between_;
};

TEST_F(CreateLargeTest, IsNotSeenOrGrantedBeforeItIsWhole) {
  bool looked = false;
  After(3, [&] {
    looked = true;
    EXPECT_THAT(Value(store_->ListExperiments(kServer, {}, "", 10)), IsEmpty());
    EXPECT_THAT(Queued(10), IsEmpty());
    EXPECT_GT(Value(store_->CountRuns()).queued, 500u);
  });
  const CreatedExperiment created = Value(store_->CreateExperiment(Large()));
  EXPECT_TRUE(looked);
  EXPECT_THAT(created.cells, SizeIs(kCells));
  EXPECT_EQ(created.reused, 0u);
  EXPECT_THAT(Queued(3), ElementsAre("r0", "r1", "r2"));
  const ExperimentRecord record = Value(store_->GetExperiment(created.id));
  EXPECT_EQ(record.state, ExperimentState::kActive);
  EXPECT_EQ(record.counts.queued, static_cast<uint32_t>(kCells));
}

TEST_F(CreateLargeTest, LetsOtherWritesInBetween) {
  std::string other;
  After(2, [&] { other = Value(store_->CreateExperiment(MakeExperiment({"r1", "x"}))).id; });
  const CreatedExperiment created = Value(store_->CreateExperiment(Large()));
  EXPECT_EQ(Value(store_->GetExperiment(other)).counts.queued, 2u);
  EXPECT_EQ(Value(store_->GetExperiment(created.id)).counts.queued, static_cast<uint32_t>(kCells));
  // r1 was granted since the other one was there.
  EXPECT_THAT(Queued(3), ElementsAre("r0", "r1", "r2"));
  Value(store_->CancelExperiment(created.id));
  EXPECT_THAT(Queued(10), ElementsAre("r1", "x"));
}

TEST_F(CreateLargeTest, QueuesAgainWhatWasCancelledInBetween) {
  const std::string other = Value(store_->CreateExperiment(MakeExperiment({"r0"}))).id;
  After(3, [&] { Value(store_->CancelExperiment(other)); });
  const CreatedExperiment created = Value(store_->CreateExperiment(Large()));
  EXPECT_EQ(Value(store_->GetExperiment(created.id)).counts.queued, static_cast<uint32_t>(kCells));
  EXPECT_EQ(Value(store_->GetExperiment(created.id)).counts.cancelled, 0u);
  EXPECT_FALSE(created.cells[0].reused) << "it was queued again for this one";
  EXPECT_THAT(Queued(2), ElementsAre("r0", "r1"));
}

TEST_F(CreateLargeTest, KeepsWhatEndedInBetween) {
  Value(store_->CreateExperiment(MakeExperiment({"r0"})));
  After(3, [&] {
    Lease lease(store_.get(), "l", {"r0"});
    EXPECT_EQ(lease.Send("r0", FinishedEvent{false, kSteps}), Applied::kApplied);
  });
  const CreatedExperiment created = Value(store_->CreateExperiment(Large()));
  EXPECT_TRUE(created.cells[0].reused);
  const ExperimentRecord record = Value(store_->GetExperiment(created.id));
  EXPECT_EQ(record.counts.done, 1u);
  EXPECT_EQ(record.counts.queued, static_cast<uint32_t>(kCells) - 1);
  EXPECT_EQ(record.state, ExperimentState::kActive);
}

TEST_F(CreateLargeTest, LeavesNothingIfItExceedsAQuota) {
  NewExperiment experiment = Large();
  experiment.max_open_runs = kCells - 1;
  EXPECT_FALSE(store_->CreateExperiment(experiment).ok());
  ExpectNothing();
  experiment.max_open_runs = kCells;
  EXPECT_TRUE(store_->CreateExperiment(experiment).ok());
}

TEST_F(CreateLargeTest, LeavesNothingIfARunCannotBeMade) {
  NewExperiment experiment = Large();
  experiment.runs.back().dataset_blob = std::string(64, 'a');
  EXPECT_EQ(CodeOf(store_->CreateExperiment(experiment)), absl::StatusCode::kNotFound);
  ExpectNothing();
}

TEST_F(CreateLargeTest, LeavesNothingIfTheServerEndsInBetween) {
  for (const int commits : {1, 2, 4}) {
    std::string image;
    After(commits, [&] { image = Value(store_->Image()); });
    Value(store_->CreateExperiment(Large()));
    StoreOptions options;
    options.image = image;
    Open(std::move(options));
    ExpectNothing();
    EXPECT_TRUE(store_->CreateExperiment(Large()).ok());
    Open({});
  }
}

TEST_F(CreateLargeTest, KeepsOthersRunsIfTheServerEndsInBetween) {
  const std::string other = Value(store_->CreateExperiment(MakeExperiment({"r1", "x"}))).id;
  std::string image;
  After(3, [&] { image = Value(store_->Image()); });
  Value(store_->CreateExperiment(Large()));
  StoreOptions options;
  options.image = image;
  Open(std::move(options));
  ASSERT_TRUE(store_->Maintain().ok());
  EXPECT_THAT(Queued(10), ElementsAre("r1", "x"));
  EXPECT_EQ(Value(store_->GetExperiment(other)).counts.queued, 2u);
}

TEST_F(CreateLargeTest, AnswersARepetitionThatWasFaster) {
  NewExperiment experiment = Large();
  experiment.request_id = "one";
  experiment.request_hash = "hash";
  CreatedExperiment first;
  After(2, [&] { first = Value(store_->CreateExperiment(experiment)); });
  const CreatedExperiment second = Value(store_->CreateExperiment(experiment));
  EXPECT_EQ(second.id, first.id);
  EXPECT_TRUE(second.repeated);
  ASSERT_TRUE(store_->Maintain().ok());
  EXPECT_THAT(Value(store_->ListExperiments(kServer, {}, "", 10)), SizeIs(1));
  EXPECT_EQ(Value(store_->GetExperiment(first.id)).counts.queued, static_cast<uint32_t>(kCells));
  EXPECT_THAT(Queued(2), ElementsAre("r0", "r1"));
}

TEST_F(CreateLargeTest, FindsAnIdenticalOneThatWasFaster) {
  NewExperiment experiment = Large();
  experiment.request_id = "";
  experiment.repeats = [](const ExperimentRecord&) { return true; };
  CreatedExperiment first;
  After(2, [&] { first = Value(store_->CreateExperiment(experiment)); });
  const CreatedExperiment second = Value(store_->CreateExperiment(experiment));
  EXPECT_EQ(second.id, first.id);
  EXPECT_TRUE(second.identical);
  ASSERT_TRUE(store_->Maintain().ok());
  EXPECT_THAT(Value(store_->ListExperiments(kServer, {}, "", 10)), SizeIs(1));
}

TEST_F(CreateLargeTest, IsTheFirstToHaveTheRunsOfOneThatWasAbandoned) {
  NewExperiment refused = Large();
  refused.max_open_runs = kCells - 1;
  EXPECT_EQ(CodeOf(store_->CreateExperiment(refused)), absl::StatusCode::kResourceExhausted);
  const CreatedExperiment created = Value(store_->CreateExperiment(Large()));
  for (const CellRecord& cell : Value(store_->ListCells(created.id, 0, kCells))) {
    ASSERT_EQ(cell.first_experiment, 2) << cell.name;
  }
}

TEST_F(CreateLargeTest, ReusesRunsOfASmallerOne) {
  Value(store_->CreateExperiment(MakeExperiment({"r3"})));
  const CreatedExperiment created = Value(store_->CreateExperiment(Large()));
  EXPECT_EQ(created.reused, 1u);
  EXPECT_TRUE(created.cells[3].reused);
}

}  // namespace
}  // namespace ablate::storage
