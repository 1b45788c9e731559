// Tests the notes on what a comparison can show, found before training.
#include "server/submit/decidable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "server/experiment/resolve.h"
#include "server/lookup/names.h"
#include "tests/results/stored_grid.h"

namespace ablate::submit {
namespace {

using testing::HasSubstr;

// Returns the note for an axis of so many settings, beside a tuned one, with so many seeds.
std::string Note(int settings, int seeds, const std::string& field = "model.width") {
  v1::ExperimentSpec spec;
  std::string text =
      absl::StrCat("name: 'small' base { task { recall {} } } seeds { count: ", seeds,
                   " } axes { field: '", field, "' ");
  for (int i = 0; i < settings; ++i) {
    absl::StrAppend(&text, "values { number_value: ", 16 * (i + 1), " } ");
  }
  absl::StrAppend(&text,
                  "} axes { field: 'training.learning_rate' tune: true values { number_value: 0.1 "
                  "} values { number_value: 0.2 } }");
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  const spec::Resolution resolution = spec::Resolve(spec, {}, {});
  for (const spec::Problem& problem : resolution.problems) ADD_FAILURE() << problem.message;
  return UndecidableNote(resolution);
}

TEST(UndecidableNoteTest, SaysHowManySeedsItTakes) {
  EXPECT_EQ(Note(4, 6),
            "6 seeds can't establish a difference: the permutation test, Holm-adjusted for 3 "
            "comparisons, has p of at least 0.0938; 7 seeds are needed");
  EXPECT_EQ(Note(4, 7), "");
  EXPECT_EQ(Note(2, 5),
            "5 seeds can't establish a difference: the permutation test has p of at least 0.0625; "
            "6 seeds are needed");
  EXPECT_EQ(Note(2, 1),
            "1 seed can't establish a difference: the permutation test has p of at least 1; 6 "
            "seeds are needed");
  EXPECT_EQ(Note(2, 6), "");
}

// Returns an experiment of a program with six seeds of two settings, and another setting.
std::string ProgramGrid(const std::string& other_setting) {
  return absl::StrCat(
      "name: 'own' base { program { command: 'train' } settings { fields { key: 'x' value { "
      "number_value: 1 } } fields { key: '",
      other_setting,
      "' value { number_value: 1 } } } } "
      "axes { name: 'x' field: 'settings.x' values { number_value: 1 } values { number_value: 2 } "
      "} seeds { first: 1 count: 6 }");
}

TEST(DetectableNoteTest, TakesTheSpreadOfTheSameProgramOnly) {
  results::StoredGrid stored(ProgramGrid("width"));
  for (int seed = 1; seed <= 6; ++seed) {
    for (int x = 1; x <= 2; ++x) {
      stored.Finish(absl::StrCat("x", x, "-s", seed), {{"eval/loss", {{1, x + 0.1 * x * seed}}}});
    }
  }
  const auto note = [&stored](const std::string& text) {
    v1::ExperimentSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
    lookup::View view;
    view.store = stored.store();
    view.viewer = {.user = "ada"};
    spec::Surroundings surroundings;
    surroundings.environments["cpu"] = {{"default", "python 3.11"}};
    const auto found = DetectableNote(view, spec::Resolve(spec, {}, surroundings));
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or("");
  };
  EXPECT_THAT(note(ProgramGrid("width")), HasSubstr(stored.experiment()));
  EXPECT_THAT(note(ProgramGrid("depth")),
              HasSubstr("unknown, because no stored experiment shows the spread of this metric for "
                        "the same program;"));
}

// Returns the note for two settings of one seed, with predictions and robustness.
std::string NoteOf(const std::string& primary) {
  v1::ExperimentSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("name: 'small' base { task { recall {} } } axes { field: 'model.width' values { "
                   "number_value: 16 } values { number_value: 32 } } analyses { name: 'own' "
                   "predictions {} } analyses { robustness {} } report { primary: '",
                   primary, "' }"),
      &spec));
  return UndecidableNote(spec::Resolve(spec, {}, {}));
}

TEST(UndecidableNoteTest, SaysWhichNumbersAreComparedBySequence) {
  EXPECT_EQ(NoteOf("own/loss"),
            "1 seed: own/loss is compared by sequence, one run per setting, which shows nothing "
            "about other training seeds");
  for (const char* key : {"own/calibration_error", "robustness/perplexity", "eval/loss"}) {
    EXPECT_EQ(NoteOf(key),
              "1 seed can't establish a difference: the permutation test has p of at least 1; 6 "
              "seeds are needed");
  }
}

TEST(UndecidableNoteTest, SaysNothingWhereNothingIsCompared) {
  EXPECT_EQ(Note(1, 2), "");
  // Settings with different evaluation data aren't compared.
  EXPECT_EQ(Note(2, 2, "evaluation.batches"), "");
}

}  // namespace
}  // namespace ablate::submit
