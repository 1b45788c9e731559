// Tests texts about figures, which depend on kind, size and runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/report/figure/render.h"
#include "tests/report/figure/example_curves.h"

namespace ablate::figure {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The texts of a kind over a grid that is compared here.
class Words {
 public:
  explicit Words(report::ComparisonInput grid)
      : grid_(std::move(grid)), comparison_(report::Compare(grid_)) {}

  std::string Caption(const std::string& kind, const std::vector<CurveShape>& shapes = {}) const {
    return FindKind(kind)->caption(InputOf(kind, shapes));
  }
  std::string Description(const std::string& kind,
                          const report::RowWindows* windows = nullptr) const {
    Input input = InputOf(kind, {});
    input.windows = windows;
    return Draw(*FindKind(kind), input)->figure.description;
  }

  std::string Drawn(const std::string& kind, const report::RowWindows* windows) const {
    Input input = InputOf(kind, {});
    input.windows = windows;
    const auto drawing = Draw(*FindKind(kind), input);
    return drawing.ok() ? Svg(drawing->figure) : std::string(drawing.status().message());
  }

 private:
  Input InputOf(const std::string& kind, const std::vector<CurveShape>& shapes) const {
    return MakeInput(*FindKind(kind), grid_, *comparison_, shapes, 3.25);
  }

  const report::ComparisonInput grid_;
  const absl::StatusOr<report::Comparison> comparison_;
};

std::vector<CurveShape> Shapes(uint32_t seeds, uint32_t diverging) {
  return {{"pre", 3, 2, 100, seeds, diverging}, {"post", 3, 2, 100, seeds}};
}

TEST(CaptionsTest, SayWhichRunsHaveThinLines) {
  const Words words(NormsGrid(2));
  EXPECT_THAT(words.Caption("loss", Shapes(12, 1)),
              HasSubstr("Thin lines: single runs, including those that diverged"));
  EXPECT_THAT(words.Caption("loss", Shapes(12, 0)), HasSubstr("Thin lines: single runs."));
  EXPECT_THAT(words.Caption("loss", Shapes(30, 0)), Not(HasSubstr("Thin lines")));
  EXPECT_THAT(words.Caption("curves", Shapes(12, 0)), Not(HasSubstr("Thin lines")));
  EXPECT_THAT(words.Caption("curves", Shapes(12, 1)), HasSubstr("Thin lines: runs that diverged."));
}

TEST(CaptionsTest, SayWhatEachWindowAverages) {
  const Words words(NormsGrid(2));
  const auto of_steps = [&words](uint32_t steps) {
    return words.Caption("windows", {{"pre", 3, 2, steps, 2}, {"post", 3, 2, 20, 2}});
  };
  EXPECT_THAT(of_steps(201), HasSubstr("the first 100 steps on the left and the last 200 on the "
                                       "right; trailing means over 5 and over 20 steps"));
  EXPECT_THAT(of_steps(200), HasSubstr("the first 100 steps on the left and all on the right; "));
  EXPECT_THAT(of_steps(101), HasSubstr("the first 100 steps on the left and all on the right; "));
  EXPECT_THAT(of_steps(100), HasSubstr("by step, all steps; trailing means over 5 steps"));
}

TEST(CaptionsTest, DescribeTheWindowsThatAreDrawn) {
  const Words words(Settings({{"a", {2.49, 2.51}}, {"b", {3.49, 3.51}}}));
  EXPECT_EQ(words.Description("summary"), "Means of held-out loss: a 2.50 and b 3.50.");
  report::RowWindows windows;
  windows.windows = {{"train/loss", {report::WindowSide::kLast, 10, report::Reduction::kMean}}};
  for (const double mean : {1.5, 1.25}) {
    const std::vector<report::WindowValue> runs = {{report::Defined(mean), 10, 0}};
    windows.rows.push_back({report::SummarizeWindow(runs)});
  }
  EXPECT_EQ(words.Description("summary", &windows),
            "Means of training loss, mean of the last 10: a 1.50 and b 1.25.");
  EXPECT_THAT(words.Drawn("summary", &windows), HasSubstr("training loss, mean of the last"))
      << "whose seeds are not known";
}

TEST(CaptionsTest, NameTheMeansOfNorms) {
  const Words words(Settings({{"a", {2.49, 2.51}}, {"b", {3.49, 3.51}}}));
  report::RowWindows windows;
  const std::vector<report::WindowValue> runs = {{report::Defined(1), 10, 0},
                                                 {report::Defined(4), 10, 0}};
  for (const char* key : {"train/gradient_norm", "train/loss"}) {
    windows.windows.push_back({key, {report::WindowSide::kLast, 10, report::Reduction::kMean}});
    windows.rows.resize(2);
    for (auto& row : windows.rows) row.push_back(report::SummarizeWindow(runs));
    EXPECT_THAT(words.Drawn("summary", &windows),
                HasSubstr(windows.windows.size() == 1 ? "of the geometric mean over"
                                                      : "of the mean (norms: geometric) over"));
  }
}

TEST(CaptionsTest, DescribeEachGroupOfDifferences) {
  const Words words(NormsGrid());

  EXPECT_THAT(words.Caption("forest"),
              HasSubstr("then all at 0.01; each group has its own scale."));
  EXPECT_THAT(words.Caption("forest"),
              HasSubstr(" by permutation test at the selected lr, Student's t at 0.01; they"));
  EXPECT_THAT(words.Description("forest"), HasSubstr(". All at 0.01: post +"));
  const Words plain(Settings({{"a", {2, 3}}, {"b", {3, 4}}}));
  EXPECT_THAT(plain.Caption("forest"),
              AllOf(Not(HasSubstr("its own scale")), HasSubstr("Intervals are by Student's t.")));
}

TEST(CaptionsTest, MarkDifferencesOfRowsThatAreScoredOnOtherData) {
  report::ComparisonInput grid = NormsGrid();
  for (report::Cell& cell : grid.cells) cell.scored["data"] = cell.labels[0] == "none" ? "b" : "a";
  const std::string description = Words(grid).Description("forest");
  EXPECT_THAT(description, ContainsRegex("none [^ ]+ .[^]]*] .other evaluation data.[.] All"));
  EXPECT_THAT(description, Not(ContainsRegex("post [^ ]+ .[^]]*] .other")));
}

TEST(CaptionsTest, DescribeTheAxisThatIsDrawn) {
  const Words words(NormsGrid());

  EXPECT_THAT(words.Caption("sensitivity"),
              AllOf(HasSubstr("Held-out loss over lr:"), HasSubstr("numbers above: runs"),
                    HasSubstr("Hollow")));
  EXPECT_THAT(words.Description("sensitivity"),
              AllOf(HasSubstr("held-out loss over lr: pre 2."), HasSubstr(" at 0.001"),
                    HasSubstr("; none 2.")));
  report::ComparisonInput many = NormsGrid(2);
  const size_t cells = many.cells.size();
  for (int copy = 0; copy < 2; ++copy) {
    for (size_t label = 0; label < 3; ++label) {
      many.axes[0].labels.push_back(absl::StrCat(many.axes[0].labels[label], copy));
    }
    for (size_t i = 0; i < cells; ++i) {
      many.cells.push_back(many.cells[i]);
      absl::StrAppend(&many.cells.back().labels[0], copy);
    }
  }
  EXPECT_THAT(Words(many).Caption("sensitivity"), Not(HasSubstr("numbers above")));
}

}  // namespace
}  // namespace ablate::figure
