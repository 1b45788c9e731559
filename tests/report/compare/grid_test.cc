// Tests the inputs that Compare refuses, and its order of cells.
#include "server/report/compare/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/report/compare/example_grid.h"

namespace ablate::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ComparisonInput TwoAxes() {
  ComparisonInput input;
  input.axes = {MakeAxis("norm", {"layer", "rms"}),
                MakeAxis("lr", {"0.1", "0.2", "0.4"}, true, {.1, .2, .4})};
  for (const char* norm : {"rms", "layer"}) {
    for (const char* learning_rate : {"0.4", "0.1", "0.2"}) {
      for (const uint32_t seed : {7, 3})
        input.cells.push_back(MakeCell({norm, learning_rate}, seed, 1));
    }
  }
  return input;
}

TEST(ArrangeCellsTest, FollowsTheAxesNotTheCells) {
  const ComparisonInput input = TwoAxes();
  const CellGrid grid = *ArrangeCells(input);
  ASSERT_EQ(grid.rows.size(), 2u);
  EXPECT_THAT(grid.rows[0].labels, ElementsAre(0));
  EXPECT_THAT(grid.rows[1].labels, ElementsAre(1));
  EXPECT_THAT(grid.rows[1].seeds, ElementsAre(3, 7));
  EXPECT_THAT(grid.rows[1].candidates, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  EXPECT_EQ(grid.rows[1].cells[3]->labels[1], "0.2");
  EXPECT_EQ(grid.rows[1].cells[3]->seed, 7u);
  EXPECT_EQ(grid.rows[1].baseline, 0u);
}

TEST(ArrangeCellsTest, LeavesHolesWhereTheGridHasNoCell) {
  ComparisonInput input = TwoAxes();
  input.cells.pop_back();  // layer at 0.2 with seed 3
  const CellGrid grid = *ArrangeCells(input);
  EXPECT_EQ(grid.rows[0].cells[2], nullptr);
  EXPECT_EQ(grid.rows[0].cells.size(), 6u);
}

TEST(ArrangeCellsTest, ByMakesATunedAxisACompared) {
  ComparisonInput input = TwoAxes();
  input.by = "lr";
  const CellGrid grid = *ArrangeCells(input);
  ASSERT_EQ(grid.rows.size(), 6u);
  EXPECT_TRUE(grid.tuned_axes.empty());
  EXPECT_EQ(grid.rows[5].baseline, 3u);  // rms at 0.4 with rms at 0.1
}

struct Bad {
  void (*change)(ComparisonInput*);
  const char* message;
};

TEST(ArrangeCellsTest, NamesWhatIsWrong) {
  const Bad cases[] = {
      {[](ComparisonInput* input) { input->axes[1].name = "norm"; }, "axes: 'norm' is repeated"},
      {[](ComparisonInput* input) { input->axes[1].name = ""; }, "axes: the name is empty"},
      {[](ComparisonInput* input) { input->axes[0].labels = {}; }, "axes.norm.labels: 0 labels"},
      {[](ComparisonInput* input) { input->axes[0].labels[1] = "layer"; },
       "axes.norm.labels: 'layer' is repeated"},
      {[](ComparisonInput* input) { input->axes[1].values.pop_back(); },
       "axes.lr.values: 2 values"},
      {[](ComparisonInput* input) { input->axes[1].values[0] = std::nan(""); },
       "axes.lr.values: nan; expected finite"},
      {[](ComparisonInput* input) { input->axes[1].base = "9"; },
       "axes.lr.base: '9' is unknown; expected one of 0.1, 0.2, 0.4"},
      {[](ComparisonInput* input) { input->by = "depth"; },
       "by: 'depth' is unknown; expected one of norm, lr"},
      {[](ComparisonInput* input) { input->baseline["depth"] = "1"; },
       "baseline: 'depth' is unknown; expected one of norm"},
      {[](ComparisonInput* input) { input->baseline["lr"] = "0.1"; },
       "baseline: 'lr' is unknown; expected one of norm"},
      {[](ComparisonInput* input) { input->baseline["norm"] = "none"; },
       "baseline.norm: 'none' is unknown; expected one of layer, rms"},
      {[](ComparisonInput* input) { input->cells[0].labels.pop_back(); }, "cells.labels: 1 labels"},
      {[](ComparisonInput* input) { input->cells[0].labels[0] = "none"; },
       "cells.labels.norm: 'none' is unknown; expected one of layer, rms"},
      {[](ComparisonInput* input) { input->cells[0].seed = 3; },
       "cells: rms/0.4 with seed 3 is repeated"},
  };
  for (const Bad& bad : cases) {
    ComparisonInput input = TwoAxes();
    bad.change(&input);
    const absl::StatusOr<CellGrid> grid = ArrangeCells(input);
    EXPECT_EQ(grid.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(grid.status().message(), HasSubstr(bad.message));
    EXPECT_EQ(Compare(input).status(), grid.status());
  }
}

TEST(TrialOfTest, TellsResultsFromNone) {
  Cell cell = MakeCell({}, 0, 2.5);
  EXPECT_EQ(TrialOf(&cell).state, Trial::State::kConverged);
  EXPECT_EQ(TrialOf(&cell).value, 2.5);
  cell.value = std::numeric_limits<double>::infinity();
  EXPECT_EQ(TrialOf(&cell).state, Trial::State::kDiverged);
  cell.value.reset();
  EXPECT_EQ(TrialOf(&cell).state, Trial::State::kNone);
  cell.value = 2.5;
  cell.outcome = RunOutcome::kDiverged;
  EXPECT_EQ(TrialOf(&cell).state, Trial::State::kDiverged);
  for (const RunOutcome outcome : {RunOutcome::kMissing, RunOutcome::kFailed}) {
    cell.outcome = outcome;
    EXPECT_EQ(TrialOf(&cell).state, Trial::State::kNone);
  }
  EXPECT_EQ(TrialOf(nullptr).state, Trial::State::kNone);
}

}  // namespace
}  // namespace ablate::report
