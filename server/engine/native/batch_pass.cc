#include "server/engine/native/batch_pass.h"

#include "server/engine/native/strips.h"

namespace ablate::engine::native {
namespace {

// Columns of a prefix-shared batch that are computed together.
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

double BatchPass::AddGradient(const Model& model, const TokenBatch& batch, double smoothing,
                              int64_t parts) {
  const auto targets = static_cast<double>(TargetsOf(batch));
  const Objective objective = {static_cast<float>(smoothing), static_cast<float>(1 / targets)};
  // A norm that reads the batch needs all of it.
  const int64_t together =
      config_.norm.kind == NormKind::kBatch ? batch.rows * batch.length : kTogether;
  const int64_t rows = batch.rows / parts;
  double loss = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const auto add = [&](auto& pass, const auto& columns) {
      return pass.AddGradient(model, columns, objective);
    };
    loss += ForEach(batch, part * rows, rows, together, add).loss;
  }
  return loss / targets;
}

LossSums BatchPass::Score(const Model& model, const TokenBatch& batch,
                          std::vector<Columns>* strips) {
  if (sequence_.has_value() && FitsStrips(config_, batch)) {
    std::vector<Columns> own;
    if (strips == nullptr) strips = &own;
    if (strips->empty()) *strips = CutIntoStrips(config_, batch, kStripsTogether);
    LossSums all;
    for (const Columns& columns : *strips) {
      all = all + sequence_->Score(model, columns);
    }
    return all;
  }
  return ForEach(batch, 0, batch.rows, kTogether,
                 [&](auto& pass, const auto& columns) { return pass.Score(model, columns); });
}

}  // namespace ablate::engine::native
