// Tests suggestions for unknown fields across levels and by names of other programs.
#include "proto/reflect/field_hints.h"

#include "ablate/v1/spec.pb.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "proto/reflect/from_value.h"
#include "tests/reflect/values.h"

namespace ablate::reflect {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Returns the only problem of setting `path` below base.
std::string ProblemOf(absl::string_view path, const std::string& json = "1") {
  v1::BaseSpec base;
  std::vector<FieldProblem> problems;
  SetPath(path, FromJson(json), "here", &base, &problems);
  EXPECT_EQ(problems.size(), 1u) << path;
  return problems.empty() ? "" : problems[0].message;
}

TEST(FieldHintTest, FindsTheRightPathOnOtherLevels) {
  const std::pair<const char*, const char*> cases[] = {
      {"training.lr", "training.learning_rate"},
      {"lr", "training.learning_rate"},
      {"optimizer.lr", "training.learning_rate"},
      {"model.learning_rate", "training.learning_rate"},
      {"norm.kind", "model.norm.kind"},
      {"norm", "model.norm"},
      {"norm_type", "model.norm.kind"},
      {"model.norm_first", "model.norm.placement"},
      {"model.activation", "model.feed_forward.activation"},
      {"batch_size", "training.batch"},
      {"training.bs", "training.batch"},
      {"n_layer", "model.layers"},
      {"model.n_head", "model.heads"},
      {"model.N_EMBD", "model.width"},
      {"training.seq_len", "model.context"},
      {"wd", "training.weight_decay"},
      {"epochs", "training.steps"},
      {"train.batch_size", "training.batch"},
      {"eval_interval", "evaluation.every"},
      {"steps", "training.steps"},
      {"eps", "model.norm.eps or training.eps"},
      {"model.eps", "model.norm.eps"},
      {"model.kind", "model.init.kind, model.attention.kind or model.attention.qk_norm.kind"},
      {"modle.width", "model"},  // the nearest name comes before other levels
      {"training.stepz", "steps"},
      {"precison", "training.precision or training.muon.precision"},
      {"model.precison", "training.precision or training.muon.precision"}};
  for (const auto& [path, meant] : cases) {
    EXPECT_THAT(ProblemOf(path), HasSubstr(absl::StrCat(" (did you mean ", meant, "?); expected ")))
        << path;
  }
}

TEST(FieldHintTest, IsLeftOutIfNothingFits) {
  for (const char* path : {"", "xyzzy", "model.xyzzy", "a.b.c.d.e.f.g.h.i.j.lr.k"}) {
    EXPECT_THAT(ProblemOf(path), Not(HasSubstr("did you mean"))) << path;
  }
  EXPECT_THAT(ProblemOf(std::string(100'000, '.')), Not(HasSubstr("did you mean")));
}

TEST(FieldHintTest, HasPathsOfTheWholeFile) {
  v1::ExperimentSpec spec;
  std::vector<FieldProblem> problems;
  FromValue(FromJson(R"({"model": {"width": 8}, "seed": 3, "axes": [{"lr": [1]}],
                         "analyses": [{"kind": "spectrum"}, {"documents": 3}],
                         "base": {"training": {"lr": 1}, "norm": {"kind": "rms"}}})"),
            "", &spec, &problems);
  std::vector<std::string> messages;
  for (const FieldProblem& problem : problems) {
    messages.push_back(problem.message.substr(0, problem.message.find(';')));
  }
  EXPECT_THAT(messages, ElementsAre("analyses[0].kind: unknown field",
                                    "analyses[1].documents: unknown field (did you mean "
                                    "analyses[1].inputs.documents?)",
                                    "axes[0].lr: unknown field",
                                    "base.norm: unknown field (did you mean base.model.norm?)",
                                    "base.training.lr: unknown field (did you mean "
                                    "base.training.learning_rate?)",
                                    "model: unknown field (did you mean base.model?)",
                                    "seed: unknown field (did you mean seeds?)"));
}

TEST(PathsEndingTest, ReturnsAllThatEndSo) {
  const auto* base = v1::BaseSpec::descriptor();
  EXPECT_THAT(PathsEnding(base, "lr"), ElementsAre("training.learning_rate"));
  EXPECT_THAT(PathsEnding(base, "norm.eps"), ElementsAre("model.norm.eps"));
  EXPECT_THAT(PathsEnding(base, "eps"), ElementsAre("model.norm.eps", "training.eps"));
  EXPECT_THAT(PathsEnding(base, "learning_rat"), IsEmpty());
}

}  // namespace
}  // namespace ablate::reflect
