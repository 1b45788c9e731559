// Tests the initial values of docs/reference/random-streams.md.
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/engine/core/layout.h"
#include "server/engine/names.h"
#include "server/engine/torch/model/init.h"
#include "tests/docs_page.h"

namespace ablate::engine {
namespace {

constexpr uint32_t kSeed = 42;

ModelConfig PageModel() {
  ModelConfig model;
  model.vocabulary = 5;
  model.layers = 1;
  model.width = 6;
  model.heads = 2;
  model.context = 2;
  model.hidden = 8;
  return model;
}

// Returns the first, second and last element of the part of `flat` that `info` describes.
template <typename Info>
std::string ValuesOf(const at::Tensor& flat, const std::vector<Info>& infos,
                     const std::string& name) {
  for (const Info& info : infos) {
    if (info.name != name) continue;
    const float* values = flat.const_data_ptr<float>() + info.offset;
    return absl::StrFormat("%.3g %.3g %.3g", values[0], values[1], values[info.size - 1]);
  }
  return "no " + name;
}

TEST(InitialValuesTest, AreThoseOfThePage) {
  const struct {
    InitKind kind;
    InitStreams streams;
    const char* parameter;
  } rows[] = {
      {InitKind::kPytorch, InitStreams::kByName, "token_embedding.weight"},
      {InitKind::kPytorch, InitStreams::kByName, "position_embedding.weight"},
      {InitKind::kPytorch, InitStreams::kByName, "block.0.feed_forward.up.weight"},
      {InitKind::kPytorch, InitStreams::kByName, "head.bias"},
      {InitKind::kPytorch, InitStreams::kSequential, "head.bias"},
      {InitKind::kPytorchMha, InitStreams::kSequential, "block.0.attention.qkv.weight"},
      {InitKind::kXavier, InitStreams::kByName, "block.0.attention.qkv.weight"},
      {InitKind::kGpt2, InitStreams::kByName, "head.weight"},
  };
  for (const auto& row : rows) {
    ModelConfig model = PageModel();
    model.init = {row.kind, row.streams};
    const ParameterLayout layout = MakeLayout(model);
    ExpectRow(
        "random-streams.md",
        absl::StrFormat("`%s`, `%s`: `%s`", NameOf(row.kind), NameOf(row.streams), row.parameter),
        ValuesOf(InitialParameters(model, layout, kSeed), layout.parameters, row.parameter));
  }
}

TEST(InitialValuesTest, OfFeedbackAreThoseOfThePage) {
  const auto expect = [](LearningRule rule, const std::string& name) {
    const ParameterLayout layout = MakeLayout(PageModel(), rule);
    ExpectRow("random-streams.md", "`" + name + "`",
              ValuesOf(InitialBuffers(layout, kSeed), layout.buffers, name));
  };
  expect(LearningRule::kFeedbackAlignment, "block.0.attention.projection.feedback");
  expect(LearningRule::kDirectFeedbackAlignment, "block.0.feedback");
}

// Returns the standard deviation of the first values of a parameter.
double DeviationOf(const ModelConfig& model, const std::string& name) {
  const ParameterLayout layout = MakeLayout(model);
  const at::Tensor values = InitialParameters(model, layout, kSeed);
  for (const ParameterInfo& info : layout.parameters) {
    if (info.name == name) return values.narrow(0, info.offset, info.size).std().item<double>();
  }
  return 0;
}

TEST(InitialValuesTest, AreThoseWithoutMuPAtTheBaseWidth) {
  for (const Named<InitKind>& kind : kNames<InitKind>) {
    ModelConfig model = PageModel();
    model.init.kind = kind.value;
    ModelConfig scaled = model;
    scaled.base_width = model.width;
    const ParameterLayout layout = MakeLayout(scaled);
    EXPECT_TRUE(InitialParameters(scaled, layout, kSeed)
                    .equal(InitialParameters(model, MakeLayout(model), kSeed)));
    EXPECT_EQ(ScoreScale(scaled), ScoreScale(model));
    for (const ParameterInfo& info : layout.parameters) EXPECT_EQ(info.rate, 1) << info.name;
  }
}

// Weights of blocks shrink with the root of the width, the head's and biases don't.
TEST(InitialValuesTest, ScaleAsMuPDoesAtOtherWidths) {
  for (const Named<InitKind>& kind : kNames<InitKind>) {
    SCOPED_TRACE(kind.name);
    ModelConfig base = PageModel();
    base.init.kind = kind.value;
    base.vocabulary = 400;
    base.width = base.base_width = 32;
    base.hidden = 128;
    ModelConfig wide = base;
    wide.width = 128;
    wide.hidden = 512;
    for (const auto& [name, ratio] :
         {std::pair("block.0.feed_forward.down.weight", 0.5),
          std::pair("block.0.attention.qkv.weight", 0.5), std::pair("head.weight", 1.0)}) {
      const double expected = ratio * DeviationOf(base, name);
      EXPECT_NEAR(DeviationOf(wide, name), expected, 0.1 * expected) << name;
    }
    const ParameterLayout layout = MakeLayout(wide);
    for (const ParameterInfo& info : layout.parameters) {
      const bool hidden = info.role == ParameterRole::kWeight;
      EXPECT_EQ(info.rate, hidden ? 0.25 : 1) << info.name;
    }
    EXPECT_DOUBLE_EQ(ScoreScale(wide), ScoreScale(base) / 4);
  }
}

}  // namespace
}  // namespace ablate::engine
