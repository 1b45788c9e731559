#include "server/imports/reading.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/imports/example_results.h"

namespace ablate::imports {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string RefusalOf(const v1::ImportRequest& request, const std::string& options = "") {
  const auto reading = ReadingOf(request, options);
  EXPECT_FALSE(reading.ok());
  return std::string(reading.status().message());
}

TEST(ReadingTest, FindsSettingsSeedMetricAndValues) {
  const auto reading = ReadingOf(TwoSettings(3));
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_EQ(reading->primary, "loss");
  EXPECT_EQ(reading->better, v1::Better::lower);
  ASSERT_THAT(reading->axes, SizeIs(1));
  EXPECT_EQ(reading->axes[0].name, "norm");
  EXPECT_THAT(reading->axes[0].labels, ElementsAre("pre", "post")) << "in the order of the runs";
  ASSERT_THAT(reading->cells, SizeIs(6));
  EXPECT_EQ(reading->cells[5].seed, 2u);
  EXPECT_DOUBLE_EQ(reading->cells[5].value, 4.4);
}

TEST(ReadingTest, LeavesOutWhatDidNotFinishAndCopies) {
  v1::ImportRequest request = TwoSettings(3);
  request.mutable_runs(0)->set_state(v1::ImportedState::unfinished);
  request.mutable_runs(1)->set_state(v1::ImportedState::failed);
  request.mutable_runs(2)->set_state(v1::ImportedState::pruned);
  v1::ImportedRun* copy = request.add_runs();
  *copy = request.runs(5);
  copy->set_name("copy");
  const auto reading = ReadingOf(request);
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_THAT(reading->cells, SizeIs(3));
  EXPECT_THAT(reading->notes,
              AllOf(Contains("left out: 1 run, not finished: pre-s0"),
                    Contains("left out: 1 run, failed: post-s0"),
                    Contains("left out: 1 run, pruned because of their results: pre-s1"),
                    Contains("left out: 1 run, equal to others: copy")));
}

TEST(ReadingTest, RefusesDuplicatesThatDiffer) {
  v1::ImportRequest request = TwoSettings(2);
  v1::ImportedRun* other = request.add_runs();
  *other = request.runs(3);
  other->set_name("again");
  other->mutable_series(0)->set_values(1, 7);
  EXPECT_THAT(RefusalOf(request), AllOf(HasSubstr("post-s1 and again have the same settings"),
                                        HasSubstr("norm=post, seed=1")));
}

TEST(ReadingTest, AsksForTheMetricAndNamesUnknownKeys) {
  v1::ImportRequest request = TwoSettings(2);
  for (v1::ImportedRun& run : *request.mutable_runs()) {
    *run.add_series() = run.series(0);
    run.mutable_series(1)->set_key("accuracy");
  }
  EXPECT_THAT(RefusalOf(request), HasSubstr("metric: the runs have 2 metrics; expected one of "
                                            "accuracy, loss"));
  EXPECT_THAT(RefusalOf(request, "metric: 'los'"), HasSubstr("did you mean loss?"));
  EXPECT_THAT(RefusalOf(TwoSettings(2), "settings: 'nrm'"), HasSubstr("did you mean norm?"));
  EXPECT_THAT(RefusalOf(TwoSettings(2), "seed: 'x'"), HasSubstr("seed: no run has \"x\""));
  EXPECT_THAT(RefusalOf(TwoSettings(2), "settings: 'seed'"), HasSubstr("is the seed"));
  EXPECT_THAT(RefusalOf(TwoSettings(2), "tune: 'lr'"), HasSubstr("tune: \"lr\" isn't a setting"));
  EXPECT_THAT(RefusalOf(TwoSettings(2), "baseline { key: 'norm' value: 'pst' }"),
              HasSubstr("did you mean post?"));
}

TEST(ReadingTest, TakesNoKeyThatNamesRunsOrFollowsFromOthers) {
  v1::ImportRequest request = TwoSettings(3);
  for (v1::ImportedRun& run : *request.mutable_runs()) {
    auto& settings = *run.mutable_settings();
    settings["out"].set_string_value("/tmp/" + run.name());
    settings["position"] = settings["norm"];
    settings["data.order"] = settings["seed"];
    settings["width"].set_number_value(64);
  }
  const auto reading = ReadingOf(request);
  ASSERT_TRUE(reading.ok()) << reading.status();
  ASSERT_THAT(reading->axes, SizeIs(1));
  EXPECT_EQ(reading->axes[0].key, "norm");
  EXPECT_THAT(reading->notes,
              AllOf(Contains("not taken as settings, because each run has its own: out"),
                    Contains("not taken as settings, because others determine them: position")));
  ASSERT_THAT(reading->constants, SizeIs(1));
  EXPECT_EQ(reading->constants.at("width").number_value(), 64);
}

TEST(ReadingTest, DropsNoSettingWithoutANoteBecauseTheSeedDeterminesIt) {
  v1::ImportRequest request;
  for (int seed = 0; seed < 4; ++seed) {
    const std::string text = absl::StrCat(seed);
    *request.add_runs() = RunOf("r" + text, {{"norm", seed < 2 ? "a" : "b"}, {"seed", text}}, {1});
  }
  EXPECT_THAT(RefusalOf(request), HasSubstr("each seed has only one value of norm"));
  EXPECT_THAT(ReadingOf(request, "settings: 'norm'")->cells, SizeIs(4));
}

TEST(ReadingTest, AsksIfEachRunHasItsOwnSettings) {
  v1::ImportRequest request;
  for (int i = 0; i < 3; ++i) {
    const std::string text = absl::StrCat(i);
    *request.add_runs() = RunOf("r" + text, {{"lr", text}, {"out", "o" + text}}, {1});
  }
  EXPECT_THAT(RefusalOf(request), HasSubstr("each run has its own lr, out"));
  EXPECT_THAT(ReadingOf(request, "settings: 'lr'")->cells, SizeIs(3));
}

TEST(ReadingTest, ReadsSettingsFromNames) {
  v1::ImportRequest request = TwoSettings(2);
  for (v1::ImportedRun& run : *request.mutable_runs()) run.clear_settings();
  const auto reading = ReadingOf(request, "names: '{norm}-s{seed}'");
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_THAT(reading->axes[0].labels, ElementsAre("pre", "post"));
  EXPECT_EQ(reading->cells[3].seed, 1u);
}

TEST(ReadingTest, OrdersNumbersAndPutsTheBaselineFirst) {
  v1::ImportRequest request;
  for (const char* lr : {"0.1", "0.001", "0.01"}) {
    *request.add_runs() = RunOf(lr, {{"opt/lr", lr}}, {1});
  }
  EXPECT_THAT(ReadingOf(request)->axes[0].labels, ElementsAre("0.001", "0.01", "0.1"));
  EXPECT_EQ(ReadingOf(request)->axes[0].name, "lr");
  EXPECT_EQ(ReadingOf(request)->axes[0].path, "opt_lr");
  EXPECT_THAT(ReadingOf(request, "baseline { key: '' value: '0.1' }")->axes[0].labels,
              ElementsAre("0.1", "0.001", "0.01"));
}

TEST(ReadingTest, ReadsTheBestValueOrTheOneAtAStep) {
  v1::ImportRequest request;
  *request.add_runs() = RunOf("a", {{"norm", "a"}}, {3, 1, 2});
  *request.add_runs() = RunOf("b", {{"norm", "b"}}, {5, kNaN, 4});
  const auto best = ReadingOf(request, "best: true");
  EXPECT_EQ(best->primary, "loss@best");
  EXPECT_EQ(best->cells[0].value, 1);
  EXPECT_EQ(best->cells[0].step, 10u);
  EXPECT_EQ(best->cells[1].value, 4);
  const auto at = ReadingOf(request, "at: 10");
  EXPECT_EQ(at->primary, "loss@10");
  EXPECT_TRUE(at->cells[1].diverged);
  EXPECT_THAT(RefusalOf(request, "at: 11"),
              AllOf(HasSubstr("has no loss at step 11"), HasSubstr("the last of which is 20")));
}

TEST(ReadingTest, RefusesRunsThatEndAtDifferentStepsUnlessOneDiverged) {
  v1::ImportRequest request;
  *request.add_runs() = RunOf("a", {{"norm", "a"}}, {3, 1, 2});
  *request.add_runs() = RunOf("b", {{"norm", "b"}}, {5, 4});
  EXPECT_THAT(RefusalOf(request), AllOf(HasSubstr("at: the runs end at different steps, from 10 "
                                                  "to 20"),
                                        HasSubstr("the last of which is 10; or best")));
  request.mutable_runs(1)->mutable_series(0)->set_values(1, kNaN);
  const auto reading = ReadingOf(request);
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_TRUE(reading->cells[1].diverged);
}

TEST(ReadingTest, ComparesValuesOfSeveralKindsAsTexts) {
  v1::ImportRequest request;
  *request.add_runs() = RunOf("a", {{"x", "1"}}, {3});
  *request.add_runs() = RunOf("b", {{"x", "post norm/é"}}, {4});
  *request.add_runs() = RunOf("c", {}, {5});
  const auto reading = ReadingOf(request);
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_THAT(reading->axes[0].labels, ElementsAre("1", "post_norm___", "null"));
  EXPECT_EQ(reading->axes[0].values[2].string_value(), "null");
}

TEST(ReadingTest, RefusesAMetricByItemInSomeRunsOnly) {
  v1::ImportRequest request = TwoSettings(1);
  v1::ImportedSeries* series = request.mutable_runs(1)->mutable_series(0);
  series->clear_steps();
  series->add_items("a");
  series->add_items("b");
  for (const char* options : {"", "best: true", "at: 10"}) {
    EXPECT_THAT(RefusalOf(request, options), HasSubstr("by item in some runs")) << options;
  }
}

TEST(ReadingTest, TakesEqualRunsWithoutASeedAsDifferentOnes) {
  v1::ImportRequest request;
  for (const char* name : {"a", "b"}) *request.add_runs() = RunOf(name, {}, {1});
  EXPECT_THAT(RefusalOf(request), HasSubstr("a and b have the same settings"));
}

TEST(ReadingTest, KnowsTheDirectionOfLossesAndAccuraciesOnly) {
  const auto better = [](const std::string& key) {
    v1::ImportRequest request;
    *request.add_runs() = RunOf("a", {}, {1}, key);
    return ReadingOf(request)->better;
  };
  EXPECT_EQ(better("val/loss"), v1::Better::lower);
  EXPECT_EQ(better("val_bpb"), v1::Better::lower);
  EXPECT_EQ(better("eval.acc"), v1::Better::higher);
  EXPECT_EQ(better("score"), std::nullopt);
  EXPECT_EQ(better("glossary"), std::nullopt);
}

TEST(ResultsTest, AddsPartsOfASeries) {
  Results results;
  v1::ImportRequest request;
  *request.add_runs() = RunOf("a", {{"x", "1"}}, {1, 2});
  ASSERT_TRUE(results.Add(request).ok());
  request.mutable_runs(0)->mutable_series(0)->set_steps(0, 20);
  request.mutable_runs(0)->mutable_series(0)->set_steps(1, 30);
  ASSERT_TRUE(results.Add(request).ok());
  EXPECT_THAT(results.runs()[0].series.at("loss").steps, ElementsAre(0u, 10u, 20u, 30u));
  EXPECT_THAT(std::string(results.Add(request).message()), HasSubstr("step 20 after step 30"));
}

TEST(ResultsTest, RefusesMalformedRuns) {
  const auto refusal = [](const std::string& text) {
    v1::ImportRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
    Results results;
    return std::string(results.Add(request).message());
  };
  EXPECT_THAT(refusal("runs {}"), HasSubstr("the name is invalid"));
  EXPECT_THAT(refusal("runs { name: 'a' series { values: 1 } }"),
              HasSubstr("metric \"\" has an invalid name"));
  EXPECT_THAT(refusal("runs { name: 'a' series { key: 'x' values: 1 } }"),
              HasSubstr("x has 1 values, 0 steps"));
  EXPECT_THAT(refusal("runs { name: 'a' series { key: 'x' values: 1 items: 'i' steps: 1 } }"),
              HasSubstr("1 steps, 1 items"));
  EXPECT_THAT(refusal("runs { name: 'a' settings { key: '' value { bool_value: true } } }"),
              HasSubstr("has an invalid name"));
}

}  // namespace
}  // namespace ablate::imports
