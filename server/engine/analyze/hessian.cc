// Computes the curvature of the loss at a model: the extreme eigenvalues, the trace and the
// spectral density of its Hessian.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/hessian_products.h"
#include "server/engine/analyze/lanczos.h"
#include "server/engine/analyze/large_vectors.h"
#include "server/engine/analyze/parameter_draws.h"

namespace ablate::engine {
namespace {

constexpr double kConverged = 1e-3;  // a residual divided by its eigenvalue
constexpr int64_t kDensityPoints = 1001;

// Returns the fraction of the largest entry below which the remainder of a product is rounding. The
// basis then spans an invariant subspace of the Hessian.
double InvariantShare(at::ScalarType type) { return type == at::kDouble ? 1e-10 : 1e-6; }

bool AllFinite(absl::Span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

double LargestOf(absl::Span<const double> alphas, absl::Span<const double> betas) {
  double largest = 0;
  for (const double x : alphas) largest = std::max(largest, std::abs(x));
  for (const double x : betas) largest = std::max(largest, x);
  return largest;
}

at::Tensor TensorOfDoubles(absl::Span<const double> values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kDouble);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<double>());
  return tensor;
}

// Returns the runs' spectra as one density at `at` [n]: the mean of normal densities centred at
// their values.
at::Tensor SpectralDensity(const std::vector<RitzValues>& runs, const at::Tensor& at,
                           double width) {
  at::Tensor density = at::zeros_like(at);
  for (const RitzValues& run : runs) {
    for (size_t i = 0; i < run.values.size(); ++i) {
      density += run.weights[i] * ((at - run.values[i]) / width).square().mul(-0.5).exp();
    }
  }
  return density / (width * std::sqrt(2 * std::numbers::pi) * static_cast<double>(runs.size()));
}

// Pieces: the gradient, then the products of the Lanczos runs in order, then those of the trace,
// each batch by batch. The first run also gives the extreme eigenvalues.
class Hessian : public Computation {
 public:
  Hessian(const HessianOptions& options, const AnalysisContext& analysis)
      : options_(options),
        analysis_(analysis),
        subject_(analysis.subjects[0]),
        batches_(analysis.batch_count()),
        runs_(std::max<int64_t>(options.density_runs, 1)),
        steps_(std::min<int64_t>(options.iterations, subject_.layout.size)),
        products_(analysis, subject_),
        loss_(at::zeros({1}, at::kDouble)),
        gradient_norm_(at::zeros({1}, at::kDouble)),
        sum_(at::zeros({batches_ > 1 ? subject_.layout.size : 0},
                       subject_.values.options().dtype(at::kDouble))),
        basis_(at::empty({steps_, subject_.layout.size}, subject_.values.options())),
        basis_rows_(at::zeros({1}, at::kLong)),
        alphas_(at::zeros({runs_, steps_}, at::kDouble)),
        betas_(at::zeros({runs_, steps_}, at::kDouble)),
        samples_(at::zeros({options.trace_samples}, at::kDouble)) {}

  int64_t pieces() const override { return (1 + runs_ * steps_ + samples_.numel()) * batches_; }

  void Add(int64_t piece) override {
    const int64_t vector = piece / batches_ - 1;
    const auto batch = static_cast<size_t>(piece % batches_);
    if (vector < 0) {
      AddGradient(batch);
    } else if (vector < runs_ * steps_) {
      AddToStep(vector / steps_, vector % steps_, batch);
    } else {
      AddToSample(vector - runs_ * steps_, batch);
    }
  }

  std::vector<StateTensor> State() override {
    return {{"loss", loss_},       {"gradient_norm", gradient_norm_},
            {"sum", sum_},         {"basis", basis_, basis_rows_.item<int64_t>()},
            {"alphas", alphas_},   {"betas", betas_},
            {"samples", samples_}, {"basis_rows", basis_rows_}};
  }

  AnalysisResult Finish() override {
    AnalysisResult result;
    std::vector<RitzValues> runs;
    for (int64_t run = 0; run < runs_; ++run) {
      const auto made = static_cast<size_t>(StepsOf(run));
      const auto alphas = RowOf(alphas_, run).first(made), betas = RowOf(betas_, run).first(made);
      if (AllFinite(alphas) && AllFinite(betas)) runs.push_back(RitzValuesOf(alphas, betas));
    }
    const bool finite = runs.size() == static_cast<size_t>(runs_);
    AddNumber("loss", loss_.item<double>(), &result);
    AddNumber("gradient_norm", gradient_norm_.item<double>(), &result);
    AddExtremes(finite ? &runs.front() : nullptr, &result);
    if (samples_.numel() > 0) AddTrace(&result);
    if (finite && options_.density_runs > 0) AddDensity(runs, &result);
    result.notes.push_back(
        absl::StrCat("of ", analysis_.tokens, " tokens and ", subject_.layout.size, " parameters"));
    return result;
  }

 private:
  bool Last(size_t batch) const { return static_cast<int64_t>(batch) + 1 == batches_; }

  static absl::Span<double> RowOf(const at::Tensor& table, int64_t row) {
    return {table.mutable_data_ptr<double>() + row * table.size(1),
            static_cast<size_t>(table.size(1))};
  }

  // Returns true if a run ended at an earlier step: its remainder was 0 or not finite.
  bool Ended(int64_t run, int64_t step) const {
    const absl::Span<const double> betas = RowOf(betas_, run);
    return step > 0 && !(betas[static_cast<size_t>(step) - 1] > 0);
  }

  int64_t StepsOf(int64_t run) const {
    int64_t made = 1;
    while (made < steps_ && !Ended(run, made)) ++made;
    return made;
  }

  // Returns the sum over the batches up to this one: of one batch the summand itself, which nobody
  // else has; of several in float64.
  at::Tensor Together(size_t batch, const at::Tensor& summand) const {
    if (batch == 0) return summand;
    const at::Tensor sum = sum_.clone();
    AddTo(summand, sum);
    return sum;
  }

  void AddGradient(size_t batch) {
    const BatchDerivative derivative = products_.Differentiate(batch);
    const at::Tensor sum = Together(batch, derivative.gradient);
    const double norm = NormOf(sum);
    if (!Last(batch)) sum_.copy_(sum);
    loss_.mutable_data_ptr<double>()[0] += derivative.loss;
    gradient_norm_.mutable_data_ptr<double>()[0] = norm;
  }

  void AddToStep(int64_t run, int64_t step, size_t batch) {
    if (Ended(run, step)) return;
    const at::Tensor vector = step == 0 ? StartOf(run) : basis_[step];
    at::Tensor sum = Together(batch, products_.Multiply(batch, vector));
    if (!Last(batch)) {
      sum_.copy_(sum);
      return;
    }
    const at::Tensor basis = step == 0 ? vector.unsqueeze(0) : basis_.narrow(0, 0, step + 1);
    const LanczosStep made = StepOf(basis, std::move(sum));
    const absl::Span<double> alphas = RowOf(alphas_, run), betas = RowOf(betas_, run);
    const auto at = static_cast<size_t>(step);
    const double largest =
        std::max({LargestOf(alphas.first(at), betas.first(at)), std::abs(made.alpha), made.beta});
    const bool invariant = made.beta <= InvariantShare(subject_.values.scalar_type()) * largest ||
                           step + 1 == subject_.layout.size;
    if (step == 0) basis_[0].copy_(vector);
    if (step + 1 < steps_) basis_[step + 1].copy_(made.next);
    alphas[at] = made.alpha;
    betas[at] = invariant ? 0 : made.beta;
    const bool goes_on = step + 1 < steps_ && !Ended(run, step + 1);
    basis_rows_.mutable_data_ptr<int64_t>()[0] = goes_on ? step + 2 : 0;
  }

  // Returns the start vector, with elements ±1/√P.
  at::Tensor StartOf(int64_t run) const {
    const at::Tensor signs = SignVector(analysis_, subject_.layout,
                                        absl::StrCat("hessian/start.", run), basis_.options());
    return signs.mul_(1 / std::sqrt(static_cast<double>(signs.numel())));
  }

  void AddToSample(int64_t sample, size_t batch) {
    const at::Tensor signs = SignVector(analysis_, subject_.layout,
                                        absl::StrCat("hessian/trace.", sample), basis_.options());
    const double summand = DotOf(products_.Multiply(batch, signs), signs);
    samples_.mutable_data_ptr<double>()[sample] += summand;
  }

  void AddNumber(std::string name, double value, AnalysisResult* result) const {
    result->numbers.push_back(
        NumberOf(std::move(name), value, WithoutTargets(products_.targets())));
  }

  // Null: the run wasn't finite.
  void AddExtremes(const RitzValues* ritz, AnalysisResult* result) const {
    const size_t found = ritz == nullptr ? 0 : ritz->values.size();
    const size_t top = std::min<size_t>(options_.top, found);
    size_t open = 0;
    const auto add = [&](const std::string& side, const auto& at) {
      std::vector<double> values, residuals;
      for (size_t i = 0; i < top; ++i) {
        values.push_back(ritz->values[at(i)]);
        residuals.push_back(ritz->residuals[at(i)]);
        if (residuals.back() > kConverged * std::abs(values.back())) ++open;
      }
      AddNumber(side + "_eigenvalue", top > 0 ? values[0] : NAN, result);
      AddNumber(side + "_eigenvalue_residual", top > 0 ? residuals[0] : NAN, result);
      if (top == 0) return;
      result->arrays.push_back(
          ArrayOf(side + "_eigenvalues", {"eigenvalue"}, TensorOfDoubles(values)));
      result->arrays.push_back(
          ArrayOf(side + "_eigenvalue_residuals", {"eigenvalue"}, TensorOfDoubles(residuals)));
    };
    add("largest", [&](size_t i) { return found - 1 - i; });
    add("smallest", [](size_t i) { return i; });
    if (open > 0) {
      result->notes.push_back(absl::StrCat(
          open, " of ", 2 * top, " eigenvalues have not converged in ", found, " iterations"));
    }
  }

  void AddTrace(AnalysisResult* result) const {
    AddNumber("trace", samples_.mean().item<double>(), result);
    const auto count = static_cast<double>(samples_.numel());
    if (count > 1) {
      AddNumber("trace_standard_error", samples_.std().item<double>() / std::sqrt(count), result);
    } else {
      result->numbers.push_back(
          UndefinedNumber("trace_standard_error", Undefined::kZeroDenominator));
    }
    result->arrays.push_back(ArrayOf("trace_samples", {"sample"}, samples_));
  }

  // All runs must be finite.
  void AddDensity(const std::vector<RitzValues>& runs, AnalysisResult* result) const {
    const at::Tensor values = at::zeros_like(alphas_), weights = at::zeros_like(alphas_);
    double least = runs[0].values.front(), most = runs[0].values.back();
    for (int64_t run = 0; run < runs_; ++run) {
      const RitzValues& of = runs[static_cast<size_t>(run)];
      std::copy(of.values.begin(), of.values.end(), RowOf(values, run).begin());
      std::copy(of.weights.begin(), of.weights.end(), RowOf(weights, run).begin());
      least = std::min(least, of.values.front());
      most = std::max(most, of.values.back());
    }
    result->arrays.push_back(ArrayOf("ritz_values", {"run", "iteration"}, values));
    result->arrays.push_back(ArrayOf("ritz_weights", {"run", "iteration"}, weights));
    const double width = (most - least) / 100;
    if (width == 0) {
      result->notes.push_back("all eigenvalues found are equal: there is no density to draw");
      return;
    }
    const at::Tensor at =
        at::linspace(least - 4 * width, most + 4 * width, kDensityPoints, at::kDouble);
    result->arrays.push_back(ArrayOf("density_at", {"point"}, at));
    result->arrays.push_back(ArrayOf("density", {"point"}, SpectralDensity(runs, at, width)));
  }

  const HessianOptions options_;
  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  const int64_t batches_;
  const int64_t runs_;   // Lanczos runs
  const int64_t steps_;  // steps of each run
  HessianProducts products_;
  at::Tensor loss_;           // [1]
  at::Tensor gradient_norm_;  // [1]
  at::Tensor sum_;            // [P] float64, over the current vector's batches; [0] if it is one
  at::Tensor basis_;          // [steps, P] of the current run, in the subject's precision
  at::Tensor basis_rows_;     // [1], number of these rows that the next steps need
  at::Tensor alphas_;         // [runs, steps]
  at::Tensor betas_;          // [runs, steps]; 0 where the run ended
  at::Tensor samples_;        // [trace_samples], vᵀHv
};

}  // namespace

MadeComputation Compute(const HessianOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<Hessian>(options, analysis);
}

}  // namespace ablate::engine
