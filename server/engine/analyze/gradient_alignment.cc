// Compares a learning rule's gradient with the exact one, and feedback matrices with weights.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/gradients.h"

namespace ablate::engine {
namespace {

// Inner products of two vectors; they add up over parts of the vectors.
struct GradientProducts {
  double first = 0;  // a·a
  double second = 0;
  double both = 0;

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
    return *this;
  }

  bool finite() const { return std::isfinite(first) && std::isfinite(second); }

  // Exactly 1 for equal vectors, because the root of a square is exact. The product of the squares
  // may overflow or underflow even if the squares don't.
  double cosine() const {
    const double squares = first * second;
    return both /
           (std::isnormal(squares) ? std::sqrt(squares) : std::sqrt(first) * std::sqrt(second));
  }
};

class GradientAlignment : public Computation {
 public:
  explicit GradientAlignment(const AnalysisContext& analysis)
      : analysis_(analysis),
        subject_(analysis.subjects[0]),
        learned_(at::zeros({subject_.layout.size}, subject_.values.options().dtype(at::kDouble))),
        exact_(at::zeros_like(learned_)) {}

  int64_t pieces() const override { return analysis_.batch_count(); }

  void Add(int64_t piece) override {
    const TokenBatch& batch = analysis_.Batch(piece);
    const at::Tensor learned = GradientBy(GradientSignal::kRule, batch);
    const at::Tensor exact = GradientBy(GradientSignal::kExact, batch);
    learned_ += learned;
    exact_ += exact;
  }

  std::vector<StateTensor> State() override { return {{"learned", learned_}, {"exact", exact_}}; }

  AnalysisResult Finish() override {
    AnalysisResult result;
    GradientProducts all;
    std::vector<GradientProducts> blocks(static_cast<size_t>(subject_.config.model.layers));
    std::vector<AnalysisNumber> of_tensors;
    for (const ParameterInfo& parameter : subject_.layout.parameters) {
      const GradientProducts products =
          GradientProducts::Of(learned_.narrow(0, parameter.offset, parameter.size),
                               exact_.narrow(0, parameter.offset, parameter.size));
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
  at::Tensor GradientBy(GradientSignal signal, const TokenBatch& batch) const {
    const Pass pass = PassOf(GradientAlignmentOptions(), signal, subject_.config);
    const Gradients gradients = GradientsOf(analysis_, subject_, batch, pass, {true, {}, {}});
    std::vector<at::Tensor> flat;
    for (const at::Tensor& g : gradients.parameters) flat.push_back(g.flatten());
    return at::cat(flat);
  }

  static void Describe(const std::string& place, const GradientProducts& products,
                       std::vector<AnalysisNumber>* numbers) {
    const auto add = [&](const char* name, bool defined, double value) {
      const Undefined reason = products.finite() ? Undefined::kZeroGradient : Undefined::kNonFinite;
      numbers->push_back(defined && products.finite() ? NumberOf(name + place, value)
                                                      : UndefinedNumber(name + place, reason));
    };
    add("cosine", products.first != 0 && products.second != 0, products.cosine());
    add("norm_ratio", products.second != 0, std::sqrt(products.first / products.second));
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
        result->numbers.push_back(products.first != 0 && products.second != 0
                                      ? NumberOf(name, products.cosine())
                                      : UndefinedNumber(name, Undefined::kZeroDenominator));
      }
    }
  }

  const AnalysisContext& analysis_;
  const SubjectModel& subject_;
  at::Tensor learned_;  // the gradient of the run's rule, [P]
  at::Tensor exact_;    // [P]
};

}  // namespace

MadeComputation Compute(const GradientAlignmentOptions&, const AnalysisContext& analysis) {
  return std::make_unique<GradientAlignment>(analysis);
}

}  // namespace ablate::engine
