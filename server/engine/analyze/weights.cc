// Summarises scale and shape of each parameter tensor.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/value_summary.h"

namespace ablate::engine {
namespace {

// Largest number of values per piece.
constexpr int64_t kWeightsTogether = int64_t{1} << 20;

// Elements of one parameter.
struct WeightsPart {
  size_t parameter = 0;
  int64_t first = 0;  // in the flat buffer
  int64_t count = 0;
};

std::vector<ValuePlace> WeightPlaces(const ParameterLayout& layout) {
  std::vector<ValuePlace> places;
  for (const ParameterInfo& parameter : layout.parameters) {
    places.push_back({parameter.name, parameter.size, 0});
  }
  return places;
}

class Weights : public Computation {
 public:
  Weights(const WeightsOptions& options, const SubjectModel& subject)
      : subject_(subject),
        summaries_(WeightPlaces(subject.layout), options.histograms, subject.values.scalar_type()) {
    const std::vector<ParameterInfo>& parameters = subject.layout.parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      for (int64_t first = 0; first < parameters[i].size; first += kWeightsTogether) {
        parts_.push_back({i, parameters[i].offset + first,
                          std::min(kWeightsTogether, parameters[i].size - first)});
      }
    }
  }

  int64_t pieces() const override { return summaries_.passes() * Parts(); }

  void Add(int64_t piece) override {
    const WeightsPart& part = parts_[static_cast<size_t>(piece % Parts())];
    summaries_.Add(piece / Parts(), part.parameter,
                   subject_.values.narrow(0, part.first, part.count));
  }

  std::vector<StateTensor> State() override { return summaries_.State(); }

  AnalysisResult Finish() override {
    AnalysisResult result = summaries_.Result();
    std::vector<std::string> names;
    for (const ParameterInfo& parameter : subject_.layout.parameters) {
      names.push_back(parameter.name);
    }
    result.notes.push_back(absl::StrCat("of ", subject_.layout.size, " parameters"));
    result.notes.push_back(absl::StrCat("places in their order: ", absl::StrJoin(names, ", ")));
    return result;
  }

 private:
  int64_t Parts() const { return static_cast<int64_t>(parts_.size()); }

  const SubjectModel& subject_;
  std::vector<WeightsPart> parts_;
  ValueSummaries summaries_;
};

}  // namespace

MadeComputation Compute(const WeightsOptions& options, const Material& material) {
  return std::make_unique<Weights>(options, material.subjects[0]);
}

}  // namespace ablate::engine
