// Summarises scale and shape of the activations at hook points.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/value_summary.h"

namespace ablate::engine {
namespace {

std::vector<ValuePlace> ActivationPlaces(const CapturedBatches& captured, uint64_t tokens) {
  std::vector<ValuePlace> places;
  for (size_t i = 0; i < captured.hook_points().size(); ++i) {
    const int64_t features = captured.first()[i].size(-1);
    places.push_back(
        {captured.hook_points()[i], static_cast<int64_t>(tokens) * features, features});
  }
  return places;
}

class Activations : public Computation {
 public:
  Activations(const ActivationsOptions& options, const AnalysisContext& analysis)
      : analysis_(analysis),
        captured_(analysis, analysis.subjects[0],
                  HookPointsOr(options.sites, analysis.subjects[0].config.model)),
        summaries_(ActivationPlaces(captured_, analysis.tokens), options.histograms,
                   analysis.subjects[0].values.scalar_type()) {}

  int64_t pieces() const override { return summaries_.passes() * analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const std::vector<at::Tensor> rows = captured_.TakeRows(piece % analysis_.batch_count());
    for (size_t i = 0; i < rows.size(); ++i) {
      summaries_.Add(piece / analysis_.batch_count(), i, rows[i]);
    }
  }

  std::vector<StateTensor> State() override { return summaries_.State(); }

  AnalysisResult Finish() override {
    AnalysisResult result = summaries_.Result();
    result.notes.push_back(absl::StrCat("of ", analysis_.tokens, " tokens"));
    result.notes.push_back(
        absl::StrCat("places in their order: ", absl::StrJoin(captured_.hook_points(), ", ")));
    return result;
  }

 private:
  const AnalysisContext& analysis_;
  CapturedBatches captured_;
  ValueSummaries summaries_;
};

}  // namespace

MadeComputation Compute(const ActivationsOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<Activations>(options, analysis);
}

}  // namespace ablate::engine
