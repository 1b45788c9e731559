#include <gtest/gtest.h>

#include <array>

#include "server/engine/analyze/norms.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/plain_gradients.h"
#include "tests/engine/analyze/plain_norm.h"

namespace ablate::engine {
namespace {

AnalysisRequest JacobianRequest(const AnalysisSubject& subject,
                                GradientSignal signal = GradientSignal::kRule) {
  return {NormJacobianOptions{signal}, {subject}, {40, ""}};
}

double Mean(const at::Tensor& values) { return values.mean().item<double>(); }

TEST(NormPartsTest, GivesTheOracle) {
  const NormParts parts = PartsOf(R(51, {6, 8}), R(52, {6, 8}), NormConfig());
  const auto fraction = [&](const at::Tensor& part) { return Mean(part) / Mean(parts.gradient); };
  ExpectOracle(fraction(parts.mean), 0.1246927839);
  ExpectOracle(fraction(parts.radial), 0.2093196931);
  ExpectOracle(Mean(parts.mean / parts.gradient), 0.1182322887);
  ExpectOracle(Mean(parts.radial / parts.gradient), 0.2252341398);
  ExpectOracle(Mean(parts.sigma), 0.5236500981);
  ExpectOracle(parts.sigma.std().item<double>(), 0.04401891238);
  ExpectOracle(Mean(parts.cosine_centred), 0.8521481929);
  ExpectOracle(Mean(parts.cosine_projected), 1);
  ExpectOracle(Mean(parts.cosine_identity), 0.7929708167);
  ExpectOracle(Mean((parts.centred / parts.projected).sqrt()), 1.280005557);
  ExpectOracle(Mean(parts.sigma * (parts.gradient / parts.projected).sqrt()), 0.7061841457);
}

TEST(NormPartsTest, HoldsTheIdentitiesOfSharesAndCosines) {
  const at::Tensor x = R(51, {6, 8}), g = R(52, {6, 8});
  for (const double eps : {1e-2, 1e-5, 1e-12}) {
    NormConfig norm;
    norm.eps = eps;
    const NormParts parts = PartsOf(x, g, norm);
    const at::Tensor left = 1 - (parts.mean + parts.radial) / parts.gradient;
    // The identities are exact without eps; with eps x̂ is shorter, which leaves
    // δ²/(‖g‖²‖projected‖²).
    const at::Tensor x_hat = (x - x.mean(1, true)) / parts.sigma.unsqueeze(1);
    const at::Tensor delta = (1 - x_hat.square().mean(1)) * 8 * (g * x_hat).mean(1).square();
    const at::Tensor apart = delta.square() / (parts.gradient * parts.projected);
    const at::Tensor found = (parts.cosine_identity.square() - left).abs();
    EXPECT_LT((found - apart).abs().max().item<double>(), 1e-12) << eps;
    const at::Tensor centred = left / (1 - parts.mean / parts.gradient);
    if (eps < 1e-10) {
      EXPECT_LT((parts.cosine_centred.square() - centred).abs().max().item<double>(), 1e-10);
    }
  }
}

TEST(NormPartsTest, KeepsTheCosinesOfTinyGradients) {
  const NormParts parts = PartsOf(R(51, {6, 8}), R(52, {6, 8}), NormConfig());
  const NormParts tiny = PartsOf(R(51, {6, 8}), R(52, {6, 8}) * 1e-90, NormConfig());
  EXPECT_LT((parts.cosine_identity - tiny.cosine_identity).abs().max().item<double>(), 1e-14);
}

TEST(NormJacobianTest, GivesTheOracle) {
  const AnalysisResult result = Analyzed(JacobianRequest(ModelM()));
  // r_mean, r_radial, sigma_mean, cosine_center_scale, cosine_identity
  const std::pair<const char*, std::array<double, 5>> oracles[] = {
      {"block.0.attention_norm",
       {0.2309888525, 0.05311503902, 0.6683506352, 0.8394721271, 0.6805977325}},
      {"block.0.feed_forward_norm",
       {0.1570534119, 0.2107356383, 1.920708841, 0.8121177272, 0.725095164}},
      {"block.1.attention_norm",
       {0.2157217886, 0.1871382193, 2.883477309, 0.8302173144, 0.7439477084}},
      {"block.1.feed_forward_norm",
       {0.1801151119, 0.1247786378, 2.276002365, 0.8743660952, 0.797053941}},
      {"final_norm", {0.1347366189, 0.08303519727, 2.553321884, 0.962844082, 0.8980555801}}};
  double r_mean = 0, identity = 0;
  for (const auto& [norm, oracle] : oracles) {
    ExpectOracles(result,
                  {{"r_mean", oracle[0]},
                   {"r_radial", oracle[1]},
                   {"sigma_mean", oracle[2]},
                   {"cosine_center_scale", oracle[3]},
                   {"cosine_projected", 1},
                   {"cosine_identity", oracle[4]}},
                  std::string("/") + norm);
    r_mean += oracle[0] / 5;
    identity += oracle[4] / 5;
  }
  ExpectOracle(NumberIn(result, "r_mean"), r_mean);
  ExpectOracle(NumberIn(result, "cosine_identity"), identity);
}

TEST(NormJacobianTest, IsUndefinedWhereNothingComesBack) {
  const auto [subject, prompt] = ModelOfRows(R(1, {1, 3}));
  const AnalysisResult nothing = Analyzed({NormJacobianOptions{}, {subject}, {0, prompt}});
  ExpectUndefined(nothing, Undefined::kZeroGradient, {"r_mean", "cosine_identity/final_norm"});
  EXPECT_GT(NumberIn(nothing, "sigma_mean/final_norm"), 0);
  EXPECT_EQ(ReasonIn(nothing, "sigma_deviation/final_norm"), Undefined::kTooFewTokens);
  // No numbers if the model has no norm.
  RunConfig none = subject.config;
  none.model.norm.attention = none.model.norm.feed_forward = none.model.norm.final = false;
  EXPECT_EQ(
      MakeAnalysis({NormJacobianOptions{}, {{none, std::string()}}, {40, ""}}).status().code(),
      absl::StatusCode::kInvalidArgument);
  // A norm of one feature has a constant output.
  const auto [thin, letters] = ModelOfRows(R(1, {6, 1}));
  const AnalysisResult flat = Analyzed({NormJacobianOptions{}, {thin}, {0, letters}});
  EXPECT_EQ(NumberIn(flat, "r_mean/final_norm"), 1);
  EXPECT_EQ(ReasonIn(flat, "cosine_identity/final_norm"), Undefined::kZeroDenominator);
}

TEST(NormJacobianTest, RefusesOneTokenForABatchNorm) {
  auto [subject, prompt] = ModelOfRows(R(1, {1, 3}));
  RunConfig& run = subject.config;
  run.model.norm.kind = NormKind::kBatch;
  const ParameterLayout layout = MakeLayout(run.model);
  subject.checkpoint =
      CheckpointOf(run, R(2, {layout.size}), at::ones({layout.buffer_size}, at::kDouble));
  ExpectUndefined(Analyzed({NormJacobianOptions{}, {subject}, {0, prompt}}),
                  Undefined::kTooFewTokens);
}

// Expects the numbers of one norm from loops over its vectors, with exact gradients by autograd.
void ExpectNumbersOf(const std::vector<at::Tensor>& inputs,
                     const std::vector<at::Tensor>& gradients, const RunConfig& run,
                     const std::string& place, const AnalysisResult& result) {
  const NormConfig& norm = run.model.norm;
  double vectors = 0, squares = 0, means = 0, centre = 0, identity = 0, ratio = 0;
  for (size_t batch = 0; batch < inputs.size(); ++batch) {
    const at::Tensor g = VectorsOf(gradients[batch], norm.kind);
    const at::Tensor x = VectorsOf(inputs[batch], norm.kind).clone().requires_grad_();
    PlainNorm(x, norm).backward(g);
    for (int64_t v = 0; v < g.size(0); ++v) {
      const at::Tensor exact = x.grad()[v], mean = FormulaOf(norm.kind).centres
                                                       ? g[v].mean()
                                                       : at::zeros({}, g.options());
      const at::Tensor centred = g[v] - mean;
      const auto norm_of = [](const at::Tensor& a) { return a.norm().item<double>(); };
      if (norm_of(g[v]) == 0) continue;
      ASSERT_GT(norm_of(exact), 1e-12 * norm_of(g[v]));
      ++vectors;
      squares += std::pow(norm_of(g[v]), 2);
      means += std::pow(mean.item<double>(), 2) * static_cast<double>(g.size(1));
      centre += (centred * exact).sum().item<double>() / norm_of(centred) / norm_of(exact);
      identity += (g[v] * exact).sum().item<double>() / norm_of(g[v]) / norm_of(exact);
      ratio += norm_of(g[v]) / norm_of(exact);
    }
  }
  if (vectors == 0) {
    EXPECT_EQ(ReasonIn(result, "r_mean" + place), Undefined::kZeroGradient);
    return;
  }
  const auto expect = [&](const std::string& name, double expected) {
    ExpectNearIn(run.precision, NumberIn(result, name + place), expected, 1);
  };
  expect("r_mean", means / squares);
  expect("cosine_center_scale", centre / vectors);
  expect("cosine_identity", identity / vectors);
  expect("norm_ratio_identity", ratio / vectors);
  expect("cosine_projected", 1);
}

TEST(NormJacobianTest, EqualsAutogradInDrawnSettings) {
  int compared = 0;
  for (uint64_t number = 0; compared < 40; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const RunConfig& run = subject.config;
    if (!HasNorm(run.model)) continue;
    const bool rule = number % 3 != 0;
    const AnalysisRequest request =
        JacobianRequest(subject, rule ? GradientSignal::kRule : GradientSignal::kExact);
    const SubjectModel model = *ReadSubject(run, subject.checkpoint);
    const std::vector<NormPlace> norms = NormPlacesOf(run.model, model.parameters);
    if (norms.empty()) continue;
    ++compared;
    std::vector<std::string> hook_points;
    for (const NormPlace& norm : norms) {
      hook_points.push_back(norm.output);
      hook_points.push_back(norm.input);
    }
    Pass pass;
    if (rule) pass = {.rule = run.training.rule, .norm_backward = run.model.norm.backward};
    if (run.model.norm.kind == NormKind::kBatch) pass.statistics = Statistics::kBatch;
    PlainGradients plain = PlainGradientsOf(request, pass, hook_points);
    const AnalysisResult result = Analyzed(request);
    for (size_t i = 0; i < norms.size(); ++i) {
      const at::Tensor& gain = norms[i].parameters.gain;
      if (gain.defined()) {
        for (at::Tensor& g : plain.hook_points[2 * i]) g = g * gain.to(at::kDouble);
      }
      ExpectNumbersOf(plain.values[2 * i + 1], plain.hook_points[2 * i], run, "/" + norms[i].name,
                      result);
    }
  }
}

// By definition: the deviations of all tokens' embeddings, with documents of several lengths.
TEST(NormJacobianTest, TakesABatchNormsStatisticsOverSequencesOfAllLengths) {
  RunConfig run = DrawnRun(8);
  run.model.norm = NormConfig{.kind = NormKind::kBatch};
  run.training.batch = 1000;
  const AnalysisSubject subject = SubjectOf(run, 8);
  const AnalysisContext plain = ContextOf(subject, 40);
  ASSERT_GT(plain.batches.size(), 1u);
  const at::Tensor embeddings = RowsAlone(plain, plain.subjects[0], "embedding");
  const at::Tensor sigma = (embeddings.var(0, /*unbiased=*/false) + run.model.norm.eps).sqrt();
  const std::string first = NormPlacesOf(run.model, plain.subjects[0].parameters).front().name;
  const AnalysisResult result = Analyzed(JacobianRequest(subject));
  ExpectNearIn(run.precision, NumberIn(result, "sigma_mean/" + first), Mean(sigma), 1);
  ExpectNearIn(run.precision, NumberIn(result, "sigma_deviation/" + first),
               sigma.std().item<double>(), 1);
}

}  // namespace
}  // namespace ablate::engine
