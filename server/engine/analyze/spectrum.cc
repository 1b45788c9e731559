// Measures how many directions a representation uses, from the singular values of the activations
// at a hook point.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"

namespace ablate::engine {
namespace {

// Ranks from the eigenvalues λ = σ² of XᵀX, each at least 0 and one above.
struct Ranks {
  double effective = 0;             // exp of the entropy of σ/Σσ (Roy & Vetterli 2007)
  double effective_of_squares = 0;  // the same of λ/Σλ
  double participation_ratio = 0;   // (Σλ)²/Σλ²
  double stable = 0;                // Σλ/λ₁
};

double ExpEntropy(const at::Tensor& parts) {
  const at::Tensor p = parts / parts.sum();
  return std::exp(-at::xlogy(p, p).sum().item<double>());
}

Ranks RanksOf(const at::Tensor& eigenvalues) {
  const double sum = eigenvalues.sum().item<double>();
  return {ExpEntropy(eigenvalues.sqrt()), ExpEntropy(eigenvalues),
          sum * sum / eigenvalues.square().sum().item<double>(),
          sum / eigenvalues.max().item<double>()};
}

class Spectrum : public Computation {
 public:
  Spectrum(const SpectrumOptions& options, const AnalysisContext& analysis)
      : analysis_(analysis),
        captured_(analysis, analysis.subjects[0],
                  {HookPointOr(options.site, analysis.subjects[0].config.model)}),
        shift_(captured_.FirstRows()[0].mean(0)),
        features_(shift_.size(0)),
        gram_(at::zeros({features_, features_}, shift_.options())),
        sum_(at::zeros({features_}, shift_.options())) {}

  int64_t pieces() const override { return analysis_.batch_count(); }

  // Shifted by the first batch's mean, because otherwise centring cancels most digits.
  void Add(int64_t piece) override {
    const at::Tensor x = captured_.TakeRows(piece)[0] - shift_;  // [n, d]
    const at::Tensor gram = x.t().mm(x), sum = x.sum(0);
    gram_ += gram;
    sum_ += sum;
  }

  std::vector<StateTensor> State() override { return {{"gram", gram_}, {"sum", sum_}}; }

  AnalysisResult Finish() override {
    const auto tokens = static_cast<double>(analysis_.tokens);
    const at::Tensor gram = OnHost(gram_), sum = OnHost(sum_), shift = OnHost(shift_);
    const at::Tensor outer = sum.outer(sum) / tokens;
    const at::Tensor moved = sum.outer(shift);
    const at::Tensor uncentred = gram + moved + moved.t() + tokens * shift.outer(shift);
    AnalysisResult result;
    // Rounding error for tokens that are all equal.
    const double rounding = std::pow(4 * DBL_EPSILON, 2) * uncentred.trace().item<double>();
    Describe("", gram - outer, rounding, &result);
    Describe("uncentred_", uncentred, 0, &result);
    result.notes.push_back(
        absl::StrCat("of ", analysis_.tokens, " tokens in ", features_, " features"));
    return result;
  }

 private:
  // Describes a matrix. It varies if the sum of its squares is above `rounding`. If it isn't
  // finite, there is neither spectrum nor array.
  void Describe(const std::string& prefix, const at::Tensor& gram, double rounding,
                AnalysisResult* result) const {
    const bool enough = analysis_.tokens > 1 || !prefix.empty();
    const bool finite = std::isfinite(rounding) && gram.isfinite().all().item<bool>();
    const at::Tensor eigenvalues =  // [d], descending
        finite ? std::get<0>(at::linalg_eigh(gram)).flip(0).clamp_min(0)
               : at::zeros({features_}, at::kDouble);
    const int64_t most = std::min<int64_t>(features_, static_cast<int64_t>(analysis_.tokens));
    const at::Tensor values = eigenvalues.narrow(0, 0, most);
    const bool varies = values.sum().item<double>() > rounding;
    const Ranks ranks = varies ? RanksOf(values) : Ranks();
    std::optional<Undefined> undefined;
    if (!varies) undefined = Undefined::kZeroVariance;
    if (!finite) undefined = Undefined::kNonFinite;
    if (!enough) undefined = Undefined::kTooFewTokens;
    const auto add = [&](const char* name, double value) {
      result->numbers.push_back(NumberOf(prefix + name, value, undefined));
    };
    add("participation_ratio", ranks.participation_ratio);
    add("effective_rank", ranks.effective);
    add("effective_rank_of_squares", ranks.effective_of_squares);
    add("stable_rank", ranks.stable);
    add("largest_singular_value", varies ? std::sqrt(values[0].item<double>()) : 0);
    if (prefix.empty()) {
      // IsoScore (Rudman et al. 2022) equals this, by algebra.
      const auto d = static_cast<double>(features_);
      if (features_ > 1) {
        add("isoscore", (ranks.participation_ratio - 1) / (d - 1));
      } else {
        result->numbers.push_back(UndefinedNumber("isoscore", Undefined::kZeroDenominator));
      }
    }
    if (!finite) return;
    result->arrays.push_back(
        ArrayOf(prefix + "singular_values", {"direction"}, eigenvalues.sqrt()));
  }

  const AnalysisContext& analysis_;
  CapturedBatches captured_;
  const at::Tensor shift_;  // [d]
  const int64_t features_;
  at::Tensor gram_;  // [d, d]
  at::Tensor sum_;   // [d]
};

}  // namespace

MadeComputation Compute(const SpectrumOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<Spectrum>(options, analysis);
}

}  // namespace ablate::engine
