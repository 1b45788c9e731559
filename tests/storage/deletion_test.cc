// Tests the sizes that a deletion is said to remove.
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kLarge = 1'000'000;  // bytes of a checkpoint; points have far less

class DeletionTest : public StoreTest {
 protected:
  std::string Bytes(char letter) const { return std::string(kLarge, letter); }
  // Trains the run to its end, with one checkpoint.
  void TrainTo(const std::string& run, const std::string& checkpoint) {
    Lease lease(&store(), absl::StrCat("lease of ", run), {run});
    lease.Send(run, CheckpointEvent{100, Publish(checkpoint), checkpoint.size()});
    lease.Send(run, FinishedEvent{false, 100});
  }
  Deletion Plan(const std::string& experiment, const Viewer& viewer = kServer) {
    return Value(store().PlanDeletion(viewer, experiment));
  }
  // The number of checkpoints' bytes that are freed.
  uint64_t Checkpoints(const std::string& experiment) { return Plan(experiment).bytes / kLarge; }
};
INSTANTIATE_TEST_SUITE_P(, DeletionTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

TEST_P(DeletionTest, CountsRunsThatNothingElseHas) {
  const std::string first = Submit({"mine", "shared"}).id;
  EXPECT_EQ(CodeOf(store().PlanDeletion(kServer, first)), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(store().PlanDeletion(kServer, "none")), absl::StatusCode::kNotFound);
  const std::string second = Submit({"shared"}).id;
  Train({"mine", "shared"});
  const Deletion plan = Plan(first);
  EXPECT_EQ(plan.runs, 1u);
  EXPECT_EQ(plan.shared_runs, 1u);
  EXPECT_THAT(plan.shared_with, ElementsAre(second));
  EXPECT_EQ(plan.device_time, Run("mine").spent.device_time);
  EXPECT_GT(plan.bytes, 0u);
  EXPECT_LT(plan.bytes, 10'000u);
  // Nothing was removed.
  EXPECT_EQ(Value(store().ListCells(first, 0, 9)).size(), 2u);

  ASSERT_TRUE(store().DeleteExperiment(second).ok());
  EXPECT_EQ(Plan(first).runs, 2u) << "a deleted experiment needs nothing";
  EXPECT_THAT(Plan(first).shared_with, IsEmpty());
}

TEST_P(DeletionTest, NamesOnlyExperimentsThatTheViewerSees) {
  NewExperiment wanted = MakeExperiment({"a"});
  wanted.owner = wanted.private_to = "ada";
  const std::string first = Create(wanted).id;
  wanted.request_id = "another";
  const std::string second = Create(wanted).id;
  Train({"a"});
  EXPECT_THAT(Plan(first).shared_with, ElementsAre(second));
  EXPECT_THAT(Plan(first, {"ada", false}).shared_with, ElementsAre(second));
  EXPECT_THAT(Plan(first, {"bob", false}).shared_with, IsEmpty());
}

TEST_P(DeletionTest, CountsBytesThatAreReallyFreed) {
  const std::string first = Submit({"a", "b", "c"}).id;
  TrainTo("a", Bytes('x'));
  TrainTo("b", Bytes('x'));  // the same file
  TrainTo("c", Bytes('y'));
  EXPECT_EQ(Checkpoints(first), 2u);
  Submit({"d"});
  TrainTo("d", Bytes('y'));
  EXPECT_EQ(Checkpoints(first), 1u) << "another run needs it";
}

TEST_P(DeletionTest, TellsNothingOfWhatIsPrivateToOthers) {
  const std::string open = Submit({"a"}).id;
  TrainTo("a", Bytes('x'));
  const Deletion before = Plan(open, {"ada", false});
  EXPECT_EQ(before.bytes / kLarge, 1u);
  NewExperiment hidden = MakeExperiment({"s"});
  hidden.owner = hidden.private_to = "bob";
  Create(hidden);
  TrainTo("s", Bytes('x'));  // the same training has the same file
  NewAnalysis analysis;
  analysis.id = analysis.signature = "hidden";
  analysis.subjects = {{"a", 100}};
  analysis.owner = analysis.private_to = "bob";
  Value(store().CreateAnalysis(analysis, 9));
  const Deletion after = Plan(open, {"ada", false});
  EXPECT_EQ(after.bytes, before.bytes);
  EXPECT_EQ(after.analyses, 0u);
  EXPECT_EQ(Plan(open).bytes / kLarge, 0u) << "an admin sees what is freed";
  EXPECT_EQ(Plan(open).analyses, 1u);
}

TEST_P(DeletionTest, NamesExperimentsThatBeganWithACheckpoint) {
  const std::string first = Submit({"a"}).id;
  TrainTo("a", Bytes('x'));
  NewExperiment tuned = MakeExperiment({"b"});
  tuned.runs[0].initial_blob = Sha256Hex(Bytes('x'));
  const std::string second = Create(tuned).id;
  TrainTo("b", Bytes('y'));
  EXPECT_THAT(Plan(first).checkpoint_of, ElementsAre(second));
  EXPECT_EQ(Checkpoints(first), 0u);
  EXPECT_THAT(Plan(second).checkpoint_of, IsEmpty());
  EXPECT_EQ(Checkpoints(second), 1u);
  // The last to name the first checkpoint frees it.
  ASSERT_TRUE(store().DeleteExperiment(first).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(Checkpoints(second), on_file() ? 2u : 1u);  // in memory its size is unknown
}

TEST_P(DeletionTest, CountsAnalysesWithOneOfTheRuns) {
  const std::string first = Submit({"a"}).id;
  const std::string second = Submit({"b"}).id;
  TrainTo("a", Bytes('x'));
  TrainTo("b", Bytes('y'));
  const auto analyze = [&](const std::string& id, std::vector<AnalysisSubject> subjects) {
    NewAnalysis analysis;
    analysis.id = id;
    analysis.signature = id;
    analysis.subjects = std::move(subjects);
    Value(store().CreateAnalysis(analysis, 9));
    AnalysisEnd end;
    end.artifact = Publish(Bytes('z') + id);
    end.artifact_bytes = kLarge + id.size();
    end.device_time = 5'000'000;
    EXPECT_TRUE(store().BeginAnalysis(id).ok());
    EXPECT_TRUE(store().EndAnalysis(id, end).ok());
  };
  analyze("one", {{"a", 100}});
  analyze("both", {{"a", 100}, {"b", 100}});
  const Deletion plan = Plan(first);
  EXPECT_EQ(plan.analyses, 2u);
  EXPECT_EQ(plan.bytes / kLarge, 3u);
  EXPECT_EQ(plan.device_time, Run("a").spent.device_time + 10'000'000);
  EXPECT_EQ(Plan(second).analyses, 1u);
}

}  // namespace
}  // namespace ablate::storage
