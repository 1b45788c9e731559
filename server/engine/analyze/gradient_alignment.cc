// Compares a learning rule's gradient with the exact one, and feedback matrices with weights.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/gradients.h"

namespace ablate::engine {
namespace {

// A gradient that is at most this often its measured rounding errors has no direction: it is 0.
// Errors of the forward pass, which both backward passes share, may be 20 times larger than those
// measured. Other gradients in float32 are 2,000 times larger and more.
constexpr double kRoundingErrors = 256;

// Inner products of two vectors, and squares of their rounding errors; they add up over parts of
// the vectors.
struct GradientProducts {
  double first = 0;  // a·a
  double second = 0;
  double both = 0;
  double first_rounding = 0, second_rounding = 0;

  static GradientProducts Of(const at::Tensor& a, const at::Tensor& b) {
    const auto dot = [](const at::Tensor& x, const at::Tensor& y) {
      return (x * y).sum().item<double>();
    };
    return {dot(a, a), dot(b, b), dot(a, b)};
  }

  GradientProducts& operator+=(const GradientProducts& other) {
    first += other.first;
    second += other.second;
    both += other.both;
    first_rounding += other.first_rounding;
    second_rounding += other.second_rounding;
    return *this;
  }

  // Return true unless the vector is 0 up to rounding errors.
  bool has_first() const { return IsAbove(first, first_rounding); }
  bool has_second() const { return IsAbove(second, second_rounding); }

  bool finite() const { return std::isfinite(first) && std::isfinite(second); }

  // Exactly 1 for equal vectors, because the root of a square is exact. The product of the squares
  // may overflow or underflow even if the squares don't.
  double cosine() const {
    const double squares = first * second;
    return both /
           (std::isnormal(squares) ? std::sqrt(squares) : std::sqrt(first) * std::sqrt(second));
  }

 private:
  static bool IsAbove(double square, double rounding) {
    return square > kRoundingErrors * kRoundingErrors * rounding;
  }
};

class GradientAlignment : public Computation {
 public:
  explicit GradientAlignment(const AnalysisContext& analysis)
      : analysis_(analysis),
        subject_(analysis.subjects[0]),
        learned_(at::zeros({subject_.layout.size}, subject_.values.options().dtype(at::kDouble))),
        exact_(at::zeros_like(learned_)),
        rounding_(
            at::zeros({2, static_cast<int64_t>(subject_.layout.parameters.size())}, at::kDouble)) {}

  int64_t pieces() const override { return analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const TokenBatch& batch = analysis_.Batch(piece);
    const auto [learned, learned_rounding] = GradientBy(GradientSignal::kRule, batch);
    const auto [exact, exact_rounding] = GradientBy(GradientSignal::kExact, batch);
    learned_ += learned;
    exact_ += exact;
    rounding_[0] += learned_rounding;
    rounding_[1] += exact_rounding;
  }

  std::vector<StateTensor> State() override {
    return {{"learned", learned_}, {"exact", exact_}, {"rounding", rounding_}};
  }

  AnalysisResult Finish() override {
    AnalysisResult result;
    GradientProducts all;
    std::vector<GradientProducts> blocks(static_cast<size_t>(subject_.config.model.layers));
    std::vector<AnalysisNumber> of_tensors;
    const at::Tensor rounding = rounding_.square();
    for (size_t i = 0; i < subject_.layout.parameters.size(); ++i) {
      const ParameterInfo& parameter = subject_.layout.parameters[i];
      GradientProducts products =
          GradientProducts::Of(learned_.narrow(0, parameter.offset, parameter.size),
                               exact_.narrow(0, parameter.offset, parameter.size));
      products.first_rounding = rounding[0][static_cast<int64_t>(i)].item<double>();
      products.second_rounding = rounding[1][static_cast<int64_t>(i)].item<double>();
      all += products;
      if (parameter.block >= 0) blocks[static_cast<size_t>(parameter.block)] += products;
      Describe("/" + parameter.name, products, &of_tensors);
    }
    Describe("", all, &result.numbers);
    for (size_t i = 0; i < blocks.size(); ++i) {
      Describe(absl::StrCat("/block.", i), blocks[i], &result.numbers);
    }
    for (AnalysisNumber& number : of_tensors) result.numbers.push_back(std::move(number));
    DescribeFeedback(&result);
    return result;
  }

 private:
  // Returns a batch's gradient [P], and the size of its rounding errors by parameter.
  std::pair<at::Tensor, at::Tensor> GradientBy(GradientSignal signal,
                                               const TokenBatch& batch) const {
    const Pass pass = PassOf(GradientAlignmentOptions(), signal, subject_.config);
    const Gradients gradients = GradientsOf(analysis_, subject_, batch, pass, {true, {}, {}, true});
    std::vector<at::Tensor> flat;
    for (const at::Tensor& g : gradients.parameters) flat.push_back(g.flatten());
    return {at::cat(flat), at::tensor(gradients.rounding, at::kDouble)};
  }

  static void Describe(const std::string& place, const GradientProducts& products,
                       std::vector<AnalysisNumber>* numbers) {
    const auto add = [&](const char* name, bool defined, double value) {
      const Undefined reason = products.finite() ? Undefined::kZeroGradient : Undefined::kNonFinite;
      numbers->push_back(defined && products.finite() ? NumberOf(name + place, value)
                                                      : UndefinedNumber(name + place, reason));
    };
    add("cosine", products.has_first() && products.has_second(), products.cosine());
    add("norm_ratio", products.has_second(), std::sqrt(products.first / products.second));
  }

  // Adds numbers of the linears whose gradients use a matrix in place of their weight.
  void DescribeFeedback(AnalysisResult* result) const {
    if (subject_.config.training.rule != LearningRule::kFeedbackAlignment) return;
    const at::Tensor values = subject_.values.to(at::kDouble);
    const at::Tensor buffers = subject_.buffers.to(at::kDouble);
    for (const BufferInfo& buffer : subject_.layout.buffers) {
      if (buffer.role != BufferRole::kFeedback) continue;
      const std::string linear(absl::StripSuffix(buffer.name, ".feedback"));
      for (const ParameterInfo& parameter : subject_.layout.parameters) {
        if (parameter.name != linear + ".weight") continue;
        const GradientProducts products =
            GradientProducts::Of(values.narrow(0, parameter.offset, parameter.size),
                                 buffers.narrow(0, buffer.offset, buffer.size));
        const std::string name = "weight_cosine/" + linear;
        result->numbers.push_back(products.has_first() && products.has_second()
                                      ? NumberOf(name, products.cosine())
                                      : UndefinedNumber(name, Undefined::kZeroDenominator));
      }
    }
  }

  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  at::Tensor learned_;  // the gradient of the run's rule, [P]
  at::Tensor exact_;    // [P]
  // Sums over batches of the sizes of rounding errors, of the learned and of the exact gradient,
  // [2, parameters].
  at::Tensor rounding_;
};

}  // namespace

MadeComputation Compute(const GradientAlignmentOptions&, const AnalysisContext& analysis) {
  return std::make_unique<GradientAlignment>(analysis);
}

}  // namespace ablate::engine
