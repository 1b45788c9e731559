// Tests the loader: results of cells, tuning, changes by specs, and errors by name.
#include "server/results/trained_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "ablate/v1/analysis.pb.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/experiment/analysis_numbers.h"
#include "server/lookup/cancelled.h"
#include "server/report/compare/metric_names.h"
#include "server/report/compare/phrases.h"
#include "tests/results/stored_grid.h"

namespace ablate::results {
namespace {

using report::RunOutcome;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr char kTunedRates[] = R"(
  axes {
    name: "lr" field: "training.learning_rate" tune: true
    values { number_value: 0.01 } values { number_value: 0.001 }
  }
)";

constexpr char kDraws[] = R"(
  axes { name: "draw" field: "task.legacy_recall.draw"
         values { number_value: 4 } values { number_value: 5 } }
)";

absl::StatusOr<TrainedGrid> Load(StoredGrid& stored, const GridQuery& query = {}) {
  auto experiment = LoadExperiment(stored.store(), stored.experiment());
  if (!experiment.ok()) return experiment.status();
  return LoadGrid(stored.store(), *std::move(experiment), query, kNever);
}

// Loads a grid, which must succeed.
TrainedGrid Loaded(StoredGrid& stored, GridQuery query = {}) {
  absl::StatusOr<TrainedGrid> grid = Load(stored, std::move(query));
  EXPECT_TRUE(grid.ok()) << grid.status();
  return grid.ok() ? *std::move(grid) : TrainedGrid();
}

std::string ErrorOf(StoredGrid& stored, const GridQuery& query) {
  const absl::Status status = Load(stored, query).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

StoredGrid::Curves Evals(double first, double last) {
  return {{"eval/loss", {{0, first}, {10, last}}}};
}

TEST(TrainedGridTest, TellsWhatEachCellCameTo) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  stored.Finish("pre-s1", Evals(3, 2));
  stored.Finish("pre-s2", Evals(3, 9), true);
  stored.Report("pre-s3", Evals(3, 2.5));
  for (int attempt = 0; attempt < 3; ++attempt) stored.Fail("post-s1");
  stored.Finish("post-s2", {{"train/loss", {{0, 1}}}});
  const TrainedGrid grid = Loaded(stored);
  ASSERT_EQ(grid.input.cells.size(), 6u);
  std::vector<RunOutcome> outcomes;
  for (const report::Cell& cell : grid.input.cells) outcomes.push_back(cell.outcome);
  EXPECT_THAT(outcomes,
              ElementsAre(RunOutcome::kDone, RunOutcome::kDiverged, RunOutcome::kUnfinished,
                          RunOutcome::kFailed, RunOutcome::kDone, RunOutcome::kUnfinished));
  EXPECT_THAT(grid.input.cells[0].value, Optional(2.));
  EXPECT_EQ(grid.input.cells[1].value, std::nullopt);
  EXPECT_EQ(grid.input.cells[2].value, std::nullopt) << "a run that goes on has no final value";
  EXPECT_EQ(grid.input.cells[4].value, std::nullopt) << "a run without the metric";
  EXPECT_EQ(grid.cells[3].name, "post-s1");
  EXPECT_THAT(grid.input.cells[3].labels, ElementsAre("post"));
  EXPECT_EQ(grid.input.cells[3].seed, 1u);
}

TEST(TrainedGridTest, TellsWhichRunsStartFarAboveAUniformGuess) {
  StoredGrid stored(absl::StrCat(SmallGrid(1), kPlacementAxis));
  const double uniform = std::log(22);  // of the vocabulary: 20 keys and two tokens more
  stored.Finish("pre-s1", Evals(uniform + .9, 2));
  stored.Finish("post-s1", Evals(uniform + 1.1, 2));
  const TrainedGrid grid = Loaded(stored);
  EXPECT_EQ(grid.input.cells[0].high_start, std::nullopt);
  EXPECT_EQ(grid.input.cells[1].high_start, uniform + 1.1);
  EXPECT_EQ(grid.input.cells[1].uniform, uniform);
}

TEST(TrainedGridTest, ACancelledRunHasEnded) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  ASSERT_TRUE(stored.store()->CancelExperiment(stored.experiment()).ok());
  for (const report::Cell& cell : Loaded(stored).input.cells) {
    EXPECT_EQ(cell.outcome, RunOutcome::kMissing);
  }
}

TEST(TrainedGridTest, TellsWhatEachCellIsScoredOn) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kDraws, R"(
    axes { name: "batch" field: "training.batch"
           values { number_value: 2 } values { number_value: 3 } })"));
  const TrainedGrid grid = Loaded(stored);
  ASSERT_EQ(grid.input.cells.size(), 12u);
  EXPECT_EQ(grid.input.cells[0].scored.at("task.legacy_recall.draw"), "4");
  EXPECT_EQ(grid.input.cells[0].scored, grid.input.cells[3].scored) << "the batch is no difference";
  EXPECT_NE(grid.input.cells[0].scored, grid.input.cells[6].scored);
  const report::Comparison comparison = *report::Compare(grid.input);
  EXPECT_THAT(comparison.within_axes, ElementsAre("draw"));
}

TEST(TrainedGridTest, AMetricOfTrainingIsTheSameHoweverMuchIsEvaluated) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kDraws, R"(
    axes { name: "batches" field: "evaluation.batches"
           values { number_value: 2 } values { number_value: 3 } })"));
  EXPECT_THAT(report::Compare(Loaded(stored).input)->within_axes, testing::IsEmpty())
      << "both axes change what is scored: nothing is left to compare";
  GridQuery query;
  query.key = "train/loss";
  const TrainedGrid grid = Loaded(stored, query);
  ASSERT_EQ(grid.input.cells.size(), 12u);
  EXPECT_EQ(grid.input.cells[0].scored, grid.input.cells[3].scored);
  EXPECT_NE(grid.input.cells[0].scored, grid.input.cells[6].scored) << "training data of its own";
  const report::Comparison comparison = *report::Compare(grid.input);
  EXPECT_THAT(comparison.within_axes, ElementsAre("draw"));
  EXPECT_EQ(comparison.family, 2u);
}

TEST(TrainedGridTest, GivesCostsAndProvenance) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  stored.Finish("pre-s1", Evals(3, 2));
  const TrainedGrid grid = Loaded(stored);
  const report::Cell& cell = grid.input.cells[0];
  EXPECT_THAT(cell.device_seconds, Optional(1.));
  EXPECT_EQ(cell.contended_seconds, .05);
  EXPECT_THAT(cell.tokens_per_second, Optional(100.));
  EXPECT_EQ(cell.trainer, "native");
  EXPECT_EQ(cell.version, "0.1");
  EXPECT_EQ(cell.device, "EPYC");
  ASSERT_TRUE(cell.parameters.has_value());
  EXPECT_GT(*cell.parameters, 100);
  EXPECT_EQ(grid.input.cells[1].device_seconds, std::nullopt);
  EXPECT_EQ(grid.input.cells[1].tokens_per_second, std::nullopt);
}

TEST(TrainedGridTest, SaysWhatTheResolvedSpecChanges) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis, kTunedRates));
  const TrainedGrid grid = Loaded(stored);
  ASSERT_EQ(grid.input.cells.size(), 12u);
  EXPECT_THAT(grid.input.cells[0].changed, ElementsAre(Pair("training.learning_rate", "0.01")));
  EXPECT_TRUE(grid.input.cells[3].changed.empty()) << "0.001 is the default";
  EXPECT_THAT(grid.input.cells[9].changed, ElementsAre(Pair("model.norm.placement", "post")));
  EXPECT_EQ(grid.base.at("model.norm.placement"), "pre");
  EXPECT_EQ(grid.base.at("training.betas"), "[0.9, 0.999]");
}

// `auto` counts as the first cell's trainer.
TEST(TrainedGridTest, CountsATrainerAsAChangeFromTheFirst) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), R"(
    axes {
      field: "training.trainer"
      values { string_value: "torch" } values { string_value: "native" }
    })"));
  const TrainedGrid grid = Loaded(stored);
  ASSERT_EQ(grid.input.cells.size(), 6u);
  EXPECT_THAT(grid.input.cells[0].changed, testing::IsEmpty());
  EXPECT_THAT(grid.input.cells[3].changed, ElementsAre(Pair("training.trainer", "native")));
  EXPECT_EQ(grid.input.cells[3].trainer, "") << "nothing has trained it yet";
}

TEST(TrainedGridTest, CountsASwitchAsOneChange) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), R"(
    axes {
      name: "part"
      settings { label: "all" }
      settings {
        label: "no-attention"
        set { key: "model.attention.kind" value { string_value: "none" } }
      }
      settings { label: "sgd" set { key: "training.optimizer" value { string_value: "sgd" } } }
    })"));
  const TrainedGrid grid = Loaded(stored);
  std::map<std::string, std::set<std::string>> changed;
  for (const report::Cell& cell : grid.input.cells) {
    for (const auto& [path, value] : cell.changed) changed[cell.labels[0]].insert(path);
  }
  EXPECT_THAT(changed["all"], testing::IsEmpty());
  EXPECT_THAT(changed["no-attention"], ElementsAre("model.attention.kind"));
  EXPECT_THAT(changed["sgd"], ElementsAre("training.optimizer", "training.weight_decay"))
      << "whose default is another";
  EXPECT_THAT(grid.input.cells.back().follows, ElementsAre("training.weight_decay"));
  const report::Comparison comparison = *report::Compare(grid.input);
  for (const report::Warning& warning : comparison.warnings) {
    EXPECT_NE(warning.kind, report::WarningKind::kSeveralChanges) << warning.text;
  }
}

TEST(TrainedGridTest, SeveralChangesAreThoseThatASettingWrites) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), R"(
    axes {
      name: "norm"
      settings { label: "layer" }
      settings {
        label: "rms"
        set { key: "model.norm.kind" value { string_value: "rms" } }
        set { key: "model.width" value { number_value: 16 } }
      }
    })"));
  const report::Comparison comparison = *report::Compare(Loaded(stored).input);
  EXPECT_THAT(comparison.rows[1].changed,
              ElementsAre("model.attention.head_size", "model.feed_forward.hidden",
                          "model.norm.bias", "model.norm.kind", "model.width"));
  std::vector<std::string> texts;
  for (const report::Warning& warning : comparison.warnings) {
    if (warning.kind == report::WarningKind::kSeveralChanges) texts.push_back(warning.text);
  }
  EXPECT_THAT(texts, ElementsAre("more than one thing differs from the baseline: “rms” "
                                 "(model.norm.kind, model.width)"));
}

TEST(TrainedGridTest, DescribesAxes) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis, kTunedRates));
  const TrainedGrid grid = Loaded(stored);
  ASSERT_EQ(grid.input.axes.size(), 2u);
  const report::Axis& placement = grid.input.axes[0];
  const report::Axis& learning_rate = grid.input.axes[1];
  EXPECT_THAT(placement.labels, ElementsAre("pre", "post"));
  EXPECT_FALSE(placement.tuned);
  EXPECT_TRUE(placement.values.empty());
  EXPECT_THAT(placement.base, Optional(std::string("pre")));
  EXPECT_THAT(learning_rate.labels, ElementsAre("0.01", "0.001"));
  EXPECT_TRUE(learning_rate.tuned);
  EXPECT_THAT(learning_rate.values, ElementsAre(.01, .001));
  EXPECT_THAT(learning_rate.base, Optional(std::string("0.001")));
}

TEST(TrainedGridTest, ComparesWithTwoTunedAxes) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis, kTunedRates, R"(
    axes { name: "wd" field: "training.weight_decay" tune: true
           values { number_value: 0 } values { number_value: 0.1 } values { number_value: 0.2 } })"));
  for (const char* placement : {"pre", "post"}) {
    for (const char* learning_rate : {"0.01", "0.001"}) {
      for (const char* decay : {"0", "0.1", "0.2"}) {
        for (int seed = 1; seed <= 3; ++seed) {
          const bool best = absl::StrCat(learning_rate, decay) == "0.0010.1";
          stored.Finish(absl::StrCat(placement, "-lr", learning_rate, "-wd", decay, "-s", seed),
                        Evals(3, (best ? 1. : 2.) + .01 * seed));
        }
      }
    }
  }
  const auto comparison = report::Compare(Loaded(stored).input);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  ASSERT_EQ(comparison->rows.size(), 2u);
  ASSERT_EQ(comparison->rows[1].chosen.size(), 1u);
  EXPECT_THAT(comparison->rows[1].chosen[0].labels, ElementsAre("0.001", "0.1"));
  EXPECT_EQ(comparison->rows[1].chosen[0].seeds, 3u);
  EXPECT_EQ(comparison->matched.size(), 6u);
}

TEST(TrainedGridTest, ReadsOtherKeysAndSteps) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  stored.Finish("pre-s1", {{"eval/loss", {{0, 3.}, {5, 2.5}, {10, 2.}}},
                           {"eval/accuracy", {{0, .1}, {10, .5}}}});
  GridQuery query;
  query.key = "eval/accuracy";
  EXPECT_THAT(Loaded(stored, query).input.cells[0].value, Optional(.5));
  EXPECT_EQ(Loaded(stored, query).input.better, report::Better::kHigher);
  query = {};
  query.at = 5;
  EXPECT_THAT(Loaded(stored, query).input.cells[0].value, Optional(2.5));
  query.at = 0;
  EXPECT_THAT(Loaded(stored, query).input.cells[0].value, Optional(3.));
}

// Learning rate 0.001 is better by its evaluation at the end only.
TEST(TrainedGridTest, ChoosesByThePlannedMetricAtItsEndWhateverIsRead) {
  StoredGrid stored(
      absl::StrCat(SmallGrid(3), kPlacementAxis, kTunedRates, "report { margin: 0.5 }"));
  for (const char* cell : {"pre-lr0.01", "pre-lr0.001", "post-lr0.01", "post-lr0.001"}) {
    const bool best = absl::StrContains(cell, "0.001");
    for (int seed = 1; seed <= 3; ++seed) {
      stored.Finish(absl::StrCat(cell, "-s", seed),
                    {{"eval/loss", {{0, 3.}, {5, best ? 2.8 : 2.2}, {10, best ? 1.5 : 2.}}},
                     {"train/loss", {{10, best ? 2.5 : 1.}}}});
    }
  }
  const auto chosen = [&](const GridQuery& query) {
    const auto comparison = report::Compare(Loaded(stored, query).input);
    EXPECT_TRUE(comparison.ok()) << comparison.status();
    return comparison->rows[1].chosen[0].labels[0] + "; " + comparison->exploratory;
  };
  GridQuery train, early;
  train.key = "train/loss";
  early.at = 5;
  EXPECT_EQ(chosen({}), "0.001; ");
  EXPECT_EQ(chosen(train), "0.001; report.primary is eval/loss");
  EXPECT_EQ(chosen(early), "0.001; planned: the end of the runs");
  EXPECT_THAT(Loaded(stored).input.margin, Optional(.5));
  EXPECT_EQ(Loaded(stored, train).input.margin, std::nullopt) << "it is of the primary metric";
  EXPECT_EQ(Loaded(stored).input.choice_key, "");
  GridQuery along = train;
  along.by = "lr";
  EXPECT_EQ(Loaded(stored, along).input.choice_key, "") << "nothing is chosen";
}

TEST(TrainedGridTest, ChoosesByTheHeldOutLossWhereThePrimaryMetricIsNoEvaluation) {
  StoredGrid stored(
      absl::StrCat(SmallGrid(3), kPlacementAxis, kTunedRates, "report { primary: 'train/loss' }"));
  stored.Finish("pre-lr0.01-s1", {{"train/loss", {{9, 4.}}}, {"eval/loss", {{10, 2.}}}});
  const TrainedGrid grid = Loaded(stored);
  EXPECT_EQ(grid.input.choice_key, "eval/loss");
  EXPECT_EQ(grid.input.exploratory, "");
  EXPECT_THAT(grid.input.cells[0].choice, Optional(2.));
}

TEST(TrainedGridTest, ComparesByTheMetricUnlessTheSpecSaysHowOfThePrimaryOne) {
  const auto scale = [](const std::string& report, const std::string& key) {
    StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis, "report { ", report, " }"));
    stored.Finish("pre-s1", {{"eval/loss", {{10, 2.}}}, {"train/gradient_norm", {{9, 4.}}}});
    GridQuery query;
    query.key = key;
    return Loaded(stored, query).input.scale;
  };
  const std::string norm = "train/gradient_norm";
  EXPECT_EQ(scale("", ""), report::Scale::kDifference);
  EXPECT_EQ(scale("", norm), report::Scale::kRatio);
  EXPECT_EQ(scale("scale: ratio", ""), report::Scale::kRatio);
  EXPECT_EQ(scale("primary: 'train/gradient_norm' scale: difference", ""),
            report::Scale::kDifference);
  EXPECT_EQ(scale("scale: difference", norm), report::Scale::kRatio) << "it is not the primary one";
}

// The table has its own keys, which kinds of analyses may change: these are all of them.
TEST(TrainedGridTest, ComparesNormsAndSizesThatAnalysesGiveAsRatios) {
  std::set<std::string> ratios;
  const auto* kinds = v1::AnalysisKind::descriptor();
  for (int i = 0; i < kinds->field_count(); ++i) {
    v1::AnalysisKind analysis;
    analysis.GetReflection()->MutableMessage(&analysis, kinds->field(i));
    for (const std::string& form : spec::NumberForms(analysis)) {
      if (report::ScaleOfMetric(absl::StrCat("label/", form), report::MetricSource::kTrainer) ==
          report::Scale::kRatio) {
        ratios.insert(form.substr(0, form.find('/')));
      }
    }
  }
  EXPECT_THAT(ratios, UnorderedElementsAre(
                          "deviation", "displacement", "embedding_rms", "gradient", "gradient_norm",
                          "gradient_ratio", "input_deviation", "input_largest", "input_rms",
                          "l2_norm", "largest_singular_value", "length", "norm_ratio",
                          "norm_ratio_center_scale", "norm_ratio_identity", "norm_ratio_projected",
                          "output_deviation", "output_largest", "output_rms", "parameter_gradient",
                          "perplexity", "relative_gradient", "sigma_mean", "unbiased_deviation",
                          "uncentred_largest_singular_value", "variance"));
}

TEST(TrainedGridTest, ReadsNumbersOfAnalyses) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  stored.Finish("pre-s1", Evals(3, 2));
  v1::Analysis result;
  (*result.mutable_numbers())["participation_ratio"].set_value(7);
  stored.Analyze("pre-s1", "ranks", result.SerializeAsString());
  GridQuery query;
  query.key = "ranks/participation_ratio";
  query.analyses = AnalysisNumbers::kOfComparison;
  EXPECT_THAT(Loaded(stored, query).input.cells[0].value, Optional(7.));
  query.at = 10;
  EXPECT_THAT(Loaded(stored, query).input.cells[0].value, Optional(7.));
}

// Results may be large, so those that aren't requested are not read.
TEST(TrainedGridTest, LeavesAnalysesOfOtherLabelsUnread) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  stored.Finish("pre-s1", Evals(3, 2));
  stored.Analyze("pre-s1", "ranks", "no message");
  GridQuery query;
  query.analyses = AnalysisNumbers::kOfComparison;
  EXPECT_THAT(Loaded(stored, query).input.cells[0].value, Optional(2.));
  query.key = "ranks/participation_ratio";
  const absl::Status unread = Load(stored, query).status();
  EXPECT_TRUE(absl::IsDataLoss(unread)) << unread;
  EXPECT_THAT(unread.message(), HasSubstr("ranks-pre-s1 can't be read"));
}

TEST(TrainedGridTest, KnowsADirectionOfLossesAndAccuraciesAlone) {
  const v1::ExperimentSpec spec;
  for (const char* key : {"eval/loss", "train/loss", "eval/ema_loss", "remove/loss",
                          "robustness/replace_words@0.2/loss"}) {
    EXPECT_EQ(BetterOf(spec, key), report::Better::kLower) << key;
  }
  for (const char* key : {"eval/accuracy", "remove/accuracy", "robustness/fgsm@0.1/accuracy"}) {
    EXPECT_EQ(BetterOf(spec, key), report::Better::kHigher) << key;
  }
  for (const char* key : {"train/gradient_norm", "spectrum/participation_ratio", "remove/loss/all",
                          "remove/loss_change/all", "cka/cka/embedding/block.0.output"}) {
    EXPECT_EQ(BetterOf(spec, key), report::Better::kNeither) << key;
  }
}

// As --axis lr=0.01 leaves it.
TEST(TrainedGridTest, FixesATunedAxisOfOneValue) {
  for (const bool tuned : {true, false}) {
    StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis,
                                   "axes { name: 'lr' field: 'training.learning_rate' ",
                                   tuned ? "tune: true " : "", "values { number_value: 0.01 } }"));
    const TrainedGrid grid = Loaded(stored);
    ASSERT_EQ(grid.input.axes.size(), 2u);
    EXPECT_FALSE(grid.input.axes[1].tuned);
    EXPECT_EQ(grid.input.axes[1].labels, std::vector<std::string>{"0.01"});
  }
}

TEST(TrainedGridTest, SeesThatTheLastPointIsNotFinite) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  stored.Finish("pre-s1", {{"eval/loss", {{0, 3.}, {5, nan}, {10, 2.}}}});
  stored.Finish("pre-s2", {{"eval/loss", {{0, 3.}, {5, 2.}, {10, nan}}}});
  const TrainedGrid grid = Loaded(stored);
  EXPECT_THAT(grid.input.cells[0].value, Optional(2.));
  ASSERT_TRUE(grid.input.cells[1].value.has_value());
  EXPECT_TRUE(std::isnan(*grid.input.cells[1].value)) << "not 2, the last finite one";
}

TEST(TrainedGridTest, TakesTheSpecsMetricAndDirection) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis,
                                 "report { primary: 'train/loss' better: higher }"));
  stored.Finish("pre-s1", {{"train/loss", {{9, 4.}}}, {"eval/loss", {{10, 2.}}}});
  const TrainedGrid grid = Loaded(stored);
  EXPECT_EQ(grid.input.key, "train/loss");
  EXPECT_EQ(grid.input.better, report::Better::kHigher);
  GridQuery other;
  other.key = "eval/loss";
  EXPECT_EQ(Loaded(stored, other).input.better, report::Better::kLower)
      << "report.better is about the primary metric only";
}

TEST(TrainedGridTest, NamesMetricsOfProgramsByTheirKeys) {
  StoredGrid stored(R"(name: "own"
    base { program { command: "train" } settings { fields { key: "x" value { number_value: 1 } } } }
    axes { name: "x" field: "settings.x" values { number_value: 1 } values { number_value: 2 } }
    seeds { first: 1 count: 1 })");
  stored.Finish("x1-s1", {{"eval/loss", {{10, 2.}}}});
  const TrainedGrid grid = Loaded(stored);
  const auto comparison = report::Compare(grid.input);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(report::MeasuredIn(*comparison), "eval/loss (lower is better)");
}

TEST(TrainedGridTest, NamesTheRemedyWhenNoRunHasThePrimaryMetric) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), "report { primary: 'eval/accuracy' }"));
  stored.Finish("s1", Evals(3, 2));
  EXPECT_EQ(ErrorOf(stored, {}),
            absl::StrCat("report.primary: no run of ", stored.experiment(),
                         " has \"eval/accuracy\"; expected eval/loss. Name one of them as key, or "
                         "submit the file again with it as report.primary"));
}

TEST(TrainedGridTest, NamesWhatIsNotThere) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis, kTunedRates));
  stored.Finish("pre-lr0.01-s1", Evals(3, 2));
  GridQuery query;
  query.key = "eval/los";
  EXPECT_EQ(ErrorOf(stored, query),
            absl::StrCat("key: no run of ", stored.experiment(),
                         " has \"eval/los\" (did you mean eval/loss?); expected eval/loss"));
  query.key = "eval\n";
  EXPECT_THAT(ErrorOf(stored, query), HasSubstr("key: \"eval\\x0a\" isn't a valid key"));
  query = {};
  query.at = 7;
  EXPECT_EQ(ErrorOf(stored, query),
            absl::StrCat("at: no finished run of ", stored.experiment(),
                         " has eval/loss at step 7; expected -1 for the end, or a step with a "
                         "point: nearest 0 and 10, from 0 to 10"));
  query = {};
  query.by = "placment";
  EXPECT_EQ(ErrorOf(stored, query),
            "by: \"placment\" isn't an axis (did you mean placement?); expected placement or lr");
  query = {};
  query.baseline = {{"lr", "0.01"}};
  EXPECT_EQ(ErrorOf(stored, query),
            "baseline: \"lr\" isn't an axis that is compared; expected placement");
  query.baseline = {{"", "post"}};
  EXPECT_EQ(ErrorOf(stored, query),
            "baseline: \"post\" has no axis (did you mean placement=post?); expected AXIS=LABEL, "
            "with the axis placement");
  query.by = "lr";
  query.baseline = {{"", "lr0.01"}};
  EXPECT_EQ(ErrorOf(stored, query),
            "baseline: \"lr0.01\" has no axis (did you mean lr=0.01?); expected AXIS=LABEL, with "
            "the axis lr");
  query.baseline = {{"", "none"}};
  EXPECT_EQ(ErrorOf(stored, query),
            "baseline: \"none\" has no axis; expected AXIS=LABEL, with the axis lr");
  query.baseline = {{"lr", "0.01"}};
  EXPECT_TRUE(Load(stored, query).ok()) << "then lr is compared";
  query.baseline = {{"placement", "post"}};
  EXPECT_EQ(ErrorOf(stored, query),
            "baseline: \"placement\" isn't an axis that is compared; expected lr");
  query = {};
  query.baseline = {{"placement", "pots"}};
  EXPECT_EQ(ErrorOf(stored, query),
            "baseline[\"placement\"]: \"pots\" isn't a label of placement (did you mean post?); "
            "expected pre or post");
}

TEST(TrainedGridTest, WaitsForAMetricThatMayYetCome) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  EXPECT_TRUE(Load(stored).ok()) << "nothing is trained";
  stored.Report("pre-s1", {{"train/loss", {{0, 1.}}}});
  EXPECT_TRUE(Load(stored).ok()) << "no run is done";
  GridQuery query;
  query.key = "eval/loss";
  EXPECT_THAT(ErrorOf(stored, query), HasSubstr("expected train/loss"));
}

TEST(TrainedGridTest, StopsWhenCancelled) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  int asked = 0;
  const auto grid = LoadGrid(stored.store(), *LoadExperiment(stored.store(), stored.experiment()),
                             {}, [&asked] { return ++asked > 2; });
  EXPECT_EQ(grid.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 3);
}

TEST(TrainedGridTest, HandsOverCurvesOneByOne) {
  StoredGrid stored(absl::StrCat(SmallGrid(3), kPlacementAxis));
  stored.Finish("pre-s1", Evals(3, 2));
  stored.Report("post-s1", Evals(4, 3));
  stored.Finish("pre-s2", {{"train/loss", {{0, 1}}}});
  const TrainedGrid grid = Loaded(stored);
  std::map<std::string, std::vector<double>> curves;
  const auto keep = [&](size_t cell, const analysis::Points& points) {
    EXPECT_THAT(points.steps, ElementsAre(0, 10));
    curves[grid.cells[cell].name] = points.values;
    return absl::OkStatus();
  };
  const std::vector<size_t> all = {0, 1, 2, 3, 4, 5};
  ASSERT_TRUE(VisitCurves(stored.store(), grid, "eval/loss", all, kNever, keep).ok());
  EXPECT_THAT(curves, UnorderedElementsAre(Pair("pre-s1", ElementsAre(3, 2)),
                                           Pair("post-s1", ElementsAre(4, 3))));
  const auto refuse = [](size_t, const analysis::Points&) { return absl::AbortedError("enough"); };
  EXPECT_EQ(VisitCurves(stored.store(), grid, "eval/loss", all, kNever, refuse).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(VisitCurves(
                stored.store(), grid, "eval/loss", all, [] { return true; }, keep)
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace ablate::results
