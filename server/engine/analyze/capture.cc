// Captures the activations at hook points unchanged, for use in other programs.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/core/hook_points.h"

namespace ablate::engine {
namespace {

// Returns true if a hook point has a matrix of queries and keys for each head, instead of features
// for each token.
bool HasHeadMatrices(const std::string& hook_point, const ModelConfig& model) {
  const std::vector<ModelHookPoint> places = HookPointsOf(model);
  return std::any_of(places.begin(), places.end(), [&](const ModelHookPoint& place) {
    const bool matrices = place.hook_point == HookPoint::kAttentionScores ||
                          place.hook_point == HookPoint::kAttentionWeights;
    return matrices && place.name == hook_point;
  });
}

class Capture : public Computation {
 public:
  Capture(const CaptureOptions& options, const AnalysisContext& analysis)
      : hook_points_(options.sites),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        batches_(analysis, subject_, hook_points_) {
    const std::vector<at::Tensor>& first = batches_.first();
    for (size_t i = 0; i < hook_points_.size(); ++i) {
      matrices_.push_back(HasHeadMatrices(hook_points_[i], subject_.config.model));
      std::vector<int64_t> shape = Shaped(i, first[i], analysis.batches[0]).sizes().vec();
      shape[0] = matrices_[i] ? Sequences() : static_cast<int64_t>(analysis.tokens);
      captured_.push_back(at::zeros(shape, first[i].scalar_type()));
    }
  }

  int64_t pieces() const override { return analysis_.batch_count(); }

  void Add(int64_t piece) override {
    int64_t tokens = 0, sequences = 0;  // before this batch
    for (int64_t i = 0; i < piece; ++i) {
      tokens += static_cast<int64_t>(analysis_.Batch(i).tokens());
      sequences += analysis_.Batch(i).rows;
    }
    const std::vector<at::Tensor> values = batches_.Take(piece);
    for (size_t i = 0; i < hook_points_.size(); ++i) {
      const at::Tensor from = Shaped(i, values[i], analysis_.Batch(piece));
      captured_[i].narrow(0, matrices_[i] ? sequences : tokens, from.size(0)).copy_(from);
    }
  }

  std::vector<StateTensor> State() override {
    std::vector<StateTensor> state;
    for (size_t i = 0; i < hook_points_.size(); ++i)
      state.push_back({hook_points_[i], captured_[i]});
    return state;
  }

  AnalysisResult Finish() override {
    AnalysisResult result;
    for (size_t i = 0; i < hook_points_.size(); ++i) {
      const std::vector<std::string> axes =
          matrices_[i] ? std::vector<std::string>{"sequence", "head", "query", "key"}
                       : std::vector<std::string>{"token", "feature"};
      result.arrays.push_back(ArrayOf(hook_points_[i], axes, captured_[i]));
    }
    std::vector<int64_t> tokens, lengths;
    for (const TokenBatch& batch : analysis_.batches) {
      tokens.insert(tokens.end(), batch.inputs.begin(), batch.inputs.end());
      lengths.insert(lengths.end(), batch.lengths.begin(), batch.lengths.end());
    }
    result.arrays.push_back(ArrayOf("tokens", {"token"}, at::tensor(tokens, at::kLong)));
    result.arrays.push_back(ArrayOf("lengths", {"sequence"}, at::tensor(lengths, at::kLong)));
    result.notes.push_back(
        absl::StrCat("of ", tokens.size(), " tokens in ", lengths.size(), " sequences"));
    return result;
  }

 private:
  int64_t Sequences() const {
    int64_t sequences = 0;
    for (const TokenBatch& batch : analysis_.batches) sequences += batch.rows;
    return sequences;
  }

  // Returns [n, features], or [B, H, T, T].
  at::Tensor Shaped(size_t hook_point, const at::Tensor& values, const TokenBatch& batch) const {
    if (!matrices_[hook_point]) return values;
    return values.view({batch.rows, subject_.config.model.heads, batch.length, batch.length});
  }

  const std::vector<std::string> hook_points_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  CapturedBatches batches_;
  std::vector<bool> matrices_;        // by hook point
  std::vector<at::Tensor> captured_;  // in the subject's precision
};

}  // namespace

MadeComputation Compute(const CaptureOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<Capture>(options, analysis);
}

}  // namespace ablate::engine
