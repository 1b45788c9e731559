// Runs the native backend alone, without LibTorch, so that sanitizers can check its passes: over
// the grid of settings on every target of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/supports.h"
#include "server/engine/native/native_backend.h"
#include "tests/parity/grid.h"

namespace ablate::engine {
namespace {

native::NativeStart RandomStart(const RunConfig& config) {
  const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
  std::mt19937 generator(config.seed);
  std::normal_distribution<float> normal(0, 0.1f);
  native::NativeStart start;
  start.values.resize(static_cast<size_t>(layout.size));
  for (float& value : start.values) value = normal(generator);
  start.buffers.assign(static_cast<size_t>(layout.buffer_size), 1.0f);
  return start;
}

// Returns all bytes after three updates and three evaluations.
std::string Trained(const RunConfig& config, const std::vector<TokenBatch>& batches,
                    const native::Kernels& kernels) {
  const auto backend = native::MakeNativeBackend(config, RandomStart(config), kernels);
  std::string bytes;
  for (uint32_t step = 0; step < 3; ++step) {
    const auto results = backend->Step({batches[step], step, 1e-3});
    EXPECT_TRUE(results.ok()) << results.status();
    absl::StrAppend(&bytes, results->loss, " ", results->gradient_norm, " ");
  }
  const auto evaluate = [&](Evaluated what, size_t index, const TokenBatch& batch) {
    EvaluationSums sums = {index, 0, 0, 0};
    EXPECT_TRUE(backend->Evaluate(what, {&batch, 1}, &sums).ok());
    // The sign of a NaN has no meaning.
    if (std::isnan(sums.loss)) sums.loss = std::abs(sums.loss);
    bytes.append(reinterpret_cast<const char*>(&sums.loss), sizeof(sums.loss));
  };
  evaluate(Evaluated::kCurrent, 0, batches.front());
  // Many rows of one length are evaluated as prefix-shared batches.
  evaluate(Evaluated::kCurrent, 1, ShortRows(config.model, 37, std::min(config.model.context, 7)));
  if (config.training.ema > 0) evaluate(Evaluated::kEmaWeights, 0, batches.front());
  const auto tensors = backend->Tensors();
  absl::StrAppend(&bytes, tensors->parameters, tensors->buffers);
  for (const NamedBytes& slot : tensors->slots) absl::StrAppend(&bytes, slot.bytes);
  return bytes;
}

TEST(NativeRunTest, EvaluatesAgainAsABackendThatHasNotBefore) {
  const std::vector<GridCase> grid = MakeGrid();
  int cases = 0;
  for (size_t i = 0; i < grid.size(); i += 9) {
    const RunConfig config = ConfigOf(grid[i]);
    if (!WhyNotNative(config).empty()) continue;
    SCOPED_TRACE(grid[i].name);
    const int length = std::min(config.model.context, 7);
    const std::vector<TokenBatch> held_out = {ShortRows(config.model, 37, length),
                                              ShortRows(config.model, 20, length)};
    const auto evaluate = [&](Backend& backend, Evaluated what, absl::Span<const TokenBatch> all) {
      EvaluationSums sums;
      for (const TokenBatch& batch : all) {
        EXPECT_TRUE(backend.Evaluate(what, {&batch, 1}, &sums).ok());
      }
      return sums.loss;
    };
    const auto start = [&] {
      return native::MakeNativeBackend(config, RandomStart(config), native::BestKernels());
    };
    const auto step = [&](Backend& backend) {
      const TokenBatch& batch = grid[i].batches.front();
      EXPECT_TRUE(backend.Step({batch, 0, 1e-2}).ok());
    };
    const auto used = start();
    const double before = evaluate(*used, Evaluated::kCurrent, held_out);
    step(*used);
    EXPECT_NE(evaluate(*used, Evaluated::kCurrent, held_out), before);
    for (const Evaluated what : {Evaluated::kCurrent, Evaluated::kEmaWeights}) {
      if (what == Evaluated::kEmaWeights && config.training.ema <= 0) continue;
      double expected = 0;
      for (const TokenBatch& batch : held_out) {
        const auto fresh = start();
        step(*fresh);
        expected += evaluate(*fresh, what, {batch});
      }
      EXPECT_EQ(evaluate(*used, what, held_out), expected);
    }
    ++cases;
  }
  EXPECT_GE(cases, 20);
}

TEST(NativeRunTest, HasTheSameBitsOnEveryFusedTarget) {
  const std::vector<GridCase> grid = MakeGrid();
  int compared = 0;
  for (size_t i = 0; i < grid.size(); i += 9) {
    const RunConfig config = ConfigOf(grid[i]);
    if (!WhyNotNative(config).empty()) continue;
    SCOPED_TRACE(grid[i].name);
    const auto& batches = grid[i].batches;
    std::string first;
    for (const native::Kernels* kernels : native::AllKernels()) {
      const std::string bytes = Trained(config, batches, *kernels);
      if (!kernels->fused) continue;
      if (!first.empty()) {
        EXPECT_TRUE(bytes == first) << kernels->target;
        ++compared;
      }
      first = bytes;
    }
  }
  if (compared == 0) GTEST_SKIP() << "skipped: this machine has fewer than two of them";
}

}  // namespace
}  // namespace ablate::engine
