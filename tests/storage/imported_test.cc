// Tests runs that were trained elsewhere: created as they ended, with their points.
#include <limits>

#include "tests/storage/store_fixture.h"

namespace ablate::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ImportedStoreTest : public StoreTest {
 protected:
  // One run per fingerprint: `points` losses that begin at its number.
  static NewExperiment Imported(const std::vector<std::string>& fingerprints, uint32_t points = 3) {
    NewExperiment experiment = MakeExperiment(fingerprints, points - 1);
    double first = 0;
    for (NewRun& run : experiment.runs) {
      auto result = std::make_shared<ImportedResult>();
      std::vector<uint32_t> steps;
      std::vector<double> values;
      for (uint32_t step = 0; step < points; ++step) {
        steps.push_back(step);
        values.push_back(first + step);
      }
      first += 1;
      result->series = {MakeColumn("loss", steps, values)};
      result->start_time = 1'000;
      result->end_time = 2'000;
      run.trainer = "imported";
      run.open_steps = true;
      run.result = std::move(result);
    }
    return experiment;
  }
  std::vector<double> ValuesOf(const std::string& run) {
    std::vector<double> all;
    EXPECT_TRUE(store()
                    .ReadSeries({run, "loss"},
                                [&all](const auto&, const std::vector<double>& values) {
                                  all.insert(all.end(), values.begin(), values.end());
                                  return true;
                                })
                    .ok());
    return all;
  }
};

TEST_P(ImportedStoreTest, AreDoneWithTheirPointsAlsoAfterCompaction) {
  const CreatedExperiment created = Create(Imported({"a", "b"}));
  EXPECT_EQ(created.reused, 0u);
  const ExperimentRecord experiment = Value(store().GetExperiment(created.id));
  EXPECT_EQ(experiment.state, ExperimentState::kEnded);
  EXPECT_EQ(experiment.counts.done, 2u);
  const RunRecord run = Value(store().GetRun("b"));
  EXPECT_EQ(run.state, RunState::kDone);
  EXPECT_EQ(run.step, 2u);
  EXPECT_EQ(run.start_time, 1'000);
  EXPECT_EQ(run.end_time, 2'000);
  EXPECT_THAT(ValuesOf("b"), ElementsAre(1, 2, 3));
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_THAT(ValuesOf("b"), ElementsAre(1, 2, 3));
  EXPECT_THAT(Value(store().Queue("cpu", {"imported"}, 10)), IsEmpty());
  const auto summaries = Value(store().Summaries({"b"}));
  ASSERT_THAT(summaries[0].keys, SizeIs(1));
  EXPECT_EQ(summaries[0].keys[0].last, 3);
  Reopen();
  EXPECT_THAT(ValuesOf("a"), ElementsAre(0, 1, 2));
}

TEST_P(ImportedStoreTest, AreSharedAndDeletedLikeOthers) {
  const std::string first = Create(Imported({"a", "b"})).id;
  const CreatedExperiment second = Create(Imported({"a", "b", "c"}));
  EXPECT_EQ(second.reused, 2u);
  ASSERT_TRUE(store().DeleteExperiment(second.id).ok());
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_EQ(CodeOf(store().GetRun("c")), absl::StatusCode::kNotFound);
  EXPECT_THAT(ValuesOf("a"), SizeIs(3));
}

TEST_P(ImportedStoreTest, MayHaveDiverged) {
  NewExperiment experiment = Imported({"a"});
  auto result = std::make_shared<ImportedResult>(*experiment.runs[0].result);
  result->state = RunState::kDiverged;
  result->series[0].values[2] = std::numeric_limits<double>::quiet_NaN();
  experiment.runs[0].result = result;
  EXPECT_EQ(Value(store().GetExperiment(Create(experiment).id)).counts.diverged, 1u);
  EXPECT_EQ(Value(store().Summaries({"a"}))[0].keys[0].nonfinite, 1u);
}

TEST_P(ImportedStoreTest, LeaveNothingIfOneIsInvalid) {
  // More points than one transaction takes.
  NewExperiment experiment = Imported({"a", "b", "c"}, 200'000);
  auto result = std::make_shared<ImportedResult>(*experiment.runs[2].result);
  result->series[0].steps[1] = 0;
  experiment.runs[2].result = result;
  EXPECT_EQ(CodeOf(store().CreateExperiment(experiment)), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(store().Maintain().ok());
  EXPECT_THAT(Value(store().ListExperiments(kServer, {}, "", 10)), IsEmpty());
  EXPECT_EQ(CodeOf(store().GetRun("a")), absl::StatusCode::kNotFound);
  EXPECT_EQ(Create(Imported({"a", "b", "c"}, 200'000)).reused, 0u);
  EXPECT_THAT(ValuesOf("c"), SizeIs(200'000));
}

INSTANTIATE_TEST_SUITE_P(, ImportedStoreTest, ::testing::Values(Where::kFile, Where::kMemory),
                         WhereName);

}  // namespace
}  // namespace ablate::storage
