// Applies every kind of norm to one vector of random numbers.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "server/engine/analyze/computation.h"
#include "server/engine/names.h"
#include "server/engine/torch/model/norm.h"

namespace ablate::engine {
namespace {

struct RespondingNorm {
  const char* name;
  NormKind kind;
  NormDeviation deviation;
  double eps;
};

// The norms with a run's default settings, and LayerNorm in textbook form. Pointwise ones are as
// they begin.
constexpr RespondingNorm kRespondingNorms[] = {
    {"layer_norm", NormKind::kLayer, NormDeviation::kPopulation, 1e-5},
    {"textbook_layer_norm", NormKind::kLayer, NormDeviation::kUnbiasedEpsOutside, 1e-6},
    {"rms_norm", NormKind::kRms, NormDeviation::kPopulation, 1e-5},
    {"l2_norm", NormKind::kL2, NormDeviation::kPopulation, 1e-5},
    {"dyt", NormKind::kDyt, NormDeviation::kPopulation, 1e-5},
    {"derf", NormKind::kDerf, NormDeviation::kPopulation, 1e-5},
};

constexpr bool Responds(NormKind kind) {
  return kind == NormKind::kBatch ||
         std::any_of(std::begin(kRespondingNorms), std::end(kRespondingNorms),
                     [kind](const RespondingNorm& norm) { return norm.kind == kind; });
}
static_assert(std::all_of(std::begin(kNames<NormKind>), std::end(kNames<NormKind>),
                          [](const auto& kind) { return Responds(kind.value); }));

class NormResponse : public Computation {
 public:
  NormResponse(const NormResponseOptions& options, const AnalysisContext& analysis)
      : input_(options.mean +
               options.deviation * NormalSequence(DrawSeed(analysis, "norm_response"),
                                                  static_cast<int64_t>(options.size))) {}

  int64_t pieces() const override { return 1; }
  void Add(int64_t) override {}
  std::vector<StateTensor> State() override { return {}; }

  AnalysisResult Finish() override {
    AnalysisResult result;
    Describe("input", input_, &result);
    for (const RespondingNorm& norm : kRespondingNorms) {
      const bool unbiased = norm.deviation == NormDeviation::kUnbiasedEpsOutside;
      if (unbiased && input_.numel() < 2) {
        Refuse(norm.name, &result);  // undefined for one number
        continue;
      }
      NormConfig config;
      config.kind = norm.kind;
      config.deviation = norm.deviation;
      config.eps = norm.eps;
      const NormParameters start = {.alpha = at::full({1}, config.alpha, input_.options()),
                                    .offset = at::zeros({1}, input_.options())};
      Describe(norm.name, Norm(input_.view({1, -1}), start, {config, {}, {}, {}}).view({-1}),
               &result);
    }
    Refuse("batch_norm", &result);  // a feature at one token has no variance
    return result;
  }

 private:
  static void Refuse(const std::string& name, AnalysisResult* result) {
    for (const char* number : {"mean/", "deviation/", "unbiased_deviation/"}) {
      result->numbers.push_back(UndefinedNumber(number + name, Undefined::kTooFewTokens));
    }
  }

  static void Describe(const std::string& name, const at::Tensor& values, AnalysisResult* result) {
    const auto n = static_cast<double>(values.numel());
    const at::Tensor mean = values.mean();
    const double squares = (values - mean).square().sum().item<double>();
    result->numbers.push_back(NumberOf("mean/" + name, mean.item<double>()));
    result->numbers.push_back(NumberOf("deviation/" + name, std::sqrt(squares / n)));
    const std::string unbiased = "unbiased_deviation/" + name;
    result->numbers.push_back(n > 1 ? NumberOf(unbiased, std::sqrt(squares / (n - 1)))
                                    : UndefinedNumber(unbiased, Undefined::kTooFewTokens));
    result->arrays.push_back(ArrayOf(name, {"feature"}, values));
  }

  const at::Tensor input_;  // [size]
};

}  // namespace

MadeComputation Compute(const NormResponseOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<NormResponse>(options, analysis);
}

}  // namespace ablate::engine
