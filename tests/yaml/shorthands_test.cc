// Tests shorthands of seeds and of axis values.
#include "proto/yaml/shorthands.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/reflect/text.h"
#include "proto/yaml/experiment_text.h"

namespace ablate::yaml {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> ShorthandProblems(const ExperimentText& file) {
  std::vector<std::string> lines;
  for (const Diagnostic& problem : file.problems) lines.push_back(ToString(problem, "f"));
  return lines;
}

std::vector<double> AxisValues(const v1::Axis& axis) {
  std::vector<double> values;
  for (const auto& value : axis.values()) values.push_back(value.number_value());
  return values;
}

TEST(RangeValuesTest, AreShortDecimalsBetweenExactEnds) {
  EXPECT_THAT(RangeValues(1e-4, 1e-2, 5, true, false),
              ElementsAre(1e-4, 3.16e-4, 1e-3, 3.16e-3, 1e-2));
  EXPECT_THAT(RangeValues(1e-2, 1e-4, 3, true, false), ElementsAre(1e-2, 1e-3, 1e-4));
  EXPECT_THAT(RangeValues(0, 1, 5, false, false), ElementsAre(0, 0.25, 0.5, 0.75, 1));
  EXPECT_THAT(RangeValues(0, 1, 4, false, false), ElementsAre(0, 0.333, 0.667, 1));
  EXPECT_THAT(RangeValues(0, 0.3, 4, false, false), ElementsAre(0, 0.1, 0.2, 0.3));
  EXPECT_THAT(RangeValues(-0.3, 0.3, 7, false, false),
              ElementsAre(-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3));
  EXPECT_THAT(RangeValues(1000, 1001, 5, false, false),
              ElementsAre(1000, 1000.25, 1000.5, 1000.75, 1001));
  EXPECT_THAT(RangeValues(0.1234567, 7, 2, true, false), ElementsAre(0.1234567, 7));
  EXPECT_THAT(RangeValues(16, 512, 4, true, true), ElementsAre(16, 51, 161, 512));
}

TEST(RangeValuesTest, StayDistinctAndAscending) {
  for (const bool log : {false, true}) {
    const std::vector<double> values = RangeValues(1, 1.001, 1000, log, false);
    for (size_t i = 1; i < values.size(); ++i) EXPECT_GT(values[i], values[i - 1]) << i;
  }
}

TEST(ShorthandsTest, StandForSeedsAndValues) {
  const ExperimentText file = ReadExperiment(R"(name: a
base: {task: {recall: {}}}
seeds: 8
axes:
  - {field: training.learning_rate, values: {log: [1e-4, 1e-2], count: 3}, tune: true}
  - {field: model.width, values: {linear: [16, 128], count: 3}}
  - {field: training.clip, values: [0, 1]}
)");
  EXPECT_THAT(ShorthandProblems(file), IsEmpty());
  EXPECT_FALSE(file.spec.seeds().has_first());
  EXPECT_EQ(file.spec.seeds().count(), 8u);
  EXPECT_THAT(AxisValues(file.spec.axes(0)), ElementsAre(1e-4, 1e-3, 1e-2));
  EXPECT_TRUE(file.spec.axes(0).tune());
  EXPECT_THAT(AxisValues(file.spec.axes(1)), ElementsAre(16, 72, 128));
  EXPECT_THAT(AxisValues(file.spec.axes(2)), ElementsAre(0, 1));
}

TEST(ShorthandsTest, StandForRangesAndListsOfSeeds) {
  const auto seeds = [](const std::string& yaml) {
    const ExperimentText file =
        ReadExperiment("name: a\nbase: {task: {recall: {}}}\nseeds: " + yaml);
    EXPECT_THAT(ShorthandProblems(file), IsEmpty()) << yaml;
    return file.spec.seeds();
  };
  EXPECT_EQ(seeds("42..53").first(), 42u);
  EXPECT_EQ(seeds("42..53").count(), 12u);
  EXPECT_THAT(seeds("[1, 2, 5]").list(), ElementsAre(1, 2, 5));
  EXPECT_THAT(seeds("0..2,5").list(), ElementsAre(0, 1, 2, 5));
}

// Returns the exclusions as texts: "lr=0.1 optimizer=adamw".
std::vector<std::string> Exclusions(const v1::ExperimentSpec& spec) {
  std::vector<std::string> texts;
  for (const v1::Exclusion& exclusion : spec.exclude()) {
    std::vector<std::string> where;
    for (const auto& [axis, value] : exclusion.where()) {
      where.push_back(absl::StrCat(axis, "=", reflect::ShortText(value)));
    }
    std::sort(where.begin(), where.end());
    texts.push_back(absl::StrJoin(where, " "));
  }
  return texts;
}

ExperimentText ReadAxes(const std::string& axes) {
  return ReadExperiment("name: a\nbase: {task: {recall: {}}}\naxes:\n" + axes);
}

TEST(ValuesByLabelTest, BecomeAllValuesAndExclusions) {
  const ExperimentText file = ReadAxes(R"(
  - {name: optimizer, field: training.optimizer, values: [adamw, sgd]}
  - {name: lr, field: training.learning_rate, tune: true, by: optimizer,
     values: {sgd: [0.1, 0.3, 0.003], adamw: [0.001, 0.003]}}
exclude: [{where: {optimizer: sgd, lr: 0.3}}]
)");
  EXPECT_THAT(ShorthandProblems(file), IsEmpty());
  EXPECT_THAT(AxisValues(file.spec.axes(1)), ElementsAre(0.001, 0.003, 0.1, 0.3));
  EXPECT_TRUE(file.spec.axes(1).tune());
  EXPECT_THAT(Exclusions(file.spec),
              ElementsAre("lr=0.3 optimizer=sgd", "lr=0.1 optimizer=adamw",
                          "lr=0.3 optimizer=adamw", "lr=0.001 optimizer=sgd"));
}

TEST(ValuesByLabelTest, TakeRangesAndEveryKindOfOtherAxis) {
  const ExperimentText file = ReadAxes(R"(
  - {name: lr, field: training.learning_rate, by: norm,
     values: {pre: {log: [0.001, 0.1], count: 3}, post: [0.001]}}
  - name: norm
    settings: [{label: pre}, {label: post, set: {model.norm.placement: post}}]
  - {field: training.clip, by: width, values: {16: [1, 2], 32: {linear: [1, 2], count: 2}}}
  - {field: model.width, values: {linear: [16, 32], count: 2}}
  - {field: training.epsilon, by: lr, values: {1e-3: [1], "0.010": [1], 0.1: [2]}}
)");
  EXPECT_THAT(ShorthandProblems(file), IsEmpty());
  EXPECT_THAT(AxisValues(file.spec.axes(0)), ElementsAre(0.001, 0.01, 0.1));
  EXPECT_THAT(AxisValues(file.spec.axes(2)), ElementsAre(1, 2)) << "all are listed everywhere";
  EXPECT_THAT(Exclusions(file.spec),
              ElementsAre("lr=0.01 norm=post", "lr=0.1 norm=post", "epsilon=2 lr=0.001",
                          "epsilon=2 lr=0.01", "epsilon=1 lr=0.1"));
}

TEST(ValuesByLabelTest, NameFieldAndLabelOfMistakes) {
  const std::string expected = "; expected each setting of optimizer once: adamw, sgd";
  const std::string list =
      "expected a list of values, {log: [FIRST, LAST], count: N} or {linear: [FIRST, LAST], count: "
      "N}";
  const std::pair<const char*, std::string> cases[] = {
      {"by: optimizer, values: {adamw: [1]}",
       "f:5:43: axes[1].values: no values for sgd" + expected},
      {"by: optimizer, values: {adamw: [1], sgd: [2], sgdd: [3]}",
       "f:5:74: axes[1].values[\"sgdd\"]: \"sgdd\" isn't a setting of optimizer" + expected},
      {"by: optimizr, values: {adamw: [1], sgd: [2]}",
       "f:5:5: axes[1]: by: \"optimizr\" isn't another axis with settings; expected optimizer"},
      {"by: lr, name: lr, values: {adamw: [1], sgd: [2]}",
       "f:5:5: axes[1]: by: \"lr\" isn't another axis with settings; expected optimizer"},
      {"by: [optimizer], values: {adamw: [1], sgd: [2]}",
       "f:5:5: axes[1]: by: [optimizer] isn't another axis with settings; expected optimizer"},
      {"by: optimizer, values: [1, 2]",
       "f:5:28: axes[1].by: \"optimizer\" needs a list of values for each setting; expected "
       "values: "
       "{LABEL: [VALUE, …], …} with the labels of that axis"},
      {"by: optimizer, values: {adamw: [], sgd: [2]}",
       "f:5:52: axes[1].values[\"adamw\"]: [] isn't a list with values; " + list},
      {"by: optimizer, values: {adamw: 1, sgd: [2]}",
       "f:5:52: axes[1].values[\"adamw\"]: 1 isn't a list with values; " + list},
      {"by: optimizer, values: {adamw: {log: [1, 2]}, sgd: [2]}",
       "f:5:52: axes[1].values[\"adamw\"]: {log: [1, 2]} is not a range; " + list},
      {"by: optimizer, values: {adamw: {linear: [1, 1000], count: 1000}, sgd: {linear: [2001, "
       "3000],"
       " count: 1000}}",
       "f:5:43: axes[1].values: the lists leave out more than 1000 combinations; expected lists "
       "with more values in common"},
  };
  for (const auto& [axis, problem] : cases) {
    const ExperimentText file =
        ReadAxes(absl::StrCat("  - {name: optimizer, field: training.optimizer, values: [adamw, "
                              "sgd]}\n  - {field: training.clip, ",
                              axis, "}"));
    EXPECT_THAT(ShorthandProblems(file), ElementsAre(problem));
    EXPECT_FALSE(file.unread.empty()) << axis;
    EXPECT_LE(file.spec.exclude_size(), 1000);
  }
}

TEST(ValuesByLabelTest, DependOnDependentAxesThatComeBefore) {
  const std::string a = "  - {name: a, field: x, by: b, values: {1: [1], 2: [2]}}\n",
                    b = "  - {name: b, field: y, by: c, values: {3: [1], 4: [2]}}\n",
                    b_by_a = "  - {name: b, field: y, by: a, values: {1: [1], 2: [2]}}\n",
                    c = "  - {name: c, field: z, values: [3, 4]}\n";
  const auto problems_of = [](const std::string& axes) {
    std::vector<std::string> messages;
    for (const Diagnostic& one : ReadExperiment("name: n\naxes:\n" + axes).problems) {
      messages.push_back(one.message);
    }
    return messages;
  };
  const std::string chain =
      "axes[0]: by: the values of b depend on an axis, too; expected b before this axis";
  EXPECT_THAT(problems_of(a + b + c), testing::Contains(chain));
  EXPECT_THAT(problems_of(c + b + a), testing::Not(testing::Contains(HasSubstr(": by: "))));
  EXPECT_THAT(problems_of(a + b_by_a), testing::Contains(chain));
  EXPECT_THAT(problems_of(a + b_by_a),
              testing::Contains(HasSubstr("axes[1]: by: \"a\" isn't another axis with settings")));
}

TEST(ValuesByLabelTest, AddOneProblemToThatOfAnotherField) {
  EXPECT_THAT(
      ShorthandProblems(ReadAxes(R"(
  - {name: optimizer, field: training.optimizer, values: {log: [1]}}
  - {field: training.clip, by: optimizer, values: {adamw: [1], sgd: [2]}}
)")),
      ElementsAre(HasSubstr("axes[0].values: {log: [1]} is not a range"),
                  HasSubstr("axes[1]: by: \"optimizer\" isn't another axis with settings")));
  const std::string axes = R"(
  - {name: optimizer, field: training.optimizer, values: [adamw, sgd]}
  - {field: training.clip, by: optimizer, values: {adamw: [1], sgd: [2]}}
)";
  EXPECT_THAT(ShorthandProblems(ReadAxes(axes + "exclude: 3")),
              ElementsAre(HasSubstr("f:7:1: exclude: 3 is not a list")));
  EXPECT_EQ(ReadAxes(axes + "exclude: null").spec.exclude_size(), 2);
}

TEST(ShorthandsTest, NameFieldAndValueOfMistakes) {
  const std::string range =
      "is not a range; expected a list of values, {log: [FIRST, LAST], count: N} or {linear: "
      "[FIRST, LAST], count: N}";
  const std::pair<const char*, std::string> cases[] = {
      {"seeds: 0",
       "f:1:1: seeds: 0 is not a number of seeds; expected a whole number from 1 to 10000, a range "
       "such as 0..9, a list, or the fields first, count and list"},
      {"seeds: 2.5",
       "f:1:1: seeds: 2.5 is not a number of seeds; expected a whole number from 1 to 10000, a "
       "range such as 0..9, a list, or the fields first, count and list"},
      {"seeds: twelve",
       "f:1:1: seeds: \"twelve\" is not a number of seeds; expected a whole number from 1 to "
       "10000, a range such as 0..9, a list, or the fields first, count and list"},
      {"seeds: 9..0",
       "f:1:1: seeds: the range \"9..0\" ends before it begins; expected FIRST..LAST"},
      {"seeds: 0..9,x",
       "f:1:1: seeds: \"x\" is not a seed; expected 0 to 4294967295, or a range such as 0..9"},
      {"seeds: [1, x]",
       "f:1:1: seeds.list[1]: \"x\" is not a whole number; expected a whole number"},
      {"axes: [{field: training.clip, values: {log: [0, 1], count: 3}}]",
       "f:1:31: axes[0].values: log: [0, 1] is not a range; expected two different numbers above "
       "0, such as [1e-4, 1e-2]"},
      {"axes: [{field: training.clip, values: {linear: [1, 1], count: 3}}]",
       "f:1:31: axes[0].values: linear: [1, 1] is not a range; expected two different numbers, "
       "such as [0, 1]"},
      {"axes: [{field: training.clip, values: {linear: [1], count: 3}}]",
       "f:1:31: axes[0].values: linear: [1] is not a range; expected two different numbers, such "
       "as [0, 1]"},
      {"axes: [{field: training.clip, values: {linear: [-1e308, 1e308], count: 3}}]",
       "f:1:31: axes[0].values: linear: [-1e+308, 1e+308] is not a range; expected two different "
       "numbers, such as [0, 1]"},
      {"axes: [{field: training.clip, values: {linear: [0, 1], count: 1}}]",
       "f:1:31: axes[0].values: count: 1 is not a number of values; expected a whole number from 2 "
       "to 1000"},
      {"axes: [{field: model.layers, values: {log: [1, 3], count: 8}}]",
       "f:1:30: axes[0].values: the range has only 3 different whole numbers, fewer than count: 8; "
       "expected a count of at most 3, or a list of values"},
      {"axes: [{field: model.width, values: {log: [1, 100], count: 20}}]",
       "f:1:29: axes[0].values: the range has only 17 different whole numbers, fewer than count: "
       "20; expected a count of at most 11, or a list of values"},
      {"axes: [{field: training.clip, values: {linear: [0, 1], count: 1e9}}]",
       "f:1:31: axes[0].values: count: 1000000000 is not a number of values; expected a whole "
       "number from 2 to 1000"},
      {"axes: [{field: training.clip, values: {linear: [0, 1], cuont: 3}}]",
       "f:1:31: axes[0].values: {cuont: 3, linear: [0, 1]} " + range},
      {"axes: [{field: training.clip, values: {log: [1, 2], linear: [0, 1], count: 3}}]",
       "f:1:31: axes[0].values: {count: 3, linear: [0, 1], log: [1, 2]} " + range}};
  for (const auto& [yaml, problem] : cases) {
    const ExperimentText file = ReadExperiment(yaml);
    EXPECT_THAT(ShorthandProblems(file), ElementsAre(problem));
    EXPECT_FALSE(file.unread.empty()) << yaml;
  }
}

TEST(SettingsTest, AreALabelAndWhatItSets) {
  const ExperimentText file = ReadAxes(R"(
  - switches:
      - rms: {model.norm.kind: rms, model.norm.eps: 0}
      - nothing: {}
      - {label: gelu, set: {model.feed_forward.activation: gelu}}
    form: remove
  - {name: size, settings: [small: {model.width: 16}, {label: big}]}
)");
  EXPECT_THAT(ShorthandProblems(file), IsEmpty());
  const v1::Axis& axis = file.spec.axes(0);
  ASSERT_EQ(axis.switches_size(), 3);
  EXPECT_EQ(axis.form(), v1::SwitchForm::remove);
  EXPECT_EQ(axis.switches(0).label(), "rms");
  EXPECT_EQ(axis.switches(0).set().at("model.norm.kind").string_value(), "rms");
  EXPECT_EQ(axis.switches(0).set().size(), 2u);
  EXPECT_EQ(axis.switches(1).label(), "nothing");
  EXPECT_EQ(axis.switches(2).label(), "gelu");
  EXPECT_EQ(file.spec.axes(1).settings(0).set().at("model.width").number_value(), 16);
  EXPECT_EQ(file.positions.Find("axes[0].switches[0].set[\"model.norm.kind\"]").line, 6);
}

TEST(ValuesByLabelTest, TakeTheSettingsThatSwitchesMake) {
  const ExperimentText file = ReadAxes(R"(
  - {switches: [a: {model.bias: false}, b: {model.layers: 2}], form: pairs}
  - {name: lr, field: training.learning_rate, by: switches,
     values: {base: [1], a: [1, 2], b: [1], a+b: [2]}}
)");
  EXPECT_THAT(ShorthandProblems(file), IsEmpty());
  EXPECT_THAT(Exclusions(file.spec),
              ElementsAre("lr=2 switches=base", "lr=2 switches=b", "lr=1 switches=a+b"));
}

}  // namespace
}  // namespace ablate::yaml
