// Tests the text of an experiment: means per setting, and what a submission would create.
#include "client/output/experiment_text.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

v1::ExperimentSpec Spec() {
  v1::ExperimentSpec spec;
  spec.add_axes()->set_name("norm");
  spec.add_axes()->set_field("training.learning_rate");
  return spec;
}

void AddRow(v1::ListRunsResponse* runs, const std::string& norm, const std::string& learning_rate,
            v1::RunState::Value state, double loss) {
  v1::RunRow* row = runs->add_rows();
  (*row->mutable_labels())["norm"] = norm;
  (*row->mutable_labels())["learning_rate"] = learning_rate;
  row->set_state(state);
  row->add_summaries()->set_key("train/loss");
  v1::Summary* summary = row->add_summaries();
  summary->set_key("eval/loss");
  summary->set_last(loss);
}

TEST(StateTextTest, SaysThatAnActiveExperimentIsPaused) {
  v1::Experiment experiment;
  experiment.set_state(v1::ExperimentState::ACTIVE);
  EXPECT_EQ(StateText(experiment), "ACTIVE");
  experiment.set_paused(true);
  EXPECT_EQ(StateText(experiment), "ACTIVE: paused");
  experiment.set_state(v1::ExperimentState::ENDED);
  EXPECT_EQ(StateText(experiment), "ENDED");
}

TEST(SettingTableTest, AveragesDoneCellsAndCountsTheOthers) {
  v1::ListRunsResponse runs;
  AddRow(&runs, "pre", "0.1", v1::RunState::DONE, 2);
  AddRow(&runs, "pre", "0.1", v1::RunState::DONE, 3);
  AddRow(&runs, "pre", "0.1", v1::RunState::DIVERGED, 1000);
  AddRow(&runs, "none", "0.1", v1::RunState::DIVERGED, 1000);
  AddRow(&runs, "none", "0.01", v1::RunState::DONE, 4);
  EXPECT_EQ(SettingTable(Spec(), runs, "eval/loss", 0),
            "norm  learning_rate  mean eval/loss  n  diverged\n"
            "pre   0.1                       2.5  2         1\n"
            "none  0.1                         —  0         1\n"
            "none  0.01                        4  1         0\n");
}

TEST(SettingTableTest, ShowsFailedAndOpenCellsOnlyIfThereAreAny) {
  v1::ListRunsResponse runs;
  AddRow(&runs, "pre", "0.1", v1::RunState::FAILED, 2);
  AddRow(&runs, "pre", "0.1", v1::RunState::RUNNING, 3);
  AddRow(&runs, "pre", "0.1", v1::RunState::QUEUED, 3);
  EXPECT_EQ(SettingTable(Spec(), runs, "eval/loss", 0),
            "norm  learning_rate  mean eval/loss  n  diverged  failed  open\n"
            "pre   0.1                         —  0         0       1     2\n");
}

TEST(SettingTableTest, CountsCancelledCellsApartFromOpenOnes) {
  v1::ListRunsResponse runs;
  AddRow(&runs, "pre", "0.1", v1::RunState::CANCELLED, 2);
  EXPECT_EQ(SettingTable(Spec(), runs, "eval/loss", 0),
            "norm  learning_rate  mean eval/loss  n  diverged  cancelled\n"
            "pre   0.1                         —  0         0          1\n");
  AddRow(&runs, "pre", "0.1", v1::RunState::QUEUED, 3);
  EXPECT_EQ(SettingTable(Spec(), runs, "eval/loss", 0),
            "norm  learning_rate  mean eval/loss  n  diverged  cancelled  open\n"
            "pre   0.1                         —  0         0          1     1\n");
}

TEST(SettingTableTest, HasARowWithoutAxes) {
  v1::ListRunsResponse runs;
  v1::RunRow* row = runs.add_rows();
  row->set_state(v1::RunState::DONE);
  EXPECT_EQ(SettingTable({}, runs, "eval/loss", 0),
            "setting  mean eval/loss  n  diverged\n"
            "base                  —  0         0\n");
}

v1::CreateExperimentResponse Grid(int cells) {
  v1::CreateExperimentResponse response;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"pb(
                                                              experiment {
                                                                name: "experiments/names-norm-7f3k"
                                                                spec {
                                                                  name: "names-norm"
                                                                  axes {
                                                                    name: "placement"
                                                                    settings {}
                                                                    settings {}
                                                                    settings {}
                                                                  }
                                                                  axes {
                                                                    field: "training.lr"
                                                                    values {}
                                                                    values {}
                                                                  }
                                                                  seeds { first: 42 count: 12 }
                                                                }
                                                              }
                                                              estimate {
                                                                wall_time { seconds: 6 }
                                                                bytes: 40000000
                                                                measured: true
                                                              })pb",
                                                            &response));
  for (int i = 0; i < cells; ++i) response.add_cells()->set_run(absl::StrCat("runs/", i));
  return response;
}

constexpr char kAllOfTheGrid[] =
    "names-norm-7f3k   3 placement × 2 lr × 12 seeds = 72 runs (0 reused)   about 6 s, 40 MB";

TEST(HeadlineTest, NamesTheGridAndItsCost) {
  v1::CreateExperimentResponse response = Grid(72);
  EXPECT_EQ(Headline(response), kAllOfTheGrid);
  for (v1::Cell& cell : *response.mutable_cells()) cell.clear_run();
  EXPECT_EQ(Headline(response), kAllOfTheGrid) << "cells without runs are taken as runs";
}

TEST(HeadlineTest, CountsExcludedReusedAndSharedCells) {
  v1::CreateExperimentResponse response = Grid(60);
  response.set_reused(50);
  response.mutable_estimate()->set_measured(false);
  EXPECT_EQ(Headline(response),
            "names-norm-7f3k   3 placement × 2 lr × 12 seeds − 12 excluded = 60 runs (50 reused)   "
            "about 6 s, 40 MB (a guess)");
  response.mutable_cells(1)->set_run("runs/0");
  EXPECT_EQ(Headline(response),
            "names-norm-7f3k   3 placement × 2 lr × 12 seeds − 12 excluded = 60 cells, 59 runs as "
            "equal cells run once (50 reused)   about 6 s, 40 MB (a guess)");
}

TEST(HeadlineTest, SaysHowManyAnalysesFollow) {
  v1::CreateExperimentResponse response = Grid(72);
  response.set_analyses(1);
  EXPECT_THAT(Headline(response), testing::HasSubstr(", at most 1 analysis   "));
  response.set_analyses(1200);
  EXPECT_THAT(Headline(response), testing::HasSubstr(", at most 1,200 analyses   "));
}

TEST(HeadlineTest, CountsCellsThatAreNotInTheAnswer) {
  v1::CreateExperimentResponse response = Grid(10);
  response.mutable_experiment()->mutable_counts()->set_queued(60);
  response.mutable_experiment()->mutable_counts()->set_done(12);
  EXPECT_EQ(Headline(response), kAllOfTheGrid);
}

void AddUse(const std::string& trainer, uint32_t runs, const std::string& why_not_native,
            v1::CreateExperimentResponse* response) {
  v1::TrainerUse* use = response->add_trainers();
  use->set_trainer(trainer);
  use->set_runs(runs);
  use->set_why_not_native(why_not_native);
}

TEST(HeadlineTest, CountsTheRunsOfAPreviewAsItsTrainersDo) {
  v1::CreateExperimentResponse response = Grid(72);
  for (v1::Cell& cell : *response.mutable_cells()) cell.clear_run();
  AddUse("native", 40, "", &response);
  AddUse("torch", 20, "", &response);
  EXPECT_EQ(Headline(response),
            "names-norm-7f3k   3 placement × 2 lr × 12 seeds = 72 cells, 60 runs as equal cells "
            "run once (0 reused)   about 6 s, 40 MB");
  AddUse("torch", 12, "the native trainer has no such norm", &response);
  EXPECT_EQ(Headline(response), kAllOfTheGrid);
}

TEST(TrainersTextTest, SaysWhatTrainsAndWhyNotNative) {
  v1::CreateExperimentResponse response;
  EXPECT_EQ(TrainersText(response), "") << "nothing is trained";
  AddUse("native", 96, "", &response);
  EXPECT_EQ(TrainersText(response), "trainer: native 96 runs\n");
  AddUse("torch", 1, "the native trainer has no such norm (norm=batch)", &response);
  AddUse("torch", 2, "", &response);
  EXPECT_EQ(TrainersText(response),
            "trainer: native 96 runs;\n"
            "         torch 1 run: the native trainer has no such norm (norm=batch);\n"
            "         torch 2 runs\n");
}

TEST(TrainersTextTest, SaysThatTorchTrainsAllWhereNativeLacksOne) {
  v1::CreateExperimentResponse all;
  AddUse("torch", 256, "the native trainer has no such norm (norm=batch)", &all);
  EXPECT_EQ(TrainersText(all),
            "trainer: torch for all 256 runs: the native trainer has no such norm (norm=batch)\n");
  v1::CreateExperimentResponse one;
  AddUse("torch", 1, "the native trainer runs on a CPU", &one);
  EXPECT_EQ(TrainersText(one), "trainer: torch 1 run: the native trainer runs on a CPU\n");
  v1::CreateExperimentResponse asked;
  AddUse("torch", 12, "", &asked);
  EXPECT_EQ(TrainersText(asked), "trainer: torch 12 runs\n") << "nobody chose";
}

TEST(HeadlineTest, UsesTheSpecsNameBeforeCreation) {
  v1::CreateExperimentResponse response;
  response.mutable_experiment()->mutable_spec()->set_name("one");
  response.add_cells()->set_run("runs/a");
  EXPECT_EQ(Headline(response), "one   1 seed = 1 run (0 reused)   about 0 s, 0 B (a guess)");
}

TEST(GridTableTest, HasALinePerCombination) {
  v1::CreateExperimentResponse response = Grid(0);
  for (const char* placement : {"pre", "post"}) {
    v1::SettingParameters* setting = response.add_parameters();
    (*setting->mutable_labels())["placement"] = placement;
    (*setting->mutable_labels())["lr"] = "0.1";
    setting->set_parameters(12345);
  }
  for (int seed = 0; seed < 3; ++seed) {
    v1::Cell* cell = response.add_cells();
    *cell->mutable_labels() = response.parameters(0).labels();
    cell->set_reused(seed == 1);
  }
  EXPECT_EQ(GridTable(response, 0),
            "placement  lr   parameters  cells  reused\n"
            "pre        0.1      12,345      3       1\n"
            "post       0.1      12,345      0       0\n");
}

TEST(GridTableTest, CountsNoCellsIfSomeAreNotInTheAnswer) {
  v1::CreateExperimentResponse response = Grid(10);
  response.mutable_experiment()->mutable_counts()->set_queued(72);
  response.add_parameters()->set_parameters(12345);
  EXPECT_EQ(GridTable(response, 0),
            "placement  lr  parameters  cells  reused\n"
            "                   12,345      —       —\n");
}

TEST(EvaluationTextTest, NamesAFewCells) {
  v1::CreateExperimentResponse response;
  EXPECT_EQ(EvaluationText(response), "");
  for (const char* cell : {"a", "b", "c"}) response.add_differs_only_in_evaluation(cell);
  EXPECT_EQ(
      EvaluationText(response),
      "3 cells would be trained again only for another evaluation or other checkpoints: a, b, c");
  response.add_differs_only_in_evaluation("d");
  EXPECT_EQ(EvaluationText(response),
            "4 cells would be trained again only for another evaluation or other checkpoints: a, "
            "b, c, …");
}

TEST(OriginsTextTest, CountsTheRunsThatContinuedByTheirFirstStep) {
  v1::ListRunsResponse runs;
  const auto add = [&](const std::string& run, const std::string& origin, uint32_t step) {
    v1::RunRow* row = runs.add_rows();
    row->set_run("runs/" + run);
    if (step == 0) return;
    row->set_continued_from("runs/" + origin);
    row->set_continued_step(step);
  };
  add("a", "", 0);
  EXPECT_EQ(OriginsText(runs), "");
  add("b", "x", 1000);
  EXPECT_EQ(OriginsText(runs), "1 run continued from step 1,000 of run x");
  add("b", "x", 1000);  // another cell of the run
  add("c", "y", 1000);
  add("d", "z", 500);
  EXPECT_EQ(OriginsText(runs),
            "1 run continued from step 500 of run z; 2 runs continued from step 1,000 of shorter "
            "runs");
}

TEST(FailureTextTest, ShowsTheLastLines) {
  v1::RunRow row;
  row.set_cell("pre-s2");
  row.set_failure("out of memory");
  EXPECT_EQ(FailureText(row), "pre-s2: out of memory\n");
  row.set_failure("exit code 1\na\nb\nc\nd\ne\nf\n\n");
  EXPECT_EQ(FailureText(row), "pre-s2: exit code 1\n  b\n  c\n  d\n  e\n  f\n");
  EXPECT_EQ(FirstLine(row.failure()), "exit code 1");
}

TEST(GridTableTest, HasNoParametersOfPrograms) {
  v1::CreateExperimentResponse response;
  response.mutable_experiment()->mutable_spec()->mutable_base()->mutable_program();
  response.add_parameters();
  response.add_cells()->set_run("runs/r");
  EXPECT_EQ(GridTable(response, 80), "setting  cells  reused\nbase         1       0\n");
}

}  // namespace
}  // namespace ablate::client
