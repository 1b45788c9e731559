#include "server/engine/analyze/perturbed_scores.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/gradients.h"
#include "server/engine/analyze/target_logits.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

const char* const kEmbedded = "embedding";

// Returns the largest absolute value of each sequence, [rows, 1]; NaN if a value is NaN.
at::Tensor LargestOf(const at::Tensor& gradient, int64_t rows) {
  return gradient.reshape({rows, -1}).abs().amax(1, true);
}

}  // namespace

TargetScores ScoresOf(const AnalysisContext& analysis, const SubjectModel& subject,
                      const TokenBatch& batch, const at::Tensor& step) {
  const at::NoGradGuard no_grad;
  const BatchTensors tensors = BatchOf(subject, batch);
  const CountedTargets counted = CountedTargetsOf(tensors);
  std::vector<std::pair<std::string, Hook>> moves;
  if (step.defined()) moves.emplace_back(kEmbedded, Add(step.to(subject.values.options())));
  const Hooks hooks = HooksOf(analysis, subject.config.model, std::move(moves));
  const at::Tensor all =
      Logits(subject.config.model, subject.parameters, tensors, {.hooks = &hooks});  // [N, V]

  const at::TensorOptions exact = all.options().dtype(at::kDouble);
  TargetScores scores = {at::zeros({all.size(0)}, exact), tensors.targets,
                         at::zeros_like(tensors.targets), at::zeros({all.size(0)}, exact)};
  const auto fill = [&](int64_t first, int64_t count) {
    CheckStop(analysis);
    const at::Tensor places = counted.places.narrow(0, first, count);
    const at::Tensor logits = all.index_select(0, places).to(at::kDouble);
    const at::Tensor targets = counted.targets.narrow(0, first, count);
    scores.losses.index_copy_(0, places, LossesOf(LogProbabilities(logits), targets));
    scores.predicted.index_copy_(0, places, logits.argmax(-1));
  };
  VisitTargetChunks(counted.targets.numel(), subject.config.model.vocabulary, fill);
  scores.counted.index_fill_(0, counted.places, 1);
  return {OnHost(scores.losses), OnHost(scores.targets), OnHost(scores.predicted),
          OnHost(scores.counted)};
}

double EmbeddingRms(const SubjectModel& subject, const std::vector<TokenBatch>& batches) {
  const at::NoGradGuard no_grad;
  constexpr int64_t kTogether = 4096;
  const at::Tensor& table = subject.parameters.token_embedding;  // [V, d]
  std::vector<double> times(static_cast<size_t>(table.size(0)), 0);
  double read = 0;
  for (const TokenBatch& batch : batches) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      const auto first = batch.inputs.begin() + row * batch.length;
      const int64_t length = batch.lengths[static_cast<size_t>(row)];
      std::for_each(first, first + length, [&](int64_t token) { ++times[token]; });
      read += static_cast<double>(length);
    }
  }
  double sum = 0;
  for (int64_t first = 0; first < table.size(0); first += kTogether) {
    const int64_t count = std::min(kTogether, table.size(0) - first);
    const at::Tensor squares = OnHost(table.narrow(0, first, count).to(at::kDouble).pow(2).sum(1))
                                   .contiguous();  // [count]
    const double* const square = squares.const_data_ptr<double>();
    for (int64_t i = 0; i < count; ++i) {
      const double often = times[static_cast<size_t>(first + i)];
      if (often > 0) sum += often * square[i];
    }
  }
  return std::sqrt(sum / (read * static_cast<double>(table.size(1))));
}

at::Tensor EmbeddingGradient(const AnalysisContext& analysis, const SubjectModel& subject,
                             const TokenBatch& batch) {
  WantedGradients wanted;
  wanted.hook_points = {kEmbedded};
  return GradientsOf(analysis, subject, batch, {}, std::move(wanted)).hook_points[0];
}

at::Tensor SignOf(const at::Tensor& gradient) {
  return at::where(gradient.isfinite(), gradient.sign(), std::numeric_limits<double>::quiet_NaN());
}

at::Tensor UnitOf(const at::Tensor& gradient, int64_t rows) {
  // Squares of values that are divided by the largest one neither overflow nor vanish.
  const at::Tensor largest = LargestOf(gradient, rows);
  const at::Tensor scaled = gradient.reshape({rows, -1}) / largest;
  const at::Tensor unit = scaled / scaled.norm(2, {1}, true);
  return at::where(largest.eq(0), 0.0, unit).view(gradient.sizes());
}

double CountMoved(const at::Tensor& gradient, int64_t rows) {
  return LargestOf(gradient, rows).ne(0).sum().item<double>();
}

at::Tensor EmbeddingNoise(const AnalysisContext& analysis, const TokenBatch& batch, int64_t width,
                          uint32_t draw, int64_t first_sequence) {
  at::Tensor noise = at::zeros({batch.rows, batch.length * width}, at::kDouble);
  for (int64_t row = 0; row < batch.rows; ++row) {
    const uint64_t seed =
        DrawSeed(analysis, absl::StrCat("robustness/noise/", draw, "/", first_sequence + row));
    const int64_t size = batch.lengths[static_cast<size_t>(row)] * width;
    noise[row].narrow(0, 0, size).copy_(NormalSequence(seed, size));
  }
  return noise.view({batch.rows * batch.length, width});
}

at::Tensor CountClasses(const TargetScores& scores, int64_t vocabulary) {
  const at::Tensor correct = scores.counted * scores.predicted.eq(scores.targets);
  return at::stack({at::bincount(scores.targets, scores.counted, vocabulary),
                    at::bincount(scores.predicted, scores.counted, vocabulary),
                    at::bincount(scores.targets, correct, vocabulary)});
}

double MacroF1(const at::Tensor& counts) {
  const at::Tensor either = counts[0] + counts[1];
  const at::Tensor f1 = at::where(either.gt(0), 2 * counts[2] / either, 0.0);
  return f1.sum().item<double>() / either.gt(0).sum().item<double>();
}

}  // namespace ablate::engine
