// Measures which parts of a norm's backward matter: how much centring and projection remove from
// gradients, and how close the approximations without them are to the exact one.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/gradients.h"
#include "server/engine/analyze/norms.h"
#include "server/engine/torch/model/norm.h"

namespace ablate::engine {
namespace {

// Sums over the vectors of a norm.
enum JacobianSum {
  kVectors,
  kSigmaMean,     // mean of σ
  kSigmaSquares,  // sum of squares around it
  kGradientSquares,
  kMeanSquares,
  kRadialSquares,
  kWithGradient,  // vectors with a gradient; among these:
  kMeanShares,
  kRadialShares,
  kWithExact,  // vectors whose exact gradient isn't 0; among these:
  kCosineCentred,
  kCosineProjected,
  kCosineIdentity,
  kRatioCentred,
  kRatioProjected,
  kRatioIdentity,
  kJacobianSums,
};

// Describes a number of one norm.
struct JacobianNumber {
  const char* name;
  JacobianSum sum;
  JacobianSum count;  // its denominator
};

constexpr JacobianNumber kJacobianNumbers[] = {
    {"r_mean", kMeanSquares, kGradientSquares},
    {"r_radial", kRadialSquares, kGradientSquares},
    {"r_mean_by_vector", kMeanShares, kWithGradient},
    {"r_radial_by_vector", kRadialShares, kWithGradient},
    {"cosine_center_scale", kCosineCentred, kWithExact},
    {"cosine_projected", kCosineProjected, kWithExact},
    {"cosine_identity", kCosineIdentity, kWithExact},
    {"norm_ratio_center_scale", kRatioCentred, kWithExact},
    {"norm_ratio_projected", kRatioProjected, kWithExact},
    {"norm_ratio_identity", kRatioIdentity, kWithExact},
};

// Returns the sums over the vectors of one norm, [kJacobianSums].
at::Tensor JacobianSumsOf(const NormParts& parts) {
  const at::Tensor none = parts.gradient.eq(0), flat = parts.projected.eq(0).logical_or(none);
  const auto sum = [](const at::Tensor& values, const at::Tensor& without) {
    return values.masked_fill(without, 0).sum();
  };
  const auto ratio = [&](const at::Tensor& squares) { return (squares / parts.projected).sqrt(); };
  const at::Tensor mean = parts.sigma.mean();
  std::vector<at::Tensor> sums(kJacobianSums);
  sums[kVectors] = at::ones_like(parts.sigma).sum();
  sums[kSigmaMean] = mean;
  sums[kSigmaSquares] = (parts.sigma - mean).square().sum();
  sums[kGradientSquares] = parts.gradient.sum();
  sums[kMeanSquares] = parts.mean.sum();
  sums[kRadialSquares] = parts.radial.sum();
  sums[kWithGradient] = none.logical_not().sum().to(at::kDouble);
  sums[kMeanShares] = sum(parts.mean / parts.gradient, none);
  sums[kRadialShares] = sum(parts.radial / parts.gradient, none);
  sums[kWithExact] = flat.logical_not().sum().to(at::kDouble);
  sums[kCosineCentred] = sum(parts.cosine_centred, flat);
  sums[kCosineProjected] = sum(parts.cosine_projected, flat);
  sums[kCosineIdentity] = sum(parts.cosine_identity, flat);
  sums[kRatioCentred] = sum(ratio(parts.centred), flat);
  sums[kRatioProjected] = sum(parts.sigma, flat);
  sums[kRatioIdentity] = sum(parts.sigma * ratio(parts.gradient), flat);
  return OnHost(at::stack(sums));
}

// Merges the sums of two sets of vectors, each [kJacobianSums]; `more` isn't empty.
at::Tensor MergedJacobianSums(const at::Tensor& sums, const at::Tensor& more) {
  const at::Tensor all = sums + more, fraction = more[kVectors] / all[kVectors];
  const at::Tensor apart = more[kSigmaMean] - sums[kSigmaMean];
  all[kSigmaMean] = sums[kSigmaMean] + apart * fraction;
  all[kSigmaSquares] += apart.square() * sums[kVectors] * fraction;
  return all;
}

class NormJacobian : public Computation {
 public:
  NormJacobian(const NormJacobianOptions& options, const AnalysisContext& analysis)
      : analysis_(analysis),
        subject_(analysis.subjects[0]),
        pass_(PassOf(options, options.signal, subject_.config)),
        norms_(NormPlacesOf(subject_.config.model, subject_.parameters)),
        sums_(at::zeros({static_cast<int64_t>(norms_.size()), kJacobianSums}, at::kDouble)) {}

  int64_t pieces() const override { return analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const TokenBatch& batch = analysis_.Batch(piece);
    // A single token has no variance over tokens.
    if (Kind() == NormKind::kBatch && batch.tokens() == 1) return;
    std::vector<at::Tensor> inputs(norms_.size());
    WantedGradients wanted;
    for (size_t i = 0; i < norms_.size(); ++i) {
      wanted.hook_points.push_back(norms_[i].output);
      wanted.observers.emplace_back(norms_[i].input, Observe([&inputs, i](const at::Tensor& x) {
                                      inputs[i] = x.detach().to(at::kDouble);
                                    }));
    }
    const Gradients gradients = GradientsOf(analysis_, subject_, batch, pass_, std::move(wanted));
    const auto vectors_of = [&, tensors = BatchOf(subject_, batch)](const at::Tensor& rows) {
      return VectorsOf(RealRows(rows, tensors), Kind());
    };
    std::vector<at::Tensor> sums;
    for (size_t i = 0; i < norms_.size(); ++i) {
      at::Tensor g = gradients.hook_points[i];  // of the output; after scaling by the gain, of x̂
      const at::Tensor gain = GainOf(norms_[i].parameters, subject_.config.model.norm);
      if (gain.defined()) g = g * gain.to(at::kDouble);
      const NormParts parts =
          PartsOf(vectors_of(inputs[i]), vectors_of(g), subject_.config.model.norm);
      sums.push_back(MergedJacobianSums(sums_[static_cast<int64_t>(i)], JacobianSumsOf(parts)));
    }
    sums_.copy_(at::stack(sums));
  }

  std::vector<StateTensor> State() override { return {{"sums", sums_}}; }

  AnalysisResult Finish() override {
    AnalysisResult result;
    std::vector<std::vector<AnalysisNumber>> of_norms;  // all with the same names
    for (size_t i = 0; i < norms_.size(); ++i) of_norms.push_back(NumbersOf(i));
    for (size_t n = 0; n < of_norms[0].size(); ++n) {
      double sum = 0, defined = 0;
      for (const auto& numbers : of_norms) {
        const bool finite = numbers[n].undefined != Undefined::kNonFinite;
        sum += finite ? numbers[n].value : std::numeric_limits<double>::quiet_NaN();
        defined += numbers[n].undefined.has_value() && finite ? 0 : 1;
      }
      result.numbers.push_back(defined > 0 ? NumberOf(of_norms[0][n].name, sum / defined)
                                           : of_norms[0][n]);
    }
    for (size_t i = 0; i < norms_.size(); ++i) {
      for (AnalysisNumber& number : of_norms[i]) {
        absl::StrAppend(&number.name, "/", norms_[i].name);
        result.numbers.push_back(std::move(number));
      }
      const double vectors = Sum(i, kVectors), with = Sum(i, kWithGradient);
      if (with < vectors) {
        result.notes.push_back(absl::StrCat(vectors - with, " of ", vectors, " vectors at ",
                                            norms_[i].name,
                                            " have no gradient, and no share or cosine"));
      }
    }
    if (!FormulaOf(Kind()).centres) {
      result.notes.push_back(
          "this norm does not centre: r_mean is 0, and center_scale a division by σ");
    }
    return result;
  }

 private:
  NormKind Kind() const { return subject_.config.model.norm.kind; }

  double Sum(size_t norm, JacobianSum column) const {
    return sums_[static_cast<int64_t>(norm)][column].item<double>();
  }

  std::vector<AnalysisNumber> NumbersOf(size_t norm) const {
    std::vector<AnalysisNumber> numbers;
    const auto add = [&](const char* name, double value, std::optional<Undefined> undefined) {
      numbers.push_back(NumberOf(name, value, undefined));
    };
    const double vectors = Sum(norm, kVectors);
    std::optional<Undefined> no_gradient, no_exact, no_vector, one_vector;
    if (Sum(norm, kWithExact) == 0) no_exact = Undefined::kZeroDenominator;
    if (Sum(norm, kGradientSquares) == 0) no_gradient = no_exact = Undefined::kZeroGradient;
    if (vectors < 2) one_vector = Undefined::kTooFewTokens;
    // Division by infinity must not give 0.
    if (!std::isfinite(Sum(norm, kGradientSquares)) || !std::isfinite(Sum(norm, kSigmaMean))) {
      no_gradient = no_exact = Undefined::kNonFinite;
    }
    if (vectors == 0) no_vector = no_gradient = no_exact = Undefined::kTooFewTokens;
    for (const JacobianNumber& number : kJacobianNumbers) {
      add(number.name, Sum(norm, number.sum) / Sum(norm, number.count),
          number.count == kWithExact ? no_exact : no_gradient);
    }
    add("sigma_mean", Sum(norm, kSigmaMean), no_vector);
    add("sigma_deviation", std::sqrt(Sum(norm, kSigmaSquares) / (vectors - 1)), one_vector);
    return numbers;
  }

  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  const Pass pass_;
  const std::vector<NormPlace> norms_;
  at::Tensor sums_;  // [norms, kJacobianSums]
};

}  // namespace

MadeComputation Compute(const NormJacobianOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<NormJacobian>(options, analysis);
}

}  // namespace ablate::engine
