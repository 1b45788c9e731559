#include "server/imports/experiment.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/imports/compare.h"
#include "server/imports/setting_paths.h"
#include "tests/imports/example_results.h"

namespace ablate::imports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

absl::StatusOr<Imported> Make(const v1::ImportRequest& request, const std::string& text,
                              const std::string& private_to = "") {
  const v1::ImportOptions options = OptionsOf("name: 'x' source: 'table' " + text);
  Results results;
  EXPECT_TRUE(results.Add(request).ok());
  const auto reading = Read(options, &results);
  if (!reading.ok()) return reading.status();
  return MakeExperiment(options, *reading, private_to, &results);
}

TEST(ImportedExperimentTest, HasCellsAndRunsWithTheirResults) {
  const auto made = Make(TwoSettings(2), "margin: 0.5");
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_THAT(made->cells, SizeIs(4));
  EXPECT_EQ(made->cells[0].name, "pre-s0");
  EXPECT_EQ(made->cells[3].name, "post-s1");
  EXPECT_EQ(made->cells[3].run.spec().settings().fields().at("norm").string_value(), "post");
  EXPECT_EQ(made->spec.report().margin(), 0.5);
  const storage::NewRun& run = made->runs[3];
  EXPECT_EQ(run.trainer, "imported");
  EXPECT_EQ(run.steps, 10u);
  ASSERT_THAT(run.result->series, SizeIs(1));
  EXPECT_THAT(run.result->series[0].values, ElementsAre(9, testing::DoubleEq(4.1)));
}

TEST(ImportedExperimentTest, HasFingerprintsOfContentsAndOwner) {
  v1::ImportRequest request = TwoSettings(1);
  const std::string first = Make(request, "")->runs[0].fingerprint;
  EXPECT_EQ(Make(request, "")->runs[0].fingerprint, first);
  EXPECT_NE(Make(request, "", "ada")->runs[0].fingerprint, first);
  request.mutable_runs(0)->mutable_series(0)->set_values(0, 8);
  EXPECT_NE(Make(request, "")->runs[0].fingerprint, first);
  std::set<std::string> distinct;
  for (const auto& run : Make(TwoSettings(5), "")->runs) distinct.insert(run.fingerprint);
  EXPECT_THAT(distinct, SizeIs(10));
}

TEST(ImportedExperimentTest, KeepsTheValueOfTheVerdictAsAMetricOfItsOwn) {
  const auto made = Make(TwoSettings(1), "best: true");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->spec.report().primary(), "loss@best");
  ASSERT_THAT(made->runs[0].result->series, SizeIs(2));
  EXPECT_THAT(made->runs[0].result->series[1].steps, ElementsAre(10u));
}

TEST(ImportedExperimentTest, ReportsProblemsOfTheName) {
  v1::ImportOptions options = OptionsOf("name: 'No Name'");
  Results results;
  ASSERT_TRUE(results.Add(TwoSettings(1)).ok());
  const auto reading = Read(options, &results);
  EXPECT_THAT(std::string(MakeExperiment(options, *reading, "", &results).status().message()),
              HasSubstr("isn't a valid name"));
}

v1::ImportRequest Items(const std::vector<std::string>& items, const std::string& groups = "") {
  v1::ImportRequest request;
  for (const char* model : {"a", "b"}) {
    v1::ImportedRun* run = request.add_runs();
    run->set_name(model);
    (*run->mutable_settings())["model"].set_string_value(model);
    v1::ImportedSeries* series = run->add_series();
    series->set_key("acc");
    for (size_t i = 0; i < items.size(); ++i) {
      series->add_items(items[i]);
      series->add_values(*model == 'a' || i % 2 == 0 ? 1 : 0);
      if (!groups.empty()) series->add_groups(groups.substr(i, 1));
    }
  }
  return request;
}

absl::StatusOr<results::TrainedGrid> GridOf(const v1::ImportRequest& request) {
  Results results;
  EXPECT_TRUE(results.Add(request).ok());
  const auto reading = Read(v1::ImportOptions(), &results);
  if (!reading.ok()) return reading.status();
  return GridOf(*reading, std::nullopt, results);
}

TEST(ImportedGridTest, PairsItemsByTheirIdsInAnyOrder) {
  v1::ImportRequest request = Items({"q1", "q2", "q3"});
  auto* series = request.mutable_runs(1)->mutable_series(0);
  series->mutable_items()->SwapElements(0, 1);
  series->mutable_values()->SwapElements(0, 1);
  const auto grid = GridOf(request);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(grid->input.unit, report::Unit::kItem);
  EXPECT_THAT(grid->input.cells[1].by_sequence, ElementsAre(1, 0, 1));
  EXPECT_DOUBLE_EQ(*grid->input.cells[1].value, 2 / 3.);
}

TEST(ImportedGridTest, CountsGroupsByTheirSizes) {
  const auto grid = GridOf(Items({"1", "2", "3", "4"}, "xxxy"));
  ASSERT_TRUE(grid.ok()) << grid.status();
  // Two groups of 3 and 1 items; of model b, items 1 and 3 are right.
  EXPECT_THAT(grid->input.cells[1].by_sequence, ElementsAre(1, 0));
  EXPECT_THAT(grid->input.cells[1].sequence_weights, ElementsAre(1.5, 0.5));
  EXPECT_DOUBLE_EQ(*grid->input.cells[1].value, 0.5);
}

TEST(ImportedGridTest, RefusesOtherItems) {
  v1::ImportRequest request = Items({"q1", "q2", "q3"});
  request.mutable_runs(1)->mutable_series(0)->set_items(2, "q4");
  EXPECT_THAT(std::string(GridOf(request).status().message()),
              HasSubstr("b and a differ in 2 items, such as \"q3\""));
  request.mutable_runs(1)->mutable_series(0)->set_items(2, "q1");
  EXPECT_THAT(std::string(GridOf(request).status().message()), HasSubstr("item \"q1\" twice"));
}

TEST(ImportedExperimentTest, MakesSeedsOfItems) {
  const auto made = Make(Items({"q2", "q1"}), "");
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_THAT(made->cells, SizeIs(4));
  EXPECT_EQ(made->cells[3].name, "b-s0") << "q1 is the first item";
  EXPECT_THAT(made->runs[3].result->series[0].values, ElementsAre(0));
}

TEST(SettingPathsTest, AvoidsPathsAboveAndBelowOthers) {
  SettingPaths paths;
  EXPECT_EQ(paths.Add("model.lr"), "model.lr");
  EXPECT_EQ(paths.Add("model"), "model_2");
  EXPECT_EQ(paths.Add("model.lr.x"), "model_lr_x");
  EXPECT_EQ(paths.Add("9 a/b"), "_9_a_b");
  EXPECT_EQ(paths.Add("model.lr"), "model_lr");
  std::string deep = "a";
  for (int i = 0; i < 40; ++i) deep += ".a";
  EXPECT_EQ(paths.Add(deep).find('.'), std::string::npos);
}

}  // namespace
}  // namespace ablate::imports
