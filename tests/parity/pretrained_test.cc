// Compares imported models with transformers: hidden states, logits, what is exported again,
// and the most likely text.
#include "server/engine/pretrained.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/utf8.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/layout.h"
#include "server/engine/samples.h"
#include "server/engine/task.h"
#include "server/engine/torch/model/parameters.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/trainer.h"
#include "tests/parity/exchange.h"
#include "tests/parity/model_folders.h"

namespace ablate::engine {
namespace {

// Returns logits [B, T, V] and hidden states [B, T, d] of our model, by transformers' numbering:
// the last hidden state is the head's input, the others are the inputs of blocks.
TensorMap OursOf(const ImportedModel& imported, Precision precision, const at::Tensor& tokens) {
  const ModelConfig& model = imported.model;
  const at::TensorOptions options = TensorOptionsOf(at::kCPU, precision);
  FlatParameters parameters(model, LearningRule::kBackprop, options);
  parameters.values().copy_(at::tensor(at::ArrayRef<float>(imported.parameters)));
  const int64_t rows = tokens.size(0), length = tokens.size(1);
  const c10::NoGradGuard no_grad;
  TensorMap out;
  std::vector<std::pair<std::string, Hook>> hooks;
  const auto observe = [&](const std::string& hook_point, int state) {
    hooks.emplace_back(hook_point, Observe([&out, state, rows, length](const at::Tensor& x) {
                         out["hidden." + std::to_string(state)] = x.view({rows, length, -1});
                       }));
  };
  observe("embedding", 0);
  for (int block = 0; block + 1 < model.layers; ++block) {
    observe("block." + std::to_string(block) + ".output", block + 1);
  }
  observe("head.input", model.layers);
  const auto made = Hooks::Make(model, std::move(hooks));
  EXPECT_TRUE(made.ok()) << made.status();
  Pass pass;
  pass.hooks = &*made;
  const BatchTensors batch = {rows, length, rows * length, tokens.flatten(), {}, {}, {}};
  out["logits"] = Logits(model, parameters.model(), batch, pass).view({rows, length, -1});
  return out;
}

// Compares everything that transformers computed in a precision.
void ExpectSame(const ImportedModel& imported, const TensorMap& answer, Precision precision) {
  const bool is_double = precision == Precision::kFloat64;
  const std::string prefix = is_double ? "float64." : "float32.";
  const TensorMap ours = OursOf(imported, precision, answer.at("tokens"));
  size_t compared = 0;
  for (const auto& [name, theirs] : answer) {
    if (!absl::StartsWith(name, prefix)) continue;
    const auto found = ours.find(name.substr(prefix.size()));
    ASSERT_TRUE(found != ours.end()) << name;
    ASSERT_EQ(found->second.sizes(), theirs.sizes()) << name;
    EXPECT_LE(RelativeError(found->second, theirs), is_double ? 1e-9 : 1e-4) << name;
    ++compared;
  }
  EXPECT_EQ(compared, static_cast<size_t>(imported.model.layers) + 2);
}

// Compares the plain logits of one row with transformers' in float64.
void ExpectPlainLogits(const ImportedModel& imported, const TensorMap& answer) {
  const at::Tensor row = answer.at("tokens").select(0, 1).contiguous();
  const std::vector<int64_t> tokens(row.const_data_ptr<int64_t>(),
                                    row.const_data_ptr<int64_t>() + row.numel());
  const auto logits = PlainLogits(imported, tokens, LogitPositions::kAll);
  ASSERT_TRUE(logits.ok()) << logits.status();
  const at::Tensor theirs = answer.at("float64.logits").select(0, 1);
  EXPECT_LE(RelativeError(at::tensor(*logits, at::kDouble).view_as(theirs), theirs), 1e-12);
}

// Writes the model to FOLDER, and checks that reading it again changes nothing.
void Export(const ImportedModel& imported, const std::string& folder) {
  const auto files = WritePretrained(imported.model, imported.parameters);
  ASSERT_TRUE(files.ok()) << files.status();
  std::filesystem::create_directory(folder);
  for (const NamedFile& file : *files) {
    std::ofstream(folder + "/" + file.name, std::ios::binary) << file.bytes;
  }
  const auto again = ReadPretrained(ViewsOf(*files), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->model, imported.model);
  EXPECT_EQ(again->parameters, imported.parameters);
}

// Families of models that reference.py writes: its modes, and the numbers of models.
struct Models {
  const char* name;
  const char* models;
  const char* exports;
  const char* texts;
  size_t model_count;
  size_t text_count;
};
constexpr Models kModels[] = {{"Gpt2", "gpt2_models", "gpt2_exports", "gpt2_texts", 21, 4},
                              {"Rotary", "family_models", "family_exports", "family_texts", 15, 4}};

class PretrainedParityTest : public ::testing::TestWithParam<Models> {};
INSTANTIATE_TEST_SUITE_P(All, PretrainedParityTest, ::testing::ValuesIn(kModels),
                         [](const auto& models) { return models.param.name; });

TEST_P(PretrainedParityTest, MatchesTransformers) {
  const ScratchFolder folder;
  std::string missing = RunReference(GetParam().models, folder.path());
  if (!missing.empty()) GTEST_SKIP() << missing;
  PrepareLaneThread();
  const std::vector<std::string> names = ModelsIn(folder.path());
  ASSERT_EQ(names.size(), GetParam().model_count);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::vector<NamedFile> files = FilesIn(folder.path() + "/" + name);
    ImportOverrides overrides;
    if (absl::StartsWith(name, "rms")) overrides.norm_kind = NormKind::kRms;
    const auto imported = ReadPretrained(ViewsOf(files), overrides);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const TensorMap answer = ReadAnswer(folder.path(), name);
    ExpectSame(*imported, answer, Precision::kFloat32);
    ExpectSame(*imported, answer, Precision::kFloat64);
    ExpectPlainLogits(*imported, answer);
    Export(*imported, folder.path() + "/" + name + ".export");
  }
  missing = RunReference(GetParam().exports, folder.path());
  EXPECT_EQ(missing, "");
}

// Returns a task whose data has as many different characters as the model has tokens.
TextTask TaskOfCharacters(int vocabulary) {
  std::string text;
  for (int i = 0; i < vocabulary; ++i) text += text::EncodeUtf8(static_cast<char32_t>(0x4E00 + i));
  return *ReadTextTask(text, 0.5);
}

// Returns a checkpoint of the model in float64.
std::string DoubleCheckpoint(const ImportedModel& imported) {
  const std::vector<double> values(imported.parameters.begin(), imported.parameters.end());
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(double));
  const BackendIdentity origin = {"imported", "", "imported_from", "gpt2"};
  return *WriteCheckpoint({imported.model, origin, 0, ""}, MakeLayout(imported.model),
                          {TensorType::kF64, bytes, "", {}});
}

std::vector<uint32_t> IdsOf(const at::Tensor& tokens) {
  const int64_t* const ids = tokens.const_data_ptr<int64_t>();
  return {ids, ids + tokens.numel()};
}

TEST_P(PretrainedParityTest, GeneratesTheTokensOfTransformers) {
  const ScratchFolder folder;
  const std::string missing = RunReference(GetParam().texts, folder.path());
  if (!missing.empty()) GTEST_SKIP() << missing;
  PrepareLaneThread();
  const std::vector<std::string> names = ModelsIn(folder.path());
  ASSERT_EQ(names.size(), GetParam().text_count);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const std::vector<NamedFile> files = FilesIn(folder.path() + "/" + name);
    ImportOverrides overrides;
    if (name == "rms") overrides.norm_kind = NormKind::kRms;
    const auto imported = ReadPretrained(ViewsOf(files), overrides);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const TensorMap answer = ReadAnswer(folder.path(), name);
    const std::vector<uint32_t> drawn = IdsOf(answer.at("drawn"));
    ASSERT_GE(drawn.size(), 100u);
    EXPECT_GT(std::set<uint32_t>(drawn.begin(), drawn.end()).size(), 10u) << "a dull text";
    RunConfig run;
    run.model = imported->model;
    run.task = TaskOfCharacters(run.model.vocabulary);
    run.precision = Precision::kFloat64;
    SampleOptions options;
    options.count = 1;
    options.temperature = 0;
    options.max_tokens = static_cast<uint32_t>(drawn.size());
    options.prompt_ids = IdsOf(answer.at("prompt"));
    std::vector<Sample> samples;
    const auto counts = GenerateSamples(
        run, DoubleCheckpoint(*imported), options, std::atomic<bool>{false},
        [&](std::vector<Sample> some) { samples.insert(samples.end(), some.begin(), some.end()); });
    ASSERT_TRUE(counts.ok()) << counts.status();
    ASSERT_EQ(samples.size(), 1u);
    EXPECT_EQ(samples[0].token_ids, drawn);
  }
}

}  // namespace
}  // namespace ablate::engine
