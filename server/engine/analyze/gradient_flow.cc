// Measures the size of gradients by depth: of the states between blocks, and of parameters.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/gradients.h"
#include "server/engine/analyze/large_vectors.h"

namespace ablate::engine {
namespace {

// A state counts as vanished if its gradient is below this fraction of the last state's.
constexpr double kVanished = 0.1;

// Returns the least-squares slope of y against 0, 1, ….
double SlopeOf(const std::vector<double>& y) {
  const auto n = static_cast<double>(y.size());
  double mean = 0, along = 0, squares = 0;
  for (const double value : y) mean += value / n;
  for (size_t i = 0; i < y.size(); ++i) {
    const double x = static_cast<double>(i) - (n - 1) / 2;
    along += x * (y[i] - mean);
    squares += x * x;
  }
  return along / squares;
}

class GradientFlow : public Computation {
 public:
  GradientFlow(const GradientFlowOptions& options, const AnalysisContext& analysis)
      : analysis_(analysis),
        subject_(analysis.subjects[0]),
        pass_(PassOf(options, options.signal, subject_.config)),
        hook_points_(HookPointsOr({}, subject_.config.model)),
        squares_(at::zeros({static_cast<int64_t>(hook_points_.size())}, at::kDouble)),
        gradient_(at::zeros({subject_.layout.size}, subject_.values.options().dtype(at::kDouble))) {
  }

  int64_t pieces() const override { return analysis_.batch_count(); }

  void Add(int64_t piece) override {
    Gradients gradients =
        GradientsOf(analysis_, subject_, analysis_.Batch(piece), pass_, {true, hook_points_, {}});
    std::vector<at::Tensor> squares;
    for (const at::Tensor& g : gradients.hook_points) squares.push_back(g.square().sum());
    squares_ += OnHost(at::stack(squares));
    const std::vector<ParameterInfo>& parameters = subject_.layout.parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      AddTo(gradients.parameters[i].flatten(),
            gradient_.narrow(0, parameters[i].offset, parameters[i].size));
      gradients.parameters[i] = at::Tensor();
    }
  }

  std::vector<StateTensor> State() override {
    return {{"squares", squares_}, {"gradient", gradient_}};
  }

  AnalysisResult Finish() override {
    AnalysisResult result;
    DescribeStates(&result);
    DescribeParameters(&result);
    return result;
  }

 private:
  static std::string PlaceOf(const std::string& hook_point) {
    return hook_point.substr(0, hook_point.rfind(".output"));
  }

  void DescribeStates(AnalysisResult* result) const {
    const at::Tensor norms = squares_.sqrt();  // [states]
    std::vector<double> logarithms;
    const double last = norms[-1].item<double>();
    double vanished = 0, sum = 0;
    std::vector<AnalysisNumber> ratios;
    for (size_t l = 0; l < hook_points_.size(); ++l) {
      const std::string place = PlaceOf(hook_points_[l]);
      const double norm = norms[static_cast<int64_t>(l)].item<double>();
      result->numbers.push_back(NumberOf("gradient/" + place, norm));
      ratios.push_back(RatioOf("gradient_ratio/" + place, norm, last, Undefined::kZeroGradient));
      if (norm != 0) logarithms.push_back(std::log(norm));
      if (norm < kVanished * last) ++vanished;
      sum += norm;
    }
    for (AnalysisNumber& ratio : ratios) result->numbers.push_back(std::move(ratio));
    const bool all = logarithms.size() == hook_points_.size();
    result->numbers.push_back(all ? NumberOf("log_slope", SlopeOf(logarithms))
                                  : UndefinedNumber("log_slope", Undefined::kZeroGradient));
    if (!std::isfinite(sum)) vanished = sum;  // NaN isn't small
    result->numbers.push_back(last != 0
                                  ? NumberOf("vanished_states", vanished)
                                  : UndefinedNumber("vanished_states", Undefined::kZeroGradient));
    result->arrays.push_back(ArrayOf("gradient", {"state"}, norms));
  }

  void DescribeParameters(AnalysisResult* result) const {
    const int64_t blocks = subject_.config.model.layers;
    std::vector<double> gradients(blocks, 0), sizes(blocks, 0);  // squares
    double all = 0;
    std::vector<AnalysisNumber> of_tensors;
    for (const ParameterInfo& parameter : subject_.layout.parameters) {
      const auto square = [&](const at::Tensor& flat) {
        const at::Tensor part = flat.narrow(0, parameter.offset, parameter.size);
        return DotOf(part, part);
      };
      const double gradient = square(gradient_), size = square(subject_.values);
      all += gradient;
      AddParameters(parameter.name, gradient, size, &of_tensors);
      if (parameter.block < 0) continue;
      gradients[static_cast<size_t>(parameter.block)] += gradient;
      sizes[static_cast<size_t>(parameter.block)] += size;
    }
    result->numbers.push_back(NumberOf("parameter_gradient", std::sqrt(all)));
    for (size_t i = 0; i < gradients.size(); ++i) {
      AddParameters(absl::StrCat("block.", i), gradients[i], sizes[i], &result->numbers);
    }
    for (AnalysisNumber& number : of_tensors) result->numbers.push_back(std::move(number));
    result->arrays.push_back(
        ArrayOf("parameter_gradient", {"block"}, at::tensor(gradients, at::kDouble).sqrt()));
  }

  // Adds numbers from the sums of squares of gradients and of parameters.
  static void AddParameters(const std::string& place, double gradient, double size,
                            std::vector<AnalysisNumber>* numbers) {
    numbers->push_back(NumberOf("parameter_gradient/" + place, std::sqrt(gradient)));
    numbers->push_back(RatioOf("relative_gradient/" + place, std::sqrt(gradient), std::sqrt(size),
                               Undefined::kZeroDenominator));
  }

  static AnalysisNumber RatioOf(std::string name, double value, double by, Undefined without) {
    if (by == 0) return UndefinedNumber(std::move(name), without);
    // Division by infinity must not give 0.
    if (!std::isfinite(by)) return UndefinedNumber(std::move(name), Undefined::kNonFinite);
    return NumberOf(std::move(name), value / by);
  }

  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  const Pass pass_;
  const std::vector<std::string> hook_points_;  // of the states
  at::Tensor squares_;                          // of the states' gradients, [states]
  at::Tensor gradient_;                         // of the parameters, [P]
};

}  // namespace

MadeComputation Compute(const GradientFlowOptions& options, const AnalysisContext& analysis) {
  return std::make_unique<GradientFlow>(options, analysis);
}

}  // namespace ablate::engine
