// Tests figures of analyses: what is drawn of arrays, what is left out, and the texts.
#include "server/report/figure/analyzed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/report/figure/layout.h"
#include "server/report/figure/map_panels.h"
#include "server/report/figure/style.h"
#include "server/report/figure/token_labels.h"
#include "tests/report/figure/example_curves.h"
#include "tests/report/figure/text_boxes.h"

namespace ablate::figure {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class AnalyzedTest : public ::testing::Test {
 protected:
  explicit AnalyzedTest(const std::string& kind, size_t form = 0) : kind_(*FindKind(kind)) {
    input_.comparison = &*comparison_;
    input_.key = "label";
    input_.title = "small";
    input_.width = kDoubleWidth;
    input_.analyzed.form = &kind_.forms[form];
    input_.analyzed.inputs = "at most 20 held-out tokens";
  }

  // Adds a setting whose seeds have arrays of this shape.
  AnalyzedSetting& Add(const std::string& label, const std::vector<size_t>& shape,
                       const std::vector<std::vector<double>>& seeds) {
    AnalyzedSetting setting{label, input_.analyzed.settings.size(), {}, seeds.size(), 0};
    for (size_t i = 0; i < seeds.size(); ++i) {
      AnalyzedSeed seed;
      seed.seed = static_cast<uint32_t>(i);
      seed.step = 100;
      seed.shape = shape;
      seed.values = seeds[i];
      for (size_t p = 0; p < shape.back(); ++p) {
        seed.places.push_back(static_cast<double>(p) - static_cast<double>(shape.back() / 2));
      }
      setting.seeds.push_back(std::move(seed));
    }
    input_.analyzed.settings.push_back(std::move(setting));
    return input_.analyzed.settings.back();
  }

  Drawing Drawn() { return DrawingOf(kind_, input_); }

  std::string Texts() { return TextsIn(Drawn().figure); }

  // The cells of a panel.
  static Cells CellsOf(const Panel& panel) { return std::get<Cells>(panel.layers.at(0)); }

  const Kind& kind_;
  const absl::StatusOr<report::Comparison> comparison_ =
      report::Compare(Settings({{"a", {2, 3}}, {"b", {3, 4}}}));
  Input input_;
};

class LinesTest : public AnalyzedTest {
 protected:
  LinesTest() : AnalyzedTest("landscape") { input_.analyzed.options["direction"] = {"filter"}; }
};

TEST_F(LinesTest, HaveTheMeanRiseOverDirectionsAndSeeds) {
  AnalyzedSetting& setting = Add("a", {2, 3}, {{3, 2, 3, 5, 2, 4}, {4, 3, 6, 6, 3, 8}});
  setting.seeds[0].number = 2;
  setting.seeds[1].number = 3;
  const Drawing drawing = Drawn();
  EXPECT_THAT(drawing.csv,
              AllOf(HasSubstr("label,a,,,-1,2,2,2\nlabel,a,,,0,0,0,0\n"
                              "label,a,,,1,2.75,-"),
                    HasSubstr("label,a,100,0,1,1.5,,\n"), HasSubstr("label,a,100,1,1,4,,\n")));
  EXPECT_FALSE(drawing.figure.panels[0].y.log);
  EXPECT_EQ(drawing.figure.panels[0].x.low, -1);
  EXPECT_EQ(drawing.figure.panels[0].x.high, 1);
  EXPECT_THAT(Texts(), AllOf(HasSubstr("Rise of loss (nats)"), HasSubstr("at step 100, mean of 2"),
                             HasSubstr("the mean over 2 filter-scaled directions")));
  EXPECT_THAT(kind_.caption(input_), HasSubstr("Computed on at most 20 held-out tokens."));
  EXPECT_THAT(Drawn().figure.description, HasSubstr("a by 2."));
}

TEST_F(LinesTest, AreInterruptedWhereOneLossIsNotFinite) {
  for (const char* label : {"a", "b"}) {
    AnalyzedSetting& setting =
        Add(label, {2, 3},
            {{3, 2, 3, std::numeric_limits<double>::infinity(), 2, 4}, {3, 2, 3, 3, 2, 3}});
    for (AnalyzedSeed& seed : setting.seeds) seed.number = 2;
  }
  input_.analyzed.settings[1].seeds[1].number = kNone;
  EXPECT_THAT(Texts(), HasSubstr("2 points not finite"));
  EXPECT_THAT(Drawn().csv, AllOf(HasSubstr("label,a,,,-1,,,\nlabel,a,,,0,0,0,0\n"),
                                 HasSubstr("label,b,,,0,,,\n")));
}

TEST_F(LinesTest, HaveAPowerOfTenInTheTitleWhereNumbersWouldBeLong) {
  const auto title = [this](double rise) {
    input_.analyzed.settings.clear();
    Add("a", {1, 2}, {{2 + rise, 2}}).seeds[0].number = 2;
    for (const Text& text : Drawn().figure.texts) {
      if (text.text.rfind("Rise", 0) == 0) return text.text;
    }
    return std::string();
  };
  EXPECT_EQ(title(8e6), "Rise of loss (10⁶ nats)");
  EXPECT_THAT(Drawn().csv, HasSubstr("label,a,100,0,-1,8e+06,,\n"));
  EXPECT_EQ(title(-4e-5), "Rise of loss (10⁻⁵ nats)");
  EXPECT_EQ(title(900), "Rise of loss (nats)");
  EXPECT_EQ(title(0), "Rise of loss (nats)");
}

TEST_F(LinesTest, SayWhichRunsAreLeftOut) {
  Add("a", {1, 2}, {{3, 4}}).diverged = 2;
  input_.analyzed.settings.push_back({"b", 1, {}, 2, 0});
  input_.analyzed.settings.push_back({"c", 2, {}, 0, 3});
  EXPECT_THAT(Texts(), AllOf(HasSubstr("without values: b"),
                             HasSubstr("diverged, not in the mean: a 2 of 3 and c 3 of 3")));
}

TEST_F(LinesTest, HaveNoPanelOfASettingWithoutValues) {
  for (const char* label : {"a", "b", "c"}) Add(label, {1, 2}, {{3, 4}}).style = kPlainStyle;
  for (int i = 0; i < 6; ++i) {
    input_.analyzed.settings.push_back({absl::StrCat("late", i), kPlainStyle, {}, 1, 0});
  }
  EXPECT_EQ(Drawn().figure.panels.size(), 3u);
  EXPECT_THAT(Texts(), AllOf(HasSubstr("grey: the other settings"), Not(HasSubstr("baseline")),
                             HasSubstr("without values: late0, late1"), Not(HasSubstr("\nlate"))));
  EXPECT_THAT(Drawn().figure.title, HasSubstr("of a, b and c"));
}

TEST_F(LinesTest, SayWhichStepsTheyAreOf) {
  AnalyzedSetting& setting = Add("a", {1, 2}, {{3, 4}, {3, 4}});
  setting.seeds[1].step = 50;
  EXPECT_THAT(Texts(), HasSubstr("at the last checkpoints that were analyzed, steps 50 to 100"));
}

TEST_F(LinesTest, NeedARunThatConverged) {
  input_.analyzed.settings.push_back({"a", 0, {}, 0, 2});
  const auto drawing = Draw(kind_, input_);
  EXPECT_TRUE(absl::IsFailedPrecondition(drawing.status()));
  EXPECT_THAT(drawing.status().message(), HasSubstr("with the label label yet"));
}

class PlanesTest : public AnalyzedTest {
 protected:
  PlanesTest() : AnalyzedTest("landscape", 1) {}
};

TEST_F(PlanesTest, ShareOneScaleAndHaveHoles) {
  Add("a", {2, 2, 2}, {{1, 2, kNone, 4, 99, 99, 99, 99}});
  Add("b", {1, 2, 2}, {{100, 2, 3, 4}});
  const Drawing drawing = Drawn();
  // Two maps and the bar. x is the first axis: the second value is above the first.
  ASSERT_EQ(drawing.figure.panels.size(), 3u);
  const Cells a = CellsOf(drawing.figure.panels[0]), b = CellsOf(drawing.figure.panels[1]);
  EXPECT_THAT(a.x, ElementsAre(-1.5, -.5, .5));
  EXPECT_EQ(a.colors[1].transparency, kInvisible.transparency);
  EXPECT_EQ(a.colors[2].rgb, b.colors[2].rgb) << "2 in both";
  EXPECT_EQ(a.colors[3].rgb, b.colors[3].rgb) << "4 in both";
  EXPECT_NE(a.colors[2].rgb, a.colors[3].rgb) << "the scale is logarithmic";
  EXPECT_THAT(Texts(), AllOf(HasSubstr("×: 1 not finite"), HasSubstr("Loss (nats)")));
  EXPECT_THAT(drawing.csv, AllOf(HasSubstr("label,a,100,0,-1,0,2\nlabel,a,100,0,0,-1,\n"),
                                 Not(HasSubstr("99"))));
}

TEST_F(PlanesTest, HaveLinesOfTheSameLossesWhereverThePanelHasThem) {
  Add("a", {1, 3, 3}, {{1, 1, 1, 10, 10, 10, 100, 100, 100}});
  Add("b", {1, 3, 3}, {{20, 20, 20, 20, 20, 20, 20, 20, 20}});
  const Figure figure = Drawn().figure;
  EXPECT_EQ(LayersOf<Strokes>(figure.panels[0]).size(), 9u + 1) << "and the +";
  EXPECT_EQ(LayersOf<Strokes>(figure.panels[1]).size(), 1u);
  const auto& third = std::get<Strokes>(figure.panels[0].layers[3]);
  // Except for the padding at the axis's ends.
  EXPECT_NEAR(third.x[0], -1 + (std::pow(100, 0.3) - 1) / 9, 0.02) << "even in the logarithm";
}

TEST_F(PlanesTest, HaveAPlaceForLossesOfAnySize) {
  Add("a", {1, 2, 2}, {{0, -2, 3, 4}});
  Add("b", {1, 2, 2}, {{kNone, kNone, kNone, kNone}});
  EXPECT_EQ(Drawn().figure.panels.size(), 3u);
  EXPECT_THAT(Drawn().figure.description, HasSubstr("b without a finite loss"));
}

TEST_F(PlanesTest, AreSquare) {
  Add("a", {1, 2, 3}, {{1, 2, 3, 4, 5, 6}});
  EXPECT_TRUE(absl::IsFailedPrecondition(Draw(kind_, input_).status()));
}

TEST_F(PlanesTest, HaveAsManyCellsAsFit) {
  const size_t side = 250;
  Add("a", {1, side, side}, {std::vector<double>(side * side, 1)});
  EXPECT_THAT(std::string(Draw(kind_, input_).status().message()),
              HasSubstr("maps of 62500 cells don't fit into this figure; expected at most 60000. "
                        "Compare fewer settings"));
}

class TrajectoryFigureTest : public AnalyzedTest {
 protected:
  TrajectoryFigureTest() : AnalyzedTest("trajectory") {}

  // A plane of two coordinates by three, and a path of three checkpoints that ends at the origin.
  AnalyzedSeed& AddWay(const std::string& label, const std::vector<double>& losses) {
    AnalyzedSeed& seed = Add(label, {2, 3}, {losses}).seeds[0];
    seed.beside = {{"alphas", {-1, 4}},
                   {"way", {-3, -1, 1, -1, 0, 0}},
                   {"way_losses", {9, 5, 2}},
                   {"explained_shares", {.82, .111}}};
    return seed;
  }
};

TEST_F(TrajectoryFigureTest, HasTheLossBehindTheWay) {
  AddWay("a", {1, 2, 3, 4, 5, kNone});
  const Drawing drawing = Drawn();
  const Panel& panel = drawing.figure.panels[0];
  const Cells cells = CellsOf(panel);
  EXPECT_THAT(cells.x, ElementsAre(-3.5, 1.5, 6.5));
  EXPECT_THAT(cells.y, ElementsAre(-1.5, -.5, .5, 1.5));
  EXPECT_EQ(cells.colors[5].transparency, kInvisible.transparency) << "row by row from below";
  const std::vector<Line> lines = LayersOf<Line>(panel);
  const auto is_way = [](const Line& line) {
    return line.x == std::vector<double>{-3, 1, 0} && line.y == std::vector<double>{-1, -1, 0};
  };
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), is_way), 2) << "with an edge behind it";
  EXPECT_THAT(drawing.csv,
              AllOf(HasSubstr("label,a,100,0,0,-3,-1,9\n"), HasSubstr("label,a,100,0,2,0,0,2\n"),
                    HasSubstr("label,a,100,0,,-1,0,2\n"), HasSubstr("label,a,100,0,,4,1,\n")));
  EXPECT_THAT(Texts(), AllOf(HasSubstr("a 82 + 11 %"), HasSubstr("×: 1 not finite"),
                             HasSubstr("the last at step 100"), HasSubstr("First axis")));
  EXPECT_THAT(Drawn().figure.description, HasSubstr("a from 1.00 to 5.00"));
  EXPECT_THAT(kind_.caption(input_), HasSubstr("the last checkpoint at step 100"));
}

TEST_F(TrajectoryFigureTest, CutsNothingOfItsFootnote) {
  for (const char* label : {"sinusoidal, wd 0.01", "rotary, wd 0.01", "learned, wd 0.01"}) {
    AddWay(label, {1, 2, 3, 4, 5, 6});
  }
  for (const char* label : {"learned, wd 0", "learned, wd 1", "rotary, wd 0", "rotary, wd 1"}) {
    input_.analyzed.settings.push_back({label, 0, {}, 1, 0});
  }
  input_.width = kColumnWidth;
  const std::string texts = absl::StrReplaceAll(Texts(), {{"\n", " "}});
  EXPECT_THAT(texts, AllOf(Not(HasSubstr("…")), HasSubstr("into 10 equal parts; without values: "
                                                          "“learned, wd 0”, “learned, wd 1”")));
}

TEST_F(TrajectoryFigureTest, TurnsEachWayToBeginOnTheLeftAndBelow) {
  AddWay("a", {1, 2, 3, 4, 5, 6});
  AddWay("b", {1, 2, 3, 4, 5, 6}).beside["way"] = {3, 1, 1, -1, 0, 0};
  const Drawing drawing = Drawn();
  EXPECT_THAT(drawing.csv,
              AllOf(HasSubstr("label,b,100,0,0,-3,-1,9\n"), HasSubstr("label,b,100,0,1,-1,1,5\n"),
                    HasSubstr("label,b,100,0,,-4,-1,6\n"), HasSubstr("label,b,100,0,,1,0,2\n")));
  const Panel &a = drawing.figure.panels[0], &b = drawing.figure.panels[1];
  EXPECT_THAT(CellsOf(b).x, ElementsAre(-6.5, -1.5, 3.5));
  EXPECT_EQ(a.x.low, b.x.low) << "on the same axes";
  EXPECT_EQ(a.x.low, -6.5);
  EXPECT_EQ(a.x.high, 6.5);
}

TEST_F(TrajectoryFigureTest, RefusesArraysThatDoNotFitEachOther) {
  AddWay("a", {1, 2, 3, 4, 5, 6}).beside["way"].pop_back();
  EXPECT_TRUE(absl::IsFailedPrecondition(Draw(kind_, input_).status()));
}

class ReliabilityTest : public AnalyzedTest {
 protected:
  ReliabilityTest() : AnalyzedTest("reliability") {}

  // Adds a setting with one seed per list of bins.
  struct Bins {
    std::vector<double> confidence, accuracy, targets;
    double error = 0;
  };
  void AddBins(const std::string& label, const std::vector<Bins>& seeds) {
    std::vector<std::vector<double>> accuracies;
    for (const Bins& seed : seeds) accuracies.push_back(seed.accuracy);
    AnalyzedSetting& setting = Add(label, {accuracies[0].size()}, accuracies);
    for (size_t i = 0; i < seeds.size(); ++i) {
      setting.seeds[i].beside = {{"bin_confidence", seeds[i].confidence},
                                 {"bin_targets", seeds[i].targets}};
      setting.seeds[i].number = seeds[i].error;
    }
  }
};

TEST_F(ReliabilityTest, PoolsSeedsByTargets) {
  AddBins("a", {{{kNone, .3, .8}, {kNone, .2, .5}, {0, 30, 10}, .1},
                {{kNone, .5, kNone}, {kNone, .6, kNone}, {0, 10, 0}, .3}});
  const Drawing drawing = Drawn();
  EXPECT_THAT(drawing.csv,
              AllOf(HasSubstr("label,setting,step,seed,bin,confidence,accuracy,targets\n"
                              "label,a,,,1,0.35,0.3,40\nlabel,a,,,2,0.8,0.5,10\n"),
                    HasSubstr("label,a,100,1,1,0.5,0.6,10\n"), Not(HasSubstr("label,a,100,1,2"))));
  EXPECT_THAT(Texts(), AllOf(HasSubstr("at step 100, mean of 2 seeds weighted by targets"),
                             HasSubstr("calibration error of a: 0.200")));
  EXPECT_THAT(kind_.caption(input_),
              HasSubstr("of the targets. Thin lines: single runs. Calibration error, mean over "
                        "seeds, of a: 0.200. Computed on at most 20"));
  EXPECT_EQ(drawing.figure.description, "Calibration error of a: 0.200.");
}

TEST_F(ReliabilityTest, HasTheDiagonalAndDotsWhoseAreaIsTheShareOfTargets) {
  AddBins("a", {{{.2, .8}, {.2, .9}, {90, 10}}});
  const Panel panel = Drawn().figure.panels[0];
  for (const Axis* axis : {&panel.x, &panel.y}) {
    EXPECT_EQ(axis->low, 0);
    EXPECT_EQ(axis->high, 1);
  }
  const Line diagonal = std::get<Line>(panel.layers[0]);
  EXPECT_THAT(diagonal.x, ElementsAre(0, 1));
  EXPECT_THAT(diagonal.y, ElementsAre(0, 1));
  const size_t layers = panel.layers.size();
  const Points large = std::get<Points>(panel.layers[layers - 2]);
  const Points small = std::get<Points>(panel.layers[layers - 1]);
  EXPECT_THAT(small.y, ElementsAre(.9));
  EXPECT_NEAR(large.radius / small.radius, 3, 1e-12);
  EXPECT_THAT(Texts(), HasSubstr("at step 100, one seed; area of a dot: share of targets"));
  EXPECT_THAT(kind_.caption(input_), Not(HasSubstr("Thin lines")));
}

TEST_F(ReliabilityTest, HasDotsInThePanelsOfTheirSettings) {
  for (const char* label : {"a", "b"}) AddBins(label, {{{.2, .8}, {.2, .9}, {90, 10}}});
  for (AnalyzedSetting& setting : input_.analyzed.settings) setting.style = kPlainStyle;
  input_.analyzed.settings.insert(input_.analyzed.settings.begin(), {"late", 0, {}, 1, 0});
  const Figure figure = Drawn().figure;
  ASSERT_EQ(figure.panels.size(), 2u);
  for (const Panel& panel : figure.panels) {
    EXPECT_TRUE(std::holds_alternative<Points>(panel.layers.back()));
  }
}

TEST_F(ReliabilityTest, NeedsEveryArrayOfABin) {
  AddBins("a", {{{.2, .8}, {.2, .9}, {90, 10, 3}}});
  const auto drawing = Draw(kind_, input_);
  EXPECT_THAT(std::string(drawing.status().message()),
              HasSubstr("key: bin_targets of label doesn't have one value per bin"));
}

class EigenvaluesTest : public AnalyzedTest {
 protected:
  EigenvaluesTest() : AnalyzedTest("eigenvalues") {}
};

TEST_F(EigenvaluesTest, AreSharesWithGeometricMeans) {
  Add("a", {2}, {{2, 1}, {2e200, 1e200}});
  Add("b", {2}, {{3, 1}, {1, 1}});
  const Drawing drawing = Drawn();
  EXPECT_TRUE(drawing.figure.panels[0].x.log);
  EXPECT_TRUE(drawing.figure.panels[0].y.log);
  // λ = σ²; √(0.9 · 0.5).
  EXPECT_THAT(drawing.csv,
              AllOf(HasSubstr("label,a,,,1,0.8,0.8,0.8\n"), HasSubstr("label,a,100,1,2,0.2,,\n"),
                    HasSubstr("label,b,,,1,0.67082")));
  EXPECT_THAT(Texts(), HasSubstr("geometric mean of 2 seeds"));
}

TEST_F(EigenvaluesTest, LeaveOutWhatIsRounding) {
  Add("a", {3}, {{2, 1, 1e-9}});
  EXPECT_THAT(Drawn().csv, HasSubstr("label,a,100,0,3,,,\n"));
  EXPECT_THAT(Texts(), HasSubstr("1 share below 10⁻¹⁰ not drawn"));
  EXPECT_GT(Drawn().figure.panels[0].y.low, 1e-3);
}

TEST_F(EigenvaluesTest, DrawNothingOfNothing) {
  Add("a", {2}, {{0, 0}});
  Add("b", {2}, {{kNone, 1}});
  Add("c", {1}, {{std::numeric_limits<double>::infinity()}});
  EXPECT_THAT(Drawn().csv, HasSubstr("label,a,,,1,,,\n"));
}

class SitesTest : public AnalyzedTest {
 protected:
  SitesTest() : AnalyzedTest("matrix") { input_.analyzed.options["estimator"] = {"debiased"}; }
};

TEST_F(SitesTest, HaveNumbersAndCountWhatIsBeyondTheScale) {
  Add("a", {2, 2}, {{1, -.25, 1.5, 1}});
  const Drawing drawing = Drawn();
  const Cells cells = CellsOf(drawing.figure.panels[0]);
  EXPECT_EQ(cells.colors[1].rgb, MapColor(0).rgb);
  EXPECT_EQ(cells.colors[2].rgb, MapColor(1).rgb);
  EXPECT_THAT(Texts(), AllOf(HasSubstr("−0.25"), HasSubstr("1 value below 0 drawn as 0"),
                             HasSubstr("1 value above 1 drawn as 1"),
                             HasSubstr("Blocks passed (0: embedding)")));
  EXPECT_THAT(drawing.csv, HasSubstr("label,a,100,0,,embedding,block.0.output,-0.25\n"));
}

TEST_F(SitesTest, AreNamedInTheFootnoteIfTheyWereAskedFor) {
  input_.analyzed.options["sites"] = {"logits", "embedding"};
  Add("a", {2, 2}, {{1, .5, .5, 1}});
  EXPECT_THAT(Texts(), HasSubstr("1: logits and 2: embedding"));
  EXPECT_THAT(Drawn().csv, HasSubstr(",logits,embedding,0.5\n"));
}

TEST_F(SitesTest, MayBeMoreInOneSettingThanInAnother) {
  Add("a", {2, 2}, {{1, .5, .5, 1}});
  Add("b", {3, 3}, {{1, .5, .5, .5, 1, kNone, .5, .5, 1}});
  EXPECT_EQ(CellsOf(Drawn().figure.panels[1]).colors.size(), 9u);
  EXPECT_THAT(Texts(), HasSubstr("white: 1 undefined"));
}

TEST_F(SitesTest, AreAsManyDownAsAcross) {
  Add("a", {1, 2}, {{1, .5}});
  EXPECT_TRUE(absl::IsFailedPrecondition(Draw(kind_, input_).status()));
}

class AttentionMapTest : public AnalyzedTest {
 protected:
  AttentionMapTest() : AnalyzedTest("matrix", 2) {}
};

TEST_F(AttentionMapTest, GoesDownAndIsWhiteWhereNoQueryMayLook) {
  Add("a", {2, 2, 2}, {{1, 0, .25, .75, .5, .5, .5, .5}});
  const Drawing drawing = Drawn();
  ASSERT_EQ(drawing.figure.panels.size(), 3u) << "two blocks and the bar";
  const Cells causal = CellsOf(drawing.figure.panels[0]), full = CellsOf(drawing.figure.panels[1]);
  // From the bottom up: the second query first.
  EXPECT_EQ(causal.colors[0].rgb, MapColor(.5).rgb) << "by the root";
  EXPECT_EQ(causal.colors[2].rgb, MapColor(1).rgb);
  EXPECT_EQ(causal.colors[3].transparency, kInvisible.transparency);
  EXPECT_EQ(full.colors[3].transparency, 0);
  EXPECT_THAT(Texts(), AllOf(HasSubstr("\na\n"), HasSubstr("block.0\n"), HasSubstr("block.1\n"),
                             HasSubstr("white: masked keys")));
  EXPECT_THAT(drawing.csv, HasSubstr("label,a,100,0,block.0,1,0,0.25\n"));
}

TEST_F(AttentionMapTest, HasTheCharactersOfThePromptAtItsAxes) {
  const auto ticks = [this](const std::string& prompt, size_t tokens) {
    input_.analyzed.settings.clear();
    input_.analyzed.prompt = prompt;
    Add("a", {1, tokens, tokens}, {std::vector<double>(tokens * tokens, .5)});
    const Drawing drawing = Drawn();
    std::string labels;
    for (const Tick& tick : drawing.figure.panels[0].x.ticks) labels += tick.label;
    return labels;
  };
  EXPECT_EQ(ticks("an é", 5), "|an·é");
  EXPECT_THAT(Texts(), HasSubstr("|: the boundary token, ·: a space"));
  EXPECT_EQ(ticks("a\nb", 3), "a¶b") << "a text has no boundary";
  EXPECT_THAT(Texts(), AllOf(HasSubstr("¶: a line feed"), Not(HasSubstr("boundary"))));
  EXPECT_EQ(ticks("abc", 5), "12345") << "not the tokens of this prompt";
}

TEST_F(AttentionMapTest, HasTheTextsOfTokensWrittenUpwardsIfTheyWouldTouch) {
  Add("a", {1, 11, 11}, {std::vector<double>(121, .5)}).seeds[0].beside = GreekTokens();
  input_.analyzed.prompt = "not used";
  input_.width = kColumnWidth;
  const Figure figure = Drawn().figure;
  std::vector<std::string> upright;
  for (const Text& text : figure.texts) {
    if (text.upright && text.text != "Query token") upright.push_back(text.text);
  }
  EXPECT_THAT(upright, ElementsAre("|", "When", "·Mary", "·and", "·\uFFFD", "\uFFFD", "·went", "¶",
                                   HasSubstr("…"), ",", "·gave"));
  EXPECT_EQ(figure.panels[0].y.ticks[1].label, "When");
  EXPECT_EQ(SignsText(TokenTexts(input_.analyzed.settings[0].seeds[0], 11)),
            "|: the boundary token, ·: a space, ¶: a line feed, \uFFFD: a part of a character, or "
            "one that can't be drawn");
  // Another setting with other tokens: no label is right for both.
  Add("b", {1, 11, 11}, {std::vector<double>(121, .5)}).seeds[0].beside = GreekTokens();
  input_.analyzed.settings[1].seeds[0].beside["token_text"][0] = 'T';
  EXPECT_EQ(Drawn().figure.panels[0].y.ticks[0].label, "1");
}

class ModelMapTest : public AnalyzedTest {
 protected:
  ModelMapTest() : AnalyzedTest("matrix", 1) {}
};

TEST_F(ModelMapTest, SaysOverWhatItIsAveraged) {
  Add("a", {2, 2}, {{1, 0, .5, .5}});
  EXPECT_THAT(Texts(), HasSubstr("mean over heads and blocks"));
  EXPECT_THAT(kind_.caption(input_), HasSubstr("mean over heads and blocks."));
}

class AnalyzedMapsTest : public AnalyzedTest {
 protected:
  AnalyzedMapsTest() : AnalyzedTest("matrix") {}
};

class HeadMapsTest : public AnalyzedTest {
 protected:
  HeadMapsTest() : AnalyzedTest("matrix", 3) {}
};

TEST_F(HeadMapsTest, HaveARowOfPanelsForEachBlock) {
  std::vector<double> weights(2 * 6 * 2 * 2, .5);
  weights.back() = 1;
  Add("a", {2, 6, 2, 2}, {weights});
  const Drawing drawing = Drawn();
  ASSERT_EQ(drawing.figure.panels.size(), 13u) << "and the bar";
  for (size_t i = 1; i < 6; ++i) {
    EXPECT_EQ(drawing.figure.panels[i].top, drawing.figure.panels[0].top);
  }
  EXPECT_LT(drawing.figure.panels[6].top, drawing.figure.panels[0].bottom);
  EXPECT_THAT(Texts(), AllOf(HasSubstr("\n1.5\n"), HasSubstr("titles: block.head"),
                             Not(HasSubstr("mean over heads"))));
  EXPECT_THAT(drawing.csv, HasSubstr("label,a,100,0,block.1.head.5,1,1,1\n"));
  EXPECT_THAT(kind_.caption(input_), HasSubstr("(column), of each head."));
}

TEST_F(HeadMapsTest, HaveTheSettingAboveItsFirstRow) {
  for (const char* label : {"post-norm without bias", "pre-norm without bias"}) {
    Add(label, {2, 4, 2, 2}, {std::vector<double>(2 * 4 * 2 * 2, .5)});
  }
  input_.width = kColumnWidth;
  const Figure figure = Drawn().figure;
  EXPECT_THAT(Outside(figure), testing::IsEmpty());
  EXPECT_THAT(TextsIn(figure), AllOf(HasSubstr("\npost-norm without bias\n"), HasSubstr("\n1.3\n"),
                                     HasSubstr("\npre-norm without bias\n")));
  const auto above = [&figure](size_t row) {  // inches from the row before
    return figure.panels[4 * row - 1].bottom - figure.panels[4 * row].top;
  };
  EXPECT_NEAR(above(1), above(3), 1e-9);
  EXPECT_GT(above(2), above(1) + .1) << "with room for the other setting's name";
}

TEST_F(AnalyzedMapsTest, BreakLongNamesInTheirTitles) {
  for (const char* label : {"sinusoidal positions, tied false", "rotary positions, tied false"}) {
    Add(label, {2, 2}, {{1, .5, .5, 1}});
  }
  input_.width = kColumnWidth;
  const Figure figure = Drawn().figure;
  EXPECT_THAT(TextsIn(figure), HasSubstr("rotary positions,\ntied false\n"));
}

TEST_F(HeadMapsTest, NameWhatFits) {
  Add("a", {4, 4, 63, 63}, {std::vector<double>(4 * 4 * 63 * 63, .5)});
  EXPECT_THAT(std::string(Draw(kind_, input_).status().message()),
              HasSubstr("maps of 63504 cells don't fit into this figure; expected at most 60000. "
                        "Use a shorter prompt, or layer_maps"));
}

TEST(TokenLabelTest, ShowsControlCharactersAsEscapes) {
  EXPECT_EQ(TokenLabel("\t"), "\\t");
  EXPECT_EQ(TokenLabel("a\r\n"), "a\\x0d¶");
  EXPECT_EQ(TokenLabel("\x1b"), "\\x1b");
  EXPECT_EQ(TokenLabel("\xC2\x85"), "\\x85");
  EXPECT_EQ(TokenLabel("\u202E"), "\uFFFD") << "turns the direction of writing";
  EXPECT_EQ(SignsText({"a\tb"}), "\\t: a tab");
  EXPECT_EQ(SignsText({"\x1b", "\u202E"}),
            "\\x: a control character, by its code, \uFFFD: a part of a character, or one that "
            "can't be drawn");
  EXPECT_EQ(SignsText({"\uFFFD"}), "") << "it is the token's own";
}

TEST(TokenTextsTest, AreNotTrusted) {
  AnalyzedSeed seed;
  EXPECT_THAT(TokenTexts(seed, 2), testing::IsEmpty());
  seed.beside = {{"token_text", {'a', 'b', 'c'}}, {"token_ends", {1, 3}}};
  EXPECT_THAT(TokenTexts(seed, 2), ElementsAre("a", "bc"));
  EXPECT_THAT(TokenTexts(seed, 3), testing::IsEmpty());
  for (const std::vector<double>& ends :
       {std::vector<double>{4, 3}, {2, 1}, {-1, 3}, {kNone, 3}, {1, 2}, {1, 1e300}}) {
    seed.beside["token_ends"] = ends;
    EXPECT_THAT(TokenTexts(seed, 2), testing::IsEmpty()) << ends[0] << " " << ends[1];
  }
  seed.beside = {{"token_text", {'a', 1e9, 'c'}}, {"token_ends", {1, 3}}};
  EXPECT_THAT(TokenTexts(seed, 2), testing::IsEmpty());
}

TEST_F(AttentionMapTest, LeavesOutTicksThatWouldTouch) {
  for (const char* label : {"a", "b", "c", "d"}) {
    Add(label, {1, 120, 120}, {std::vector<double>(120 * 120, .5)});
  }
  for (const Panel& panel : Drawn().figure.panels) {
    for (size_t i = 1; i < panel.x.ticks.size(); ++i) {
      const Tick &left = panel.x.ticks[i - 1], &right = panel.x.ticks[i];
      EXPECT_LT(XInches(panel, left.at) + TextWidth(left.label, kLabelSize) / 2,
                XInches(panel, right.at) - TextWidth(right.label, kLabelSize) / 2);
    }
    for (size_t i = 1; i < panel.y.ticks.size(); ++i) {
      EXPECT_GT(YInches(panel, panel.y.ticks[i - 1].at) - YInches(panel, panel.y.ticks[i].at),
                0.8 * kLabelSize * kPoint);
    }
  }
}

class PatchMapTest : public AnalyzedTest {
 protected:
  explicit PatchMapTest(size_t form = 5) : AnalyzedTest("matrix", form) {
    input_.analyzed.options = {{"clean", {"x", "y"}}, {"part", {"residual"}}};
  }
};

TEST_F(PatchMapTest, HasOneScaleAroundZeroAndBlocksUpwards) {
  Add("a", {2, 3}, {{0, .5, 0, -.25, 0, 1}});
  Add("b", {2, 3}, {{0, -2, 0, kNone, 0, 1}});
  const Drawing drawing = Drawn();
  const Cells cells = CellsOf(drawing.figure.panels[0]);
  EXPECT_EQ(cells.colors[0].rgb, DivergingColor(.5).rgb);
  EXPECT_EQ(cells.colors[5].rgb, DivergingColor(.75).rgb) << "1 of −2 to 2; the upper row";
  EXPECT_EQ(CellsOf(drawing.figure.panels[1]).colors[1].rgb, DivergingColor(0).rgb);
  EXPECT_THAT(drawing.csv, AllOf(HasSubstr("label,setting,step,seed,block,row,column,value\n"),
                                 HasSubstr("label,a,100,0,,embedding,1,0.5\n"),
                                 HasSubstr("label,b,100,0,,block.0,0,\n")));
  EXPECT_THAT(Texts(),
              AllOf(HasSubstr("Blocks passed (0: embedding)"), HasSubstr("mean over 2 pairs"),
                    HasSubstr("Position (from 0)"), HasSubstr("white: 1 undefined")));
  EXPECT_EQ(drawing.figure.description,
            "Largest recovered fraction: a 1.00 at block.0, position 2 and b 1.00 at block.0, "
            "position 2.");
  EXPECT_THAT(kind_.caption(input_),
              HasSubstr("if the residual stream in the pass over the corrupt prompt is replaced by "
                        "that over the clean one, at one position."));
}

TEST_F(PatchMapTest, HasTheTokensOfTheFirstPrompt) {
  Add("a", {2, 11}, {std::vector<double>(22, .5)}).seeds[0].beside = GreekTokens();
  EXPECT_THAT(Texts(), AllOf(HasSubstr("·Mary\n"), HasSubstr("tokens of the first clean prompt"),
                             HasSubstr("|: the boundary token")));
}

class PatchedHeadsTest : public PatchMapTest {
 protected:
  PatchedHeadsTest() : PatchMapTest(4) { input_.analyzed.options["part"] = {"head"}; }
};

TEST_F(PatchedHeadsTest, AreBlocksTimesHeads) {
  Add("a", {1, 2}, {{.25, -.5}});
  const Drawing drawing = Drawn();
  EXPECT_THAT(drawing.csv, HasSubstr("label,a,100,0,,block.0,head.1,-0.5\n"));
  EXPECT_THAT(Texts(), AllOf(HasSubstr("Head (from 0)"), HasSubstr("Block (from 0)"),
                             HasSubstr("patched at all positions"), HasSubstr("−0.50")));
  EXPECT_THAT(drawing.figure.description, HasSubstr("a 0.25 at block.0.head.0"));
}

class RemovedHeadsTest : public PatchMapTest {
 protected:
  RemovedHeadsTest() : PatchMapTest(7) { input_.analyzed.options = {{"replacement", {"mean"}}}; }
};

TEST_F(RemovedHeadsTest, AreBlocksTimesHeads) {
  Add("a", {2, 2}, {{.25, -.5, 0, 1}});
  const Drawing drawing = Drawn();
  EXPECT_THAT(drawing.csv, HasSubstr("label,a,100,0,,block.1,head.1,1\n"));
  EXPECT_THAT(Texts(), AllOf(HasSubstr("Δ loss (nats)\n"), HasSubstr("Head (from 0)"),
                             HasSubstr("replaced by mean"), Not(HasSubstr("pair"))));
  EXPECT_EQ(drawing.figure.description, "Largest change of the loss: a 1.00 at block.1.head.1.");
  EXPECT_THAT(kind_.caption(input_), HasSubstr("above 0 the model is worse without it."));
}

TEST(StackTest, PutsDrawingsBelowEachOther) {
  const auto drawing = [](const std::string& title, const std::string& head) {
    Drawing one;
    one.figure.title = title;
    one.figure.height = 2;
    one.figure.panels.resize(1);
    one.figure.panels[0].rules.push_back({0, 0, 1, 1, kInk});
    one.figure.texts.push_back({0, 1, title});
    one.figure.rules.push_back({0, 0, 1, 1, kInk});
    one.csv = absl::StrCat(head, "\n", title, ",1\n");
    return one;
  };
  const auto alone = Stack({{"slice-filter", drawing("filter", "label,x")}});
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->figure.height, 2);
  const auto both = Stack({{"slice-filter", drawing("filter", "label,x")},
                           {"slice-source", drawing("source", "label,x")}});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->csv, "label,x\nfilter,1\nsource,1\n");
  EXPECT_EQ(both->figure.title, "filter; source");
  EXPECT_GT(both->figure.height, 4);
  ASSERT_EQ(both->figure.panels.size(), 2u);
  const Panel &upper = both->figure.panels[0], &lower = both->figure.panels[1];
  EXPECT_EQ(lower.bottom, 0);
  EXPECT_GT(upper.bottom, 2) << "above the lower figure and its heading";
  EXPECT_EQ(upper.rules[0].y0, upper.bottom);
  EXPECT_EQ(both->figure.rules[0].y0, upper.bottom);
  std::vector<std::string> texts;
  for (const Text& text : both->figure.texts) texts.push_back(text.text);
  EXPECT_THAT(texts, ElementsAre("filter", "slice-filter", "source", "slice-source"));
  const auto unlike =
      Stack({{"line", drawing("a", "label,alpha")}, {"plane", drawing("b", "label,alpha,beta")}});
  EXPECT_THAT(std::string(unlike.status().message()),
              HasSubstr("line and plane have different columns and can't share a figure"));
}

TEST(MapPanelsTest, FitOnAPage) {
  const Kind& kind = *FindKind("matrix");
  std::vector<std::pair<std::string, std::vector<double>>> rows;
  std::vector<CurveShape> shapes;
  for (int i = 0; i < 30; ++i) {
    rows.push_back({absl::StrCat("s", i), {2, 3}});
    shapes.push_back({rows.back().first});
  }
  const report::ComparisonInput grid = Settings(rows);
  const auto comparison = report::Compare(grid);
  const auto drawing = Draw(kind, MakeInput(kind, grid, *comparison, shapes, kDoubleWidth));
  EXPECT_THAT(std::string(drawing.status().message()),
              HasSubstr("30 maps don't fit into this figure; expected at most "));
}

// Returns the number of texts "0.50" or "−0.50" in a map of `side` × `side` cells.
int NumbersIn(size_t side, double value) {
  MapPanel map;
  for (size_t i = 0; i <= side; ++i) map.x_edges.push_back(static_cast<double>(i));
  map.y_edges = map.x_edges;
  map.x.high = map.y.high = static_cast<double>(side);
  map.values.assign(side * side, value);
  map.numbers = true;
  const auto figure = DrawMaps({map}, {}, {}, kDoubleWidth);
  EXPECT_TRUE(figure.ok()) << figure.status();
  return static_cast<int>(
      std::count_if(figure->texts.begin(), figure->texts.end(),
                    [](const Text& text) { return text.text == "0.50" || text.text == "−0.50"; }));
}

TEST(MapPanelsTest, HaveNumbersIfAllFitIntoTheirCells) {
  EXPECT_EQ(NumbersIn(10, .5), 100);
  EXPECT_EQ(NumbersIn(10, -.5), 100);
  EXPECT_EQ(NumbersIn(13, .5), 169);
  EXPECT_EQ(NumbersIn(13, -.5), 0) << "the sign makes them wider";
}

TEST(MapColorTest, GetsLighterInGrey) {
  double before = -1;
  for (int i = 0; i <= 100; ++i) {
    const uint32_t rgb = MapColor(i / 100.0).rgb;
    const double grey = .2126 * std::pow((rgb >> 16) / 255.0, 2.2) +
                        .7152 * std::pow((rgb >> 8 & 0xFF) / 255.0, 2.2) +
                        .0722 * std::pow((rgb & 0xFF) / 255.0, 2.2);
    EXPECT_GE(grey, before) << i;
    before = grey;
  }
  EXPECT_EQ(MapColor(0).rgb, 0x440154u);
  EXPECT_EQ(MapColor(2).rgb, 0xFDE725u);
  EXPECT_EQ(MapColor(kNone).transparency, kInvisible.transparency);
  EXPECT_EQ(DivergingColor(kNone).transparency, kInvisible.transparency);
  EXPECT_EQ(DivergingColor(.5).rgb, 0xF7F7F7u);
}

}  // namespace
}  // namespace ablate::figure
