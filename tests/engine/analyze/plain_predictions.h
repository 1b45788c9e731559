// Computes the predictions of a model at every target that counts, sequence by sequence, by
// plain_model.h.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_PREDICTIONS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_PREDICTIONS_H_

#include <vector>

#include "server/engine/analyze/analysis_context.h"
#include "tests/engine/analyze/plain_model.h"

namespace ablate::engine {

// The predictions of one sequence.
struct PlainSequence {
  std::vector<int64_t> positions;  // of the predictions
  std::vector<int64_t> targets;
  // ln p of every token by depth, [predictions, V] float64: of the embedding, of each block, and so
  // of the whole model at the end.
  std::vector<at::Tensor> by_depth;
};

// Returns the predictions of all sequences with a target. With `cached` the final norm divides by
// the deviation of the last block's output.
inline std::vector<PlainSequence> PlainSequences(const AnalysisRequest& request, bool cached) {
  const AnalysisContext analysis = *ReadAnalysisContext(request);
  const SubjectModel& subject = analysis.subjects[0];
  const PlainModel model(subject.config, subject.values, subject.buffers);
  std::vector<PlainSequence> sequences;
  for (const TokenBatch& batch : analysis.batches) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      PlainSequence sequence;
      for (const auto& [position, target] : model.TargetsOf(batch, row)) {
        sequence.positions.push_back(position);
        sequence.targets.push_back(target);
      }
      if (sequence.targets.empty()) continue;
      const std::vector<at::Tensor> streams = model.Streams(batch.Rows(row, 1).inputs);
      for (const at::Tensor& x : streams) {
        const at::Tensor logits = model.LogitsOf(x, cached ? streams.back() : x).to(at::kDouble);
        const at::Tensor log_p = logits - logits.logsumexp(-1, true);
        sequence.by_depth.push_back(log_p.index_select(0, at::tensor(sequence.positions)));
      }
      sequences.push_back(std::move(sequence));
    }
  }
  return sequences;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_PREDICTIONS_H_
