// Means per combination of settings.
#include "client/setting_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::client {
namespace {

v1::ExperimentSpec Spec() {
  v1::ExperimentSpec spec;
  spec.add_axes()->set_name("norm");
  spec.add_axes()->set_field("training.learning_rate");
  return spec;
}

void AddRow(v1::ListRunsResponse* runs, const std::string& norm, const std::string& rate,
            v1::RunState::Value state, double loss) {
  v1::RunRow* row = runs->add_rows();
  (*row->mutable_labels())["norm"] = norm;
  (*row->mutable_labels())["learning_rate"] = rate;
  row->set_state(state);
  row->add_summaries()->set_key("train/loss");
  v1::Summary* summary = row->add_summaries();
  summary->set_key("eval/loss");
  summary->set_last(loss);
}

TEST(SettingTableTest, AveragesDoneCellsAndCountsTheOthers) {
  v1::ListRunsResponse runs;
  AddRow(&runs, "pre", "0.1", v1::RunState::DONE, 2);
  AddRow(&runs, "pre", "0.1", v1::RunState::DONE, 3);
  AddRow(&runs, "pre", "0.1", v1::RunState::DIVERGED, 1000);
  AddRow(&runs, "none", "0.1", v1::RunState::DIVERGED, 1000);
  AddRow(&runs, "none", "0.01", v1::RunState::DONE, 4);
  EXPECT_EQ(SettingTable(Spec(), SettingResults(runs, "eval/loss"), "eval/loss", 0),
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
  EXPECT_EQ(SettingTable(Spec(), SettingResults(runs, "eval/loss"), "eval/loss", 0),
            "norm  learning_rate  mean eval/loss  n  diverged  failed  open\n"
            "pre   0.1                         —  0         0       1     2\n");
}

TEST(SettingTableTest, HasARowWithoutAxes) {
  v1::ListRunsResponse runs;
  v1::RunRow* row = runs.add_rows();
  row->set_state(v1::RunState::DONE);
  EXPECT_EQ(SettingTable({}, SettingResults(runs, "eval/loss"), "eval/loss", 0),
            "setting  mean eval/loss  n  diverged\n"
            "base                  —  0         0\n");
}

}  // namespace
}  // namespace ablate::client
