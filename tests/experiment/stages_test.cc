// Tests problems of every stage at once: a problem skips the checks that depend on it, and no
// others.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/experiment/experiment_analyses.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Fields(const std::string& text, const Overrides& overrides = {}) {
  std::vector<std::string> fields;
  for (const Problem& problem : Resolve(FromText(text), overrides, TestSurroundings()).problems) {
    fields.push_back(problem.field);
  }
  return fields;
}

// An entry with a step that isn't kept and a block that doesn't exist.
constexpr char kBadEntry[] = R"(analyses { spectrum { site: "block.9.output" } at: [7] })";

// Returns the text with `base` in the base, beside a task.
std::string TextWithBase(const std::string& base) {
  return absl::StrCat("name: 'a' base { task { legacy_recall {} } ", base, " } ", kBadEntry);
}

TEST(StagesTest, FindProblemsOfFieldsGridCellsReportAndAnalysesAtOnce) {
  EXPECT_THAT(Fields(absl::StrCat(R"(
                name: "A name"
                base {
                  task { legacy_recall {} }
                  model { layers: 2 width: 16 heads: 4 }
                  training { steps: 10 warmup: 20 learning_rate: -1 }
                }
                axes { field: "model.heads" values { number_value: 4 } values { number_value: 3 } }
                axes { field: "training.batch" values { number_value: 0 }
                       values { number_value: 8 } }
                seeds { count: 3 }
                limits { runs: 4 }
                report { primary: "eval/ema_loss" })",
                                  kBadEntry),
                     {{"training.clip", Json("\"x\"")}}),
              UnorderedElementsAre(
                  "name", "overrides[\"training.clip\"]", "base.training.learning_rate",
                  "axes[0].values[1]", "axes[1].values[0]", "limits.runs", "base.training.warmup",
                  "report.primary", "analyses[0].at[0]", "analyses[0].spectrum.site"));
}

TEST(StagesTest, LeaveOutWhatDependsOnAProblem) {
  EXPECT_THAT(Fields(TextWithBase("model { layers: 0 }")),
              ElementsAre("base.model.layers", "analyses[0].at[0]"));
  EXPECT_THAT(Fields(TextWithBase("model { heads: 3 }")),
              ElementsAre("base.model.heads", "analyses[0].at[0]"));
  EXPECT_THAT(Fields(TextWithBase("training { checkpoints: [-3] }")),
              ElementsAre("base.training.checkpoints[0]", "analyses[0].spectrum.site"));
  EXPECT_THAT(
      Fields(TextWithBase("training { learning_rate: -1 }")),
      ElementsAre("base.training.learning_rate", "analyses[0].at[0]", "analyses[0].spectrum.site"));
  EXPECT_THAT(Fields(TextWithBase("model { dropout: 2 }")),
              ElementsAre("base.model.dropout", "analyses[0].at[0]", "analyses[0].spectrum.site"));
  EXPECT_THAT(Fields(TextWithBase("model { layers: 0 }") + "report { primary: 'eval/ema_loss' }"),
              ElementsAre("base.model.layers", "report.primary", "analyses[0].at[0]"));
  EXPECT_THAT(Fields(TextWithBase("training { ema: 2 }") + "report { primary: 'eval/ema_loss' }"),
              ElementsAre("base.training.ema", "analyses[0].at[0]", "analyses[0].spectrum.site"));
}

TEST(StagesTest, HoldNothingAgainstAFieldThatCantBeRead) {
  const google::protobuf::Value none;
  const std::string checkpoint =
      "name: 'a' base { task { recall {} } training { checkpoints: 5000 } }";
  EXPECT_THAT(Fields(checkpoint, {{"training.steps", none}}),
              ElementsAre("overrides[\"training.steps\"]"));
  EXPECT_THAT(Fields(checkpoint, {{"training", none}}), ElementsAre("overrides[\"training\"]"));
}

TEST(StagesTest, LookAtModelsWithoutATask) {
  EXPECT_THAT(Fields(absl::StrCat("name: 'a' ", kBadEntry)),
              ElementsAre("base.task", "analyses[0].at[0]", "analyses[0].spectrum.site"));
  const std::string lost = "name: 'a' base { task { text { dataset: 'lost' } } }";
  EXPECT_THAT(
      Fields(absl::StrCat(lost, kBadEntry)),
      ElementsAre("base.task.text.dataset", "analyses[0].at[0]", "analyses[0].spectrum.site"));
  EXPECT_THAT(Fields(absl::StrCat(lost, "analyses { spectrum {} inputs { prompt: 'ab' } }")),
              ElementsAre("base.task.text.dataset"))
      << "whether it is a text is not known";
  EXPECT_THAT(Fields(absl::StrCat(lost, "analyses { spectrum { site: 'logits' } }")),
              ElementsAre("base.task.text.dataset"));
}

TEST(StagesTest, LookAtNoneOfTooManyAnalyses) {
  std::string many = "name: 'a' base { task { recall {} } model { heads: 3 } } ";
  for (int i = 0; i <= kMaxAnalyses; ++i) many += kBadEntry;
  EXPECT_THAT(Fields(many), ElementsAre("analyses", "base.model.heads"));
}

TEST(StagesTest, LookAtSettingsBesideOneThatIsWrong) {
  EXPECT_THAT(
      Fields(
          TextWithBase("model { layers: 2 }") +
          "axes { field: 'model.layers' values { number_value: 0 } values { number_value: 1 } }"),
      ElementsAre("axes[0].values[0]", "analyses[0].at[0]", "analyses[0].spectrum.site"));
}

TEST(StagesTest, LookAtASmallGridThatHasTooManyRuns) {
  const std::string many = TextWithBase("model { heads: 3 }") + "seeds { count: ";
  EXPECT_THAT(Fields(many + "2000 }"),
              ElementsAre("limits.runs", "base.model.heads", "analyses[0].at[0]"));
}

}  // namespace
}  // namespace ablate::spec
