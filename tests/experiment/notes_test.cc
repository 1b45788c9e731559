// Tests notes about a grid: further changes of a setting, different sizes, cells that are one run.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/experiment/field_values.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> ChangeNotes(const v1::ExperimentSpec& spec) {
  std::vector<std::string> notes = Resolved(spec).notes;
  notes.erase(std::remove_if(notes.begin(), notes.end(),
                             [](const std::string& note) {
                               return note.find(" also change") == std::string::npos;
                             }),
              notes.end());
  return notes;
}

struct ChangeCase {
  std::string name;
  std::string axis;
  std::vector<AxisPoint> settings;
  std::vector<std::string> notes;
};

TEST(NotesTest, NameSettingsThatChangeMoreThanTheRest) {
  const ChangeCase cases[] = {
      {"more than the rest",
       "norm",
       {{"pre", {}},
        {"post", {{"model.norm.placement", "\"post\""}, {"model.norm.final", "false"}}},
        {"rms", {{"model.norm.kind", "\"rms\""}}},
        {"none", {{"model.norm.placement", "\"none\""}, {"model.norm.final", "false"}}}},
       {"post, none also change model.norm.final"}},
      {"an axis is about the path of its name",
       "layers",
       {{"four", {}},
        {"two", {{"model.layers", "2"}, {"training.learning_rate", "0.1"}}},
        {"two-b", {{"model.layers", "2"}, {"training.learning_rate", "0.2"}}}},
       {"two, two-b also change training.learning_rate"}},
      {"one setting changes",
       "a",
       {{"x", {}},
        {"y", {{"model.width", "64"}}},
        {"z", {{"model.width", "32"}, {"training.betas", "[0.5, 0.6]"}}}},
       {"z also changes training.betas"}},
      {"what only the baseline writes is changed by others",
       "norm",
       {{"pre", {{"model.norm.placement", "\"pre\""}, {"model.norm.eps", "0.1"}}},
        {"post", {{"model.norm.placement", "\"post\""}}},
        {"none", {{"model.norm.placement", "\"none\""}, {"model.norm.eps", "0.1"}}}},
       {"post also changes model.norm.eps"}},
      {"a message and a part of it are one change",
       "norm",
       {{"pre", {}},
        {"post", {{"model.norm.placement", "\"post\""}}},
        {"none", {{"model.norm", "{\"placement\": \"none\"}"}}}},
       {}},
      {"what the baseline has is no change",
       "norm",
       {{"pre", {{"model.norm.placement", "\"pre\""}, {"model.norm.final", "true"}}},
        {"post", {{"model.norm.placement", "\"post\""}, {"model.norm.final", "true"}}}},
       {}},
      {"no attention clears the heads",
       "part",
       {{"four", {}},
        {"one", {{"model.heads", "1"}}},
        {"two", {{"model.heads", "2"}}},
        {"none", {{"model.attention.kind", "\"none\""}}}},
       {}},
      {"what follows from another field is no change",
       "variant",
       {{"softmax", {}},
        {"sigmoid", {{"model.attention.kind", "\"sigmoid\""}}},
        {"sigmoid-b0",
         {{"model.attention.kind", "\"sigmoid\""}, {"model.attention.score_bias", "0"}}}},
       {"sigmoid-b0 also changes model.attention.score_bias"}},
  };
  for (const ChangeCase& one : cases) {
    v1::ExperimentSpec spec = SmallSpec();
    AddSettings(one.axis, one.settings, &spec);
    EXPECT_EQ(ChangeNotes(spec), one.notes) << one.name;
  }
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
  v1::Axis* axis = AddValues("model.layers", {}, &spec);
  for (int i = 1; i <= 12; ++i) axis->add_values()->set_number_value(i);
  const std::vector<std::string> notes = Resolved(spec).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(std::count(notes[0].begin(), notes[0].end(), ':'), 2);
  EXPECT_THAT(notes[0], ::testing::HasSubstr(", 8 "));
  EXPECT_THAT(notes[0], ::testing::EndsWith(", …"));
}

TEST(NotesTest, SaysWhichSettingsStartFarAboveAUniformGuess) {
  const auto notes = [](const std::string& model) {
    v1::ExperimentSpec spec = FromText(absl::StrCat(
        "name: 'start' base { task { documents { dataset: 'names' } } model { width: 16 ", model,
        " } }"));
    AddSettings("head", {{"own", {}}, {"tied", {{"model.tied_head", "true"}}}}, &spec);
    std::vector<std::string> of_start;
    for (const std::string& note : Resolved(spec).notes) {
      if (note.find("before the first step") != std::string::npos) of_start.push_back(note);
    }
    return of_start;
  };
  EXPECT_THAT(
      notes(""),
      ElementsAre("the loss before the first step will be far above ln V, that of a uniform guess, "
                  "which may decide a comparison: head=tied (scores with a deviation of about 4, "
                  "ln V = 3.3); init.kind gpt2 begins near it"));
  EXPECT_THAT(notes("init { kind: gpt2 }"), IsEmpty());
  EXPECT_THAT(notes("norm { kind: l2 }"), IsEmpty()) << "what the head reads has length 1";
  EXPECT_THAT(notes("init { kind: xavier } norm { final: false }"),
              ElementsAre(::testing::HasSubstr("head=tied (scores with a deviation of about 5.7")));
}

TEST(NotesTest, CountsCellsThatAreOneRun) {
  v1::ExperimentSpec spec = SmallSpec();
  spec.mutable_seeds()->set_count(3);
  AddSettings("a", {{"x", {}}, {"y", {{"model.bias", "true"}}}}, &spec);
  EXPECT_THAT(Resolved(spec).notes,
              ElementsAre("x-s0 and y-s0 are one run, trained once, and 2 more cells likewise"));
}

// Returns a server with one data set: so many documents of `lengths`, in characters.
Surroundings WithLengths(std::vector<uint64_t> lengths, uint64_t documents = 100) {
  Surroundings surroundings;
  surroundings.find_dataset = [lengths, documents](absl::string_view,
                                                   bool) -> absl::StatusOr<DatasetFacts> {
    const uint64_t longest = lengths.empty() ? 0 : lengths.size() - 1;
    return DatasetFacts{
        {documents, 26, longest, 0, 0, lengths}, "texts-000000", std::string(64, '0')};
  };
  return surroundings;
}

v1::ExperimentSpec OnTexts(const std::string& contexts, const std::string& tune = "") {
  return FromText(absl::StrCat(
      R"(name: "texts" base { task { documents { dataset: "texts" held_out: 10 } } }
         axes { field: "model.context" )",
      contexts, tune, "}"));
}

TEST(NotesTest, SayWhatEachContextCuts) {
  std::vector<uint64_t> lengths(72);
  lengths[10] = 3;
  lengths[15] = 1;
  lengths[16] = 90;
  lengths[71] = 6;
  const auto notes = [&](const std::string& contexts) {
    return Resolve(OnTexts(contexts), {}, WithLengths(lengths)).notes;
  };
  const auto value = [](int context) {
    return absl::StrCat("values { number_value: ", context, " } ");
  };
  // A document of 16 characters takes 17 positions.
  EXPECT_THAT(notes(value(16))[0],
              "96 % of documents are longer than context 16 and are cut; longest 72");
  const std::vector<std::string> several = notes(value(8) + value(71) + value(72));
  EXPECT_THAT(several, ::testing::Contains(
                           "all documents are longer than context 8 and are cut; longest 72"));
  EXPECT_THAT(several, ::testing::Contains(
                           "6 % of documents are longer than context 71 and are cut; longest 72"));
  for (const std::string& note : several) EXPECT_EQ(note.find("context 72"), std::string::npos);
}

TEST(NotesTest, SayThatAShareIsCutAsThatItIsLonger) {
  std::vector<uint64_t> lengths(72);
  lengths[71] = 1;
  const auto note = [&](uint64_t documents) {
    const v1::ExperimentSpec spec = OnTexts("values { number_value: 16 }");
    return Resolve(spec, {}, WithLengths(lengths, documents)).notes.at(0);
  };
  EXPECT_EQ(note(100), "1 % of documents are longer than context 16 and are cut; longest 72");
  EXPECT_EQ(note(1000), "1 of 1,000 documents is longer than context 16 and is cut; longest 72");
}

TEST(NotesTest, NothingIsSaidOfLengthsThatAreNotKnown) {
  for (const std::string& note :
       Resolve(OnTexts("values { number_value: 2 }"), {}, WithLengths({})).notes) {
    EXPECT_EQ(note.find("cut"), std::string::npos) << note;
  }
}

TEST(NotesTest, SayWhatAnEvaluationOfATextLeavesOut) {
  constexpr char kAll[] =
      "evaluation scores 111,488 tokens in 1,742 windows of context 64; the last 51 of 111,540 "
      "validation tokens are left out";
  v1::ExperimentSpec spec = TextSpec();
  EXPECT_THAT(Resolved(spec).notes, ElementsAre(kAll));
  spec.mutable_base()->mutable_evaluation()->set_batches(20);
  EXPECT_THAT(Resolved(spec).notes,
              ElementsAre("evaluation scores 40,960 tokens in 640 windows of context 64 "
                          "(evaluation.batches 20); the last 70,579 of 111,540 validation tokens "
                          "are left out"));
  spec.mutable_base()->mutable_evaluation()->set_batches(55);
  EXPECT_THAT(Resolved(spec).notes, ElementsAre(kAll));
}

TEST(NotesTest, NothingIsSaidOfATextThatIsEvaluatedToItsEnd) {
  v1::ExperimentSpec spec = TextSpec();
  AddValues("task.text.dataset", {"\"tiny\""}, &spec);  // 7 tokens to validate on
  spec.mutable_base()->mutable_model()->set_context(6);
  EXPECT_THAT(Resolved(spec).notes, IsEmpty());
  spec.mutable_base()->mutable_model()->set_context(5);
  EXPECT_THAT(Resolved(spec).notes,
              ElementsAre("evaluation scores 5 tokens in 1 window of context 5; the last 1 of 7 "
                          "validation tokens is left out"));
}

TEST(TunedAxisTest, IsRefusedWhereItChangesWhatIsScored) {
  std::vector<uint64_t> lengths(32);
  lengths[20] = 50;
  lengths[31] = 50;
  const auto resolve = [&](int first, int second) {
    return Resolve(OnTexts(absl::StrCat("values { number_value: ", first,
                                        " } values { number_value: ", second, " } "),
                           "tune: true"),
                   {}, WithLengths(lengths));
  };
  EXPECT_THAT(
      Messages(resolve(16, 32)),
      ElementsAre("axes[0].tune: settings of context are scored on different data or targets "
                  "(model.context), so that none can be selected; expected false, or settings that "
                  "are scored on the same"));
  EXPECT_THAT(Messages(resolve(32, 64)), IsEmpty()) << "neither cuts a document";
}

TEST(TunedAxisTest, MayBeLabelSmoothingUnlessTheTrainingLossSelects) {
  v1::ExperimentSpec spec = TextSpec();
  AddValues("training.label_smoothing", {"0", "0.1"}, &spec);
  spec.mutable_axes(0)->set_tune(true);
  Resolved(spec);
  spec.mutable_report()->set_primary("train/loss");
  EXPECT_THAT(Messages(Resolve(spec, {}, TestSurroundings())),
              ElementsAre(HasSubstr("different data or targets (training.label_smoothing)")));
}

TEST(ScoredDataTest, IsWhatIsEvaluatedAndNotHowItIsTrained) {
  const v1::BaseSpec documents =
      FromText("base { task { documents { held_out: 10 } } model { context: 16 } }").base();
  const v1::BaseSpec text = Resolved(TextSpec()).cells.at(0).run.spec();
  const v1::BaseSpec pairs = Resolved(RecallSpec()).cells.at(0).run.spec();
  const v1::BaseSpec recall = FromText("base { task { legacy_recall { keys: 20 } } }").base();
  // Returns the data that stays the same after such a change, a textproto of BaseSpec.
  const auto same = [](const v1::BaseSpec& base, const std::string& change, uint64_t longest) {
    v1::BaseSpec other = base;
    other.MergeFrom(FromText("base { " + change + " }").base());
    return ScoredData(other, "a", longest, "eval/loss") ==
           ScoredData(base, "a", longest, "eval/loss");
  };
  for (const v1::BaseSpec& base : {documents, text}) {
    EXPECT_NE(ScoredData(base, "a", 40, "eval/loss"), ScoredData(base, "b", 40, "eval/loss"));
  }
  EXPECT_TRUE(same(documents, "training { batch: 8 } model { width: 256 }", 40));
  EXPECT_FALSE(same(documents, "model { context: 17 }", 40));
  EXPECT_TRUE(same(documents, "model { context: 17 }", 15)) << "nothing is cut";
  EXPECT_FALSE(same(documents, "model { context: 17 }", 0)) << "lengths are not known";
  EXPECT_FALSE(same(documents, "task { documents { held_out: 11 } }", 40));
  EXPECT_TRUE(same(text, "training { batch: 8 }", 0));
  EXPECT_FALSE(same(text, "model { context: 63 }", 0));
  EXPECT_FALSE(same(text, "evaluation { batches: 3 }", 0));
  EXPECT_FALSE(same(text, "task { text { validation: 0.2 } }", 0));
  EXPECT_TRUE(same(pairs, "training { batch: 8 }", 0));
  EXPECT_FALSE(same(pairs, "task { recall { attributes: 5 } }", 0));
  EXPECT_TRUE(same(recall, "training { batch: 64 } model { context: 99 }", 0));
  EXPECT_FALSE(same(recall, "task { legacy_recall { keys: 21 } }", 0));
}

TEST(ScoredDataTest, OfTheTrainingLossHasItsTargetsAndNoEvaluations) {
  const v1::BaseSpec base = Resolved(TextSpec()).cells.at(0).run.spec();
  // Returns true if such a change, a textproto of BaseSpec, leaves a metric's data as they are.
  const auto same = [&base](const std::string& change, const char* metric) {
    v1::BaseSpec other = base;
    other.MergeFrom(FromText("base { " + change + " }").base());
    return ScoredData(other, "a", 0, metric) == ScoredData(base, "a", 0, metric);
  };
  for (const char* metric : {"train/loss", "train/gradient_norm"}) {
    EXPECT_TRUE(same("evaluation { batches: 3 }", metric)) << metric;
    EXPECT_FALSE(same("model { context: 63 }", metric)) << metric;
  }
  const char* const smoothed = "training { label_smoothing: 0.1 }";
  EXPECT_FALSE(same(smoothed, "train/loss"));
  EXPECT_TRUE(same(smoothed, "train/gradient_norm"));
  EXPECT_TRUE(same(smoothed, "eval/loss"));
}

}  // namespace
}  // namespace ablate::spec
