// Tests runs whose number of steps isn't known before they end, as programs have it, and the logs
// of programs.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "storage/run_query.h"
#include "tests/storage/older_store.h"
#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class ProgramsTest : public StoreTest {
 protected:
  // Queues runs of a program.
  CreatedExperiment SubmitPrograms(const std::vector<std::string>& names) {
    NewExperiment experiment = MakeExperiment(names, 0);
    for (NewRun& run : experiment.runs) {
      run.open_steps = true;
      run.trainer = "program";
      run.parameters = 0;
    }
    return Create(experiment);
  }
  RunLog LogOf(const std::string& run, uint64_t position = 0) {
    return Value(store().ReadRunLog(run, position));
  }
  // Reads a log to its end, in as many parts as it takes.
  std::string WholeLog(const std::string& run) {
    std::string text;
    for (uint64_t position = 0;;) {
      const RunLog log = LogOf(run, position);
      if (log.next == position) return text;
      text += log.text;
      position = log.next;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, ProgramsTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

PointsEvent Losses(const std::vector<uint32_t>& steps, const std::vector<double>& values,
                   uint32_t expected = 0) {
  PointsEvent points = MakePoints(0, {MakeColumn("loss", steps, values)});
  points.expected_steps = expected;
  return points;
}

TEST_P(ProgramsTest, LearnsItsStepsWhileItRuns) {
  SubmitPrograms({"a"});
  EXPECT_EQ(Run("a").steps, 0u);
  Lease lease(&store(), "l", {"a"}, HolderIn("python"));
  lease.Send("a", StartedEvent{});
  EXPECT_EQ(lease.Send("a", Losses({0, 5}, {3, 2})), Applied::kApplied);
  EXPECT_EQ(Run("a").steps, 0u);  // unknown until the program says so
  EXPECT_EQ(lease.Send("a", Losses({10}, {1}, 200)), Applied::kApplied);
  EXPECT_EQ(Run("a").steps, 200u);
  EXPECT_EQ(lease.Send("a", Losses({300}, {1}, 200)), Applied::kApplied);
  EXPECT_EQ(Run("a").steps, 300u);
  EXPECT_EQ(Run("a").step, 300u);
  EXPECT_EQ(lease.Send("a", FinishedEvent{false, 310}), Applied::kApplied);
  EXPECT_EQ(StateOf("a"), RunState::kDone);
  Reopen();
  EXPECT_EQ(Run("a").steps, 310u) << "the last step";
}

TEST_P(ProgramsTest, EndsBeforeTheStepsThatItExpected) {
  SubmitPrograms({"a"});
  Lease lease(&store(), "l", {"a"}, HolderIn("python"));
  lease.Send("a", Losses({7}, {1}, 1000));
  EXPECT_EQ(lease.Send("a", FinishedEvent{false, 7}), Applied::kApplied);
  EXPECT_EQ(Run("a").steps, 7u);
  // The time of a run counts as that of one step.
  EXPECT_THAT(Value(store().MeasuredStepTime("shape")), ::testing::Optional(1000));
}

TEST_P(ProgramsTest, KeepsPointsAtStepsBelowItsProgress) {
  SubmitPrograms({"a"});
  Lease lease(&store(), "l", {"a"}, HolderIn("python"));
  lease.Send("a", MakePoints(500, {MakeColumn("loss", {1}, {3})}));  // of 500 batches, epoch 1
  EXPECT_EQ(lease.Send("a", MakePoints(900, {MakeColumn("loss", {2}, {2}),
                                             MakeColumn("accuracy", {1, 2}, {0.1, 0.2})})),
            Applied::kApplied);
  EXPECT_THAT(Series("a", "loss"), ElementsAre(Pair(1, 3), Pair(2, 2)));
  EXPECT_THAT(Series("a", "accuracy"), ElementsAre(Pair(1, 0.1), Pair(2, 0.2)));
}

TEST_P(ProgramsTest, DropsPointsThatAResumedProgramRepeats) {
  SubmitPrograms({"resumed", "undisturbed"});
  Lease whole(&store(), "w", {"undisturbed"}, HolderIn("python"));
  whole.Send("undisturbed", StartedEvent{});
  whole.Send("undisturbed", Losses({0, 1, 2, 3}, {9, 8, NAN, 6}));
  whole.Send("undisturbed", FinishedEvent{false, 3});

  Lease first(&store(), "l1", {"resumed"}, HolderIn("python"));
  first.Send("resumed", StartedEvent{});
  first.Send("resumed", Losses({0, 1}, {9, 8}));
  first.Send("resumed", Resume(1));
  first.Send("resumed", Losses({2}, {-1}));  // after the state: rewound
  ASSERT_TRUE(EndLeaseAndWait(store(), "l1", {LeaseEnd::kLost, "silent"}).ok());
  Lease second(&store(), "l2", {"resumed"}, HolderIn("python"));
  ASSERT_THAT(second.granted(), SizeIs(1));
  EXPECT_EQ(second.granted()[0].resume_step, 1u);
  second.Send("resumed", StartedEvent{});
  EXPECT_EQ(second.Send("resumed", Losses({1}, {8})), Applied::kApplied);
  EXPECT_EQ(second.Send("resumed", Losses({1, 2}, {8, NAN})), Applied::kApplied);
  EXPECT_EQ(second.Send("resumed", Losses({3}, {6})), Applied::kApplied);
  EXPECT_EQ(second.Send("resumed", FinishedEvent{false, 3}), Applied::kApplied);

  EXPECT_EQ(Run("resumed").steps, 3u);
  EXPECT_THAT(Series("resumed", "loss"), SizeIs(4));
  const auto summaries = Value(store().Summaries({"resumed", "undisturbed"}));
  ASSERT_THAT(summaries[0].keys, SizeIs(1));
  const Summary &own = summaries[0].keys[0], &other = summaries[1].keys[0];
  EXPECT_EQ(own.count, 4u);
  EXPECT_EQ(own.count, other.count);
  EXPECT_EQ(own.nonfinite, other.nonfinite);
  EXPECT_EQ(own.first, other.first);
  EXPECT_EQ(own.last, other.last);
  EXPECT_EQ(own.min, other.min);
  EXPECT_EQ(own.max, other.max);
  EXPECT_EQ(own.mean, other.mean);
}

TEST_P(ProgramsTest, RewindsToTheCheckpointsStepBelowTheProgress) {
  SubmitPrograms({"a"});
  Lease first(&store(), "l1", {"a"}, HolderIn("python"));
  first.Send("a", StartedEvent{});
  first.Send("a", MakePoints(500, {MakeColumn("loss", {1}, {3})}));  // of 500 batches, epoch 1
  EXPECT_EQ(first.Send("a", Resume(2)), Applied::kApplied);
  EXPECT_EQ(Run("a").step, 500u);
  EXPECT_EQ(first.Send("a", MakePoints(900, {MakeColumn("loss", {2}, {2})})), Applied::kApplied);
  ASSERT_TRUE(EndLeaseAndWait(store(), "l1", {LeaseEnd::kLost, "silent"}).ok());
  Lease second(&store(), "l2", {"a"}, HolderIn("python"));
  ASSERT_THAT(second.granted(), SizeIs(1));
  EXPECT_EQ(second.granted()[0].resume_step, 2u);
  EXPECT_EQ(Run("a").step, 2u);
  EXPECT_THAT(Series("a", "loss"), ElementsAre(Pair(1, 3)));
}

TEST_P(ProgramsTest, DoesNotRetryAFinalFailure) {
  SubmitPrograms({"a", "b"});
  Lease lease(&store(), "l", {"a", "b"}, HolderIn("python"));
  lease.Send("a", FailedEvent{"exit code 1", /*is_final=*/true});
  lease.Send("b", FailedEvent{"the worker's disk is full"});
  EXPECT_EQ(StateOf("a"), RunState::kFailed);
  EXPECT_EQ(Run("a").failure, "exit code 1");
  EXPECT_EQ(StateOf("b"), RunState::kQueued);
}

TEST_P(ProgramsTest, HasTheLimitsOfTheExperimentThatQueuesItAgain) {
  NewExperiment experiment = MakeExperiment({"a"}, 0);
  experiment.runs[0].open_steps = true;
  experiment.runs[0].spec = "a short limit";
  Create(experiment);
  {
    Lease lease(&store(), "l", {"a"}, HolderIn("python"));
    lease.Send("a", FailedEvent{"time: limit 2s reached", true});
  }
  experiment.request_id += " again";
  experiment.runs[0].spec = "a long limit";
  Create(experiment);
  Lease lease(&store(), "m", {"a"}, HolderIn("python"));
  EXPECT_EQ(lease.granted()[0].spec, "a long limit");
}

TEST_P(ProgramsTest, TakesTheLastParametersThatItLogs) {
  SubmitPrograms({"a", "b", "c"});
  Lease lease(&store(), "l", {"a", "b", "c"}, HolderIn("python"));
  lease.Send("a", MakePoints(0, {MakeColumn("parameters", {0, 1}, {10, 1234})}));
  lease.Send("b", MakePoints(0, {MakeColumn("parameters", {0}, {-1})}));
  lease.Send("b", MakePoints(0, {MakeColumn("parameters", {1}, {NAN})}));
  lease.Send("c", Losses({0}, {1}));
  EXPECT_EQ(Run("a").parameters, 1234u);
  EXPECT_EQ(Run("b").parameters, 0u);
  RunQuery query;
  query.viewer.sees_all = true;
  query.columns = {{RunKey::Kind::kParameters, ""}};
  query.where.kind = RunCondition::Kind::kTest;
  query.where.test = {{RunKey::Kind::kParameters, ""}, RunTest::Op::kEqual, 1234.0};
  query.limit = 10;
  EXPECT_THAT(Value(store().FindCells(query)), SizeIs(1));
  query.where.test.op = RunTest::Op::kExists;
  EXPECT_THAT(Value(store().FindCells(query)), SizeIs(1)) << "others have none";
}

TEST_P(ProgramsTest, AppendsLogs) {
  SubmitPrograms({"a", "b"});
  EXPECT_EQ(CodeOf(store().ReadRunLog("nobody", 0)), absl::StatusCode::kNotFound);
  EXPECT_EQ(LogOf("a").text, "");
  EXPECT_FALSE(LogOf("a").complete);
  Lease lease(&store(), "l", {"a", "b"}, HolderIn("python"));
  lease.Send("a", LogEvent{"one\n"});
  lease.Send("b", LogEvent{"of another run"});
  lease.Send("a", LogEvent{std::string("t\xffo\0\n", 5)});
  EXPECT_EQ(LogOf("a").text, std::string("one\nt\xffo\0\n", 9));
  EXPECT_EQ(LogOf("a").next, 9u);
  EXPECT_EQ(LogOf("a", 2).text, std::string("e\nt\xffo\0\n", 7));
  EXPECT_EQ(LogOf("a", 9).text, "");
  EXPECT_EQ(LogOf("a", 999).next, 9u) << "a position after the end";
  EXPECT_FALSE(LogOf("a", 9).complete);
  lease.Send("a", FinishedEvent{false, 0});
  EXPECT_TRUE(LogOf("a", 9).complete);
  EXPECT_TRUE(LogOf("a").complete);
  Reopen();
  EXPECT_EQ(LogOf("a", 4).text, std::string("t\xffo\0\n", 5));
}

TEST_P(ProgramsTest, BoundsLogs) {
  SubmitPrograms({"a"});
  Lease lease(&store(), "l", {"a"}, HolderIn("python"));
  constexpr size_t kPart = 64 << 10;
  constexpr size_t kParts = 100;
  for (size_t i = 0; i < kParts; ++i) {
    lease.Send("a", LogEvent{std::string(kPart, static_cast<char>('0' + i % 10))});
  }
  const std::string kept = WholeLog("a");
  EXPECT_GE(kept.size(), static_cast<size_t>(kMaxLogBytes));
  EXPECT_LE(kept.size(), kMaxLogBytes + kPart);
  EXPECT_EQ(kept.back(), '9');
  EXPECT_LE(LogOf("a").text.size(), (256u << 10) + kPart);
  EXPECT_EQ(LogOf("a", kParts * kPart - 3).text, "999") << "positions count what was removed";
}

TEST_P(ProgramsTest, RemovesLogsWithTheRun) {
  const CreatedExperiment created = SubmitPrograms({"a"});
  Lease lease(&store(), "l", {"a"}, HolderIn("python"));
  lease.Send("a", LogEvent{std::string(3000, 'x')});
  lease.Send("a", FinishedEvent{false, 0});
  ASSERT_TRUE(store().DeleteExperiment(created.id).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(CodeOf(store().ReadRunLog("a", 0)), absl::StatusCode::kNotFound);
  if (!on_file()) return;
  Close();
  auto db = Value(
      Connection::OpenFile(absl::StrCat(folder(), "/ablate.db"), Connection::Access::kReadOnly));
  EXPECT_FALSE(Statement(*db, "SELECT 1 FROM run_logs").Row());
}

class StoreBeforeProgramsTest : public FileTest {};

TEST_F(StoreBeforeProgramsTest, Opens) {
  {
    const auto store = Value(Store::Open(Options()));
    Begin(store.get());
  }
  Alter(Database(), BackToVersion(26));
  const auto store = Value(Store::Open(Options()));
  ASSERT_NE(store, nullptr);
  const RunRecord run = Value(store->GetRun("a"));
  EXPECT_EQ(run.steps, 10'000'000u);
  EXPECT_EQ(Value(store->ReadRunLog("a", 0)).text, "");
  EXPECT_THAT(Value(ApplyAndWait(*store, "i", {Point(0)})), ElementsAre(Applied::kApplied));
}

}  // namespace
}  // namespace ablate::storage
