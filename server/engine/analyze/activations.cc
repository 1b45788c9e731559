// Summarises scale and shape of the activations at hook points.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/value_summary.h"

namespace ablate::engine {
namespace {

std::vector<ValuePlace> ActivationPlaces(const std::vector<std::string>& hook_points,
                                         const AnalysisContext& analysis) {
  const std::vector<at::Tensor> rows =
      CaptureRows(analysis, analysis.subjects[0], analysis.batches[0], hook_points);
  std::vector<ValuePlace> places;
  for (size_t i = 0; i < hook_points.size(); ++i) {
    const int64_t features = rows[i].size(1);
    places.push_back({hook_points[i], static_cast<int64_t>(analysis.tokens) * features, features});
  }
  return places;
}

class Activations : public Computation {
 public:
  Activations(const ActivationsOptions& options, const AnalysisContext& analysis)
      : hook_points_(HookPointsOr(options.sites, analysis.subjects[0].config.model)),
        analysis_(analysis),
        summaries_(ActivationPlaces(hook_points_, analysis), options.histograms,
                   analysis.subjects[0].values.scalar_type()) {}

  int64_t pieces() const override { return summaries_.passes() * analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const std::vector<at::Tensor> rows =
        CaptureRows(analysis_, analysis_.subjects[0],
                    analysis_.Batch(piece % analysis_.batch_count()), hook_points_);
    for (size_t i = 0; i < hook_points_.size(); ++i)
      summaries_.Add(piece / analysis_.batch_count(), i, rows[i]);
  }

  std::vector<StateTensor> State() override { return summaries_.State(); }

  AnalysisResult Finish() override {
    AnalysisResult result = summaries_.Result();
    result.notes.push_back(absl::StrCat("of ", analysis_.tokens, " tokens"));
    result.notes.push_back(
        absl::StrCat("places in their order: ", absl::StrJoin(hook_points_, ", ")));
    return result;
  }

 private:
  const std::vector<std::string> hook_points_;
  const AnalysisContext& analysis_;
  ValueSummaries summaries_;
};

}  // namespace

MadeComputation Compute(const ActivationsOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<Activations>(options, analysis);
}

}  // namespace ablate::engine
