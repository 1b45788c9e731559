// Summarises scale and shape of the activations at sites.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/value_summary.h"

namespace ablate::engine {
namespace {

std::vector<ValuePlace> ActivationPlaces(const std::vector<std::string>& sites,
                                         const Material& material) {
  const std::vector<at::Tensor> rows =
      CaptureRows(material, material.subjects[0], material.batches[0], sites);
  std::vector<ValuePlace> places;
  for (size_t i = 0; i < sites.size(); ++i) {
    const int64_t features = rows[i].size(1);
    places.push_back({sites[i], static_cast<int64_t>(material.tokens) * features, features});
  }
  return places;
}

class Activations : public Computation {
 public:
  Activations(const ActivationsOptions& options, const Material& material)
      : sites_(SitesOr(options.sites, material.subjects[0].config.model)),
        material_(material),
        summaries_(ActivationPlaces(sites_, material), options.histograms,
                   material.subjects[0].values.scalar_type()) {}

  int64_t pieces() const override { return summaries_.passes() * material_.batch_count(); }

  void Add(int64_t piece) override {
    const std::vector<at::Tensor> rows = CaptureRows(
        material_, material_.subjects[0], material_.Batch(piece % material_.batch_count()), sites_);
    for (size_t i = 0; i < sites_.size(); ++i)
      summaries_.Add(piece / material_.batch_count(), i, rows[i]);
  }

  std::vector<StateTensor> State() override { return summaries_.State(); }

  AnalysisResult Finish() override {
    AnalysisResult result = summaries_.Result();
    result.notes.push_back(absl::StrCat("of ", material_.tokens, " tokens"));
    result.notes.push_back(absl::StrCat("places in their order: ", absl::StrJoin(sites_, ", ")));
    return result;
  }

 private:
  const std::vector<std::string> sites_;
  const Material& material_;
  ValueSummaries summaries_;
};

}  // namespace

MadeComputation Compute(const ActivationsOptions& options, const Material& material) {
  return std::make_unique<Activations>(options, material);
}

}  // namespace ablate::engine
