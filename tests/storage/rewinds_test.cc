// Tests that a resumed run is exactly as at its resume state.
#include <cmath>
#include <filesystem>

#include "base/sha256.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

class RewindsTest : public StoreTest {
 protected:
  // Queues a run and gives it a state of step 10, made in an environment.
  void LeaveState(const std::string& run, const std::string& environment) {
    Submit({run});
    Lease lease(&store(), "first of " + run, {run}, HolderIn(environment));
    lease.Send(run, MakeLosses(0, 10));
    lease.Send(run, Resume(10));
    lease.Send(run, ReleasedEvent{});
  }
  // Expects the granted run to begin at step 0 with nothing.
  void ExpectBeginsAnew(const Lease& lease, const std::string& run) {
    ASSERT_THAT(lease.granted(), SizeIs(1));
    EXPECT_EQ(lease.granted()[0].resume_blob, "");
    EXPECT_EQ(lease.granted()[0].resume_step, 0u);
    EXPECT_EQ(Run(run).step, 0u);
    EXPECT_THAT(Series(run, "train/loss"), IsEmpty());
  }
};
INSTANTIATE_TEST_SUITE_P(, RewindsTest, ::testing::Values(Where::kFile, Where::kMemory), WhereName);

TEST_P(RewindsTest, RewindsToTheResumeState) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  first.Send("a", StartedEvent{});
  first.Send("a", MakePoints(30, {MakeColumn("train/loss", {0, 10, 20}, {9, 8, 7}),
                                  MakeColumn("grad", {0}, {1})}));
  first.Send("a", Checkpoint(30));
  first.Send("a", Resume(30));
  const auto summaries = Value(store().Summaries({"a"}));
  first.Send("a", MakePoints(60, {MakeColumn("train/loss", {30, 40}, {-5, NAN}),
                                  MakeColumn("eval/loss", {50}, {1})}));
  first.Send("a", Checkpoint(60));
  ASSERT_TRUE(EndLeaseAndWait(store(), "l1", {LeaseEnd::kLost, "silent"}).ok());
  EXPECT_EQ(StateOf("a"), RunState::kQueued);

  Lease second(&store(), "l2", {"a"});
  ASSERT_THAT(second.granted(), SizeIs(1));
  EXPECT_EQ(second.granted()[0].resume_step, 30u);
  EXPECT_EQ(second.granted()[0].resume_blob, Sha256Hex("state at 30"));
  EXPECT_EQ(Run("a").step, 30u);
  EXPECT_EQ(Run("a").spent.device_time, 1000);
  EXPECT_EQ(Run("a").spent.contended_time, 50);
  EXPECT_EQ(Run("a").spent.tokens, 7u);
  EXPECT_THAT(Series("a", "train/loss"), ElementsAre(Pair(0, 9), Pair(10, 8), Pair(20, 7)));
  EXPECT_THAT(Series("a", "eval/loss"), IsEmpty());
  EXPECT_THAT(Value(store().ListArtifacts("a")), SizeIs(1));
  const auto again = Value(store().Summaries({"a"}));
  ASSERT_THAT(again[0].keys, SizeIs(2));
  EXPECT_EQ(again[0].keys[1].key, "train/loss");
  EXPECT_EQ(again[0].keys[1].count, summaries[0].keys[1].count);
  EXPECT_EQ(again[0].keys[1].min, 7);
  EXPECT_EQ(again[0].keys[1].nonfinite, 0u);
  EXPECT_FALSE(again[0].keys[1].first_nonfinite_step.has_value());

  second.Send("a", StartedEvent{});
  second.Send("a", MakePoints(60, {MakeColumn("train/loss", {30, 40}, {6, 5})}));
  EXPECT_THAT(Series("a", "train/loss"),
              ElementsAre(Pair(0, 9), Pair(10, 8), Pair(20, 7), Pair(30, 6), Pair(40, 5)));
  EXPECT_EQ(History("a").back(), "resumed");
}

TEST_P(RewindsTest, RewindsToTheStartWithoutAResumeState) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  first.Send("a", MakeLosses(0, 30));
  first.Send("a", Checkpoint(30));
  first.Send("a", ReleasedEvent{});
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(30));  // until a worker takes it
  Lease second(&store(), "l2", {"a"});
  ExpectBeginsAnew(second, "a");
  EXPECT_EQ(Run("a").spent.device_time, 0);
  EXPECT_THAT(Value(store().Summaries({"a"}))[0].keys, IsEmpty());
  EXPECT_THAT(Value(store().ListArtifacts("a")), IsEmpty());
  second.Send("a", MakeLosses(0, 5));
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(5));
}

TEST_P(RewindsTest, KeepsOnlyTheNewestResumeState) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  first.Send("a", MakeLosses(0, 10));
  first.Send("a", Resume(10));
  first.Send("a", MakeLosses(10, 20));
  first.Send("a", Resume(20));
  first.Send("a", ReleasedEvent{});
  Lease second(&store(), "l2", {"a"});
  EXPECT_EQ(second.granted()[0].resume_step, 20u);
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(20));
}

TEST_P(RewindsTest, BeginsAnewInAnotherEnvironment) {
  LeaveState("a", "torch 2.12.0, AVX2");
  Lease second(&store(), "l2", {"a"}, HolderIn("torch 2.13.0, AVX512"));
  ExpectBeginsAnew(second, "a");
  EXPECT_EQ(LastMessage("a", "rewound"),
            "its resume state was made by torch 2.12.0, AVX2; this worker has torch 2.13.0, "
            "AVX512. It starts again from step 0");
  EXPECT_EQ(Run("a").environment, "torch 2.13.0, AVX512");
  EXPECT_EQ(Run("a").failures, 0u);
}

TEST_P(RewindsTest, ContinuesInTheSameEnvironmentAlsoAfterARestart) {
  LeaveState("a", "torch 2.13.0, AVX512");
  Reopen();
  Lease second(&store(), "l2", {"a"}, HolderIn("torch 2.13.0, AVX512"));
  EXPECT_EQ(second.granted()[0].resume_step, 10u);
  EXPECT_THAT(History("a"), Not(Contains("rewound")));
}

TEST_P(RewindsTest, LeavesAStateOfUnknownOriginToTheWorker) {
  LeaveState("a", "");
  Lease second(&store(), "l2", {"a"}, HolderIn("torch 2.13.0, AVX512"));
  EXPECT_EQ(second.granted()[0].resume_step, 10u);
}

TEST_P(RewindsTest, BeginsAnewAfterTheWorkerRefusedTheState) {
  LeaveState("a", "");
  Lease second(&store(), "l2", {"a"});
  second.Send("a", StartedEvent{});
  EXPECT_EQ(second.Send("a", ReleasedEvent{"numerics_version is '2'"}), Applied::kApplied);
  EXPECT_EQ(StateOf("a"), RunState::kQueued);
  EXPECT_EQ(Run("a").failures, 0u);
  EXPECT_EQ(LastMessage("a", "rewound"), "numerics_version is '2'. It starts again from step 0");
  ExpectBeginsAnew(Lease(&store(), "l3", {"a"}), "a");
}

TEST_P(RewindsTest, CountsARefusalOfNoStateAsAFailure) {
  Submit({"a"});
  for (uint32_t i = 0; i < kMaxFailuresWithoutProgress; ++i) {
    EXPECT_EQ(StateOf("a"), RunState::kQueued);
    Lease(&store(), "l" + std::to_string(i), {"a"}).Send("a", ReleasedEvent{"malformed"});
  }
  EXPECT_EQ(StateOf("a"), RunState::kFailed);
  EXPECT_EQ(Run("a").failure, "malformed");
}

TEST_P(RewindsTest, EndsARunThatWasQueuedForOtherNumbers) {
  NewExperiment experiment = MakeExperiment({"a", "b"});
  experiment.runs[0].numerics_version = 2;
  experiment.runs[1].numerics_version = 3;
  Create(experiment);
  Lease lease(&store(), "l", {"a", "b"}, HolderIn("e", 3));
  ASSERT_THAT(lease.granted(), SizeIs(1));
  EXPECT_EQ(lease.granted()[0].spec, "spec of b");
  EXPECT_EQ(StateOf("a"), RunState::kFailed);
  EXPECT_EQ(Run("a").failure,
            "it was queued for numerics version 2, and the workers compute version 3, which gives "
            "other numbers: submit its experiment again");
}

TEST_P(RewindsTest, RestartsFinishedWorkOnlyByANewGeneration) {
  Submit({"a"});
  Train({"a"});
  EXPECT_TRUE(Submit({"a"}).cells[0].reused);
  Lease lease(&store(), "l", {"a"});
  EXPECT_THAT(lease.granted(), IsEmpty());
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(3));
}

TEST_P(RewindsTest, ContinuesACancelledRunFromItsResumeState) {
  const std::string id = Submit({"a"}).id;
  Lease first(&store(), "l1", {"a"});
  first.Send("a", MakeLosses(0, 10));
  first.Send("a", Resume(10));
  ASSERT_TRUE(store().CancelExperiment(id).ok());
  Submit({"a"});
  Lease second(&store(), "l2", {"a"});
  EXPECT_EQ(second.granted()[0].resume_step, 10u);
  EXPECT_THAT(Series("a", "train/loss"), SizeIs(10));
}

TEST_P(RewindsTest, BeginsAFailedRunAnewWhenItIsSubmittedAgain) {
  Submit({"a"});
  Lease first(&store(), "l1", {"a"});
  first.Send("a", MakeLosses(0, 10));
  first.Send("a", Resume(10));
  first.Send("a", FailedEvent{"boom"});
  for (const std::string name : {"l2", "l3"}) {
    Lease(&store(), name, {"a"}).Send("a", FailedEvent{"boom"});
  }
  ASSERT_EQ(StateOf("a"), RunState::kFailed);
  Submit({"a"});
  ExpectBeginsAnew(Lease(&store(), "l4", {"a"}), "a");
}

TEST_P(RewindsTest, ReplacesACheckpointAtTheSameStep) {
  Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  lease.Send("a", Checkpoint(5));
  lease.Send("a", CheckpointEvent{5, Publish("other"), 5});
  const auto artifacts = Value(store().ListArtifacts("a"));
  ASSERT_THAT(artifacts, SizeIs(1));
  EXPECT_EQ(artifacts[0].blob, Sha256Hex("other"));
}

TEST(RestoredBackupTest, DropsLeasesWhoseEventsItNeverHad) {
  auto store = Value(Store::Open({}));
  ASSERT_TRUE(store->CreateExperiment(MakeExperiment({"a"})).ok());
  Lease lease(store.get(), "l", {"a"});
  lease.Send("a", MakePoints(1, {MakeColumn("x", {0}, {1})}));
  const std::string backup = Value(store->Image());
  lease.Send("a", MakePoints(2, {MakeColumn("x", {1}, {2})}));
  StoreOptions options;
  options.image = backup;
  auto restored = Value(Store::Open(options));
  EXPECT_EQ(restored->generation(), store->generation());
  EXPECT_TRUE(Value(restored->CheckLease("l", "i1", 3)).drop);
  EXPECT_FALSE(Value(restored->CheckLease("l", "i1", 2)).drop);
  EXPECT_EQ(Value(restored->GetRun("a")).step, 1u);
  EXPECT_EQ(Value(store->GetRun("a")).step, 2u);
}

// In memory there are no blobs.
class LostBlobTest : public RewindsTest {};
INSTANTIATE_TEST_SUITE_P(, LostBlobTest, ::testing::Values(Where::kFile), WhereName);

// As after the restore of an older database.
TEST_P(LostBlobTest, BeginsAnewWhenTheBlobOfTheResumeStateIsGone) {
  LeaveState("a", "");
  std::filesystem::remove(folder() + "/blobs/" + Sha256Hex("state at 10"));
  Lease second(&store(), "l2", {"a"});
  ExpectBeginsAnew(second, "a");
  EXPECT_THAT(History("a"), Contains("rewound"));
  EXPECT_EQ(second.Send("a", Resume(5)), Applied::kApplied);
}

}  // namespace
}  // namespace ablate::storage
