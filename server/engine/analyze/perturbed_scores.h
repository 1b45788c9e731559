// Scores the targets of a batch, with the embedding as it is or perturbed.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_PERTURBED_SCORES_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_PERTURBED_SCORES_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "server/engine/analyze/analysis_context.h"

namespace ablate::engine {

// The values of each of a batch's N targets; 0 where a target is ignored.
struct TargetScores {
  at::Tensor losses;     // −ln p of the target in nats, [N] float64
  at::Tensor targets;    // [N] int64
  at::Tensor predicted;  // the most likely token, [N] int64
  at::Tensor counted;    // 1 or 0, [N] float64
};

// Returns the scores of an evaluation pass in which `step` [B·T, d] is added to the embedding. An
// undefined step leaves it as it is; 0 gives the same bits.
TargetScores ScoresOf(const AnalysisContext& analysis, const SubjectModel& subject,
                      const TokenBatch& batch, const at::Tensor& step = {});

// Returns the root mean square of the values of token embeddings, without positions, over all
// tokens of the batches. It doesn't depend on how they are batched.
double EmbeddingRms(const SubjectModel& subject, const std::vector<TokenBatch>& batches);

// Returns the exact gradient of the loss with respect to the embedding, [B·T, d] float64, up to a
// factor that all values share. Rows of a batch don't depend on each other.
at::Tensor EmbeddingGradient(const AnalysisContext& analysis, const SubjectModel& subject,
                             const TokenBatch& batch);

// Returns the sign of each value; NaN where a value isn't finite.
at::Tensor SignOf(const at::Tensor& gradient);
// Returns the gradient [B·T, d] of each of `rows` sequences divided by its norm over all of its
// tokens; a gradient of 0 stays 0.
at::Tensor UnitOf(const at::Tensor& gradient, int64_t rows);
// Returns the number of sequences whose gradient isn't 0.
double CountMoved(const at::Tensor& gradient, int64_t rows);

// Returns standard normals for the embedding of a batch, [B·T, d] float64; 0 at padding. Those of a
// sequence depend on the analysis's seed, the draw and the sequence's number: `first_sequence` is
// the number of the first row.
at::Tensor EmbeddingNoise(const AnalysisContext& analysis, const TokenBatch& batch, int64_t width,
                          uint32_t draw, int64_t first_sequence);

// Returns the number of targets, of predictions and of correct predictions of each class, [3, V]
// float64.
at::Tensor CountClasses(const TargetScores& scores, int64_t vocabulary);
// Returns the mean of F1 = 2·correct/(targets + predictions) over the classes with a target or a
// prediction; NaN if there is none.
double MacroF1(const at::Tensor& counts);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_PERTURBED_SCORES_H_
