// Notes about a grid: what else a setting changes, sizes that differ, cells that are one run.
#include <algorithm>

#include "gmock/gmock.h"
#include "server/spec/resolve.h"
#include "tests/spec/specs.h"

namespace ablate::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Adds an axis of settings, each a label and `path: json` pairs.
struct SettingText {
  std::string label;
  std::vector<std::pair<std::string, std::string>> set;
};

void AddSettings(const std::string& name, const std::vector<SettingText>& settings,
                 v1::ExperimentSpec* spec) {
  v1::Axis* axis = spec->add_axes();
  axis->set_name(name);
  for (const SettingText& text : settings) {
    v1::Setting* setting = axis->add_settings();
    setting->set_label(text.label);
    for (const auto& [path, json] : text.set) (*setting->mutable_set())[path] = Json(json);
  }
}

std::vector<std::string> ChangeNotes(const v1::ExperimentSpec& spec) {
  std::vector<std::string> notes = Resolved(spec).notes;
  notes.erase(std::remove_if(notes.begin(), notes.end(),
                             [](const std::string& note) {
                               return note.find(" also change") == std::string::npos;
                             }),
              notes.end());
  return notes;
}

TEST(NotesTest, NameSettingsThatChangeMoreThanTheRest) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("norm",
              {{"pre", {}},
               {"post", {{"model.norm.placement", "\"post\""}, {"model.norm.final", "false"}}},
               {"rms", {{"model.norm.kind", "\"rms\""}}},
               {"none", {{"model.norm.placement", "\"none\""}, {"model.norm.final", "false"}}}},
              &spec);
  EXPECT_THAT(ChangeNotes(spec), ElementsAre("post, none also change model.norm.final"));
}

TEST(NotesTest, AnAxisIsAboutThePathOfItsName) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("layers",
              {{"four", {}},
               {"two", {{"model.layers", "2"}, {"training.learning_rate", "0.1"}}},
               {"two-b", {{"model.layers", "2"}, {"training.learning_rate", "0.2"}}}},
              &spec);
  EXPECT_THAT(ChangeNotes(spec), ElementsAre("two, two-b also change training.learning_rate"));
}

TEST(NotesTest, OneSettingChanges) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("a",
              {{"x", {}},
               {"y", {{"model.width", "64"}}},
               {"z", {{"model.width", "32"}, {"training.betas", "[0.5, 0.6]"}}}},
              &spec);
  EXPECT_THAT(ChangeNotes(spec), ElementsAre("z also changes training.betas"));
}

TEST(NotesTest, AlsoWhatOnlyTheBaselineWritesChanges) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("norm",
              {{"pre", {{"model.norm.placement", "\"pre\""}, {"model.norm.eps", "0.1"}}},
               {"post", {{"model.norm.placement", "\"post\""}}},
               {"none", {{"model.norm.placement", "\"none\""}, {"model.norm.eps", "0.1"}}}},
              &spec);
  EXPECT_THAT(ChangeNotes(spec), ElementsAre("post also changes model.norm.eps"));
}

TEST(NotesTest, AMessageAndAPartOfItAreOneChange) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("norm",
              {{"pre", {}},
               {"post", {{"model.norm.placement", "\"post\""}}},
               {"none", {{"model.norm", "{\"placement\": \"none\"}"}}}},
              &spec);
  EXPECT_THAT(ChangeNotes(spec), IsEmpty());
}

TEST(NotesTest, WritingWhatTheBaselineHasIsNoChange) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("norm",
              {{"pre", {{"model.norm.placement", "\"pre\""}, {"model.norm.final", "true"}}},
               {"post", {{"model.norm.placement", "\"post\""}, {"model.norm.final", "true"}}}},
              &spec);
  EXPECT_THAT(ChangeNotes(spec), IsEmpty());
}

TEST(NotesTest, ComparesWithTheOtherAxesAtTheirBaselines) {
  v1::ExperimentSpec spec = SmallSpec();
  AddSettings("opt", {{"adam", {}}, {"sgd", {{"training.optimizer", "\"sgd\""}}}}, &spec);
  AddSettings("size", {{"small", {{"model.width", "32"}}}, {"large", {{"model.width", "64"}}}},
              &spec);
  EXPECT_THAT(Resolved(spec).notes,
              ElementsAre("size: parameters differ: small 78,322, large 254,546"));
}

TEST(NotesTest, ListsOnlyTheFirstOfManySizes) {
  v1::ExperimentSpec spec = SmallSpec();
  v1::Axis* axis = spec.add_axes();
  axis->set_field("model.layers");
  for (int i = 1; i <= 12; ++i) axis->add_values()->set_number_value(i);
  const std::vector<std::string> notes = Resolved(spec).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(std::count(notes[0].begin(), notes[0].end(), ':'), 2);
  EXPECT_THAT(notes[0], ::testing::HasSubstr(", 8 "));
  EXPECT_THAT(notes[0], ::testing::EndsWith(", …"));
}

TEST(NotesTest, CountsCellsThatAreOneRun) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_seeds()->set_count(3);
  AddSettings("a", {{"x", {}}, {"y", {{"model.bias", "true"}}}}, &spec);
  EXPECT_THAT(Resolved(spec).notes,
              ElementsAre("x-s0 and y-s0 are one run, trained once, and 2 more cells likewise"));
}

}  // namespace
}  // namespace ablate::spec
