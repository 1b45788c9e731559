#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/norms.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/torch/model/transformer.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/plain_norm.h"

namespace ablate::engine {
namespace {

// Returns the statistics of a model whose first norm is `norm` and reads the rows [n, d].
AnalysisResult StatisticsOfRows(const at::Tensor& rows, const NormConfig& norm,
                                std::vector<uint32_t> batch = {}) {
  auto [subject, prompt] = ModelOfRows(rows);
  RunConfig& run = subject.config;
  run.model.norm = norm;
  const ParameterLayout layout = MakeLayout(run.model);
  at::Tensor values = R(1, {layout.size}), buffers;
  values.narrow(0, 0, rows.numel()).copy_(rows.flatten());
  if (layout.buffer_size > 0) buffers = at::ones({layout.buffer_size}, at::kDouble);
  subject.checkpoint = CheckpointOf(run, values, buffers);
  return Analyzed({NormStatisticsOptions{std::move(batch)}, {subject}, {0, prompt}});
}

const char kFirst[] = "/block.0.attention_norm";
const char kFirstOfOne[] = "/block.0.attention_norm/batch.1";

TEST(NormStatisticsTest, GivesTheOracleOfEveryNorm) {
  const at::Tensor x = 5 + 10 * R(41, {1, 8});
  ExpectOracles(StatisticsOfRows(x, {}),
                {{"input_mean", 4.873007326},
                 {"input_deviation", 6.443959556},
                 {"input_largest", x.abs().max().item<double>()},
                 {"standardised_mean", 0},
                 {"standardised_deviation", 0.9999998796}},
                kFirst);
  const NormConfig textbook = {.deviation = NormDeviation::kUnbiasedEpsOutside, .eps = 1e-6};
  ExpectOracles(StatisticsOfRows(x, textbook), {{"standardised_deviation", 0.9354142109}}, kFirst);
  ExpectOracles(StatisticsOfRows(x, {.kind = NormKind::kRms}),
                {{"standardised_mean", 0.6031669167},
                 {"standardised_deviation", 0.7976148929},
                 {"standardised_rms", 0.9999999234}},
                kFirst);
}

TEST(NormStatisticsTest, TakesABatchNormsStatisticsOverTokens) {
  const AnalysisResult result =
      StatisticsOfRows(R(51, {6, 8}).narrow(1, 0, 1), {.kind = NormKind::kBatch}, {1});
  for (const char* place : {kFirst, kFirstOfOne}) {
    ExpectOracles(result,
                  {{"input_mean", -0.3561968378}, {"input_deviation", std::sqrt(0.2750021299)}},
                  place);
  }
  // Running statistics of mean 1 and variance 1.
  ExpectOracles(result, {{"standardised_mean", -1.3561968378 / std::sqrt(1 + 1e-5)}}, kFirst);
  ExpectOracles(result,
                {{"standardised_mean", 0},
                 {"standardised_deviation", std::sqrt(0.2750021299 / (0.2750021299 + 1e-5))}},
                kFirstOfOne);
}

TEST(NormStatisticsTest, IsUndefinedForABatchNormOfOneToken) {
  ExpectUndefined(StatisticsOfRows(R(1, {1, 3}), {.kind = NormKind::kBatch}, {1}),
                  Undefined::kTooFewTokens,
                  {absl::StrCat("input_mean", kFirst), absl::StrCat("input_mean", kFirstOfOne)});
  // A LayerNorm needs no other tokens, but a batch of two sequences needs two sequences.
  const AnalysisResult layer = StatisticsOfRows(R(1, {1, 3}), {}, {1, 2});
  EXPECT_EQ(ReasonIn(layer, absl::StrCat("input_mean", kFirstOfOne)), std::nullopt);
  ExpectUndefined(layer, Undefined::kTooFewTokens,
                  {absl::StrCat("input_mean", kFirst, "/batch.2")});
}

TEST(NormStatisticsTest, HasTheDeviationThatEpsLeaves) {
  const at::Tensor x = 0.01 * R(9, {1, 6});
  const double variance = x.var(1, false).item<double>();
  ExpectOracles(StatisticsOfRows(x, {}),
                {{"standardised_deviation", std::sqrt(variance / (variance + 1e-5))}}, kFirst);
}

TEST(NormStatisticsTest, RefusesBatchesThatCantBe) {
  const auto code = [](std::vector<uint32_t> batch) {
    return MakeAnalysis({NormStatisticsOptions{std::move(batch)}, {ModelM()}, {40, ""}})
        .status()
        .code();
  };
  EXPECT_EQ(code({1, 2}), absl::StatusCode::kOk);
  EXPECT_EQ(code({1, 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0}), absl::StatusCode::kInvalidArgument);
}

// Expected numbers of one stage, accumulated batch by batch.
struct Expected {
  double vectors = 0, mean = 0, deviation = 0, rms = 0, largest = 0;

  void Take(const at::Tensor& vectors_of) {
    for (int64_t v = 0; v < vectors_of.size(0); ++v) {
      const at::Tensor x = vectors_of[v];
      vectors += 1;
      mean += x.mean().item<double>();
      deviation += x.std(/*unbiased=*/false).item<double>();
      rms += x.norm().item<double>() / std::sqrt(static_cast<double>(x.numel()));
      largest = std::max(largest, x.abs().max().item<double>());
    }
  }

  void Expect(const std::string& stage, const std::string& place, Precision precision,
              const AnalysisResult& result) const {
    const auto expect = [&](const char* name, double value) {
      ExpectNearIn(precision, NumberIn(result, stage + "_" + name + place), value, 1);
    };
    expect("mean", mean / vectors);
    expect("deviation", deviation / vectors);
    expect("rms", rms / vectors);
    expect("largest", largest);
  }
};

// Returns the activations before and after a norm at all positions of each batch, whose rows have
// equal lengths.
std::vector<std::pair<at::Tensor, at::Tensor>> AroundNorm(SubjectModel subject,
                                                          const std::vector<TokenBatch>& batches,
                                                          const NormPlace& norm,
                                                          Statistics statistics) {
  const at::NoGradGuard no_grad;
  subject.config.model.loss = LossPositions::kAll;
  std::vector<std::pair<at::Tensor, at::Tensor>> around;
  for (TokenBatch batch : batches) {
    batch.targets.assign(batch.inputs.size(), 0);  // also if the loss reads last positions only
    at::Tensor input, output;
    const Hooks hooks = *Hooks::Make(
        subject.config.model,
        {{norm.input, Observe([&](const at::Tensor& x) { input = x.to(at::kDouble); })},
         {norm.output, Observe([&](const at::Tensor& x) { output = x.to(at::kDouble); })}});
    Logits(subject.config.model, subject.parameters, BatchOf(subject, batch),
           {.statistics = statistics, .hooks = &hooks});
    around.emplace_back(input, output);
  }
  return around;
}

// Expects one norm's numbers in evaluation, over all tokens together, or with batches of one
// sequence.
void ExpectStagesOf(const SubjectModel& subject, const AnalysisContext& analysis,
                    const NormPlace& norm, bool evaluation, const AnalysisResult& result) {
  const NormConfig& config = subject.config.model.norm;
  std::vector<std::pair<at::Tensor, at::Tensor>> around =
      AroundNorm(subject, evaluation ? analysis.batches : SplitRows(analysis.batches), norm,
                 evaluation ? Statistics::kRunning : Statistics::kBatch);
  if (evaluation) {
    std::vector<at::Tensor> inputs, outputs;
    for (const auto& [input, output] : around) {
      inputs.push_back(input);
      outputs.push_back(output);
    }
    around = {{at::cat(inputs), at::cat(outputs)}};
  }
  Expected before, between, after;
  for (const auto& [input, output] : around) {
    const at::Tensor vectors = VectorsOf(input, config.kind);
    before.Take(vectors);
    if (evaluation && config.kind == NormKind::kBatch) {
      between.Take(
          VectorsOf((input - norm.parameters.running_mean.to(at::kDouble)) /
                        (norm.parameters.running_variance.to(at::kDouble) + config.eps).sqrt(),
                    config.kind));
    } else {
      between.Take(PlainNorm(vectors, config));
    }
    after.Take(VectorsOf(output, config.kind));
  }
  const std::string place = absl::StrCat("/", norm.name, evaluation ? "" : "/batch.1");
  before.Expect("input", place, subject.config.precision, result);
  between.Expect("standardised", place, subject.config.precision, result);
  after.Expect("output", place, subject.config.precision, result);
}

TEST(NormStatisticsTest, EqualsLoopsOverVectorsInDrawnSettings) {
  int compared = 0, batch_norms = 0;
  for (uint64_t number = 0; compared < 24; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const SubjectModel model = *ReadSubject(subject.config, subject.checkpoint);
    const std::vector<NormPlace> norms = NormPlacesOf(model.config.model, model.parameters);
    if (norms.empty()) continue;
    ++compared;
    batch_norms += model.config.model.norm.kind == NormKind::kBatch ? 1 : 0;
    const AnalysisRequest request = {NormStatisticsOptions{{1}}, {subject}, {40, ""}};
    const AnalysisContext analysis = *ReadAnalysisContext(request);
    const AnalysisResult result = Analyzed(request);
    for (const NormPlace& norm : norms) {
      ExpectStagesOf(model, analysis, norm, true, result);
      ExpectStagesOf(model, analysis, norm, false, result);
    }
  }
  EXPECT_GT(batch_norms, 2);
}

TEST(NormStatisticsTest, LeavesPaddingOutWhereABatchMixesLengths) {
  // For norms that read no other token the batch makes no difference, nor does its padding.
  for (uint64_t number = 0; number < 40; number += 8) {  // of documents
    SCOPED_TRACE(number);
    AnalysisSubject subject = DrawnSubject(number);
    const ModelConfig& model = subject.config.model;
    if (model.norm.kind == NormKind::kBatch || !HasNorm(model)) continue;
    const AnalysisRequest whole = {NormStatisticsOptions{{12}}, {subject}, {1000, ""}};
    const AnalysisResult result = Analyzed(whole);
    for (const AnalysisNumber& one : result.numbers) {
      if (one.name.find("/batch.") != std::string::npos) continue;
      ASSERT_FALSE(one.undefined.has_value());
      EXPECT_NEAR(NumberIn(result, one.name + "/batch.12"), one.value,
                  1e-9 * std::max(1.0, std::abs(one.value)));
    }
  }
}

}  // namespace
}  // namespace ablate::engine
