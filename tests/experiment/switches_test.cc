// Tests axes of switches, and settings whose parameters match the baseline's.
#include "proto/yaml/switches.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/engine/core/layout.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

void AddSwitches(const std::vector<AxisPoint>& switches, v1::ExperimentSpec* spec) {
  AddSettings("", switches, spec);
  v1::Axis* axis = spec->mutable_axes(spec->axes_size() - 1);
  axis->clear_name();
  axis->mutable_switches()->Swap(axis->mutable_settings());
}

const std::vector<AxisPoint> kThree = {
    {"rms", {{"model.norm.kind", "\"rms\""}, {"model.norm.eps", "0"}}},
    {"silu", {{"model.feed_forward.activation", "\"silu\""}}},
    {"deep", {{"model.layers", "6"}}}};

v1::ExperimentSpec WithForm(v1::SwitchForm::Value form) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSwitches(kThree, &spec);
  spec.mutable_axes(0)->set_form(form);
  return spec;
}

// Returns each cell as "rms: rms silu 6".
std::vector<std::string> Models(const Resolution& resolution) {
  std::vector<std::string> models;
  for (const ResolvedCell& cell : resolution.cells) {
    const v1::ModelSpec& model = cell.run.spec().model();
    models.push_back(absl::StrCat(
        cell.labels.at(0).second, ": ", v1::NormKind::Value_Name(model.norm().kind()), " ",
        v1::Activation::Value_Name(model.feed_forward().activation()), " ", model.layers()));
  }
  return models;
}

TEST(SwitchesTest, ChangeTheBaseOneAtATime) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSwitches(kThree, &spec);
  const Resolution resolution = Resolved(spec);
  EXPECT_THAT(Models(resolution), ElementsAre("base: layer gelu 4", "rms: rms gelu 4",
                                              "silu: layer silu 4", "deep: layer gelu 6"));
  EXPECT_THAT(resolution.cells[1].labels, ElementsAre(Pair("switches", "rms")));
  EXPECT_EQ(resolution.cells[1].name, "rms-s0");
  EXPECT_THAT(resolution.notes, ElementsAre(HasSubstr("switches: parameters differ")));
  EXPECT_EQ(Models(Resolved(WithForm(v1::SwitchForm::add))), Models(resolution));
}

TEST(SwitchesTest, AreRemovedOneAtATime) {
  EXPECT_THAT(Models(Resolved(WithForm(v1::SwitchForm::remove))),
              ElementsAre("all: rms silu 6", "no-rms: layer silu 6", "no-silu: rms gelu 6",
                          "no-deep: rms silu 4"));
}

TEST(SwitchesTest, AreCombinedInPairs) {
  const Resolution resolution = Resolved(WithForm(v1::SwitchForm::pairs));
  EXPECT_THAT(Models(resolution),
              ElementsAre("base: layer gelu 4", "rms: rms gelu 4", "silu: layer silu 4",
                          "deep: layer gelu 6", "rms+silu: rms silu 4", "rms+deep: rms gelu 6",
                          "silu+deep: layer silu 6"));
}

TEST(SwitchesTest, AreStoredAsSettings) {
  const v1::Axis axis = Resolved(WithForm(v1::SwitchForm::remove)).spec.axes(0);
  EXPECT_EQ(axis.name(), "switches");
  EXPECT_FALSE(axis.has_form());
  EXPECT_THAT(axis.switches(), IsEmpty());
  ASSERT_THAT(axis.settings(), SizeIs(4));
  EXPECT_EQ(axis.settings(3).label(), "no-deep");
  EXPECT_THAT(axis.settings(3).set(), SizeIs(3));
  v1::ExperimentSpec again = SmallSpec();
  *again.add_axes() = axis;
  EXPECT_EQ(Models(Resolved(again)), Models(Resolved(WithForm(v1::SwitchForm::remove))));
}

TEST(SwitchesTest, MayAgreeOnAPath) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSwitches({{"a", {{"model.bias", "false"}, {"model.layers", "1"}}},
               {"b", {{"model.bias", "false"}, {"model.width", "16"}}}},
              &spec);
  spec.mutable_axes(0)->set_form(v1::SwitchForm::pairs);
  const Resolution resolution = Resolved(spec);
  ASSERT_THAT(resolution.cells, SizeIs(4));
  EXPECT_FALSE(resolution.cells[3].run.spec().model().bias());
  EXPECT_THAT(resolution.spec.axes(0).settings(3).set(), SizeIs(3));
}

TEST(SwitchesTest, CrossOtherAxesAndAreExcludedByLabel) {
  v1::ExperimentSpec spec = WithForm(v1::SwitchForm::pairs);
  AddValues("training.learning_rate", {"0.1", "0.01"}, &spec)->set_tune(true);
  (*spec.add_exclude()->mutable_where())["switches"].set_string_value("rms+silu");
  EXPECT_THAT(Resolved(spec).cells, SizeIs(6 * 2));
}

TEST(SwitchesTest, OneMoreKeepsTheOtherRuns) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSwitches(kThree, &spec);
  const Resolution before = Resolved(spec);
  *spec.mutable_axes(0)->add_switches() = spec.axes(0).switches(0);
  spec.mutable_axes(0)->mutable_switches(3)->set_label("new");
  const Resolution after = Resolved(spec);
  for (size_t i = 0; i < before.cells.size(); ++i) {
    EXPECT_EQ(before.cells[i].fingerprint, after.cells[i].fingerprint);
  }
}

TEST(SwitchesTest, AreLimitedByTheNumberOfSettings) {
  std::vector<std::string> labels(yaml::kMaxPairedSwitches, "a");
  EXPECT_THAT(yaml::SwitchSettings(v1::SwitchForm::pairs, labels), SizeIs(991));
  v1::ExperimentSpec spec = SmallSpec();
  std::vector<AxisPoint> many;
  for (int i = 0; i < 45; ++i) many.push_back({absl::StrCat("s", i), {{"model.layers", "1"}}});
  AddSwitches(many, &spec);
  EXPECT_THAT(Resolved(spec).cells, SizeIs(46));
  spec.mutable_axes(0)->set_form(v1::SwitchForm::pairs);
  EXPECT_THAT(Messages(Resolve(spec, {}, TestSurroundings())),
              ElementsAre("axes[0].switches: 45 entries; expected at most 44 with form pairs"));
}

TEST(SwitchesTest, SetAtMost100PathsTogether) {
  v1::ExperimentSpec spec = SmallSpec();
  std::vector<AxisPoint> many;
  for (int i = 0; i < 3; ++i) {
    many.push_back({absl::StrCat("s", i), {}});
    for (int j = 0; j < 40; ++j) many.back().set.push_back({absl::StrCat("x", i, j), "1"});
  }
  AddSwitches(many, &spec);
  spec.mutable_axes(0)->set_form(v1::SwitchForm::remove);
  EXPECT_THAT(Messages(Resolve(spec, {}, TestSurroundings())),
              Contains("axes[0].switches[0]: all sets 120 paths; expected at most 100"));
}

// Swiglu with as many parameters as the base.
constexpr char kMatch[] = "model.feed_forward.match_parameters";
const AxisPoint kSwiglu = {"swiglu",
                           {{"model.feed_forward.activation", "\"swiglu\""}, {kMatch, "true"}}};

TEST(MatchParametersTest, ChoosesTheNearestSize) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_base()->mutable_model()->mutable_feed_forward()->set_hidden(256);
  AddSwitches({kSwiglu, {"plain", {{"model.feed_forward.activation", "\"swiglu\""}}}}, &spec);
  const Resolution resolution = Resolved(spec);
  const v1::FeedForwardSpec& chosen = resolution.cells[1].run.spec().model().feed_forward();
  const int64_t target = static_cast<int64_t>(resolution.cells[0].parameters);
  EXPECT_EQ(chosen.hidden(), 170u);
  EXPECT_FALSE(chosen.match_parameters());
  EXPECT_EQ(resolution.cells[2].run.spec().model().feed_forward().hidden(), 256u);
  engine::ModelConfig model = resolution.configs[1].model;
  const auto distance = [&](int hidden) {
    model.hidden = hidden;
    return std::abs(engine::MakeLayout(model).size - target);
  };
  EXPECT_EQ(engine::MakeLayout(model).size, static_cast<int64_t>(resolution.cells[1].parameters));
  EXPECT_LT(distance(170), distance(169));
  EXPECT_LT(distance(170), distance(171));
  EXPECT_THAT(resolution.notes, Contains(HasSubstr("swiglu: hidden 170 makes ")));
  EXPECT_THAT(resolution.notes, Not(Contains(HasSubstr("match_parameters"))));
}

TEST(MatchParametersTest, IsToTheSameSettingsOfOtherAxes) {
  v1::ExperimentSpec spec = SmallSpec();
  AddValues("model.layers", {"1", "3"}, &spec);
  AddSwitches({kSwiglu}, &spec);
  const Resolution resolution = Resolved(spec);
  ASSERT_THAT(resolution.cells, SizeIs(4));
  for (const size_t base : {0, 2}) {
    const auto wanted = static_cast<double>(resolution.cells[base].parameters);
    EXPECT_NEAR(static_cast<double>(resolution.cells[base + 1].parameters), wanted, 0.005 * wanted);
  }
}

TEST(MatchParametersTest, IsTheRunOfTheNumber) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSwitches({kSwiglu}, &spec);
  const Resolution solved = Resolved(spec);
  auto& set = *spec.mutable_axes(0)->mutable_switches(0)->mutable_set();
  set.erase(kMatch);
  set["model.feed_forward.hidden"].set_number_value(
      solved.cells[1].run.spec().model().feed_forward().hidden());
  EXPECT_EQ(Resolved(spec).cells[1].fingerprint, solved.cells[1].fingerprint);
}

TEST(MatchParametersTest, IsNotedOnceForTunedValues) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSwitches({kSwiglu}, &spec);
  AddValues("training.learning_rate", {"0.1", "0.01", "0.001"}, &spec)->set_tune(true);
  auto& where = *spec.add_exclude()->mutable_where();
  where["switches"].set_string_value("base");
  where["learning_rate"].set_number_value(0.001);
  int notes = 0;
  for (const std::string& note : Resolved(spec).notes) notes += note.find(": hidden ") < 10 ? 1 : 0;
  EXPECT_EQ(notes, 1);
}

TEST(MatchParametersTest, NeedsABaselineAndADrawnModel) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSwitches({kSwiglu}, &spec);
  (*spec.add_exclude()->mutable_where())["switches"].set_string_value("base");
  EXPECT_THAT(Messages(Resolve(spec, {}, TestSurroundings())),
              ElementsAre(HasSubstr(": the baseline is excluded; expected")));
  v1::ExperimentSpec from = TextSpec();
  from.mutable_base()->set_model_from("plays/s0");
  AddSwitches({{"a", {{kMatch, "true"}}}}, &from);
  EXPECT_THAT(Messages(Resolve(from, {}, TestSurroundings())),
              ElementsAre(HasSubstr("true isn't the value of plays/s0; expected false, or none")));
}

}  // namespace
}  // namespace ablate::spec
