// Tests pausing, moving and ranking experiments in the queue, and what is read of it.
#include <string>
#include <vector>

#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class QueueingTest : public StoreTest {
 protected:
  std::string Submit(const std::vector<std::string>& runs, int priority = 1) {
    NewExperiment experiment = MakeExperiment(runs);
    experiment.priority = priority;
    return Create(experiment).id;
  }
  void Update(const std::string& experiment, const ExperimentUpdate& update) {
    EXPECT_TRUE(store().UpdateExperiment(experiment, update).ok());
  }
  void Pause(const std::string& experiment, bool paused = true) {
    ExperimentUpdate update;
    update.paused = paused;
    Update(experiment, update);
  }
  void Move(const std::string& experiment, ExperimentUpdate::Place place) {
    ExperimentUpdate update;
    update.place = place;
    Update(experiment, update);
  }
  std::vector<std::string> Queued() {
    std::vector<std::string> runs;
    for (const QueuedRun& run : Value(store().Queue("cpu", {"torch"}, 100)))
      runs.push_back(run.run);
    return runs;
  }
};
INSTANTIATE_TEST_SUITE_P(, QueueingTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

TEST_P(QueueingTest, GrantsNoRunOfAPausedExperiment) {
  const std::string first = Submit({"a", "b"}), second = Submit({"c"});
  Pause(first);
  EXPECT_TRUE(Value(store().GetExperiment(first)).paused);
  EXPECT_THAT(Queued(), ElementsAre("c"));
  EXPECT_FALSE(Value(store().GetExperiment(second)).paused);
  Pause(first, false);
  EXPECT_THAT(Queued(), ElementsAre("a", "b", "c"));
}

TEST_P(QueueingTest, GrantsARunThatAnotherExperimentWants) {
  const std::string first = Submit({"a", "b"});
  Pause(first);
  const std::string second = Submit({"b", "c"});
  EXPECT_THAT(Queued(), ElementsAre("b", "c"));
  Pause(second);
  EXPECT_THAT(Queued(), IsEmpty());
  Pause(first, false);
  EXPECT_THAT(Queued(), ElementsAre("a", "b"));
  Value(store().CancelExperiment(first));
  EXPECT_THAT(Queued(), IsEmpty()) << "b is of the paused one alone";
}

TEST_P(QueueingTest, KeepsARunOutAfterItsLease) {
  const std::string experiment = Submit({"a"});
  Lease lease(&store(), "l", {"a"});
  Pause(experiment);
  lease.Send("a", ReleasedEvent{});
  EXPECT_THAT(Queued(), IsEmpty());
  Pause(experiment, false);
  EXPECT_THAT(Queued(), ElementsAre("a"));
}

TEST_P(QueueingTest, ChangesThePriority) {
  const std::string first = Submit({"a"}), second = Submit({"b"});
  ExperimentUpdate urgent;
  urgent.priority = 0;
  Update(second, urgent);
  EXPECT_EQ(Value(store().GetExperiment(second)).priority, 0);
  EXPECT_THAT(Queued(), ElementsAre("b", "a"));
  Pause(second);
  EXPECT_EQ(Value(store().GetExperiment(second)).priority, 0) << "it has it again afterwards";
  Pause(second, false);
  EXPECT_THAT(Queued(), ElementsAre("b", "a"));
  EXPECT_EQ(Value(store().GetExperiment(first)).priority, 1);
}

TEST_P(QueueingTest, MovesToEitherEnd) {
  const std::string first = Submit({"a1", "a2"}), second = Submit({"b"}), third = Submit({"c"});
  Move(third, ExperimentUpdate::Place::kFirst);
  EXPECT_THAT(Queued(), ElementsAre("c", "a1", "a2", "b"));
  Move(first, ExperimentUpdate::Place::kLast);
  EXPECT_THAT(Queued(), ElementsAre("c", "b", "a1", "a2"));
  Move(second, ExperimentUpdate::Place::kFirst);
  Move(first, ExperimentUpdate::Place::kFirst);
  EXPECT_THAT(Queued(), ElementsAre("a1", "a2", "b", "c"));
  Submit({"d"});
  EXPECT_THAT(Queued(), ElementsAre("a1", "a2", "b", "c", "d"));
}

TEST_P(QueueingTest, ListsGroupsAndLanes) {
  NewExperiment experiment = MakeExperiment({"a", "b", "c"});
  experiment.runs[2].lanes = 4;
  experiment.runs[2].whole_seconds = 60;
  const std::string first = Create(experiment).id;
  const std::string second = Submit({"a"});
  const std::vector<QueuedGroup> groups = Value(store().QueuedGroups());
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].experiment, first);
  EXPECT_EQ(groups[0].runs + groups[1].runs, 3u);
  EXPECT_EQ(groups[2].experiment, second);
  EXPECT_EQ(groups[2].runs, 1u) << "a run of two experiments is of both";
  const QueuedGroup& wide = groups[0].lanes == 4 ? groups[0] : groups[1];
  EXPECT_EQ(wide.whole_seconds, 60u);
  EXPECT_EQ(wide.runs, 1u);
  EXPECT_EQ(wide.steps, kSteps);
  std::vector<QueuedLanes> lanes = Value(store().CountQueuedLanes("cpu"));
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0].lanes, 6u);
  EXPECT_EQ(lanes[0].trainer, "torch");
  EXPECT_THAT(Value(store().CountQueuedLanes("cuda")), IsEmpty());
  Pause(first);
  lanes = Value(store().CountQueuedLanes("cpu"));
  EXPECT_EQ(lanes[0].lanes, 1u);
  EXPECT_TRUE(Value(store().QueuedGroups())[0].paused);
  Lease lease(&store(), "l", {"a"});
  EXPECT_THAT(Value(store().CountQueuedLanes("cpu")), IsEmpty());
}

TEST_P(QueueingTest, ListsRunsThatNoLaneHasBegun) {
  const std::string experiment = Submit({"a", "b"});
  Lease lease(&store(), "l", {"a"});
  ASSERT_EQ(Value(store().QueuedGroups()).size(), 1u);
  EXPECT_EQ(Value(store().QueuedGroups())[0].runs, 2u) << "a worker has one in advance";
  EXPECT_EQ(lease.Send("a", StartedEvent{}), Applied::kApplied);
  EXPECT_EQ(Value(store().QueuedGroups())[0].runs, 1u);
}

TEST_P(QueueingTest, RefusesToQueueAnEndedExperiment) {
  const std::string experiment = Submit({"a"});
  Train({"a"});
  ExperimentUpdate update;
  update.paused = true;
  update.add_tags = {"paper"};
  EXPECT_TRUE(absl::IsFailedPrecondition(store().UpdateExperiment(experiment, update)));
  EXPECT_THAT(Value(store().GetExperiment(experiment)).tags, IsEmpty());
  update.paused.reset();
  EXPECT_TRUE(store().UpdateExperiment(experiment, update).ok());
}

}  // namespace
}  // namespace ablate::storage
