#include "server/engine/native/batch_pass.h"

#include "server/engine/native/columns.h"
#include "server/engine/native/strips.h"

namespace ablate::engine::native {
namespace {

// Tokens, or sequences of a query pass, that are worked on together: as many as fill the widest
// tile of a matrix product.
constexpr int64_t kTogether = 64;
// Columns of strips that are.
constexpr int64_t kStripsTogether = 192;

LossSums operator+(const LossSums& a, const LossSums& b) {
  return {a.loss + b.loss, a.hits + b.hits, a.tokens + b.tokens};
}

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
  if (query_.has_value()) {
    for (const QueryColumns& columns : CutIntoQueries(batch, first, count, together)) {
      all = all + function(*query_, columns);
    }
  } else {
    for (const Columns& columns : CutIntoColumns(batch, first, count, config_.loss, together)) {
      all = all + function(*sequence_, columns);
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
  if (sequence_.has_value() && FitsStrips(config_, batch)) {
    LossSums all;
    for (const Columns& columns : CutIntoStrips(config_, batch, kStripsTogether)) {
      all = all + sequence_->Score(model, columns);
    }
    return all;
  }
  return ForEach(batch, 0, batch.rows, kTogether,
                 [&](auto& pass, const auto& columns) { return pass.Score(model, columns); });
}

}  // namespace ablate::engine::native
