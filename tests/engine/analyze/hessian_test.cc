#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "server/engine/analyze/computation.h"
#include "server/engine/analyze/hessian_products.h"
#include "server/engine/analyze/lanczos.h"
#include "server/engine/analyze/parameter_draws.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_model.h"
#include "tests/engine/analyze/small_models.h"
#include "tests/engine/analyze/stops.h"

namespace ablate::engine {
namespace {

// Returns H·v over all batches, float64.
at::Tensor ProductOf(HessianProducts& products, const AnalysisContext& analysis,
                     const at::Tensor& v) {
  at::Tensor sum = at::zeros({v.numel()}, at::kDouble);
  for (size_t i = 0; i < analysis.batches.size(); ++i) sum += products.Multiply(i, v);
  return sum;
}

// Returns the complete Hessian, [P, P].
at::Tensor DenseOf(const AnalysisSubject& subject) {
  const AnalysisContext analysis = ContextOf(subject);
  HessianProducts products(analysis, analysis.subjects[0]);
  const int64_t parameters = analysis.subjects[0].layout.size;
  const at::Tensor dense = at::eye(parameters, at::kDouble);
  for (int64_t i = 0; i < parameters; ++i) {
    dense[i].copy_(ProductOf(products, analysis, dense[i].clone()));
  }
  return dense;
}

// Returns the Hessian of model M, computed once per process.
const at::Tensor& DenseM() {
  static const at::Tensor dense = DenseOf(ModelM());
  return dense;
}

at::Tensor Signs(uint64_t seed) { return R(seed, {440}).ge(0).to(at::kDouble).mul(2).sub(1); }

AnalysisResult HessianOf(const AnalysisSubject& subject, const HessianOptions& options) {
  return Analyzed({options, {subject}, {1000, ""}});
}

TEST(HessianTest, GivesTheOraclesEigenvalues) {
  const AnalysisResult result = HessianOf(ModelM(), {3, 100, 0, 1});
  ExpectOracle(NumberIn(result, "loss"), 2.162577511);
  ExpectOracle(NumberIn(result, "gradient_norm"), 3.771655522);
  ExpectOracle(NumberIn(result, "largest_eigenvalue"), 85.32139101);
  ExpectOracle(NumberIn(result, "smallest_eigenvalue"), -141.818352);
  const at::Tensor largest = ArrayIn(result, "largest_eigenvalues");
  ExpectOracle(largest[1].item<double>(), 31.38237726);
  ExpectOracle(largest[2].item<double>(), 12.69690965);
  ExpectOracle(ArrayIn(result, "smallest_eigenvalues")[1].item<double>(), -15.39421404);
  EXPECT_LT(NumberIn(result, "largest_eigenvalue_residual"), 1e-6);
}

TEST(HessianTest, GivesTheOraclesDenseMatrix) {
  const at::Tensor& h = DenseM();
  ExpectOracle(h.trace().item<double>(), -18.82341225);
  ExpectOracle(h.norm().item<double>(), 170.7244957);
  EXPECT_LT((h - h.t()).abs().max().item<double>(), 1e-12);
}

TEST(HessianTest, GivesTheOraclesFirstSteps) {
  const AnalysisContext m = ContextOf(ModelM());
  HessianProducts products(m, m.subjects[0]);
  const at::Tensor start = R(7, {440});
  at::Tensor basis = (start / start.norm()).unsqueeze(0);
  std::vector<double> alphas, betas;
  for (int step = 0; step < 5; ++step) {
    const LanczosStep made = StepOf(basis, ProductOf(products, m, basis[step].clone()));
    alphas.push_back(made.alpha);
    betas.push_back(made.beta);
    basis = at::cat({basis, made.next.unsqueeze(0)});
  }
  ExpectOracle(alphas[0], 0.9028970467);
  ExpectOracle(betas[0], 8.736181726);
  const RitzValues ritz = RitzValuesOf(alphas, betas);
  const std::vector<double> values = {-141.8177855, -7.071674924, 0.2935016053, 26.4785583,
                                      85.31883102};
  const std::vector<double> weights = {0.00046219559, 0.01962788414, 0.9687441165, 0.002204861663,
                                       0.008960942118};
  for (size_t i = 0; i < 5; ++i) {
    ExpectOracle(ritz.values[i], values[i]);
    ExpectOracle(ritz.weights[i], weights[i]);
  }
}

TEST(LanczosTest, GivesTheSameStepInGroupsOfAnySize) {
  const at::Tensor basis = std::get<0>(at::linalg_qr(R(1, {60, 11}))).t().contiguous();
  const at::Tensor product = R(2, {60});
  const LanczosStep whole = StepOf(basis, product.clone());
  for (const int64_t elements : {1, 120, 200}) {
    const LanczosStep grouped = StepOf(basis, product.clone(), elements);
    EXPECT_NEAR(grouped.alpha, whole.alpha, 1e-12);
    EXPECT_NEAR(grouped.beta, whole.beta, 1e-12);
    EXPECT_LT((grouped.next - whole.next).abs().max().item<double>(), 1e-12);
    EXPECT_LT(basis.mv(grouped.next).abs().max().item<double>(), 1e-12);
  }
}

TEST(HessianTest, GivesTheOraclesTraceOfGivenSigns) {
  const AnalysisContext m = ContextOf(ModelM());
  HessianProducts products(m, m.subjects[0]);
  at::Tensor samples = at::empty({8}, at::kDouble);
  for (int64_t i = 0; i < 8; ++i) {
    const at::Tensor v = Signs(100 + static_cast<uint64_t>(i));
    samples[i] = v.dot(ProductOf(products, m, v));
  }
  ExpectOracle(samples.mean().item<double>(), -181.7953058);
  ExpectOracle(samples.std().item<double>() / std::sqrt(8.0), 127.6746236);
}

TEST(HessianTest, SaysHowFarTheTraceMayBeOff) {
  const AnalysisResult result = HessianOf(ModelM(), {1, 1, 40, 1});
  const at::Tensor samples = ArrayIn(result, "trace_samples");
  const AnalysisContext m = ContextOf(ModelM());
  const at::Tensor& h = DenseM();
  for (int64_t i = 0; i < 40; ++i) {
    const at::Tensor v = SignVector(m, m.subjects[0].layout, absl::StrCat("hessian/trace.", i));
    EXPECT_NEAR(samples[i].item<double>(), v.dot(h.mv(v)).item<double>(), 1e-9);
  }
  EXPECT_NEAR(NumberIn(result, "trace"), samples.mean().item<double>(), 1e-9);
  // The variance of one sample is 2(‖H‖² − ΣH_ii²).
  const at::Tensor off = h - h.diag().diag();
  const double error = std::sqrt(2 * off.square().sum().item<double>() / 40);
  EXPECT_NEAR(NumberIn(result, "trace_standard_error"), error, 0.5 * error);
  EXPECT_NEAR(NumberIn(result, "trace"), h.trace().item<double>(), 4 * error);
}

TEST(HessianTest, HasTheMomentsOfItsStartInItsDensity) {
  const AnalysisResult result = HessianOf(ModelM(), {1, 6, 0, 2});
  const at::Tensor values = ArrayIn(result, "ritz_values");  // [2, 6]
  const at::Tensor weights = ArrayIn(result, "ritz_weights");
  const AnalysisContext m = ContextOf(ModelM());
  const at::Tensor& h = DenseM();
  for (int64_t run = 0; run < 2; ++run) {
    const at::Tensor start =
        SignVector(m, m.subjects[0].layout, absl::StrCat("hessian/start.", run)) / std::sqrt(440.0);
    at::Tensor power = start;
    double scale = 1;
    for (int k = 0; k < 12; ++k, power = h.mv(power), scale *= 142) {  // as long as it is exact
      const double moment = (weights[run] * values[run].pow(k)).sum().item<double>();
      EXPECT_NEAR(moment / scale, start.dot(power).item<double>() / scale, 1e-9) << k;
    }
  }
  const at::Tensor at = ArrayIn(result, "density_at"), density = ArrayIn(result, "density");
  const double area = at::trapezoid(density, at).item<double>();
  EXPECT_NEAR(area, 1, 1e-3);
}

// A model with few parameters, whose Lanczos run ends early.
AnalysisSubject TinySubject() {
  RunConfig config = ModelM().config;
  config.model.layers = 1;
  config.model.width = 2;
  config.model.heads = 1;
  config.model.hidden = 1;
  config.model.bias = false;
  config.model.positions = Positions::kNone;
  config.model.norm.placement = NormPlacement::kNone;
  config.model.norm.final = false;
  config.model.attention.kind = AttentionKind::kNone;
  const ParameterLayout layout = MakeLayout(config.model);
  return {config, CheckpointOf(config, R(3, {layout.size}))};
}

TEST(HessianTest, EndsWhereItsBasisSpansAllThatItReaches) {
  const at::Tensor h = DenseOf(TinySubject());
  ASSERT_LT(h.size(0), 40);
  const at::Tensor eigenvalues = std::get<0>(at::linalg_eigh(h));
  const AnalysisResult result = HessianOf(TinySubject(), {2, 80, 0, 1});
  EXPECT_NEAR(NumberIn(result, "largest_eigenvalue"), eigenvalues[-1].item<double>(), 1e-9);
  EXPECT_NEAR(NumberIn(result, "smallest_eigenvalue"), eigenvalues[0].item<double>(), 1e-9);
  EXPECT_EQ(NumberIn(result, "largest_eigenvalue_residual"), 0);
  EXPECT_LE(ArrayIn(result, "ritz_values").size(1), h.size(0));
  const at::Tensor weights = ArrayIn(result, "ritz_weights");
  EXPECT_NEAR(weights.sum().item<double>(), 1, 1e-12);
}

TEST(HessianTest, IsZeroWhereNothingMovesTheLoss) {
  RunConfig certain = TinySubject().config;  // it has only one letter
  certain.task = LettersTask(1, std::vector<int>(9, 0));
  certain.model.vocabulary = 1;
  const AnalysisResult result = HessianOf(UntrainedSubject(certain), {1, 5, 3, 2});
  for (const AnalysisNumber& number : result.numbers) {
    EXPECT_EQ(number.value, 0) << number.name;
    EXPECT_EQ(number.undefined, std::nullopt) << number.name;
  }
  EXPECT_EQ(result.notes[0], "all eigenvalues found are equal: there is no density to draw");
}

TEST(HessianTest, SaysWhatHasNotConverged) {
  const AnalysisResult early = HessianOf(ModelM(), {1, 4, 0, 0});
  EXPECT_GT(NumberIn(early, "largest_eigenvalue_residual"), 0.01);
  EXPECT_EQ(early.notes[0], "2 of 2 eigenvalues have not converged in 4 iterations");
  // An eigenvalue is at most the residual away.
  const at::Tensor all = std::get<0>(at::linalg_eigh(DenseM()));
  const double nearest = (all - NumberIn(early, "smallest_eigenvalue")).abs().min().item<double>();
  EXPECT_LE(nearest, NumberIn(early, "smallest_eigenvalue_residual"));
  EXPECT_EQ(OtherNotes(HessianOf(ModelM(), {1, 60, 0, 0})).size(), 1);
}

TEST(HessianTest, IsUndefinedWhereItIsNotFinite) {
  const AnalysisSubject diverged =
      Changed(ModelM(), [](const ParameterInfo&, at::Tensor values) { values.fill_(NAN); });
  const AnalysisResult result = HessianOf(diverged, {1, 3, 2, 2});
  ExpectUndefined(result, Undefined::kNonFinite);
  EXPECT_EQ(result.numbers.size(), 8);
  ExpectUndefined(Analyzed({HessianOptions{1, 3, 2, 2}, {ModelM()}, {0, "a"}}),
                  Undefined::kTooFewTokens);
  EXPECT_EQ(ReasonIn(HessianOf(ModelM(), {1, 3, 1, 2}), "trace_standard_error"),
            Undefined::kZeroDenominator);
}

TEST(HessianTest, RefusesMoreEigenvaluesThanIterations) {
  const auto made = MakeAnalysis({HessianOptions{5, 4, 0, 0}, {ModelM()}, {1000, ""}});
  EXPECT_EQ(made.status().message(),
            "analysis.hessian.top: 4 iterations find no more than so many eigenvalues; expected 1 "
            "to iterations: 4");
}

TEST(HessianTest, GivesTheSameBitsWhereverItIsCutAfterAnEarlyEnd) {
  ExpectSameBitsWhereverItIsCut({HessianOptions{1, 30, 1, 1}, {TinySubject()}, {1000, ""}});
}

// Only the basis vectors computed so far are saved, and none for the trace.
TEST(HessianTest, SavesNoMoreOfItsBasisThanIsNeeded) {
  const HessianOptions options{1, 30, 3, 1};
  const auto analysis = MakeAnalysis({options, {ModelM()}, {1000, ""}});
  ASSERT_TRUE(analysis.ok()) << analysis.status();
  const uint64_t without = (*analysis)->state_bytes(), vector = 440 * sizeof(double);
  std::vector<uint64_t> vectors;
  const std::atomic<bool> stop{false};
  while ((*analysis)->made() < (*analysis)->pieces()) {
    ASSERT_TRUE((*analysis)->Advance(stop).ok());
    EXPECT_NEAR((*analysis)->Save()->size(), (*analysis)->state_bytes(), 2000) << "but its header";
    vectors.push_back(((*analysis)->state_bytes() - without) / vector);
  }
  ASSERT_EQ(vectors.size(), 34u) << "the gradient, 30 products for the basis, 3 for the trace";
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(vectors[i], i == 0 ? 0 : i + 1) << i;
  for (size_t i = 30; i < 34; ++i) EXPECT_EQ(vectors[i], 0u) << i;
}

TEST(HessianTest, IsAsBeforeWhereAPieceWasStopped) {
  ExpectNothingOfWhatWasStopped(HessianOptions{1, 3, 2, 2}, DrawnContext(2, Precision::kFloat64));
}

// Compares the whole computation, batch by batch, with the plain model's products by automatic
// differentiation of its own operations. Returns false if they couldn't be compared.
bool CompareHessians(uint64_t number, Precision precision, double tolerance) {
  const AnalysisContext analysis = DrawnContext(number, precision);
  const SubjectModel& subject = analysis.subjects[0];
  const AnalysisResult result = ComputedFrom(HessianOptions{1, 2, 1, 1}, analysis);
  const at::Tensor values = subject.values.to(at::kDouble).detach().requires_grad_();
  const at::Tensor loss = PlainMeanLoss(analysis, subject, values);
  const at::Tensor gradient =
      torch::autograd::grad({loss}, {values}, {}, true, /*create_graph=*/true)[0];
  const auto product = [&](const at::Tensor& v) {
    return torch::autograd::grad({gradient}, {values}, {v}, /*retain_graph=*/true)[0];
  };
  const auto expect = [&](const char* what, double made, double expected, double scale) {
    EXPECT_NEAR(made, expected, tolerance * scale) << what << " of setting " << number;
  };
  const auto draw = [&](const char* name) {
    return SignVector(analysis, subject.layout, absl::StrCat("hessian/", name, ".0"));
  };
  expect("loss", NumberIn(result, "loss"), loss.item<double>(), loss.item<double>());
  const double norm = gradient.norm().item<double>();
  // If the variance before a norm is almost 0, the float32 loss already differs.
  if (precision == Precision::kFloat32 && norm > 1000) return false;
  expect("gradient", NumberIn(result, "gradient_norm"), norm, norm);
  const at::Tensor signs = draw("trace"), start = draw("start") / signs.norm();
  const at::Tensor sampled = product(signs), first = product(start);
  expect("trace", NumberIn(result, "trace"), signs.dot(sampled).item<double>(),
         (signs * sampled).abs().sum().item<double>());
  // Two steps: the eigenvalues of H in the plane of the start vector and its image.
  const at::Tensor rest = first - start * start.dot(first);
  const at::Tensor second = rest / rest.norm();
  const at::Tensor basis = at::stack({start, second});
  const at::Tensor small = basis.mm(at::stack({first, product(second)}).t());
  const at::Tensor eigenvalues = std::get<0>(at::linalg_eigh((small + small.t()) / 2));
  const double scale = eigenvalues.abs().max().item<double>();
  expect("largest", NumberIn(result, "largest_eigenvalue"), eigenvalues[1].item<double>(), scale);
  expect("smallest", NumberIn(result, "smallest_eigenvalue"), eigenvalues[0].item<double>(), scale);
  return true;
}

TEST(HessianTest, AgreesWithAPlainModelOnDrawnSettings) {
  int compared = 0;
  for (uint64_t number = 0; number < 22; ++number) {
    CompareHessians(number, Precision::kFloat64, 1e-9);
    compared += CompareHessians(number, Precision::kFloat32, 1e-5);
  }
  EXPECT_GE(compared, 20);
}

TEST(HessianTest, IsThatOfTheLossWhateverTheRunLearnsBy) {
  AnalysisSubject aligned = ModelM();
  aligned.config.training.rule = LearningRule::kFeedbackAlignment;
  aligned.config.model.norm.backward = NormBackward::kIdentity;
  const ParameterLayout layout = MakeLayout(aligned.config.model, aligned.config.training.rule);
  aligned.checkpoint = CheckpointOf(aligned.config, ContextOf(ModelM()).subjects[0].values,
                                    InitialBuffers(layout, 1).to(at::kDouble));
  const HessianOptions options = {1, 5, 2, 1};
  ExpectSameBits(HessianOf(aligned, options), HessianOf(ModelM(), options));
}

TEST(HessianTest, KeepsLargerGraphsOfLargeModels) {
  SubjectModel subject = ContextOf(ModelM()).subjects[0];
  EXPECT_EQ(KeptGraphBytes(subject), kGraphBytes);
  subject.values = at::zeros({1}).expand({int64_t{1} << 28});  // 1 GiB as parameters
  EXPECT_EQ(KeptGraphBytes(subject), uint64_t{1} << 33);
}

TEST(HessianTest, HasTheSameBitsWhetherGraphsAreKept) {
  const AnalysisContext analysis = DrawnContext(3, Precision::kFloat32);
  const SubjectModel& subject = analysis.subjects[0];
  HessianProducts all(analysis, subject);
  HessianProducts some(analysis, subject, GraphBytes(subject, analysis.batches[0]));
  HessianProducts none(analysis, subject, 0);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor v = SignVector(analysis, subject.layout, absl::StrCat(i)).to(at::kFloat);
    const at::Tensor kept = ProductOf(all, analysis, v);
    EXPECT_TRUE(at::equal(kept, ProductOf(some, analysis, v)));
    EXPECT_TRUE(at::equal(kept, ProductOf(none, analysis, v)));
  }
}

}  // namespace
}  // namespace ablate::engine
