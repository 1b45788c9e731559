// Tests axes of switches.
#include "proto/yaml/switches.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
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

}  // namespace
}  // namespace ablate::spec
