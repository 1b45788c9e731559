#include <gtest/gtest.h>

#include "server/engine/analyze/repeated_tokens.h"
#include "server/engine/core/data/documents.h"
#include "server/engine/core/data/random.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/plain_model.h"
#include "tests/engine/analyze/stops.h"
#include "tests/tokenizer/small_tokenizer.h"

namespace ablate::engine {
namespace {

AnalysisRequest InductionRequest(const AnalysisSubject& subject, uint32_t period, uint32_t repeats,
                                 uint32_t sequences) {
  return {InductionOptions{period, repeats, sequences}, {subject}, {}};
}

// Returns the first problem of the options for a model.
std::string InductionProblem(const ModelConfig& model, const InductionOptions& options) {
  const auto problems = KindOf(AnalysisOptions(options)).check(options, model);
  if (problems.empty()) return "";
  return problems[0].field + ": " + problems[0].complaint + "; expected " + problems[0].allowed;
}

// Model M holds out the tokens 1 4 2 6 1 4 2 6.
TEST(SumsOfRepeatsTest, GivesTheOracle) {
  const AnalysisContext analysis = ContextOf(ModelM());
  const std::vector<at::Tensor> weights =
      CaptureHookPoints(analysis, analysis.subjects[0], analysis.batches[0],
                        {"block.0.attention.weights", "block.1.attention.weights"});
  const at::Tensor heads = SumsOfRepeats(at::cat(weights), 4).select(-1, kInduction) /
                           static_cast<double>(RepeatQueries(8, 4)[kInduction]);
  const std::vector<double> oracle = {0.2442574968, 0.2894172119, 0.130012253, 0.1511863014};
  for (int64_t i = 0; i < 4; ++i) ExpectOracle(heads[i].item<double>(), oracle[i]);
}

TEST(SumsOfRepeatsTest, SeparatesTheKindsOfHeads) {
  constexpr int64_t kLength = 12, kPeriod = 3;
  const auto head = [](int64_t back) {  // all weight on the key `back` tokens earlier
    const at::Tensor weights = at::zeros({kLength, kLength}, at::kFloat);
    for (int64_t i = 0; i < kLength; ++i) weights[i][std::max<int64_t>(i - back, 0)] = 1;
    return SumsOfRepeats(weights, kPeriod);
  };
  const auto sums = [](double induction, double previous, double duplicate) {
    return at::tensor({induction, previous, duplicate}, at::kDouble);
  };
  EXPECT_TRUE(at::equal(head(kPeriod - 1), sums(9, 1, 0)));
  // Queries whose key would be before the first token attend to that one.
  EXPECT_TRUE(at::equal(head(2 * kPeriod - 1), sums(6, 1, 1)));
  EXPECT_TRUE(at::equal(head(kPeriod), sums(0, 1, 9)));
  EXPECT_TRUE(at::equal(head(1), sums(0, 11, 0)));
}

TEST(SumsOfRepeatsTest, GivesChanceForEqualWeights) {
  for (const auto& [length, period] : {std::pair<int64_t, int64_t>{12, 3}, {8, 4}, {4, 2}}) {
    const at::Tensor keys = at::arange(1, length + 1, at::kDouble).unsqueeze(1);
    const at::Tensor sums =
        SumsOfRepeats(at::ones({length, length}, at::kDouble).tril() / keys, period);
    const auto chance = ChanceOfRepeats(length, period);
    const auto queries = RepeatQueries(length, period);
    for (size_t i = 0; i < kRepeatSums; ++i) {
      ExpectOracle(chance[i],
                   sums[static_cast<int64_t>(i)].item<double>() / static_cast<double>(queries[i]));
    }
  }
}

// Returns sequence `index` of seed 0, by docs/reference/random-streams.md.
std::vector<int64_t> SequenceOf(int64_t index, uint64_t tokens, int64_t period, int64_t length) {
  SplitMix64 random(StreamSeed(0, "analysis/induction/" + std::to_string(index)));
  std::vector<int64_t> sequence;
  for (int64_t i = 0; i < length; ++i) {
    sequence.push_back(i < period ? static_cast<int64_t>(random.Below(tokens))
                                  : sequence[static_cast<size_t>(i - period)]);
  }
  return sequence;
}

// Reads one sequence after the other and adds weight by weight.
TEST(InductionTest, EqualsLoopsOverRowsInDrawnSettings) {
  constexpr int64_t kPeriod = 2, kLength = 4, kSequences = 3;
  const at::NoGradGuard no_grad;
  int compared = 0;
  for (uint64_t number = 0; compared < 24; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    const ModelConfig& model = subject.config.model;
    const AnalysisRequest request = InductionRequest(subject, kPeriod, 2, kSequences);
    if (!KindOf(request.options).check(request.options, model).empty()) continue;
    ++compared;
    const AnalysisResult result = Analyzed(request);
    const bool documents = std::holds_alternative<DocumentsTask>(subject.config.task);
    const auto tokens = static_cast<uint64_t>(model.vocabulary) - (documents ? 1 : 0);
    AnalysisContext analysis;
    analysis.subjects.push_back(*ReadSubject(subject.config, subject.checkpoint));
    const SubjectModel& read = analysis.subjects[0];
    RunConfig everywhere = subject.config;
    everywhere.model.loss = LossPositions::kAll;
    const PlainModel plain(everywhere, read.values, read.buffers);
    const int block = model.layers - 1, head = model.heads - 1;
    double induction = 0, previous = 0, duplicate = 0, first = 0, repeated = 0;
    for (int64_t s = 0; s < kSequences; ++s) {
      const std::vector<int64_t> row = SequenceOf(s, tokens, kPeriod, kLength);
      const TokenBatch batch = {1, kLength, row, std::vector<int64_t>(kLength, 0), {kLength}};
      const at::Tensor a = CaptureHookPoints(
          analysis, read, batch, {HookPointName(HookPoint::kAttentionWeights, block)})[0][head];
      const at::Tensor logits = plain.Logits(row).to(at::kDouble);
      for (int64_t i = 0; i < kLength; ++i) {
        const auto weight = [&](int64_t key) { return a[i][key].item<double>(); };
        if (i >= 1) previous += weight(i - 1);
        for (int64_t key = 0; key < i && i >= kPeriod; ++key) {
          if ((i - key) % kPeriod == 0) duplicate += weight(key);
          if ((i - key) % kPeriod == kPeriod - 1 && key > 0) induction += weight(key);
        }
        if (i + 1 == kLength) continue;
        const double loss =
            (logits[i].logsumexp(0) - logits[i][row[static_cast<size_t>(i) + 1]]).item<double>();
        (i + 1 < kPeriod ? first : repeated) += loss;
      }
    }
    const Precision precision = subject.config.precision;
    const std::string place = "/block." + std::to_string(block) + ".head." + std::to_string(head);
    const auto expect = [&](const std::string& name, double sum, int64_t count) {
      ExpectNearIn(precision, NumberIn(result, name), sum / static_cast<double>(kSequences * count),
                   1);
    };
    expect("induction" + place, induction, 2);
    expect("duplicate_token" + place, duplicate, 2);
    expect("previous_token" + place, previous, 3);
    expect("first_loss", first, 1);
    expect("repeated_loss", repeated, 2);
  }
}

TEST(InductionTest, GivesTheLargestHead) {
  const AnalysisResult result = Analyzed(InductionRequest(ModelM(), 4, 2, 5));
  for (const std::string name : {"induction", "previous_token", "duplicate_token"}) {
    const at::Tensor heads = ArrayIn(result, name);
    ASSERT_EQ(heads.sizes(), (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(NumberIn(result, name), heads.max().item<double>());
    EXPECT_EQ(NumberIn(result, name + "/block.1"), heads[1].max().item<double>());
    EXPECT_EQ(NumberIn(result, name + "/block.1.head.0"), heads[1][0].item<double>());
  }
  const auto chance = ChanceOfRepeats(8, 4);
  EXPECT_EQ(NumberIn(result, "induction_chance"), chance[kInduction]);
  EXPECT_EQ(NumberIn(result, "duplicate_token_chance"), chance[kDuplicateToken]);
}

// Queries and keys are 0, so that weights are equal.
TEST(InductionTest, IsChanceIfWeightsAreEqual) {
  const AnalysisSubject even =
      Changed(ModelM(), [](const ParameterInfo& parameter, const at::Tensor& values) {
        if (parameter.module == Module::kQkv) values.narrow(0, 0, parameter.size / 3 * 2).zero_();
      });
  const AnalysisResult result = Analyzed(InductionRequest(even, 2, 4, 3));
  for (const std::string name : {"induction", "previous_token", "duplicate_token"}) {
    ExpectOracle(NumberIn(result, name), NumberIn(result, name + "_chance"));
  }
}

TEST(InductionTest, DrawsTokensBySeedExceptTheBoundary) {
  AnalysisRequest request = InductionRequest(ModelM(), 4, 2, 5);
  const double loss = NumberIn(Analyzed(request), "repeated_loss");
  EXPECT_EQ(NumberIn(Analyzed(request), "repeated_loss"), loss);
  request.seed = 1;
  EXPECT_NE(NumberIn(Analyzed(request), "repeated_loss"), loss);

  RunConfig documents = ModelM().config;
  documents.task = *ReadDocumentsTask("a\na\na\n", 1);
  documents.model.vocabulary = 2;
  // Only one token is left: the loss is of that one alone.
  const AnalysisSubject subject = SubjectOf(documents, 1);
  const SubjectModel read = *ReadSubject(documents, subject.checkpoint);
  const TokenBatch batch = {1, 4, {0, 0, 0, 0}, {TokenBatch::kIgnored, 0, 0, -100}, {4}};
  const double repeated = ScoreOf(read, batch, {}).loss / 2;
  ExpectOracle(NumberIn(Analyzed(InductionRequest(subject, 2, 2, 3)), "repeated_loss"), repeated);
}

// A tokenizer's boundary may be any of its tokens.
TEST(InductionTest, DrawsEachTokenExceptTheBoundaryOfATokenizer) {
  RunConfig run = ModelM().config;
  auto documents = std::make_shared<TokenizedDocuments>(
      *EncodeDocuments("a\nb\n", tokenizer::SmallTokenizer{{}, {}}.Make()));
  documents->boundary = 0;
  run.task = DocumentsTask{true, documents, 1};
  run.model.vocabulary = static_cast<int>(documents->vocabulary());
  ASSERT_EQ(run.model.vocabulary, 256);
  const AnalysisSubject subject = SubjectOf(run, 1);
  const at::NoGradGuard no_grad;
  const SubjectModel read = *ReadSubject(run, subject.checkpoint);
  double repeated = 0;
  for (int64_t s = 0; s < 20; ++s) {
    std::vector<int64_t> row = SequenceOf(s, 255, 2, 4);
    for (int64_t& token : row) ++token;
    const TokenBatch batch = {1, 4, row, {TokenBatch::kIgnored, row[2], row[3], -100}, {4}};
    repeated += ScoreOf(read, batch, {}).loss / 2 / 20;
  }
  ExpectOracle(NumberIn(Analyzed(InductionRequest(subject, 2, 2, 20)), "repeated_loss"), repeated);
}

TEST(InductionTest, HasNoChanceWithoutNormalisedWeights) {
  const AnalysisSubject subject = WithSettings(
      ModelM(), [](RunConfig& run) { run.model.attention.kind = AttentionKind::kSigmoid; });
  const AnalysisResult result = Analyzed(InductionRequest(subject, 4, 2, 2));
  ExpectUndefined(result, Undefined::kUnnormalised, {"induction_chance", "previous_token_chance"});
  EXPECT_GT(NumberIn(result, "induction"), 0);
}

TEST(InductionTest, RepeatsAsManyTokensAsFitTheContext) {
  ModelConfig model = ModelM().config.model;
  EXPECT_EQ(PeriodOf({0, 3, 1}, model), 2u);
  EXPECT_EQ(PeriodOf({3, 2, 1}, model), 3u);
  model.context = 1024;
  EXPECT_EQ(PeriodOf({}, model), 25u);
}

TEST(InductionTest, RefusesModelsAndPeriodsByName) {
  ModelConfig model = ModelM().config.model;
  EXPECT_EQ(InductionProblem(model, {4, 2, 1}), "");
  EXPECT_EQ(InductionProblem(model, {5, 2, 1}),
            "period: 5 tokens, 2 times, are 10, and the model's context has 8; expected at most 4 "
            "with 2 repeats");
  EXPECT_EQ(InductionProblem(model, {2, 5, 1}),
            "period: 2 tokens, 5 times, are 10, and the model's context has 8; expected period · "
            "repeats of at most 8");
  EXPECT_EQ(InductionProblem(model, {0, 4, 1}), "");
  EXPECT_EQ(InductionProblem(model, {0, 5, 1}),
            "repeats: the model's context has 8 tokens, fewer than two for each; expected at most "
            "4");
  model.attention.causal = false;
  EXPECT_EQ(InductionProblem(model, {4, 2, 1}),
            ": queries of the model see later tokens; expected a model whose "
            "model.attention.causal is true");
  model.attention.kind = AttentionKind::kNone;
  EXPECT_EQ(InductionProblem(model, {4, 2, 1}),
            ": the model has no attention; expected a model whose model.attention.kind is not "
            "none");
  EXPECT_EQ(MakeAnalysis(InductionRequest(ModelM(), 5, 2, 1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(InductionTest, GivesTheSameBitsWhereverItIsCut) {
  // 400 sequences of 8 tokens are more than one piece reads.
  const AnalysisRequest request = InductionRequest(ModelM(), 4, 2, 400);
  EXPECT_GT((*MakeAnalysis(request))->pieces(), 1);
  ExpectSameBitsWhereverItIsCut(request);
  ExpectNothingOfWhatWasStopped(InductionOptions{4, 2, 400}, *ReadAnalysisContext(request));
}

TEST(InductionTest, DoesNotDependOnTheSizeOfPieces) {
  const AnalysisResult all = Analyzed(InductionRequest(ModelM(), 4, 2, 300));
  const AnalysisResult some = Analyzed(InductionRequest(ModelM(), 4, 2, 299));
  const AnalysisContext analysis = *ReadAnalysisContext(InductionRequest(ModelM(), 4, 2, 300));
  const TokenBatch last = {1, 8, SequenceOf(299, 7, 4, 8), std::vector<int64_t>(8, 0), {8}};
  const at::Tensor weights =
      CaptureHookPoints(analysis, analysis.subjects[0], last, {"block.1.attention.weights"})[0][1];
  const double alone = SumsOfRepeats(weights, 4)[kInduction].item<double>() / 4;
  ExpectOracle(300 * NumberIn(all, "induction/block.1.head.1"),
               299 * NumberIn(some, "induction/block.1.head.1") + alone);
}

TEST(InductionTest, EstimatesItsArraysAndTokens) {
  const AnalysisRequest request = InductionRequest(ModelM(), 4, 2, 5);
  const AnalysisCost cost = CostOf(request, 0);
  EXPECT_EQ(cost.array_bytes, BytesOfArrays(Analyzed(request)));
  EXPECT_EQ(cost.state_bytes, (*MakeAnalysis(request))->state_bytes());
  EXPECT_EQ(cost.tokens, 40u);
}

}  // namespace
}  // namespace ablate::engine
