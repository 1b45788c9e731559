// Tests sequences as the unit of a stored grid's comparison, and when seeds remain it.
#include "server/results/units.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/analysis.h"
#include "server/report/compare/finding.h"
#include "server/report/figure/kinds.h"
#include "server/results/compare.h"
#include "server/results/figures.h"
#include "tests/results/stored_grid.h"
#include "tests/test_folder.h"

namespace ablate::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Values = std::vector<double>;

class FindSequencesTest : public ::testing::Test {
 protected:
  // Trains every run of an experiment.
  void Train(const std::string& spec, const std::vector<std::string>& cells) {
    grid_.emplace(spec, folder_.path());
    for (const std::string& cell : cells) grid_->Finish(cell, {{"eval/loss", {{10, 2}}}});
  }
  void TrainTwo() { Train(absl::StrCat(SmallGrid(1), kPlacementAxis), {"pre-s1", "post-s1"}); }

  // Stores a loss and, unless there are none, its values by sequence. Weights are 1 by default.
  void Analyze(const std::string& cell, double loss, const Values& values,
               const std::string& inputs = "tokens: 2000", const std::string& array = "loss",
               const Values& weights = {}) {
    v1::Analysis asked, result;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("analysis { predictions {} } inputs { ", inputs, " }"), &asked));
    (*result.mutable_numbers())["loss"].set_value(loss);
    std::string arrays;
    if (!values.empty()) {
      const std::string name = absl::StrCat("by_sequence/", array);
      const auto count = static_cast<int64_t>(values.size());
      engine::AnalysisArray stored{name, {"part", "sequence"}, {2, count}, TensorType::kF64, {}};
      for (const Values& part : {values, weights.empty() ? Values(values.size(), 1) : weights}) {
        stored.bytes.append(reinterpret_cast<const char*>(part.data()),
                            part.size() * sizeof(double));
      }
      arrays = *engine::WriteArrays({stored});
      v1::AnalysisArrayInfo* info = result.add_arrays();
      info->set_name(name);
      info->add_axes("part");
      info->add_axes("sequence");
      info->add_shape(2);
      info->add_shape(count);
    }
    grid_->Analyze(cell, "predictions", result.SerializeAsString(), asked.SerializeAsString(),
                   arrays);
  }

  ComparedGrid Compared(const std::string& key = "predictions/loss") {
    v1::CompareRequest request;
    request.set_key(key);
    request.set_experiment(absl::StrCat("experiments/", grid_->experiment()));
    auto compared = CompareGrid({grid_->store(), storage::kServer}, request, {kNever, 0},
                                AnalysisNumbers::kAll);
    EXPECT_TRUE(compared.ok()) << compared.status();
    return *std::move(compared);
  }

  // Expects pairs of seeds; returns the reason in the warning, or "".
  std::string WhyNot() {
    const report::Comparison comparison = Compared().comparison;
    EXPECT_EQ(comparison.unit, report::Unit::kSeed);
    EXPECT_EQ(comparison.rows[1].pairs.all, 1u);
    for (const report::Warning& warning : comparison.warnings) {
      if (warning.kind == report::WarningKind::kNotBySequence) return warning.text;
    }
    return "";
  }

  const TestFolder folder_;
  std::optional<StoredGrid> grid_;
};

TEST_F(FindSequencesTest, PairsOneRunOfEachSetting) {
  TrainTwo();
  Analyze("pre-s1", 2, {1, 2, 3, 2});
  Analyze("post-s1", 3, {2, 3, 4, 3});
  const ComparedGrid compared = Compared();
  EXPECT_EQ(compared.comparison.unit, report::Unit::kSequence);
  const report::ComparisonRow& post = compared.comparison.rows[1];
  EXPECT_EQ(post.pairs.all, 4u);
  EXPECT_EQ(post.difference.mean.value, 1);
  // Tables of runs, costs and figures still have one run of each.
  EXPECT_THAT(compared.rows, ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(compared.chosen[1], SizeIs(1));
  const auto forest = DrawFigure(grid_->store(), compared, *figure::FindKind("forest"), {}, kNever);
  ASSERT_TRUE(forest.ok()) << forest.status();
  EXPECT_EQ(Compared("eval/loss").comparison.unit, report::Unit::kSeed);
}

TEST_F(FindSequencesTest, KeepsSeedsIfThereAreSeveral) {
  Train(absl::StrCat(SmallGrid(2), kPlacementAxis), {"pre-s1", "pre-s2", "post-s1", "post-s2"});
  for (const char* cell : {"pre-s1", "pre-s2", "post-s1", "post-s2"}) Analyze(cell, 2, {1, 3});
  const report::Comparison comparison = Compared().comparison;
  EXPECT_EQ(comparison.unit, report::Unit::kSeed);
  EXPECT_EQ(comparison.rows[1].pairs.all, 2u);
}

TEST_F(FindSequencesTest, KeepsSeedsIfAnArrayIsMissing) {
  TrainTwo();
  Analyze("pre-s1", 2, {1, 3});
  Analyze("post-s1", 2, {});
  EXPECT_EQ(WhyNot(),
            "compared by seed, not by sequence: the analysis of post-s1 has no array "
            "by_sequence/loss; `ablate analyze` makes it again");
}

TEST_F(FindSequencesTest, CorrectsForLengths) {
  TrainTwo();
  // Losses per target are 2 and 3 in each sequence, whatever its length.
  Analyze("pre-s1", 2, {1, 3, 2}, "tokens: 2000", "loss", {.5, 1.5, 1});
  Analyze("post-s1", 3, {1.5, 4.5, 3}, "tokens: 2000", "loss", {.5, 1.5, 1});
  const report::ComparisonRow post = Compared().comparison.rows[1];
  EXPECT_EQ(post.own.deviation.undefined, report::Undefined::kZeroVariance);
  EXPECT_EQ(post.difference.mean.value, 1);
  EXPECT_EQ(post.pairs.losses, 3u);
}

TEST_F(FindSequencesTest, KeepsSeedsIfAnArrayIsOfAnotherNumber) {
  TrainTwo();
  Analyze("pre-s1", 2, {1, 3});
  Analyze("post-s1", 2, {1, 4});
  EXPECT_THAT(WhyNot(), HasSubstr("the mean of by_sequence/loss isn't loss"));
}

TEST_F(FindSequencesTest, SaysNothingOfAPrompt) {
  TrainTwo();
  Analyze("pre-s1", 2, {2});
  Analyze("post-s1", 2, {2});
  EXPECT_EQ(WhyNot(), "");
}

TEST_F(FindSequencesTest, SaysNothingIfNoAnalysisHasTheArray) {
  TrainTwo();
  Analyze("pre-s1", 2, {1, 3}, "tokens: 2000", "accuracy");
  Analyze("post-s1", 2, {1, 3}, "tokens: 2000", "accuracy");
  EXPECT_EQ(WhyNot(), "");
}

TEST_F(FindSequencesTest, KeepsSeedsIfSequencesDiffer) {
  TrainTwo();
  Analyze("pre-s1", 2, {1, 3});
  Analyze("post-s1", 2, {1, 3, 2});
  EXPECT_THAT(WhyNot(), HasSubstr("pre-s1 and post-s1 read other sequences: 2 and 3"));
}

TEST_F(FindSequencesTest, KeepsSeedsIfInputsDiffer) {
  TrainTwo();
  Analyze("pre-s1", 2, {1, 3});
  Analyze("post-s1", 2, {1, 3}, "documents: 2");
  EXPECT_THAT(WhyNot(), HasSubstr("pre-s1 and post-s1 read other sequences"));
}

TEST_F(FindSequencesTest, KeepsSeedsIfGeneratedSequencesDiffer) {
  Train(absl::StrCat(SmallGrid(1), R"(axes { name: "batch" field: "training.batch"
        values { number_value: 2 } values { number_value: 3 } })"),
        {"batch2-s1", "batch3-s1"});
  Analyze("batch2-s1", 2, {1, 3});
  Analyze("batch3-s1", 2, {1, 3});
  EXPECT_THAT(WhyNot(), HasSubstr("read other sequences"));
}

TEST_F(FindSequencesTest, KeepsSeedsIfThereAreTooFew) {
  TrainTwo();
  Analyze("pre-s1", 2, {2});
  Analyze("post-s1", 2, {1, 3});
  EXPECT_THAT(WhyNot(), HasSubstr("pre-s1 read fewer than two sequences"));
}

TEST_F(FindSequencesTest, KeepsSeedsIfThereAreTooMany) {
  TrainTwo();
  Analyze("pre-s1", 2, Values(kMaxSequences + 1, 2));
  Analyze("post-s1", 2, Values(kMaxSequences, 2));
  EXPECT_THAT(WhyNot(), HasSubstr("pre-s1 read more than 10,000 sequences"));
}

TEST_F(FindSequencesTest, KeepsSeedsIfAnArrayIsDamaged) {
  TrainTwo();
  Analyze("pre-s1", 2, {1, 3});
  Analyze("post-s1", 2, {1, std::numeric_limits<double>::infinity()});
  EXPECT_THAT(WhyNot(), HasSubstr("by_sequence/loss isn't 2 × 2 finite numbers"));
}

TEST_F(FindSequencesTest, LeavesARunWithoutTheNumberOut) {
  TrainTwo();
  Analyze("pre-s1", 2, {1, 3});
  const report::Comparison comparison = Compared().comparison;
  EXPECT_EQ(comparison.unit, report::Unit::kSequence);
  EXPECT_EQ(comparison.rows[1].pairs.all, 0u);
  EXPECT_THAT(report::FindingOf(comparison, 1).evidence,
              HasSubstr("no sequence has a result for both"));
}

TEST_F(FindSequencesTest, ReadsSettingsOfSeveralExperiments) {
  TrainTwo();
  Analyze("pre-s1", 2, {1, 3});
  const std::string first = grid_->experiment();
  grid_->Submit(absl::StrCat(SmallGrid(1), R"(axes { name: "width" field: "model.width"
        values { number_value: 16 } })"));
  grid_->Finish("width16-s1", {{"eval/loss", {{10, 2}}}});
  Analyze("width16-s1", 4, {3, 5});
  v1::CompareRequest request;
  request.set_key("predictions/loss");
  request.set_experiment(absl::StrCat("experiments/", first, "/pre"));
  request.add_others(absl::StrCat("experiments/", grid_->experiment()));
  const auto compared =
      CompareGrid({grid_->store(), storage::kServer}, request, {kNever, 0}, AnalysisNumbers::kAll);
  ASSERT_TRUE(compared.ok()) << compared.status();
  EXPECT_EQ(compared->comparison.unit, report::Unit::kSequence);
  EXPECT_EQ(compared->comparison.rows[1].pairs.all, 2u);
}

}  // namespace
}  // namespace ablate::results
