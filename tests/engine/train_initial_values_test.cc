// Tests the initial values of docs/reference/random-streams.md.
#include <string>

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

}  // namespace
}  // namespace ablate::engine
