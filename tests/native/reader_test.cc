// Compares the logits of growing sequences with those of the whole prefix in float64 over the grid
// of settings, and checks that sequences don't affect each other.
#include "server/engine/native/reader.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/core/checkpoint.h"
#include "server/engine/core/data/random.h"
#include "server/engine/core/supports.h"
#include "server/engine/native/forward.h"
#include "server/engine/torch/model/transformer.h"
#include "server/engine/trainer.h"
#include "tests/native/start.h"
#include "tests/parity/grid.h"

namespace ablate::engine::native {
namespace {

using NextLogits = std::vector<double>;  // logits of a sequence's next token, [V]

struct ReadModel {
  explicit ReadModel(const RunConfig& run, const Kernels& kernels = BestKernels())
      : config(run), layout(MakeLayout(config.model, config.training.rule)) {
    const Start start = StartOf(config, layout);
    values = FloatsOf(start.values);
    buffers = FloatsOf(start.buffers);
    auto made = NativeForward::Make(config, {values, buffers}, Signal::kExact, kernels);
    EXPECT_TRUE(made.ok()) << made.status();
    forward = *std::move(made);
  }

  // Returns token `position` of sequence `s`; many sequences begin alike.
  uint32_t Token(uint32_t s, int position) const {
    const uint64_t drawn = SplitMix64::At(s, static_cast<uint64_t>(position));
    return static_cast<uint32_t>(drawn % static_cast<uint64_t>(config.model.vocabulary));
  }

  RunConfig config;
  ParameterLayout layout;
  std::vector<float> values;
  std::vector<float> buffers;
  std::unique_ptr<NativeForward> forward;
};

// Reads until the context is full; every few positions one in `leaving` sequences leaves. Returns
// the logits at each position by sequence.
std::vector<std::map<uint32_t, NextLogits>> ReadAll(const ReadModel& model,
                                                    std::vector<uint32_t> sequences, int leaving) {
  const auto reader = model.forward->Read(static_cast<int>(sequences.size()));
  const auto vocabulary = static_cast<size_t>(model.config.model.vocabulary);
  std::vector<std::map<uint32_t, NextLogits>> read;
  for (int position = 0; position < model.config.model.context; ++position) {
    std::vector<uint32_t> tokens, kept, staying;
    for (const uint32_t s : sequences) tokens.push_back(model.Token(s, position));
    NextLogits logits(sequences.size() * vocabulary);
    reader->Next(tokens, absl::MakeSpan(logits));
    std::map<uint32_t, NextLogits>& here = read.emplace_back();
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto first = logits.begin() + static_cast<ptrdiff_t>(i * vocabulary);
      here[sequences[i]] = NextLogits(first, first + static_cast<ptrdiff_t>(vocabulary));
      const bool leaves =
          leaving > 0 && position % 2 == 1 &&
          (sequences[i] + static_cast<uint32_t>(position / 2)) % static_cast<uint32_t>(leaving) ==
              0;
      if (leaves && staying.size() + (sequences.size() - i) > 1) continue;
      kept.push_back(static_cast<uint32_t>(i));
      staying.push_back(sequences[i]);
    }
    if (kept.size() < sequences.size()) reader->Keep(kept);
    sequences = staying;
  }
  return read;
}

std::vector<uint32_t> FirstSequences(uint32_t count) {
  std::vector<uint32_t> sequences;
  for (uint32_t s = 0; s < count; ++s) sequences.push_back(s);
  return sequences;
}

// The reference's logits after every prefix of a sequence, in float64: [positions][V].
class Reference {
 public:
  explicit Reference(const ReadModel& model)
      : model_(model), config_(model.config.model), flat_(Exact(model.values)) {
    config_.loss = LossPositions::kLast;
    parameters_ = BindParameters(config_, model.layout, ParameterViews(model.layout, flat_),
                                 Exact(model.buffers));
  }

  at::Tensor After(uint32_t sequence, int length) const {
    const at::NoGradGuard no_grad;
    BatchTensors batch;
    batch.rows = 1;
    batch.length = length;
    std::vector<int64_t> tokens;
    for (int i = 0; i < length; ++i) tokens.push_back(model_.Token(sequence, i));
    batch.tokens = at::tensor(tokens, at::kLong);
    return Logits(config_, parameters_, batch, Pass()).flatten();
  }

 private:
  static at::Tensor Exact(const std::vector<float>& floats) {
    return at::tensor(floats).to(at::kDouble);
  }

  const ReadModel& model_;
  ModelConfig config_;
  at::Tensor flat_;
  ModelParameters parameters_;
};

TEST(NativeReaderTest, HasTheLogitsOfTheWholePrefix) {
  PrepareLaneThread();
  int cases = 0, looks_ahead = 0;
  for (const GridCase& grid : MakeGrid()) {
    const RunConfig config = ConfigOf(grid);
    if (!WhyNoNativePass(config).empty()) continue;
    SCOPED_TRACE(grid.name + " " + ModelJson(config.model));
    const ReadModel model(config);
    const Reference reference(model);
    const auto read = ReadAll(model, FirstSequences(19), 3);
    for (int position = 0; position < config.model.context; position += 3) {
      const auto& here = read[static_cast<size_t>(position)];
      for (const auto* is : {&*here.begin(), &*here.rbegin()}) {
        const at::Tensor exact = reference.After(is->first, position + 1);
        const double error =
            (at::tensor(is->second, at::kDouble) - exact).abs().max().item<double>();
        EXPECT_LE(error, 2e-5 * std::max(1.0, exact.abs().max().item<double>())) << position;
      }
    }
    looks_ahead += config.model.attention.causal ? 0 : 1;
    ++cases;
  }
  EXPECT_GE(cases, 360);
  EXPECT_GE(looks_ahead, 150);
}

TEST(NativeReaderTest, ReadsASequenceTheSameWhateverTheOthersAre) {
  int cases = 0;
  const std::vector<GridCase> grid = MakeGrid();
  for (size_t i = 0; i < grid.size(); i += 5) {
    const RunConfig config = ConfigOf(grid[i]);
    if (!WhyNoNativePass(config).empty()) continue;
    SCOPED_TRACE(grid[i].name + " " + ModelJson(config.model));
    for (const Kernels* kernels : AllKernels()) {
      const ReadModel model(config, *kernels);
      const auto many = ReadAll(model, FirstSequences(70), 2);
      const auto few = ReadAll(model, {3, 17, 64}, 0);
      for (size_t position = 0; position < many.size(); ++position) {
        for (const auto& [sequence, logits] : many[position]) {
          const auto alone = few[position].find(sequence);
          if (alone == few[position].end()) continue;
          EXPECT_EQ(logits, alone->second) << position;
        }
      }
    }
    ++cases;
  }
  EXPECT_GE(cases, 70);
}

}  // namespace
}  // namespace ablate::engine::native
