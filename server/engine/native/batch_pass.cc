#include "server/engine/native/batch_pass.h"

#include "server/engine/native/columns.h"

namespace ablate::engine::native {
namespace {

// Tokens, or sequences of a query pass, that are worked on together: as many as fill the widest
// tile of a matrix product.
constexpr int64_t kTogether = 64;

}  // namespace

BatchPass::BatchPass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
                     const Kernels& kernels)
    : config_(config) {
  if (HasQueryPass(config)) {
    query_.emplace(config, pass, rule, kernels);
  } else {
    sequence_.emplace(config, pass, rule, kernels);
  }
}

template <typename Function>
LossSums BatchPass::ForEach(const TokenBatch& batch, int64_t first, int64_t count, int64_t together,
                            const Function& function) {
  LossSums all;
  const auto add = [&all](const LossSums& sums) {
    all = {all.loss + sums.loss, all.hits + sums.hits, all.tokens + sums.tokens};
  };
  if (query_.has_value()) {
    for (const QueryColumns& columns : CutIntoQueries(batch, first, count, together)) {
      add(function(*query_, columns));
    }
  } else {
    for (const Columns& columns : CutIntoColumns(batch, first, count, config_.loss, together)) {
      add(function(*sequence_, columns));
    }
  }
  return all;
}

LossSums BatchPass::AddGradient(const Model& model, const TokenBatch& batch, int64_t first,
                                int64_t count, const Objective& objective) {
  // A norm that reads a batch needs all of it.
  const int64_t together =
      config_.norm.kind == NormKind::kBatch ? batch.rows * batch.length : kTogether;
  return ForEach(batch, first, count, together, [&](auto& pass, const auto& columns) {
    return pass.AddGradient(model, columns, objective);
  });
}

LossSums BatchPass::Score(const Model& model, const TokenBatch& batch) {
  return ForEach(batch, 0, batch.rows, kTogether,
                 [&](auto& pass, const auto& columns) { return pass.Score(model, columns); });
}

}  // namespace ablate::engine::native
