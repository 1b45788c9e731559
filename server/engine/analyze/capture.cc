// Captures the activations at sites unchanged, for use in other programs.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/model/sites.h"

namespace ablate::engine {
namespace {

// Returns true if a site has a matrix of queries and keys for each head, instead of features for
// each token.
bool HasHeadMatrices(const std::string& site, const ModelConfig& model) {
  const std::vector<SitePlace> places = SitesOf(model);
  return std::any_of(places.begin(), places.end(), [&](const SitePlace& place) {
    const bool matrices =
        place.site == Site::kAttentionScores || place.site == Site::kAttentionWeights;
    return matrices && place.name == site;
  });
}

class Capture : public Computation {
 public:
  Capture(const CaptureOptions& options, const Material& material)
      : sites_(options.sites), material_(material), subject_(material.subjects[0]) {
    const std::vector<at::Tensor> first =
        CaptureSites(material, subject_, material.batches[0], sites_);
    for (size_t i = 0; i < sites_.size(); ++i) {
      matrices_.push_back(HasHeadMatrices(sites_[i], subject_.config.model));
      std::vector<int64_t> shape = Shaped(i, first[i], material.batches[0]).sizes().vec();
      shape[0] = matrices_[i] ? Sequences() : static_cast<int64_t>(material.tokens);
      captured_.push_back(at::zeros(shape, first[i].options()));
    }
  }

  int64_t pieces() const override { return material_.batch_count(); }

  void Add(int64_t piece) override {
    int64_t tokens = 0, sequences = 0;  // before this batch
    for (int64_t i = 0; i < piece; ++i) {
      tokens += static_cast<int64_t>(material_.Batch(i).tokens());
      sequences += material_.Batch(i).rows;
    }
    const std::vector<at::Tensor> values =
        CaptureSites(material_, subject_, material_.Batch(piece), sites_);
    for (size_t i = 0; i < sites_.size(); ++i) {
      const at::Tensor from = Shaped(i, values[i], material_.Batch(piece));
      captured_[i].narrow(0, matrices_[i] ? sequences : tokens, from.size(0)).copy_(from);
    }
  }

  std::vector<StateTensor> State() override {
    std::vector<StateTensor> state;
    for (size_t i = 0; i < sites_.size(); ++i) state.push_back({sites_[i], captured_[i]});
    return state;
  }

  AnalysisResult Finish() override {
    AnalysisResult result;
    for (size_t i = 0; i < sites_.size(); ++i) {
      const std::vector<std::string> axes =
          matrices_[i] ? std::vector<std::string>{"sequence", "head", "query", "key"}
                       : std::vector<std::string>{"token", "feature"};
      result.arrays.push_back(ArrayOf(sites_[i], axes, captured_[i]));
    }
    std::vector<int64_t> tokens, lengths;
    for (const TokenBatch& batch : material_.batches) {
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
    for (const TokenBatch& batch : material_.batches) sequences += batch.rows;
    return sequences;
  }

  // Returns [n, features], or [B, H, T, T].
  at::Tensor Shaped(size_t site, const at::Tensor& values, const TokenBatch& batch) const {
    if (!matrices_[site]) return values;
    return values.view({batch.rows, subject_.config.model.heads, batch.length, batch.length});
  }

  const std::vector<std::string> sites_;
  const Material& material_;
  const SubjectModel& subject_;
  std::vector<bool> matrices_;        // by site
  std::vector<at::Tensor> captured_;  // in the subject's precision
};

}  // namespace

MadeComputation Compute(const CaptureOptions& options, const Material& material) {
  return std::make_unique<Capture>(options, material);
}

}  // namespace ablate::engine
