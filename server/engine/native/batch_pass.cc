#include "server/engine/native/batch_pass.h"

#include "server/engine/native/prefix_batches.h"

namespace ablate::engine::native {
namespace {

// Columns of a prefix-shared batch that are computed together.
constexpr int64_t kPrefixColumnsTogether = 192;

LossSums operator+(const LossSums& a, const LossSums& b) {
  return {a.loss + b.loss, a.correct + b.correct, a.tokens + b.tokens};
}

}  // namespace

BatchPass::BatchPass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
                     const Kernels& kernels)
    : config_(config) {
  if (HasAbsorbedPass(config)) {
    absorbed_.emplace(config, pass, rule, kernels);
  } else {
    sequence_.emplace(config, pass, rule, kernels);
  }
}

template <typename Function>
LossSums BatchPass::ForEach(const TokenBatch& batch, int64_t first, int64_t count, int64_t together,
                            const Function& function) {
  LossSums all;
  if (absorbed_.has_value()) {
    for (const LastColumns& columns : CutIntoLastColumns(batch, first, count, together)) {
      all = all + function(*absorbed_, columns);
    }
  } else {
    for (const Columns& columns : CutIntoColumns(batch, first, count, config_.loss, together)) {
      all = all + function(*sequence_, columns);
    }
  }
  return all;
}

double BatchPass::AddGradient(const Model& model, const TokenBatch& batch, double smoothing,
                              double z_loss, int64_t micro_batches) {
  const auto targets = static_cast<double>(TargetsOf(batch));
  const Objective objective = {static_cast<float>(smoothing), static_cast<float>(1 / targets),
                               static_cast<float>(z_loss)};
  // A norm that reads the batch needs all of it.
  const int64_t together =
      config_.norm.kind == NormKind::kBatch ? batch.rows * batch.length : kTogether;
  const int64_t rows = batch.rows / micro_batches;
  double loss = 0;
  for (int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    const auto add = [&](auto& pass, const auto& columns) {
      return pass.AddGradient(model, columns, objective);
    };
    loss += ForEach(batch, micro_batch * rows, rows, together, add).loss;
  }
  return loss / targets;
}

LossSums BatchPass::Score(const Model& model, const TokenBatch& batch,
                          std::vector<Columns>* prefix_batches) {
  if (sequence_.has_value() && FitsPrefixBatches(config_, batch)) {
    std::vector<Columns> own;
    if (prefix_batches == nullptr) prefix_batches = &own;
    if (prefix_batches->empty())
      *prefix_batches = CutIntoPrefixBatches(config_, batch, kPrefixColumnsTogether);
    LossSums all;
    for (const Columns& columns : *prefix_batches) {
      all = all + sequence_->Score(model, columns);
    }
    return all;
  }
  return ForEach(batch, 0, batch.rows, kTogether,
                 [&](auto& pass, const auto& columns) { return pass.Score(model, columns); });
}

}  // namespace ablate::engine::native
