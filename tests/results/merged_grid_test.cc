// Tests settings of several experiments as one grid: names, pairs, merging and tuning.
#include "server/results/merged_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/lookup/cancelled.h"
#include "server/results/diff.h"
#include "tests/results/stored_grid.h"

namespace ablate::results {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr char kMergedRates[] = R"(
  axes {
    name: "lr" field: "training.learning_rate" tune: true
    values { number_value: 0.01 } values { number_value: 0.001 }
  }
)";

StoredGrid::Curves EndsAt(double value) { return {{"eval/loss", {{0, 3}, {10, value}}}}; }

// Returns seeds 1 to `seeds` of a batch of 3 with two settings: another experiment than SmallGrid.
std::string OtherGrid(int seeds, const std::string& rest = kPlacementAxis) {
  return absl::StrCat(R"(
    name: "other"
    base {
      task { legacy_recall { keys: 20 draw: 4 } }
      model { layers: 2 width: 8 heads: 2 }
      training { steps: 10 batch: 2 }
    }
    seeds { first: 1 count: )",
                      seeds, "}", rest);
}

class MergedGridTest : public testing::Test {
 protected:
  // Makes a store with the experiments of these texts; ids_ has their ids.
  void Submit(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      if (stored_ == nullptr) {
        stored_ = std::make_unique<StoredGrid>(text);
      } else {
        stored_->Submit(text);
      }
      ids_.push_back(stored_->experiment());
    }
  }
  // Merges operands such as {0, "post"}.
  absl::StatusOr<TrainedGrid> Merge(const std::vector<std::pair<size_t, std::string>>& parts,
                                    const std::map<std::string, Operand>& baseline = {},
                                    const GridQuery& query = {}) {
    std::vector<Operand> operands;
    for (const auto& [experiment, part] : parts) operands.push_back({ids_[experiment], part});
    return MergeGrids(stored_->store(), operands, baseline, query, kNever);
  }
  TrainedGrid Merged(const std::vector<std::pair<size_t, std::string>>& parts,
                     const std::map<std::string, Operand>& baseline = {}) {
    auto grid = Merge(parts, baseline);
    EXPECT_TRUE(grid.ok()) << grid.status();
    return grid.ok() ? *std::move(grid) : TrainedGrid();
  }
  std::string Label(size_t experiment, const std::string& part) const {
    return OperandName(ids_[experiment], part);
  }

  std::unique_ptr<StoredGrid> stored_;
  std::vector<std::string> ids_;
};

TEST_F(MergedGridTest, ComparesSettingsOfTwoExperimentsPairedBySeed) {
  Submit({absl::StrCat(SmallGrid(4), kPlacementAxis)});
  for (int seed = 1; seed <= 4; ++seed) {
    stored_->Finish(absl::StrCat("pre-s", seed), EndsAt(2 + .1 * seed));
    stored_->Finish(absl::StrCat("post-s", seed), EndsAt(2.5));
  }
  Submit({OtherGrid(3)});
  for (int seed = 1; seed <= 3; ++seed) {
    stored_->Finish(absl::StrCat("post-s", seed), EndsAt(1.5 + .1 * seed + .01 * (seed % 2)));
    stored_->Finish(absl::StrCat("pre-s", seed), EndsAt(9));
  }
  const TrainedGrid grid = Merged({{0, "pre"}, {1, "post"}});
  const report::Comparison comparison = *report::Compare(grid.input);
  EXPECT_THAT(comparison.row_axes, ElementsAre("setting"));
  EXPECT_THAT(comparison.tuned_axes, IsEmpty());
  ASSERT_EQ(comparison.rows.size(), 2u);
  EXPECT_EQ(comparison.rows[0].label, Label(0, "pre"));
  EXPECT_EQ(comparison.rows[0].n, 4u);
  EXPECT_TRUE(comparison.rows[0].is_baseline);
  const report::ComparisonRow& post = comparison.rows[1];
  EXPECT_EQ(post.label, Label(1, "post"));
  EXPECT_EQ(post.pairs.all, 3u) << "seed 4 has no partner";
  EXPECT_NEAR(post.difference.mean.value, -.5 + .02 / 3, 1e-12);
  EXPECT_EQ(post.withheld, report::Withheld::kNo);
  EXPECT_THAT(post.changed, ElementsAre("model.layers", "model.norm.placement"));
  EXPECT_EQ(grid.cells[CellsOfRows(grid, comparison)[1][2]].name, Label(1, "post-s3"));
  EXPECT_THAT(grid.input.origins, HasSubstr("settings of 2 experiments"));
}

TEST_F(MergedGridTest, TakesTheSeedsOfEqualSettingsTogether) {
  Submit({absl::StrCat(SmallGrid(2), kPlacementAxis)});
  for (const char* cell : {"pre-s1", "pre-s2", "post-s1", "post-s2"}) {
    stored_->Finish(cell, EndsAt(2));
  }
  Submit({absl::StrCat(SmallGrid(4), kPlacementAxis)});
  for (const char* cell : {"pre-s3", "pre-s4", "post-s3", "post-s4"}) {
    stored_->Finish(cell, EndsAt(2));
  }
  const TrainedGrid grid = Merged({{0, ""}, {1, ""}});
  const report::Comparison comparison = *report::Compare(grid.input);
  ASSERT_EQ(comparison.rows.size(), 2u);
  EXPECT_EQ(comparison.rows[1].label, Label(0, "post"));
  EXPECT_EQ(comparison.rows[1].n, 4u);
  EXPECT_EQ(grid.cells.size(), 8u) << "shared runs count once";
  EXPECT_EQ(
      Merged({{0, ""}, {1, ""}}, {{"setting", {ids_[1], "post"}}}).input.baseline.at("setting"),
      Label(0, "post"))
      << "either name means it";
  EXPECT_THAT(grid.input.origins,
              HasSubstr(absl::StrCat("“", Label(1, "pre"), "” is the same setting as “",
                                     Label(0, "pre"), "”")));
}

TEST_F(MergedGridTest, CallsACellAndItsSettingByTheSetting) {
  Submit({absl::StrCat(SmallGrid(3), kPlacementAxis)});
  const TrainedGrid grid = Merged({{0, "pre-s2"}, {0, ""}});
  EXPECT_THAT(grid.input.axes[0].labels, ElementsAre("pre", "post"));
  EXPECT_EQ(grid.cells.size(), 6u);
}

TEST_F(MergedGridTest, RefusesANameOfACellAndOfASetting) {
  Submit({absl::StrCat(SmallGrid(2), R"(axes { name: "part"
    settings { label: "a" }
    settings { label: "a-s1" set { key: "model.norm.placement" value { string_value: "post" } } }
  })")});
  EXPECT_THAT(std::string(Merge({{0, "a-s1"}}).status().message()),
              HasSubstr("experiment: \"a-s1\" is the name of a cell and of a setting of"));
}

TEST_F(MergedGridTest, TunesAnAxisThatOneOfThemLacks) {
  Submit({absl::StrCat(SmallGrid(2), kMergedRates)});
  stored_->Finish("lr0.01-s1", EndsAt(2));
  stored_->Finish("lr0.01-s2", EndsAt(2.1));
  stored_->Finish("lr0.001-s1", EndsAt(2.5));
  stored_->Finish("lr0.001-s2", EndsAt(2.6));
  Submit({OtherGrid(2)});
  for (const char* cell : {"pre-s1", "pre-s2", "post-s1", "post-s2"}) {
    stored_->Finish(cell, EndsAt(1));
  }
  const TrainedGrid grid = Merged({{0, ""}, {1, "post"}});
  ASSERT_EQ(grid.input.axes.size(), 2u);
  EXPECT_EQ(grid.input.axes[1].name, "lr");
  EXPECT_THAT(grid.input.axes[1].labels, ElementsAre("0.01", "0.001")) << "its default is 0.001";
  const report::Comparison comparison = *report::Compare(grid.input);
  EXPECT_EQ(comparison.rows[0].label, ids_[0]) << "nothing but the tuned axis";
  EXPECT_THAT(comparison.rows[0].chosen[0].labels, ElementsAre("0.01"));
  EXPECT_THAT(comparison.rows[1].chosen[0].labels, ElementsAre("0.001"));
  EXPECT_NEAR(comparison.rows[1].difference.mean.value, -1.05, 1e-12);
}

TEST_F(MergedGridTest, ChoosesNothingWhereEachSettingHasOneTunedValue) {
  Submit({absl::StrCat(SmallGrid(2), kPlacementAxis, kMergedRates)});
  const TrainedGrid grid = Merged({{0, "pre-lr0.01"}, {0, "post-lr0.001"}});
  ASSERT_EQ(grid.input.axes.size(), 1u);
  EXPECT_THAT(grid.input.axes[0].labels, ElementsAre("pre-lr0.01", "post-lr0.001"))
      << "all of one experiment";
  EXPECT_EQ(grid.cells.size(), 4u);
  EXPECT_EQ(Merged({{0, "pre-lr0.01-s2"}, {0, "post"}}).cells.size(), 1u + 4u);
}

TEST_F(MergedGridTest, IsExploratoryWhereOneWasPlannedByAnotherMetric) {
  Submit({absl::StrCat(SmallGrid(2), kPlacementAxis)});
  stored_->Finish("pre-s1", EndsAt(2));
  Submit({OtherGrid(2, "report { primary: \"eval/accuracy\" margin: .1 }")});
  stored_->Finish("s1", EndsAt(2));
  EXPECT_EQ(Merged({{0, ""}}).input.exploratory, "");
  const TrainedGrid grid = Merged({{0, ""}, {1, ""}});
  EXPECT_EQ(grid.input.exploratory, absl::StrCat("report.primary is eval/accuracy in ", ids_[1]));
  EXPECT_EQ(grid.input.margin, std::nullopt) << "not all have it";
}

TEST_F(MergedGridTest, CallsNothingEquivalentWhereMarginsDiffer) {
  Submit({OtherGrid(2, "report { margin: .1 }"), OtherGrid(2, "report { margin: .2 }"),
          OtherGrid(3, "report { margin: .1 }")});
  const TrainedGrid grid = Merged({{0, ""}, {1, ""}});
  EXPECT_EQ(grid.input.margin, std::nullopt);
  EXPECT_THAT(grid.input.origins, HasSubstr("their report.margin differs, so nothing is called"));
  const TrainedGrid equal = Merged({{0, ""}, {2, ""}});
  EXPECT_EQ(equal.input.margin, .1);
  EXPECT_THAT(equal.input.origins, Not(HasSubstr("margin")));
}

TEST_F(MergedGridTest, ComparesRatiosWhereTheFirstDoes) {
  Submit({OtherGrid(2, "report { scale: ratio }"), absl::StrCat(SmallGrid(2), kPlacementAxis)});
  EXPECT_EQ(Merged({{0, ""}, {1, "post"}}).input.scale, report::Scale::kRatio);
  EXPECT_EQ(Merged({{1, "post"}, {0, ""}}).input.scale, report::Scale::kDifference);
}

TEST_F(MergedGridTest, ComparesWithTheBaselineThatIsNamed) {
  Submit({absl::StrCat(SmallGrid(2), kPlacementAxis), OtherGrid(2)});
  const report::Comparison comparison =
      *report::Compare(Merged({{0, ""}, {1, ""}}, {{"setting", {ids_[1], "post"}}}).input);
  EXPECT_EQ(comparison.rows[*comparison.rows[0].baseline].label, Label(1, "post"));
  const report::Comparison of_one =
      *report::Compare(Merged({{0, "pre"}, {0, "post"}}, {{"setting", {ids_[0], "post"}}}).input);
  EXPECT_EQ(of_one.rows[*of_one.rows[0].baseline].label, "post");
}

TEST_F(MergedGridTest, NamesTheFieldOfWhatThereIsNot) {
  Submit({absl::StrCat(SmallGrid(2), kPlacementAxis), OtherGrid(2)});
  EXPECT_THAT(std::string(Merge({{0, ""}, {1, "poost"}}).status().message()),
              testing::AllOf(HasSubstr("others[0]: \"poost\" isn't a cell or setting of"),
                             HasSubstr("a cell, or one of pre and post")));
  EXPECT_THAT(std::string(Merge({{0, "x"}}).status().message()), HasSubstr("experiment: \"x\""));
  GridQuery query;
  query.by = "placement";
  EXPECT_THAT(std::string(Merge({{0, ""}, {1, ""}}, {}, query).status().message()),
              HasSubstr("by: \"placement\" isn't an axis here"));
  const auto status = Merge({{0, ""}, {1, ""}}, {{"setting", {"elsewhere", "pre"}}}).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("baseline[setting]: \"elsewhere/pre\" isn't compared here"));
}

class DiffTest : public MergedGridTest {
 protected:
  // Path → left and right, each joined by commas.
  using Fields = std::map<std::string, std::pair<std::string, std::string>>;
  Fields Diff(const std::string& left, const std::string& right) {
    v1::DiffExperimentsRequest request;
    request.set_left(left);
    request.set_right(right);
    const auto diff = results::Diff({stored_->store(), storage::kServer}, request, kNever);
    EXPECT_TRUE(diff.ok()) << diff.status();
    Fields fields;
    if (!diff.ok()) return fields;
    for (const v1::FieldDifference& field : diff->fields()) {
      fields[field.path()] = {absl::StrJoin(field.left(), ","), absl::StrJoin(field.right(), ",")};
    }
    return fields;
  }
};

TEST_F(DiffTest, TellsWhatSpecsDifferInWithTheirDefaults) {
  Submit({absl::StrCat(SmallGrid(2), kPlacementAxis), OtherGrid(3, kMergedRates)});
  const Fields fields = Diff(ids_[0], ids_[1]);
  EXPECT_THAT(fields,
              UnorderedElementsAre(Pair("axes.placement", Pair("pre,post", "")),
                                   Pair("axes.lr (tuned)", Pair("", "0.01,0.001")),
                                   Pair("model.layers", Pair("1", "2")),
                                   Pair("model.norm.placement", Pair("pre,post", "pre")),
                                   Pair("seeds", Pair("1,2", "1,2,3")),
                                   Pair("training.learning_rate", Pair("0.001", "0.01,0.001"))));
  EXPECT_THAT(Diff(ids_[0], ids_[0]), IsEmpty());
  EXPECT_THAT(Diff(ids_[0], absl::StrCat(ids_[1], "/lr0.01-s1")),
              UnorderedElementsAre(Pair("model.layers", Pair("1", "2")),
                                   Pair("model.norm.placement", Pair("pre,post", "pre")),
                                   Pair("seeds", Pair("1,2", "1")),
                                   Pair("training.learning_rate", Pair("0.001", "0.01"))))
      << "axes are of whole experiments";
}

TEST_F(DiffTest, WritesPartsOfTheReportAsAFileHasThem) {
  Submit({OtherGrid(2, "report { summaries { key: \"train/loss\" last: 100 } }"),
          OtherGrid(2, "analyses { gradient_flow { } at: -1 }")});
  EXPECT_THAT(
      Diff(ids_[0], ids_[1]),
      UnorderedElementsAre(Pair("report.summaries", Pair("{key: train/loss, last: 100}", "")),
                           Pair("analyses", Pair("", "{at: [-1], gradient_flow: {}}"))));
}

TEST_F(DiffTest, TellsWhatCellsAndRunsDifferIn) {
  Submit({absl::StrCat(SmallGrid(2), kPlacementAxis)});
  stored_->Finish("post-s2", EndsAt(2));
  const std::string run = absl::StrCat("runs/", stored_->cell("post-s2").run);
  EXPECT_THAT(Diff(absl::StrCat(ids_[0], "/pre-s1"), absl::StrCat(ids_[0], "/post-s1")),
              UnorderedElementsAre(Pair("model.norm.placement", Pair("pre", "post"))));
  const Fields fields = Diff(absl::StrCat("experiments/", ids_[0], "/post-s1"), run);
  EXPECT_THAT(fields,
              UnorderedElementsAre(Pair("seeds", Pair("1", "2")), Pair("version", Pair("", "0.1")),
                                   Pair("device", Pair("", "EPYC, 2 lanes")),
                                   Pair("environment", Pair("", "e"))));
}

}  // namespace
}  // namespace ablate::results
