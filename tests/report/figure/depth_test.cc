// Tests the figure over depth: means and axes, what is left out, and the texts.
#include "server/report/figure/depth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "server/report/figure/axes.h"
#include "server/report/figure/layout.h"
#include "tests/report/figure/example_curves.h"

namespace ablate::figure {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

TEST(MetricNameTest, SaysWhichBlockAFamilyIsAt) {
  EXPECT_EQ(AxisTitle(report::NameOfMetric("gradient/block.3")), "Gradient norm at block.3");
  EXPECT_EQ(AxisTitle(report::NameOfMetric("gradient/embedding")), "Gradient norm at embedding");
  EXPECT_EQ(AxisTitle(report::NameOfMetric("parameter_gradient/block.0")),
            "Parameter gradient norm at block.0");
  EXPECT_EQ(AxisTitle(report::NameOfMetric("alignment/block.12")),
            "Alignment with backprop at block.12 (cosine)");
  EXPECT_EQ(AxisTitle(report::NameOfMetric("alignment_ratio/block.12")),
            "Norm ratio to backprop at block.12");
  EXPECT_EQ(AxisTitle(report::NameOfMetric("other/block.3")), "other/block.3");
  EXPECT_EQ(report::NameOfFamily("other").text, "other");
}

class DepthTest : public ::testing::Test {
 protected:
  DepthTest() {
    input_.comparison = &*comparison_;
    input_.key = "gradient";
    input_.title = "residuals";
    input_.width = kDoubleWidth;
  }

  // Adds a setting whose seeds have the values of the positions from `first` on.
  void Add(const std::string& label, const std::vector<std::vector<double>>& seeds,
           uint32_t first = 0, uint32_t step = 100) {
    DepthSetting setting{label, input_.depth.size(), step, {}, seeds.size(), 0};
    for (size_t i = 0; i < seeds.size(); ++i) {
      DepthSeed& seed = setting.seeds.emplace_back();
      seed.seed = static_cast<uint32_t>(i);
      for (size_t p = 0; p < seeds[i].size(); ++p) {
        seed.values[first + static_cast<uint32_t>(p)] = seeds[i][p];
      }
    }
    input_.depth.push_back(std::move(setting));
  }

  Drawing Drawn() {
    auto drawing = Draw(*FindKind("depth"), input_);
    EXPECT_TRUE(drawing.ok()) << drawing.status();
    return drawing.ok() ? *std::move(drawing) : Drawing();
  }

  std::string Texts() { return TextsIn(Drawn().figure); }

  const absl::StatusOr<report::Comparison> comparison_ =
      report::Compare(Settings({{"a", {2, 3}}, {"b", {3, 4}}}));
  Input input_;
};

TEST(DepthKeysTest, AreReadAsTheyAreWritten) {
  EXPECT_EQ(KeyAt("gradient", 0), "gradient/embedding");
  EXPECT_EQ(KeyAt("gradient", 4), "gradient/block.3");
  EXPECT_THAT(PositionOf("gradient", "gradient/embedding"), Optional(0u));
  EXPECT_THAT(PositionOf("gradient", "gradient/block.3"), Optional(4u));
  for (const char* key : {"parameter_gradient/block.3", "gradient/block.03", "gradient/block.-1",
                          "gradient/block.", "gradient/block.4294967295",
                          "gradient/block.99999999999", "gradient", "gradient/blocks.1"}) {
    EXPECT_EQ(PositionOf("gradient", key), std::nullopt) << key;
  }
}

TEST(DepthKeysTest, MayHaveTheBlockInTheirMiddle) {
  const std::string family = "jacobian/r_radial/block.*.attention_norm";
  EXPECT_EQ(KeyAt(family, 1), "jacobian/r_radial/block.0.attention_norm");
  EXPECT_EQ(KeyAt("activations/mean/block.*.output", 0), "activations/mean/embedding");
  EXPECT_THAT(PositionOf(family, "jacobian/r_radial/block.11.attention_norm"), Optional(12u));
  for (const char* key :
       {"jacobian/r_radial/block.1.feed_forward_norm", "jacobian/r_radial/block.attention_norm",
        "jacobian/r_radial/block.1.attention_norm.x", "jacobian/r_radial/final_norm"}) {
    EXPECT_EQ(PositionOf(family, key), std::nullopt) << key;
  }
}

TEST(DepthKeysTest, NameTheirFamily) {
  EXPECT_THAT(FamilyOf("flow/gradient/block.0"), Optional(std::string("flow/gradient")));
  EXPECT_THAT(FamilyOf("e/entropy/block.0.head.2"),
              Optional(std::string("e/entropy/block.*.head.2")));
  for (const char* key : {"flow/gradient/block.1", "flow/gradient/block.03", "train/loss",
                          "/block.0", "cka/cka/block.0.output/block.1.output"}) {
    EXPECT_EQ(FamilyOf(key), std::nullopt) << key;
  }
}

TEST_F(DepthTest, NamesWhatAnalysesGive) {
  EXPECT_EQ(report::NameOfFamily("flow/gradient").text, "gradient norm");
  EXPECT_EQ(report::NameOfFamily("jacobian/r_radial/block.*.attention_norm").text,
            "radial share at attention_norm");
  EXPECT_EQ(AxisTitle(report::NameOfFamily("logit_lens/divergence")),
            "Divergence from the model's prediction (nats)");
  EXPECT_EQ(report::NameOfFamily("attention/entropy").text, "attention/entropy");
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
  input_.depth[0].diverged = 3;
  input_.depth.push_back({"late", 1, std::nullopt, {}, 2, 0});
  EXPECT_THAT(Texts(), AllOf(HasSubstr("diverged, not in the mean: a 3 of 5"),
                             HasSubstr("without values: late")));
}

TEST_F(DepthTest, SaysWhatAsksForItsMetrics) {
  input_.depth.push_back({"a", 0, std::nullopt, {}, 2, 0});
  const auto drawing = Draw(*FindKind("depth"), input_);
  EXPECT_EQ(drawing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(drawing.status().message(),
              AllOf(HasSubstr("gradient/block.0"), HasSubstr("evaluation.record")));
}

}  // namespace
}  // namespace ablate::figure
