// Tests the headline numbers that reports show of a stored experiment's analyses.
#include "server/results/analysis_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/analysis.h"
#include "server/results/compare.h"
#include "tests/results/stored_grid.h"
#include "tests/test_folder.h"

namespace ablate::results {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

using Numbers = std::map<std::string, double>;
using Values = std::vector<double>;

class AnalysisTablesTest : public ::testing::Test {
 protected:
  // Trains the runs of both placements and of so many seeds. Those of one more seed go on, because
  // analyses are requested by experiments that haven't ended.
  void Train(int seeds, const std::string& analyses) { TrainOf(seeds + 1, seeds, analyses); }

  // Trains `seeds` of the runs of both placements.
  void TrainOf(int all, int seeds, const std::string& analyses) {
    grid_.emplace(absl::StrCat(SmallGrid(all), kPlacementAxis, analyses), folder_.path());
    for (int seed = 1; seed <= seeds; ++seed) {
      for (const char* placement : {"pre", "post"}) {
        grid_->Finish(absl::StrCat(placement, "-s", seed), {{"eval/loss", {{10, 2}}}});
      }
    }
  }

  // Stores numbers of a run, of which NaN is undefined, and the parts of the loss by sequence.
  void Analyze(const std::string& cell, const std::string& label, const Numbers& numbers,
               const Values& by_sequence = {}) {
    v1::Analysis result;
    for (const auto& [name, value] : numbers) {
      v1::AnalysisNumber& number = (*result.mutable_numbers())[name];
      if (value == value) number.set_value(value);
      if (value != value) number.set_undefined(v1::UndefinedNumber::ZERO_VARIANCE);
    }
    std::string arrays;
    if (!by_sequence.empty()) {
      const auto count = static_cast<int64_t>(by_sequence.size());
      engine::AnalysisArray stored{
          "by_sequence/loss", {"part", "sequence"}, {2, count}, TensorType::kF64, {}};
      for (const Values& part : {by_sequence, Values(by_sequence.size(), 1)}) {
        stored.bytes.append(reinterpret_cast<const char*>(part.data()),
                            part.size() * sizeof(double));
      }
      arrays = *engine::WriteArrays({stored});
      v1::AnalysisArrayInfo* info = result.add_arrays();
      info->set_name(stored.name);
      for (const std::string& axis : stored.axes) info->add_axes(axis);
      for (const int64_t size : stored.shape) info->add_shape(size);
    }
    grid_->Analyze(cell, label, result.SerializeAsString(), "", arrays);
  }

  // `by`: as in CompareRequest.
  std::vector<report::HeadlineNumbers> Tables(const std::string& by = "") {
    v1::CompareRequest request;
    request.set_by(by);
    request.set_experiment(absl::StrCat("experiments/", grid_->experiment()));
    const auto compared = CompareGrid({grid_->store(), storage::kServer}, request, {kNever, 0},
                                      AnalysisNumbers::kAll);
    EXPECT_TRUE(compared.ok()) << compared.status();
    auto tables = AnalysisTables(grid_->store(), *compared, kNever);
    EXPECT_TRUE(tables.ok()) << tables.status();
    return *std::move(tables);
  }

  const TestFolder folder_;
  std::optional<StoredGrid> grid_;
};

TEST_F(AnalysisTablesTest, PairRunsOfEqualSeed) {
  Train(2, "analyses { predictions {} } analyses { spectrum {} }");
  Analyze("pre-s1", "predictions", {{"loss", 2}, {"accuracy", .5}, {"early_loss", 3}});
  Analyze("pre-s2", "predictions", {{"loss", 2.1}, {"accuracy", .6}});
  Analyze("post-s1", "predictions", {{"loss", 2.5}, {"accuracy", .5}});
  Analyze("post-s2", "predictions", {{"loss", 2.8}, {"entropy", NAN}});
  const auto tables = Tables();
  ASSERT_THAT(tables, SizeIs(2));
  const report::HeadlineNumbers& table = tables[0];
  EXPECT_EQ(table.label, "predictions");
  EXPECT_EQ(table.asked, 4u);
  EXPECT_EQ(table.done, 4u);
  EXPECT_THAT(table.numbers, ElementsAre("loss", "accuracy"));
  EXPECT_EQ(table.left_out, 1u) << "early_loss";
  EXPECT_THAT(table.undefined, ElementsAre(Pair("zero variance", ElementsAre(Pair("entropy", 1)))));
  ASSERT_THAT(table.lines, SizeIs(2));
  EXPECT_EQ(table.lines[0].setting, "pre");
  EXPECT_FALSE(table.lines[0].compared);
  EXPECT_EQ(table.lines[0].entries[0].own.mean.value, 2.05);
  EXPECT_FALSE(table.lines[0].entries[0].difference.mean.defined());
  EXPECT_EQ(table.lines[1].setting, "post");
  EXPECT_TRUE(table.lines[1].compared);
  EXPECT_EQ(table.lines[1].step, 10u);
  const report::HeadlineNumbers::Entry& loss = table.lines[1].entries[0];
  EXPECT_DOUBLE_EQ(loss.difference.mean.value, .6);
  EXPECT_EQ(loss.difference.n, 2u);
  EXPECT_EQ(loss.unit, report::Unit::kSeed);
  EXPECT_EQ(loss.baseline.text, "2.0");
  const report::HeadlineNumbers::Entry& accuracy = table.lines[1].entries[1];
  EXPECT_EQ(accuracy.difference.n, 1u);
  EXPECT_EQ(accuracy.runs, 1u);
  EXPECT_EQ(accuracy.left_out, 1u);
  EXPECT_THAT(tables[1].lines, IsEmpty());
}

TEST_F(AnalysisTablesTest, TestNoDifferenceOfRunsThatGoOn) {
  Train(3, "analyses { predictions {} }");
  for (int seed = 1; seed <= 3; ++seed) {
    Analyze(absl::StrCat("pre-s", seed), "predictions", {{"loss", 2 + seed * .1}});
    Analyze(absl::StrCat("post-s", seed), "predictions", {{"loss", 3 + seed * .12}});
  }
  const report::HeadlineNumbers::Entry loss = Tables()[0].lines[1].entries[0];
  EXPECT_TRUE(loss.difference.p_t.defined());
  EXPECT_FALSE(loss.ended) << "the fourth seed";
  EXPECT_FALSE(loss.p.defined());
}

TEST_F(AnalysisTablesTest, LeaveDivergedRunsOut) {
  grid_.emplace(absl::StrCat(SmallGrid(3), kPlacementAxis, "analyses { predictions {} }"),
                folder_.path());
  for (const char* cell : {"pre-s1", "pre-s2", "pre-s3", "post-s1", "post-s2"}) {
    grid_->Finish(cell, {{"eval/loss", {{10, 2}}}});
  }
  grid_->Finish("post-s3", {{"eval/loss", {{10, NAN}}}}, /*diverged=*/true);
  for (const char* cell : {"pre-s1", "pre-s2", "pre-s3"})
    Analyze(cell, "predictions", {{"loss", 2}});
  Analyze("post-s1", "predictions", {{"loss", 3}});
  Analyze("post-s2", "predictions", {{"loss", 3.1}});
  const report::HeadlineNumbers::Entry loss = Tables()[0].lines[1].entries[0];
  EXPECT_EQ(loss.runs, 2u);
  EXPECT_EQ(loss.left_out, 0u) << "of those that converged";
  EXPECT_EQ(loss.difference.n, 2u);
  EXPECT_TRUE(loss.p.defined());
}

TEST_F(AnalysisTablesTest, CompareTheEndsOfRunsOfDifferentLength) {
  grid_.emplace(absl::StrCat(SmallGrid(2), R"(
    axes { name: "length"
           settings { label: "short" }
           settings { label: "long" set { key: "training.steps" value { number_value: 20 } } } }
    analyses { predictions {} })"),
                folder_.path());
  for (const char* seed : {"s1", "s2"}) {
    grid_->Finish(absl::StrCat("short-", seed), {{"eval/loss", {{10, 2}}}});
    grid_->Finish(absl::StrCat("long-", seed), {{"eval/loss", {{20, 2}}}});
    Analyze(absl::StrCat("short-", seed), "predictions", {{"loss", 2}});
    Analyze(absl::StrCat("long-", seed), "predictions", {{"loss", 1.5}});
  }
  const report::HeadlineNumbers table = Tables()[0];
  ASSERT_THAT(table.lines, SizeIs(2));
  EXPECT_EQ(table.lines[0].step, 10u);
  EXPECT_EQ(table.lines[1].step, 20u);
  EXPECT_EQ(table.lines[1].entries[0].difference.mean.value, -.5);
}

// 0.01 is pre's learning rate by its loss, and 0.001 is post's.
TEST_F(AnalysisTablesTest, ReadRunsAtTheSelectedValues) {
  grid_.emplace(absl::StrCat(SmallGrid(3), kPlacementAxis, R"(
    axes { name: "lr" field: "training.learning_rate" tune: true
           values { number_value: 0.01 } values { number_value: 0.001 } }
    analyses { predictions {} })"),
                folder_.path());
  for (const std::string placement : {"pre", "post"}) {
    for (const std::string rate : {"0.01", "0.001"}) {
      const bool selected = (placement == "pre") == (rate == "0.01");
      for (int seed = 1; seed <= 3; ++seed) {
        const std::string cell = absl::StrCat(placement, "-lr", rate, "-s", seed);
        grid_->Finish(cell, {{"eval/loss", {{10, (selected ? 2 : 3) + .01 * seed}}}});
        // The other runs' are better.
        const double loss = (placement == "pre" ? 4 : 5) + .1 * seed * seed - (selected ? 0 : 3);
        Analyze(cell, "predictions", {{"loss", loss}});
      }
    }
  }
  const report::HeadlineNumbers table = Tables()[0];
  ASSERT_THAT(table.lines, SizeIs(2));
  EXPECT_EQ(table.lines[0].setting, "pre");
  const report::HeadlineNumbers::Entry &pre = table.lines[0].entries[0],
                                       &post = table.lines[1].entries[0];
  EXPECT_EQ(pre.runs, 3u);
  EXPECT_NEAR(pre.own.mean.value, 4 + 1.4 / 3, 1e-12);
  EXPECT_NEAR(post.own.mean.value, 5 + 1.4 / 3, 1e-12);
  EXPECT_NEAR(post.difference.mean.value, 1, 1e-12);
  EXPECT_EQ(post.difference.n, 3u);
  EXPECT_EQ(post.difference.p_t.undefined, report::Undefined::kZeroVariance) << "1 on each seed";
}

TEST_F(AnalysisTablesTest, PairRunsWithTheBaselineOfTheirOwnCombination) {
  grid_.emplace(absl::StrCat(SmallGrid(2), kPlacementAxis, R"(
    axes { name: "width" field: "model.width"
           values { number_value: 8 } values { number_value: 16 } }
    analyses { predictions {} })"),
                folder_.path());
  const std::map<std::string, double> losses = {
      {"pre-width8", 2}, {"pre-width16", 3}, {"post-width8", 2.5}, {"post-width16", 5}};
  for (const auto& [setting, loss] : losses) {
    for (int seed = 1; seed <= 2; ++seed) {
      const std::string cell = absl::StrCat(setting, "-s", seed);
      grid_->Finish(cell, {{"eval/loss", {{10, 2}}}});
      const double noise = (setting[1] == 'o' ? .3 : .1) + (setting.back() == '6' ? .07 : 0);
      Analyze(cell, "predictions", {{"loss", loss + noise * seed}});
    }
  }
  const auto differences = [&](const std::string& by) {
    std::map<std::string, double> found;
    const std::vector<report::HeadlineNumbers> tables = Tables(by);
    for (const report::HeadlineNumbers::Line& line : tables[0].lines) {
      const report::HeadlineNumbers::Entry& loss = line.entries[0];
      EXPECT_EQ(line.compared, loss.difference.mean.defined()) << line.setting;
      EXPECT_EQ(line.compared, loss.p.defined()) << line.setting;
      if (!line.compared) continue;
      found[line.setting] = loss.difference.mean.value;
      EXPECT_NE(loss.baseline.text, "") << line.setting;
    }
    return found;
  };
  EXPECT_THAT(differences("placement"), ElementsAre(Pair("post, width 16", DoubleNear(2.3, 1e-9)),
                                                    Pair("post, width 8", DoubleNear(.8, 1e-9))));
  EXPECT_THAT(differences("width"), ElementsAre(Pair("post, width 16", DoubleNear(2.605, 1e-9)),
                                                Pair("pre, width 16", DoubleNear(1.105, 1e-9))));
}

TEST_F(AnalysisTablesTest, PairNoRunsWithOtherEvaluationData) {
  grid_.emplace(absl::StrCat(SmallGrid(2), R"(
    axes { name: "batches" field: "evaluation.batches"
           values { number_value: 2 } values { number_value: 3 } }
    analyses { predictions {} })"),
                folder_.path());
  for (const std::string cell : {"batches2-s1", "batches2-s2", "batches3-s1", "batches3-s2"}) {
    grid_->Finish(cell, {{"eval/loss", {{10, 2}}}});
    Analyze(cell, "predictions", {{"loss", cell == "batches3-s2" ? 3 : 2}});
  }
  const report::HeadlineNumbers table = Tables()[0];
  ASSERT_THAT(table.lines, SizeIs(2));
  const report::HeadlineNumbers::Entry& loss = table.lines[1].entries[0];
  EXPECT_TRUE(table.lines[1].compared);
  EXPECT_EQ(loss.own.mean.value, 2.5) << "its own number is shown";
  EXPECT_EQ(loss.difference.mean.undefined, report::Undefined::kScoredDifferently);
  EXPECT_FALSE(loss.p.defined());
}

TEST_F(AnalysisTablesTest, HaveNoColumnOfANumberThatAllRunsShare) {
  Train(2, "analyses { attention {} }");
  for (const std::string cell : {"pre-s1", "pre-s2", "post-s1", "post-s2"}) {
    const double entropy = cell == "post-s2" ? .6 : .5;
    Analyze(cell, "attention", {{"sink_share", 0}, {"entropy", entropy}, {"entropy/block.0", 1}});
  }
  const report::HeadlineNumbers table = Tables()[0];
  EXPECT_THAT(table.numbers, ElementsAre("entropy"));
  EXPECT_THAT(table.constants, ElementsAre(Pair("sink_share", "0")));
  EXPECT_EQ(table.left_out, 1u) << "entropy/block.0";
  EXPECT_THAT(table.lines[1].entries, SizeIs(1));
}

TEST_F(AnalysisTablesTest, SayWhyNothingWasRequested) {
  Train(1, "analyses { predictions {} }");
  EXPECT_EQ(Tables()[0].failure, "the runs haven't all ended");
}

TEST_F(AnalysisTablesTest, PairSequencesOfSingleRuns) {
  TrainOf(1, 1, "analyses { predictions {} }");
  Analyze("pre-s1", "predictions", {{"loss", 2}, {"entropy", 1}}, {1, 2, 3, 2});
  Analyze("post-s1", "predictions", {{"loss", 3}, {"entropy", 2}}, {2, 3, 4.5, 2.5});
  const auto tables = Tables();
  ASSERT_THAT(tables, SizeIs(1));
  const auto& entries = tables[0].lines[1].entries;
  EXPECT_EQ(entries[0].unit, report::Unit::kSequence);
  EXPECT_EQ(entries[0].difference.n, 4u);
  EXPECT_TRUE(entries[0].difference.p_t.defined());
  EXPECT_EQ(entries[0].runs, 1u);
  EXPECT_EQ(entries[1].unit, report::Unit::kSeed);
  EXPECT_EQ(entries[1].difference.mean.value, 1);
  EXPECT_FALSE(entries[1].difference.p_t.defined());
}

TEST_F(AnalysisTablesTest, HaveColumnsInOrderOfDepth) {
  Train(1, "analyses { logit_lens {} }");
  Numbers numbers = {{"loss", 2}, {"loss/embedding", 3}};
  for (int block = 0; block < 12; ++block) numbers[absl::StrCat("loss/block.", block)] = 2;
  Analyze("pre-s1", "logit_lens", numbers);
  const auto tables = Tables();
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_THAT(tables[0].numbers,
              ElementsAre("loss/embedding", "loss/block.0", "loss/block.2", "loss/block.4",
                          "loss/block.6", "loss/block.7", "loss/block.9", "loss/block.11"));
  EXPECT_EQ(tables[0].left_out, 6u);
}

TEST_F(AnalysisTablesTest, HaveLevelsInOrder) {
  Train(1, "analyses { robustness { embedding_noise: 0.05 } }");
  Analyze("pre-s1", "robustness",
          {{"loss", 2},
           {"embedding_noise@0.05/increase", .1},
           {"embedding_noise@0.1/increase", .2},
           {"embedding_noise@0.005/increase", .3},
           {"embedding_noise@1/increase", .4}});
  EXPECT_THAT(Tables()[0].numbers,
              ElementsAre("loss", "embedding_noise@0.005/increase", "embedding_noise@0.05/increase",
                          "embedding_noise@0.1/increase", "embedding_noise@1/increase"));
}

}  // namespace
}  // namespace ablate::results
