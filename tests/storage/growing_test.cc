// Tests that a run that equals a shorter one except for its steps continues that one.
#include <filesystem>
#include <functional>

#include "base/sha256.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr uint32_t kShort = 30;
constexpr uint32_t kLong = 60;
constexpr uint32_t kEvaluationEvery = 20;

// Returns everything from step `from` to the end of a run of `steps`, as sent by a worker that
// evaluates every 20 steps and at the end.
PointsEvent MakeRest(uint32_t from, uint32_t steps) {
  PointsEvent event = MakeLosses(from, steps);
  Column evaluations{"eval/loss", {}, {}};
  for (uint32_t step = from; step <= steps; ++step) {
    if (step % kEvaluationEvery != 0 && step != steps) continue;
    evaluations.steps.push_back(step);
    evaluations.values.push_back(3 - step / 100.0);
  }
  event.columns.push_back(evaluations);
  return event;
}

class GrowingTest : public StoreTest {
 protected:
  // Queues the run `name` of a growth; empty `origin`: from step 0.
  std::string SubmitRun(const std::string& name, uint32_t steps, const std::string& origin = "",
                        const std::string& growth = "g", bool fresh = false) {
    NewExperiment experiment = MakeExperiment({name}, steps);
    experiment.runs[0].growth = growth;
    experiment.runs[0].origin = origin;
    experiment.fresh = fresh;
    const CreatedExperiment created = Create(experiment);
    experiments_[created.cells[0].run] = created.id;
    return created.cells[0].run;
  }
  // Trains a granted run from its present step to its end.
  void Finish(Lease* lease, const std::string& run, bool diverged = false) {
    ASSERT_THAT(lease->granted(), SizeIs(1));
    const uint32_t from = lease->granted()[0].resume_step;
    const uint32_t steps = Run(run).steps;
    lease->Send(run, StartedEvent{});
    if (from < 10) lease->Send(run, Checkpoint(10));
    EXPECT_EQ(lease->Send(run, MakeRest(from, steps)), Applied::kApplied);
    lease->Send(run, Checkpoint(steps));
    if (lease->granted()[0].keep_state && !diverged) lease->Send(run, StateOfEnd(run));
    EXPECT_EQ(lease->Send(run, FinishedEvent{diverged, steps}), Applied::kApplied);
  }
  void TrainRun(const std::string& name, uint32_t steps, const std::string& environment = "") {
    SubmitRun(name, steps);
    Lease lease(&store(), NextLease(), {name}, HolderIn(environment));
    Finish(&lease, name);
  }
  ResumeStateEvent StateOfEnd(const std::string& run) {
    const std::string bytes = absl::StrCat("last state of ", run);
    return {Run(run).steps, Publish(bytes), bytes.size()};
  }
  static std::string BlobOfEnd(const std::string& run) {
    return Sha256Hex(absl::StrCat("last state of ", run));
  }
  std::vector<ShorterRun> Shorter(const std::string& name, uint32_t steps,
                                  const std::string& growth = "g") {
    NewRun run = MakeRun(name, steps);
    run.growth = growth;
    return Value(store().LookUpRuns({run}))[0].shorter;
  }
  std::vector<std::string> ShorterNames(uint32_t steps) {
    std::vector<std::string> names;
    for (const ShorterRun& run : Shorter("any", steps)) names.push_back(run.run);
    return names;
  }
  void Delete(const std::string& run) {
    ASSERT_TRUE(store().DeleteExperiment(experiments_.at(run)).ok());
    ASSERT_TRUE(store().Maintain().ok());
  }
  // Expects the stored data of a run to equal that of a run which was trained at once.
  void ExpectWhole(const std::string& run, uint32_t steps) {
    const PointsEvent whole = MakeRest(0, steps);
    for (const Column& column : whole.columns) {
      std::vector<std::pair<uint32_t, double>> expected;
      for (size_t i = 0; i < column.steps.size(); ++i) {
        expected.emplace_back(column.steps[i], column.values[i]);
      }
      EXPECT_EQ(Series(run, column.key), expected);
    }
    const RunSummaries summaries = Value(store().Summaries({run}))[0];
    EXPECT_EQ(summaries.damage, "");
    ASSERT_THAT(summaries.keys, SizeIs(2));
    EXPECT_EQ(summaries.keys[0].count, whole.columns[1].steps.size());
    EXPECT_EQ(summaries.keys[1].count, steps);
    EXPECT_EQ(summaries.keys[1].last, 101.0 - steps);
  }
  // Expects the run to be granted, and to begin at step 0 with nothing.
  void ExpectBeginsAnew(const std::string& run, const std::string& environment = "") {
    Lease lease(&store(), NextLease(), {run}, HolderIn(environment));
    ASSERT_THAT(lease.granted(), SizeIs(1));
    EXPECT_EQ(lease.granted()[0].resume_blob, "");
    EXPECT_EQ(lease.granted()[0].resume_step, 0u);
    EXPECT_EQ(Run(run).step, 0u);
    EXPECT_EQ(Run(run).origin, "");
    EXPECT_THAT(Series(run, "train/loss"), IsEmpty());
    EXPECT_THAT(Value(store().ListArtifacts(run)), IsEmpty());
    Finish(&lease, run);
    ExpectWhole(run, kLong);
  }

  std::string NextLease() { return absl::StrCat("lease ", ++leases_); }

  std::map<std::string, std::string> experiments_;  // by run
  int leases_ = 0;
};
INSTANTIATE_TEST_SUITE_P(, GrowingTest, ::testing::Values(Where::kFile, Where::kMemory), WhereName);

TEST_P(GrowingTest, ContinuesFromTheLastStateOfAShorterRun) {
  for (const bool compacted : {false, true}) {
    const std::string shorter = compacted ? "a" : "b";
    const std::string longer = shorter + "-long";
    TrainRun(shorter, kShort);
    if (compacted) {
      ASSERT_TRUE(store().Maintain().ok());
    }
    SubmitRun(longer, kLong, shorter);
    EXPECT_EQ(Run(longer).origin, shorter);
    Lease lease(&store(), longer, {longer});
    ASSERT_THAT(lease.granted(), SizeIs(1));
    EXPECT_EQ(lease.granted()[0].resume_step, kShort);
    EXPECT_EQ(lease.granted()[0].resume_blob, BlobOfEnd(shorter));
    EXPECT_TRUE(lease.granted()[0].keep_state);
    EXPECT_EQ(Run(longer).step, kShort);
    EXPECT_EQ(Run(longer).spent.device_time, Run(shorter).spent.device_time);
    EXPECT_THAT(Series(longer, "train/loss"), SizeIs(kShort));
    // Without the shorter run's own end.
    EXPECT_THAT(Series(longer, "eval/loss"), ElementsAre(Pair(0, 3), Pair(20, 2.8)));
    EXPECT_THAT(Value(store().ListArtifacts(longer)),
                ElementsAre(Field(&ArtifactRecord::step, 10u)));
    EXPECT_THAT(History(longer), ElementsAre("queued", "continued", "granted"));
    EXPECT_EQ(LastMessage(longer, "continued"), absl::StrCat("from step 30 of run ", shorter));
    Finish(&lease, longer);
    ExpectWhole(longer, kLong);
    ASSERT_TRUE(store().Maintain().ok());
    ExpectWhole(longer, kLong);
    ExpectWhole(shorter, kShort);
    EXPECT_THAT(Value(store().ListArtifacts(longer)), SizeIs(2));
    EXPECT_EQ(Run(longer).origin, shorter);
    EXPECT_EQ(Run(longer).origin_step, kShort);
    const auto cells = Value(store().ListCells(experiments_.at(longer), 0, 1));
    EXPECT_EQ(cells[0].origin, shorter);
    EXPECT_EQ(cells[0].origin_step, kShort);
    EXPECT_EQ(cells[0].step, kLong);
    const auto changed = Value(store().ChangedCells(experiments_.at(longer), 0, 1));
    EXPECT_EQ(changed[0].origin, shorter);
  }
}

TEST_P(GrowingTest, CopiesLongSeriesWithManyKeys) {
  const uint32_t steps = 100'000;
  SubmitRun("a", steps);
  {
    Lease lease(&store(), "of a", {"a"});
    for (uint32_t from = 0; from < steps; from += 10'000) {
      PointsEvent event = MakeLosses(from, from + 10'000);
      for (int key = 0; key < 3; ++key) {
        event.columns.push_back(event.columns[0]);
        event.columns.back().key = absl::StrCat("key ", key);
      }
      lease.Send("a", event);
    }
    lease.Send("a", StateOfEnd("a"));
    lease.Send("a", FinishedEvent{false, steps});
  }
  ASSERT_TRUE(store().Maintain().ok());
  SubmitRun("b", 2 * steps, "a");
  Lease lease(&store(), "of b", {"b"});
  EXPECT_EQ(lease.granted()[0].resume_step, steps);
  for (const char* key : {"train/loss", "key 0", "key 1", "key 2"}) {
    EXPECT_EQ(Series("b", key), Series("a", key));
  }
}

TEST_P(GrowingTest, KnowsTheShorterRunsOfAGrowthTheLongestFirst) {
  TrainRun("a", 10, "e1");
  TrainRun("b", 20, "e2");
  const auto shorter = Shorter("c", kShort);
  ASSERT_THAT(shorter, SizeIs(2));
  EXPECT_EQ(shorter[0].run, "b");
  EXPECT_EQ(shorter[0].steps, 20u);
  EXPECT_EQ(shorter[0].environment, "e2");
  EXPECT_EQ(shorter[1].run, "a");
  EXPECT_THAT(Shorter("c", 20), SizeIs(1));  // strictly shorter
  EXPECT_THAT(Shorter("c", kShort, "other"), IsEmpty());
  EXPECT_THAT(Shorter("c", kShort, ""), IsEmpty());
  EXPECT_THAT(Shorter("a", kShort), IsEmpty());  // is there
}

TEST_P(GrowingTest, KeepsNoStateThatIsNotOfTheEndOfARunThatIsDone) {
  const auto end = [&](const std::string& run, const std::string& growth, bool at_end,
                       bool diverged) {
    SubmitRun(run, kShort, "", growth);
    Lease lease(&store(), "of " + run, {run});
    EXPECT_EQ(lease.granted()[0].keep_state, !growth.empty());
    lease.Send(run, MakeLosses(0, 20));
    if (!at_end) lease.Send(run, Resume(20));
    lease.Send(run, MakeLosses(20, kShort));
    if (at_end) lease.Send(run, StateOfEnd(run));
    lease.Send(run, FinishedEvent{diverged, kShort});
  };
  end("no growth", "", true, false);
  end("no state", "g", false, false);
  end("diverged", "g", true, true);
  EXPECT_THAT(ShorterNames(kLong), IsEmpty());
  ASSERT_TRUE(store().Maintain().ok());
  UnpinAndSweep();
  for (const char* run : {"no growth", "diverged"}) EXPECT_FALSE(BlobExists(BlobOfEnd(run)));
  end("well", "g", true, false);
  EXPECT_THAT(ShorterNames(kLong), ElementsAre("well"));
}

TEST_P(GrowingTest, LetsTheOldestLastStatesGo) {
  const uint64_t bytes = std::string("last state of a").size();
  KeepLastStates(2 * bytes + 1);
  Reopen();
  for (const char* run : {"a", "b", "c"}) TrainRun(run, kShort);
  EXPECT_THAT(ShorterNames(kLong), ElementsAre("c", "b"));
  UnpinAndSweep();
  if (on_file()) {
    EXPECT_FALSE(BlobExists(BlobOfEnd("a")));
    EXPECT_TRUE(BlobExists(BlobOfEnd("b")));
  }
  TrainRun("one that is too large alone" + std::string(2 * bytes, '!'), kShort);
  EXPECT_THAT(ShorterNames(kLong), ElementsAre("c", "b"));
  KeepLastStates(bytes);
  Reopen();
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_THAT(ShorterNames(kLong), ElementsAre("c"));
  KeepLastStates(0);
  Reopen();
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_THAT(ShorterNames(kLong), IsEmpty());
  EXPECT_EQ(LastMessage("c", "state deleted"),
            "its saved training state was deleted to stay within --last-states");
  NewRun longer = MakeRun("e", kLong);
  longer.growth = "g";
  const std::optional<LostState> lost = Value(store().LookUpRuns({longer}))[0].lost;
  ASSERT_TRUE(lost.has_value());
  EXPECT_EQ(lost->steps, kShort);
  EXPECT_EQ(lost->why, "was deleted to stay within --last-states");
  SubmitRun("d", kShort);
  Lease lease(&store(), "of d", {"d"});
  EXPECT_FALSE(lease.granted()[0].keep_state);
}

TEST_P(GrowingTest, LetsNoStateGoThatAQueuedRunBeginsFrom) {
  KeepLastStates(std::string("last state of a").size());
  Reopen();
  TrainRun("a", kShort);
  SubmitRun("long", kLong, "a");
  TrainRun("b", kShort);
  EXPECT_THAT(ShorterNames(kLong), ElementsAre("a"));
  Lease lease(&store(), "of long", {"long"});
  EXPECT_EQ(lease.granted()[0].resume_step, kShort);
  TrainRun("c", kShort);  // the run has begun
  EXPECT_THAT(ShorterNames(kLong), ElementsAre("c"));
  UnpinAndSweep();
  // It is the resume state of the run now.
  EXPECT_EQ(BlobExists(BlobOfEnd("a")), on_file());
  Finish(&lease, "long");
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_FALSE(BlobExists(BlobOfEnd("a")));
}

TEST_P(GrowingTest, IsARunLikeAnyOtherOnceItHasBegun) {
  TrainRun("a", kShort);
  SubmitRun("b", kLong, "a");
  {
    Lease lease(&store(), "l1", {"b"});
    lease.Send("b", MakeLosses(kShort, 40));
    ASSERT_TRUE(EndLeaseAndWait(store(), "l1", {LeaseEnd::kLost, "silent"}).ok());
  }
  Reopen();
  Delete("a");
  {
    // Back to its origin's end; the shorter run isn't needed any more.
    Lease lease(&store(), "l2", {"b"});
    EXPECT_EQ(lease.granted()[0].resume_step, kShort);
    EXPECT_THAT(Series("b", "train/loss"), SizeIs(kShort));
    lease.Send("b", MakeRest(kShort, 50));
    lease.Send("b", Resume(50));
    ASSERT_TRUE(store().CancelExperiment(experiments_.at("b")).ok());
  }
  SubmitRun("b", kLong, "a");
  Lease lease(&store(), "l3", {"b"});
  EXPECT_EQ(lease.granted()[0].resume_step, 50u);
  EXPECT_EQ(Run("b").origin, "a");  // its origin, although that is gone
  EXPECT_EQ(Run("b").origin_step, kShort);
  EXPECT_THAT(Value(store().ListArtifacts("b")), SizeIs(1));
}

TEST_P(GrowingTest, BeginsAnewWhenTheWorkerRefusesTheState) {
  TrainRun("a", kShort);
  SubmitRun("b", kLong, "a");
  {
    Lease lease(&store(), "l1", {"b"});
    lease.Send("b", StartedEvent{});
    EXPECT_EQ(lease.Send("b", ReleasedEvent{"resume state: another's"}), Applied::kApplied);
  }
  EXPECT_EQ(StateOf("b"), RunState::kQueued);
  ExpectBeginsAnew("b");
  EXPECT_THAT(History("b"), Contains("rewound"));
  ExpectWhole("a", kShort);
}

TEST_P(GrowingTest, BeginsAnewInAnotherEnvironment) {
  TrainRun("a", kShort, "torch 2.12.0");
  SubmitRun("b", kLong, "a");
  ExpectBeginsAnew("b", "torch 2.13.0");
  EXPECT_THAT(LastMessage("b", "rewound"),
              HasSubstr("its saved training state is from torch 2.12.0; expected torch 2.13.0"));
}

TEST_P(GrowingTest, BeginsAnewWhenTheShorterRunIsGone) {
  TrainRun("a", kShort);
  SubmitRun("b", kLong, "a");
  Delete("a");
  ExpectBeginsAnew("b");
  EXPECT_EQ(LastMessage("b", "rewound"),
            "it can't go on from step 30 of run a: it was removed. It starts again from step 0");
  TrainRun("c", kShort);
  SubmitRun("d", kLong, "a");  // was there when it was planned
  EXPECT_EQ(Run("d").origin, "");
  ExpectBeginsAnew("d");
}

TEST_P(GrowingTest, BeginsAnewWhenABlobIsGone) {
  if (!on_file()) return;
  for (const std::string& blob : {BlobOfEnd("state"), Sha256Hex("weights at 10")}) {
    const std::string name = blob == BlobOfEnd("state") ? "state" : "checkpoint";
    TrainRun(name, kShort);
    SubmitRun(name + "-long", kLong, name);
    std::filesystem::remove(folder() + "/blobs/" + blob);
    ExpectBeginsAnew(name + "-long");
    EXPECT_THAT(LastMessage(name + "-long", "rewound"), HasSubstr("is gone"));
  }
}

TEST_P(GrowingTest, BeginsAnewWhenTheShorterRunIsDamaged) {
  if (!on_file()) return;
  const std::vector<const char*> damages = {
      "UPDATE chunks SET data = zeroblob(40) WHERE key = 1",
      "DELETE FROM chunks WHERE key = 1",  // earlier copies are removed, too
      "UPDATE summaries SET data = zeroblob(40)",
  };
  for (const char* damage : damages) {
    TrainRun("a", kShort);
    ASSERT_TRUE(store().Maintain().ok());
    SubmitRun("b", kLong, "a");
    Close();
    Alter(folder() + "/ablate.db", damage);
    Reopen();
    ExpectBeginsAnew("b");
    EXPECT_THAT(LastMessage("b", "rewound"), HasSubstr("damaged")) << damage;
    Delete("a");
    Delete("b");
  }
}

TEST_P(GrowingTest, GoesWithItsRun) {
  TrainRun("a", kShort);
  UnpinAndSweep();
  EXPECT_EQ(BlobExists(BlobOfEnd("a")), on_file());
  Delete("a");
  EXPECT_FALSE(BlobExists(BlobOfEnd("a")));
  // Its bytes don't count any more.
  KeepLastStates(std::string("last state of b").size());
  Reopen();
  TrainRun("b", kShort);
  EXPECT_THAT(ShorterNames(kLong), ElementsAre("b"));
}

TEST_P(GrowingTest, ChoosesAnewWhenACancelledRunIsQueuedAgain) {
  TrainRun("a", 10);
  SubmitRun("b", kLong, "a");
  ASSERT_TRUE(store().CancelExperiment(experiments_.at("b")).ok());
  TrainRun("c", kShort);
  EXPECT_THAT(Shorter("b", kLong), SizeIs(2));
  SubmitRun("b", kLong, "c");
  Lease lease(&store(), "l1", {"b"});
  EXPECT_EQ(lease.granted()[0].resume_step, kShort);
  EXPECT_EQ(Run("b").origin, "c");
}

TEST_P(GrowingTest, LetsARunThatFailedBeginAnew) {
  TrainRun("a", kShort);
  SubmitRun("b", kLong, "a");
  for (uint32_t i = 0; i < kMaxFailuresWithoutProgress; ++i) {
    Lease lease(&store(), absl::StrCat("l", i), {"b"});
    EXPECT_EQ(lease.granted()[0].resume_step, kShort);
    lease.Send("b", FailedEvent{"broken"});
  }
  EXPECT_EQ(StateOf("b"), RunState::kFailed);
  EXPECT_THAT(Shorter("b", kLong), IsEmpty());
  SubmitRun("b", kLong, "a");
  ExpectBeginsAnew("b");
}

}  // namespace
}  // namespace ablate::storage
