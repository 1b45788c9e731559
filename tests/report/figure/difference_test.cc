// Tests differences over training: pairing, and settings that lead only late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "tests/report/figure/example_curves.h"
#include "tests/report/figure/text_boxes.h"

namespace ablate::figure {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(PairedCurvesTest, SubtractsAtTheStepsThatBothHave) {
  const SettingCurves baseline = {
      "pre", 0, {{7, {0, 10, 20}, {3, 2, 1}}, {8, {0, 10}, {5, 4}}, {9, {0}, {1}, true}}};
  const SettingCurves row = {"post",
                             2,
                             {{6, {0}, {1}},                        // without a partner
                              {7, {0, 5, 20, 30}, {4, 9, 1.5, 9}},  // without a point at 10
                              {8, {10}, {1}, true},                 // diverged
                              {9, {0}, {2}}}};                      // its partner diverged
  const SettingCurves paired = PairedCurves(report::Scale::kDifference, row, baseline);
  EXPECT_EQ(paired.label, "post");
  EXPECT_EQ(paired.style, 2u);
  ASSERT_EQ(paired.seeds.size(), 1u);
  EXPECT_EQ(paired.seeds[0].seed, 7u);
  EXPECT_THAT(paired.seeds[0].steps, ElementsAre(0, 20));
  EXPECT_THAT(paired.seeds[0].values, ElementsAre(1, .5));
}

TEST(PairedCurvesTest, SubtractsLogarithmsWhereThereAreSome) {
  const SettingCurves baseline = {"pre", 0, {{7, {0, 10, 20}, {3, 2, 0}}}};
  const SettingCurves row = {"post", 2, {{7, {0, 10, 20}, {6, -1, 1}}}};
  const SettingCurves paired = PairedCurves(report::Scale::kRatio, row, baseline);
  ASSERT_EQ(paired.seeds.size(), 1u);
  EXPECT_NEAR(paired.seeds[0].values[0], std::log(2), 1e-12);
  EXPECT_TRUE(std::isnan(paired.seeds[0].values[1]));
  EXPECT_TRUE(std::isnan(paired.seeds[0].values[2]));
}

// Returns the figure's input of one setting and its baseline. `comparison` must outlive it.
Input InputOf(const report::Comparison& comparison, const SettingCurves& setting,
              const SettingCurves& baseline, uint32_t smooth = CurveOptions().smooth) {
  Input input;
  input.comparison = &comparison;
  input.key = comparison.key;
  input.curves.smooth = smooth;
  input.settings = {
      ReduceSetting(kDifference, PairedCurves(comparison.scale, setting, baseline), input.curves)};
  return input;
}

TEST(DifferenceFigureTest, HasRatiosAtItsAxisAndInItsNumbers) {
  report::ComparisonInput grid = Settings({{"pre", {1, 2, 4, 8}}, {"post", {2.1, 3.9, 8.2, 15.8}}});
  grid.key = "train/gradient_norm";
  grid.scale = report::Scale::kRatio;
  const report::Comparison comparison = *report::Compare(grid);
  SettingCurves pre{"pre", 0, {}}, post{"post", 1, {}};
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const double norm = std::exp(seed);
    pre.seeds.push_back({seed, {0, 10, 20}, {norm, norm, norm}});
    post.seeds.push_back({seed, {0, 10, 20}, {norm, 3 * norm, 2 * norm}});
  }
  Input input = InputOf(comparison, post, pre);
  input.title = "norms";
  const Drawing drawing = DrawingOf(kDifference, input);
  EXPECT_EQ(drawing.figure.title, "norms: ratio of gradient norm to pre over steps");
  const Axis& axis = drawing.figure.panels[0].y;
  const auto tick = std::find_if(axis.ticks.begin(), axis.ticks.end(),
                                 [](const Tick& one) { return one.label == "×2"; });
  ASSERT_NE(tick, axis.ticks.end());
  EXPECT_NEAR(tick->at, std::log(2), 1e-12);
  EXPECT_THAT(drawing.csv, HasSubstr("post,0,20,2,,\n"));
  EXPECT_THAT(drawing.figure.description, HasSubstr("They end: post ×2.0 ["));
}

TEST(DifferenceFigureTest, CountsRunsThatDiverged) {
  const report::Comparison comparison = *report::Compare(Settings(
      {{"pre", {2, 2, 2, kNone}}, {"post", {2.1, kNone, kNone, 2}}, {"calm", {2, 2.1, 2, 2}}}));
  SettingCurves pre{"pre", 0, {}}, post{"post", 1, {}};
  for (uint32_t seed = 0; seed < 4; ++seed) {
    pre.seeds.push_back({seed, {0, 10}, {3, 2}, seed == 3});
    post.seeds.push_back({seed, {0, 10}, {3, 2.5}, seed == 1 || seed == 2});
  }
  Input input = InputOf(comparison, post, pre);
  input.width = kDoubleWidth;
  const Drawing drawing = DrawingOf(kDifference, input);
  EXPECT_THAT(TextsIn(drawing.figure),
              HasSubstr("\npaired by seed: one seed, no interval; diverged, not drawn: pre 1 of 4 "
                        "and post 2 of 4\n"));
}

TEST(DifferenceFigureTest, PointsToTheIntervalOverSequences) {
  report::ComparisonInput grid = Settings({{"pre", {2}}, {"post", {2.5}}});
  grid.unit = report::Unit::kSequence;
  grid.cells[0].by_sequence = {1, 2, 3};
  grid.cells[1].by_sequence = {2, 2.5, 3};
  const auto comparison = report::Compare(grid);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  const SettingCurves pre{"pre", 0, {{0, {0, 10}, {2, 2}}}},
      post{"post", 1, {{0, {0, 10}, {3, 2.5}}}};
  const Input input = InputOf(*comparison, post, pre);
  const Drawing drawing = DrawingOf(kDifference, input);
  EXPECT_THAT(TextsIn(drawing.figure),
              AllOf(HasSubstr("\none run per setting; the interval over sequences is in forest\n"),
                    Not(HasSubstr("seed"))));
  EXPECT_THAT(kDifference.caption(input),
              AllOf(HasSubstr("over sequences is in the figure forest"), Not(HasSubstr("seed"))));
}

TEST(DifferenceFigureTest, SaysAboveTheCurvesWhichSideIsBetter) {
  const report::Comparison comparison =
      *report::Compare(Settings({{"pre", {2, 2, 2}}, {"post", {2.5, 2.6, 2.7}}}));
  const SettingCurves pre{"pre", 0, {{0, {0, 10}, {2, 2}}}},
      post{"post", 1, {{0, {0, 10}, {3, 1}}}};
  for (const double width : {3.25, 6.75}) {
    Input input = InputOf(comparison, post, pre);
    input.width = width;
    const Drawing drawing = DrawingOf(kDifference, input);
    const std::vector<Text>& texts = drawing.figure.texts;
    const auto sides = std::find_if(texts.begin(), texts.end(), [](const Text& text) {
      return text.text == "better ↓ · worse than pre ↑";
    });
    ASSERT_NE(sides, texts.end());
    EXPECT_GT(sides->y - sides->size / 144, drawing.figure.panels[0].top);
    EXPECT_THAT(Outside(drawing.figure), IsEmpty());
    EXPECT_THAT(Overlapping(drawing.figure), IsEmpty());
  }
}

TEST(DifferenceFigureTest, KeepsItsTitleApartFromLongNumbers) {
  const report::Comparison comparison =
      *report::Compare(Settings({{"pre", {2, 2, 2}}, {"post", {2.0001, 2.0003, 2.0002}}}));
  const SettingCurves pre{"pre", 0, {{0, {0, 5, 10}, {2, 2, 2}}}},
      post{"post", 1, {{0, {0, 5, 10}, {2, 1.9997, 2.0003}}}};
  for (const double width : {3.25, 6.75}) {
    Input input = InputOf(comparison, post, pre);
    input.width = width;
    const Drawing drawing = DrawingOf(kDifference, input);
    const std::vector<Tick>& ticks = drawing.figure.panels[0].y.ticks;
    EXPECT_TRUE(std::any_of(ticks.begin(), ticks.end(),
                            [](const Tick& tick) { return tick.label.size() > 8; }));
    EXPECT_THAT(Outside(drawing.figure), IsEmpty());
    EXPECT_THAT(Overlapping(drawing.figure), IsEmpty());
  }
}

TEST(DifferenceFigureTest, MarksWhatIsComparedBesideAnAverage) {
  report::ComparisonInput grid = Settings({{"pre", {2, 2, 2}}, {"post", {2.5, 2.6, 2.7}}});
  const report::Comparison comparison = *report::Compare(grid);
  SettingCurves pre{"pre", 0, {}}, post{"post", 1, {}};
  for (uint32_t seed = 0; seed < 3; ++seed) {
    SeedCurve &base = pre.seeds.emplace_back(), &own = post.seeds.emplace_back();
    base.seed = own.seed = seed;
    for (uint32_t step = 0; step < 100; ++step) {
      base.steps.push_back(step);
      own.steps.push_back(step);
      base.values.push_back(2);
      own.values.push_back(step == 99 ? 2.5 + .1 * seed : 1.5);
    }
  }
  for (const uint32_t smooth : {1u, 20u}) {
    const Drawing drawing = DrawingOf(kDifference, InputOf(comparison, post, pre, smooth));
    size_t marks = 0;
    for (const Points& points : LayersOf<Points>(drawing.figure.panels[0])) {
      if (!points.open) continue;
      ++marks;
      EXPECT_DOUBLE_EQ(points.x[0], 99);
      EXPECT_DOUBLE_EQ(points.y[0], comparison.rows[1].difference.mean.value);
    }
    EXPECT_EQ(marks, smooth > 1 ? 1u : 0u);
    EXPECT_EQ(absl::StrContains(drawing.figure.description, "20-step average"), smooth > 1);
  }
}

TEST(DifferenceFigureTest, SaysThatOneGoesOnWhereLengthsDiffer) {
  for (const bool longer : {false, true}) {
    report::ComparisonInput grid = Settings({{"pre", {1, 2, 4}}, {"post", {2, 3.1, 5}}});
    for (report::Cell& cell : grid.cells) {
      if (longer && cell.labels[0] == "post") cell.changed["training.steps"] = "40";
    }
    const report::Comparison comparison = *report::Compare(grid);
    SettingCurves pre{"pre", 0, {}}, post{"post", 1, {}};
    for (uint32_t seed = 0; seed < 3; ++seed) {
      pre.seeds.push_back({seed, {0, 10}, {3, 2}});
      post.seeds.push_back({seed, {0, 10, 40}, {4, 3, 2}});
    }
    const Drawing drawing = DrawingOf(kDifference, InputOf(comparison, post, pre));
    std::string texts;
    for (const Text& text : drawing.figure.texts) absl::StrAppend(&texts, text.text, " ");
    EXPECT_EQ(absl::StrContains(texts, "only steps that both have"), longer) << texts;
    EXPECT_THAT(drawing.figure.panels[0].rules, IsEmpty());

    report::Comparison earlier = comparison;
    earlier.at = 10;
    const Drawing marked = DrawingOf(kDifference, InputOf(earlier, post, pre));
    const Panel& panel = marked.figure.panels[0];
    ASSERT_EQ(panel.rules.size(), 1u) << "at the step that is compared";
    EXPECT_DOUBLE_EQ(panel.rules[0].x0, XInches(panel, 10));
    EXPECT_DOUBLE_EQ(panel.rules[0].x1, panel.rules[0].x0);
  }
}

// Settings with given paired differences to "pre" at each step, ± a hundredth by seed; the last
// step is compared.
class ReversalTest : public testing::Test {
 protected:
  std::vector<std::string> Texts(const std::vector<double>& differences, size_t seeds = 8) {
    std::vector<double> pre, none;
    SettingCurves of_pre{"pre", 0, {}}, of_none{"none", 1, {}};
    for (uint32_t seed = 0; seed < seeds; ++seed) {
      SeedCurve base{seed, {}, {}}, own{seed, {}, {}};
      for (size_t i = 0; i < differences.size(); ++i) {
        const double noise = .01 * (seed % 2 == 0 ? 1 : -1);
        for (SeedCurve* curve : {&base, &own})
          curve->steps.push_back(static_cast<uint32_t>(100 * i));
        base.values.push_back(2 + .1 * seed);
        own.values.push_back(base.values.back() + differences[i] + noise);
      }
      pre.push_back(base.values.back());
      none.push_back(own.values.back());
      of_pre.seeds.push_back(base);
      of_none.seeds.push_back(own);
    }
    comparison_ = *report::Compare(Settings({{"pre", pre}, {"none", none}}));
    const Input input = InputOf(comparison_, of_none, of_pre);
    description_ = DrawingOf(kDifference, input).figure.description;
    return ReversalTexts(input);
  }

  report::Comparison comparison_;
  std::string description_;
};

TEST_F(ReversalTest, SaysFromWhichStepOnASettingLeads) {
  const std::vector<std::string> texts =
      Texts({.9, .3, .2, .1, .05, .04, -.02, .01, -.03, -.04, -.05});
  EXPECT_THAT(texts, ElementsAre("“none” leads on average only from step 800 on: at step 500 the "
                                 "difference is +0.040 [+0.031, +0.049]"));
  EXPECT_THAT(
      description_,
      HasSubstr("They end: none −0.050 [−0.059, −0.041]. “none” leads on average only from"));
}

TEST_F(ReversalTest, SaysWhatFallsBehind) {
  EXPECT_THAT(
      Texts({0, -.1, -.1, .05, .05, .05}),
      ElementsAre(HasSubstr("“none” falls behind on average only from step 300 on: at step 200")));
}

TEST_F(ReversalTest, IsSilentWhereOnlyTheFirstTenthWasOtherwise) {
  EXPECT_THAT(Texts({.9, .3, -.1, -.1, -.1, -.1, -.1, -.1, -.1, -.1, -.1}), IsEmpty());
}

TEST_F(ReversalTest, IsSilentOnWhatIsNotDecided) {
  EXPECT_THAT(Texts({.9, .3, .2, .1, .05, -.001}), IsEmpty()) << "inconclusive";
  EXPECT_THAT(Texts({.9, .3, .2, .1, .05, -.05}, 2), IsEmpty()) << "too few pairs";
}

}  // namespace
}  // namespace ablate::figure
