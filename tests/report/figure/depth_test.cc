// Tests figures over depth and over levels: keys, means and axes, what is left out, and the texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/report/figure/axes.h"
#include "server/report/figure/family.h"
#include "server/report/figure/layout.h"
#include "tests/report/figure/example_curves.h"

namespace ablate::figure {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

TEST(MetricNameTest, SaysWhichBlockAFamilyIsAt) {
  EXPECT_EQ(AxisTitle(report::NameOfMetric("gradient/block.3", report::MetricSource::kTrainer)),
            "Gradient norm at block.3");
  EXPECT_EQ(AxisTitle(report::NameOfMetric("gradient/embedding", report::MetricSource::kTrainer)),
            "Gradient norm at embedding");
  EXPECT_EQ(
      AxisTitle(report::NameOfMetric("parameter_gradient/block.0", report::MetricSource::kTrainer)),
      "Parameter gradient norm at block.0");
  EXPECT_EQ(AxisTitle(report::NameOfMetric("alignment/block.12", report::MetricSource::kTrainer)),
            "Alignment with backprop at block.12 (cosine)");
  EXPECT_EQ(
      AxisTitle(report::NameOfMetric("alignment_ratio/block.12", report::MetricSource::kTrainer)),
      "Norm ratio to backprop at block.12");
  EXPECT_EQ(AxisTitle(report::NameOfMetric("other/block.3", report::MetricSource::kTrainer)),
            "other/block.3");
  EXPECT_EQ(report::NameOfFamily("other", report::MetricSource::kTrainer).text, "other");
}

class DepthTest : public ::testing::Test {
 protected:
  DepthTest() {
    input_.comparison = &*comparison_;
    input_.key = "gradient";
    input_.title = "residuals";
    input_.width = kDoubleWidth;
  }

  // Adds a setting whose seeds have the values of the places from `first` on.
  void Add(const std::string& label, const std::vector<std::vector<double>>& seeds,
           uint32_t first = 0, uint32_t step = 100) {
    FamilySetting setting{label, input_.family.size(), step, {}, seeds.size(), 0};
    for (size_t i = 0; i < seeds.size(); ++i) {
      FamilySeed& seed = setting.seeds.emplace_back();
      seed.seed = static_cast<uint32_t>(i);
      for (size_t p = 0; p < seeds[i].size(); ++p) {
        seed.values[first + static_cast<uint32_t>(p)] = seeds[i][p];
      }
    }
    input_.family.push_back(std::move(setting));
  }

  Drawing Drawn() { return DrawingOf(*FindKind("depth"), input_); }

  std::string Texts() { return TextsIn(Drawn().figure); }

  const absl::StatusOr<report::Comparison> comparison_ =
      report::Compare(Settings({{"a", {2, 3}}, {"b", {3, 4}}}));
  Input input_;
};

TEST(DepthKeysTest, AreReadAsTheyAreWritten) {
  EXPECT_EQ(KeyAt(Along::kBlocks, "gradient", 0), "gradient/embedding");
  EXPECT_EQ(KeyAt(Along::kBlocks, "gradient", 4), "gradient/block.3");
  EXPECT_THAT(PlaceOf(Along::kBlocks, "gradient", "gradient/embedding"), Optional(0u));
  EXPECT_THAT(PlaceOf(Along::kBlocks, "gradient", "gradient/block.3"), Optional(4u));
  for (const char* key : {"parameter_gradient/block.3", "gradient/block.03", "gradient/block.-1",
                          "gradient/block.", "gradient/block.4294967295",
                          "gradient/block.99999999999", "gradient", "gradient/blocks.1"}) {
    EXPECT_EQ(PlaceOf(Along::kBlocks, "gradient", key), std::nullopt) << key;
  }
}

TEST(DepthKeysTest, MayHaveTheBlockInTheirMiddle) {
  const std::string family = "jacobian/r_radial/block.*.attention_norm";
  EXPECT_EQ(KeyAt(Along::kBlocks, family, 1), "jacobian/r_radial/block.0.attention_norm");
  EXPECT_EQ(KeyAt(Along::kBlocks, "activations/mean/block.*.output", 0),
            "activations/mean/embedding");
  EXPECT_THAT(PlaceOf(Along::kBlocks, family, "jacobian/r_radial/block.11.attention_norm"),
              Optional(12u));
  for (const char* key :
       {"jacobian/r_radial/block.1.feed_forward_norm", "jacobian/r_radial/block.attention_norm",
        "jacobian/r_radial/block.1.attention_norm.x", "jacobian/r_radial/final_norm"}) {
    EXPECT_EQ(PlaceOf(Along::kBlocks, family, key), std::nullopt) << key;
  }
}

TEST(DepthKeysTest, NameTheirFamily) {
  EXPECT_THAT(FamilyOf(Along::kBlocks, "flow/gradient/block.0"),
              Optional(std::string("flow/gradient")));
  EXPECT_THAT(FamilyOf(Along::kBlocks, "e/entropy/block.0.head.2"),
              Optional(std::string("e/entropy/block.*.head.2")));
  for (const char* key : {"flow/gradient/block.1", "flow/gradient/block.03", "train/loss",
                          "/block.0", "cka/cka/block.0.output/block.1.output"}) {
    EXPECT_EQ(FamilyOf(Along::kBlocks, key), std::nullopt) << key;
  }
}

TEST(LevelKeysTest, AreReadAsTheyAreWritten) {
  const std::string family = "robust/fgsm@*/loss";
  EXPECT_EQ(KeyAt(Along::kLevels, family, .01), "robust/fgsm@0.01/loss");
  EXPECT_EQ(KeyAt(Along::kLevels, family, 1000), "robust/fgsm@1000/loss");
  EXPECT_THAT(PlaceOf(Along::kLevels, family, "robust/fgsm@0.01/loss"), Optional(.01));
  EXPECT_THAT(PlaceOf(Along::kLevels, family, "robust/fgsm@5e-05/loss"), Optional(5e-5));
  for (const char* key : {"robust/fgsm@0.01/increase", "robust/l2@0.01/loss", "robust/fgsm@/loss",
                          "robust/fgsm@-1/loss", "robust/fgsm@inf/loss", "robust/fgsm@1e999/loss",
                          "robust/fgsm@0.1x/loss", "robust/fgsm@*/loss", "robust/loss"}) {
    EXPECT_EQ(PlaceOf(Along::kLevels, family, key), std::nullopt) << key;
  }
  EXPECT_EQ(PlaceOf(Along::kLevels, "robust/fgsm", "robust/fgsm@0.01/loss"), std::nullopt);
}

TEST(LevelKeysTest, NameTheirFamily) {
  EXPECT_THAT(FamilyOf(Along::kLevels, "r/fgsm@0.01/loss"), Optional(std::string("r/fgsm@*/loss")));
  for (const char* key : {"r/loss", "r/fgsm@0.01", "r/fgsm@x/loss", "gradient/block.0"}) {
    EXPECT_EQ(FamilyOf(Along::kLevels, key), std::nullopt) << key;
  }
  EXPECT_EQ(PerturbationOf("r/replace_words@*/increase"), "replace_words");
  EXPECT_EQ(PerturbationOf("gradient"), "");
  EXPECT_EQ(FamilyText(Along::kLevels, "r/fgsm@*/loss", report::MetricSource::kTrainer),
            "loss under fgsm");
  EXPECT_EQ(FamilyText(Along::kLevels, "r/fgsm@*/other", report::MetricSource::kTrainer),
            "r/fgsm@*/other");
}

TEST_F(DepthTest, NamesWhatAnalysesGive) {
  EXPECT_EQ(report::NameOfFamily("flow/gradient", report::MetricSource::kTrainer).text,
            "gradient norm");
  EXPECT_EQ(report::NameOfFamily("jacobian/r_radial/block.*.attention_norm",
                                 report::MetricSource::kTrainer)
                .text,
            "radial share at attention_norm");
  EXPECT_EQ(
      AxisTitle(report::NameOfFamily("logit_lens/divergence", report::MetricSource::kTrainer)),
      "Divergence from the model's prediction (nats)");
  EXPECT_EQ(report::NameOfFamily("attention/entropy", report::MetricSource::kTrainer).text,
            "attention/entropy");
  input_.key = "jacobian/r_radial/block.*.attention_norm";
  Add("a", {{.2, .4}, {.3, .5}}, 1);
  EXPECT_THAT(Drawn().csv, HasSubstr("jacobian/r_radial/block.1.attention_norm,a,100,2,,0.45,"));
}

TEST_F(DepthTest, HasGeometricMeansOnALogarithmicAxis) {
  Add("a", {{1e-4, 1}, {1e-2, 4}});
  const Drawing drawing = Drawn();
  EXPECT_TRUE(drawing.figure.panels[0].y.log);
  // √(1e-4 · 1e-2), and the t interval of the two logarithms around it.
  const double half = 12.706204736432095 * std::log(100.0) / 2;
  EXPECT_THAT(drawing.csv, HasSubstr("gradient/embedding,a,100,0,,0.001"));
  EXPECT_THAT(drawing.csv, HasSubstr(",geometric\n"));
  const auto band = std::get<Band>(drawing.figure.panels[0].layers[1]);
  EXPECT_NEAR(std::log(band.high[0] / 1e-3), half, 1e-9);
  EXPECT_NEAR(std::log(band.low[0] / 1e-3), -half, 1e-9);
  EXPECT_THAT(Texts(),
              AllOf(HasSubstr("at step 100, geometric mean of 2 seeds"),
                    HasSubstr("Blocks passed (0: embedding)"), HasSubstr("Gradient norm")));
  EXPECT_THAT(FindKind("depth")->caption(input_), HasSubstr("geometric mean"));
}

TEST_F(DepthTest, HasArithmeticMeansOnALinearAxis) {
  input_.key = "alignment";
  Add("a", {{-.5, .9}, {.1, .7}}, 1);
  const Drawing drawing = Drawn();
  EXPECT_FALSE(drawing.figure.panels[0].y.log);
  EXPECT_THAT(drawing.csv, AllOf(HasSubstr("alignment/block.0,a,100,1,,-0.2,"),
                                 HasSubstr("alignment/block.1,a,100,2,1,0.7,,,\n"),
                                 HasSubstr(",arithmetic\n"), Not(HasSubstr("geometric"))));
  EXPECT_THAT(Texts(), AllOf(HasSubstr("at step 100, mean of 2 seeds"), HasSubstr("Block (from 1)"),
                             HasSubstr("Alignment with backprop (cosine)")));
  EXPECT_THAT(FindKind("depth")->caption(input_), HasSubstr("arithmetic mean"));
}

TEST_F(DepthTest, HasGeometricMeansOfNormsSoThatNoIntervalReachesZero) {
  Add("a", {{.1, 1}, {.9, 4}});
  const Drawing drawing = Drawn();
  EXPECT_FALSE(drawing.figure.panels[0].y.log) << "the values span less than a factor of 100";
  EXPECT_THAT(drawing.csv, AllOf(HasSubstr("gradient/embedding,a,100,0,,0.30000000000000004,"),
                                 HasSubstr(",geometric\n"), Not(HasSubstr("arithmetic"))));
  const auto band = std::get<Band>(drawing.figure.panels[0].layers[1]);
  EXPECT_GT(band.low[0], 0) << "of .1 and .9 an arithmetic mean's is -4.6";
  EXPECT_NEAR(std::log(band.high[0] / .3), 12.706204736432095 * std::log(9) / 2, 1e-9);
  EXPECT_THAT(Texts(), HasSubstr("geometric mean of 2 seeds"));
  Add("b", {{0, 1}});
  EXPECT_THAT(Drawn().csv, HasSubstr(",arithmetic\n")) << "0 has no logarithm";
}

TEST_F(DepthTest, HasNoIntervalThatNoAxisHasAPlaceFor) {
  Add("a", {{1e-100, 1}, {1, 1}});
  const Drawing drawing = Drawn();
  EXPECT_THAT(drawing.csv, HasSubstr("gradient/block.0,a,100,1,,1,1,1,geometric"));
  EXPECT_TRUE(std::isnan(std::get<Band>(drawing.figure.panels[0].layers[1]).low[0]));
}

TEST_F(DepthTest, LeavesOutAndCountsWhatIsNotFinite) {
  input_.key = "alignment";
  Add("a", {{.5, kNone}, {.3, .2}, {.4, std::numeric_limits<double>::infinity()}}, 1);
  EXPECT_THAT(Texts(), HasSubstr("2 values not finite, left out"));
  EXPECT_THAT(Drawn().csv, AllOf(HasSubstr("alignment/block.1,a,100,2,,0.2,,,arithmetic"),
                                 HasSubstr("alignment/block.1,a,100,2,0,,,,\n")));
}

TEST_F(DepthTest, InterruptsALineWhereALogarithmicAxisHasNoPlace) {
  Add("a", {{0, 1e-3, 1}, {1e-6, 1e-3, 1}});
  const Drawing drawing = Drawn();
  EXPECT_TRUE(drawing.figure.panels[0].y.log);
  EXPECT_GT(drawing.figure.panels[0].y.low, 0);
  EXPECT_THAT(Texts(), HasSubstr("1 value of 0, drawn as a gap"));
  EXPECT_THAT(drawing.csv, AllOf(HasSubstr("gradient/block.0,a,100,1,,0.001"),
                                 HasSubstr("gradient/embedding,a,100,0,0,0,,,\n")));
}

TEST_F(DepthTest, EndsEachSettingAtItsLastBlock) {
  Add("deep", {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}});
  Add("flat", {{1, 2}, {2, 3}}, 0, 50);
  const Drawing drawing = Drawn();
  EXPECT_EQ(drawing.figure.panels[0].x.high, 4);
  EXPECT_THAT(drawing.csv, AllOf(HasSubstr("gradient/block.3,deep,100,4,,5,5,5,"),
                                 Not(HasSubstr("gradient/block.3,flat"))));
  EXPECT_THAT(Texts(), HasSubstr("at the last step that all seeds of a setting have, 50 to 100"));
  EXPECT_THAT(drawing.figure.description, HasSubstr("deep from 1.00 to 5.00"));
}

TEST_F(DepthTest, CountsDivergedRunsAndSettingsWithoutValues) {
  Add("a", {{1, 2}, {2, 3}});
  input_.family[0].diverged = 3;
  input_.family.push_back({"late", 1, std::nullopt, {}, 2, 0});
  EXPECT_THAT(Texts(), AllOf(HasSubstr("diverged, not in the mean: a 3 of 5"),
                             HasSubstr("without values: late")));
}

TEST_F(DepthTest, HasNoPanelOfASettingWithoutValues) {
  Add("a", {{1, 2}, {2, 3}});
  for (int i = 1; i < 9; ++i) {
    input_.family.push_back({absl::StrCat("late", i), kPlainStyle, std::nullopt, {}, 2, 0});
  }
  const Figure alone = Drawn().figure;
  EXPECT_EQ(alone.panels.size(), 1u);
  EXPECT_THAT(alone.title, AllOf(HasSubstr(" of a"), Not(HasSubstr("late"))));
  EXPECT_THAT(TextsIn(alone), AllOf(HasSubstr("\na\n"), HasSubstr("without values: late1, late2"),
                                    Not(HasSubstr("baseline")), Not(HasSubstr("\nlate"))));
  Add("b", {{1, 2}, {2, 3}});
  input_.family.back().style = kPlainStyle;
  EXPECT_EQ(Drawn().figure.panels.size(), 2u) << "small multiples";
}

TEST_F(DepthTest, SaysWhatAsksForItsMetrics) {
  input_.family.push_back({"a", 0, std::nullopt, {}, 2, 0});
  const auto drawing = Draw(*FindKind("depth"), input_);
  EXPECT_EQ(drawing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(drawing.status().message(),
              AllOf(HasSubstr("gradient/block.0"), HasSubstr("evaluation.record")));
}

class LevelsTest : public DepthTest {
 protected:
  LevelsTest() { input_.key = "robustness/replace_words@*/increase"; }

  void AddLevels(const std::string& label, const std::vector<std::map<double, double>>& seeds) {
    FamilySetting setting{label, input_.family.size(), 100, {}, seeds.size(), 0};
    for (size_t i = 0; i < seeds.size(); ++i) {
      setting.seeds.push_back({static_cast<uint32_t>(i), seeds[i]});
    }
    input_.family.push_back(std::move(setting));
  }

  const Kind& kind_ = *FindKind("levels");
};

TEST_F(LevelsTest, HaveTheMeanOfEachSettingOverTheLevel) {
  AddLevels("a", {{{.1, .2}, {.4, 1}}, {{.1, .4}, {.4, 2}}});
  AddLevels("b", {{{.1, .1}, {.4, .5}}, {{.1, .1}, {.4, .5}}});
  const Drawing drawing = DrawingOf(kind_, input_);
  const Panel& panel = drawing.figure.panels[0];
  EXPECT_EQ(panel.x.low, .1);
  EXPECT_EQ(panel.x.high, .4);
  EXPECT_FALSE(panel.x.log);
  EXPECT_FALSE(drawing.figure.steps);
  EXPECT_THAT(drawing.csv,
              AllOf(HasSubstr("key,setting,step,level,seed,value,low,high,mean\n"),
                    HasSubstr("robustness/replace_words@0.4/increase,a,100,0.4,,1.5,"),
                    HasSubstr("robustness/replace_words@0.1/increase,a,100,0.1,1,0.4,,,\n")));
  EXPECT_THAT(TextsIn(drawing.figure),
              AllOf(HasSubstr("Level of replace_words"), HasSubstr("Increase of loss (nats)"),
                    HasSubstr("at step 100, mean of 2 seeds")));
  EXPECT_THAT(drawing.figure.title, HasSubstr("increase of loss under replace_words over levels"));
  EXPECT_THAT(drawing.figure.description,
              HasSubstr("from the lowest to the highest level: a from 0.300 to 1.50"));
  EXPECT_THAT(kind_.caption(input_),
              HasSubstr("Increase of loss under replace_words (robustness/replace_words@*/increase)"
                        " over the perturbation's level at step 100. Line: arithmetic mean"));
}

TEST_F(LevelsTest, HaveABarAtASingleLevel) {
  AddLevels("a", {{{.1, .2}}, {{.1, .4}}});
  const Drawing drawing = DrawingOf(kind_, input_);
  const std::vector<Strokes> bars = LayersOf<Strokes>(drawing.figure.panels[0]);
  ASSERT_FALSE(bars.empty());
  const Strokes& strokes = bars[0];
  EXPECT_NEAR(strokes.y[0] + strokes.dy[0] / 2, .3, 1e-12) << "around the mean";
  EXPECT_GT(strokes.dy[0], .2);
  EXPECT_THAT(TextsIn(drawing.figure), HasSubstr("mean of 2 seeds, bar: its 95 % t interval"));
  EXPECT_THAT(kind_.caption(input_),
              AllOf(HasSubstr(". Dot: arithmetic mean"), HasSubstr(". Bar: its 95 % t interval")));
}

TEST_F(LevelsTest, HaveANumberAtTheLastLevelOfSmallMultiples) {
  for (int i = 0; i < 8; ++i) {
    AddLevels(absl::StrCat("s", i), {{{.1, .2}, {.4, 1}}, {{.1, .4}, {.4, 2}}});
    input_.family.back().style = kPlainStyle;
  }
  input_.width = kColumnWidth;
  const Drawing drawing = DrawingOf(kind_, input_);
  const Figure& figure = drawing.figure;
  EXPECT_EQ(figure.panels.back().x.ticks[0].label, "0.2");
  const auto last = [&](const Text& text) {
    return text.text == "0.4" && text.align == Align::kRight &&
           text.x == figure.panels.back().right;
  };
  EXPECT_TRUE(std::any_of(figure.texts.begin(), figure.texts.end(), last));
}

TEST_F(LevelsTest, NeedAnAnalysis) {
  input_.family.push_back({"a", 0, std::nullopt, {}, 2, 0});
  const auto drawing = Draw(kind_, input_);
  EXPECT_EQ(drawing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(drawing.status().message(), AllOf(HasSubstr("replace_words@*/increase"),
                                                HasSubstr("`ablate analyze robustness`")));
}

}  // namespace
}  // namespace ablate::figure
