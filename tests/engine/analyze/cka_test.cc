#include "server/engine/analyze/cka.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/hsic.h"
#include "tests/engine/analyze/drawn_subjects.h"
#include "tests/engine/analyze/pieces.h"
#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

at::Tensor OracleX() { return R(11, {20, 6}); }
at::Tensor OracleY() { return OracleX().narrow(1, 0, 4) + 0.5 * R(12, {20, 4}); }

// Returns CKA between the rows of two matrices, which are the embeddings of two models.
AnalysisResult CkaOf(const at::Tensor& x, const at::Tensor& y, CkaEstimator estimator) {
  auto [first, prompt] = ModelOfRows(x);
  auto [second, same_prompt] = ModelOfRows(y);
  return Analyzed({CkaOptions{{"embedding"}, estimator}, {first, second}, {0, prompt}});
}

constexpr char kBoth[] = "cka/embedding/subject.0/subject.1";

double Debiased(const at::Tensor& x, const at::Tensor& y) {
  return NumberIn(CkaOf(x, y, CkaEstimator::kDebiased), kBoth);
}

double Biased(const at::Tensor& x, const at::Tensor& y) {
  return NumberIn(CkaOf(x, y, CkaEstimator::kBiased), kBoth);
}

// Returns the unbiased estimate by Gram matrices without their diagonals (Song et al. 2012).
double UnbiasedByMatrices(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor k = x.mm(x.t()).fill_diagonal_(0), l = y.mm(y.t()).fill_diagonal_(0);
  const auto n = static_cast<double>(x.size(0));
  const at::Tensor sum = (k * l).sum() + k.sum() * l.sum() / ((n - 1) * (n - 2)) -
                         2 / (n - 2) * k.sum(1).dot(l.sum(1));
  return sum.item<double>() / (n * (n - 3));
}

double BiasedByMatrices(const at::Tensor& x, const at::Tensor& y) {
  const at::Tensor a = x - x.mean(0), b = y - y.mean(0);
  return (b.t().mm(a).norm().square() / (a.t().mm(a).norm() * b.t().mm(b).norm())).item<double>();
}

// Returns the result of a computation whose sums may take `bytes` bytes.
AnalysisResult CkaWithin(const AnalysisRequest& request, uint64_t bytes) {
  const absl::StatusOr<AnalysisContext> analysis = ReadAnalysisContext(request);
  return Finished(MakeCka(std::get<CkaOptions>(request.options), *analysis, bytes));
}

TEST(CkaTest, GivesTheOracleOfTwoMatrices) {
  ExpectOracle(Biased(OracleX(), OracleY()), 0.7164380459);
  ExpectOracle(Debiased(OracleX(), OracleY()), 0.6719661291);
  const at::Tensor hsic = ArrayIn(CkaOf(OracleX(), OracleY(), CkaEstimator::kDebiased), "hsic");
  ExpectOracle(hsic[0][1].item<double>(), 0.3706070814);
  ExpectOracle(hsic[0][0].item<double>(), 0.5256315731);
  ExpectOracle(hsic[1][1].item<double>(), 0.5786969818);
}

TEST(CkaTest, GivesTheOracleOfLayers) {
  CkaOptions options{{"block.0.output", "block.1.output"}, CkaEstimator::kBiased};
  const AnalysisRequest biased = {options, {ModelM()}, {8, ""}};
  ExpectOracle(NumberIn(Analyzed(biased), "cka/block.0.output/block.1.output"), 0.9819717046);
  options.estimator = CkaEstimator::kDebiased;
  const AnalysisRequest debiased = {options, {ModelM()}, {8, ""}};
  ExpectOracle(NumberIn(Analyzed(debiased), "cka/block.0.output/block.1.output"), 0.9852382531);
}

TEST(CkaTest, GivesTheOracleOfBlocks) {
  at::Tensor sum = at::zeros({2, 2}, at::kDouble);
  for (const int64_t first : {0, 10}) {
    sum += UnbiasedHsic({OracleX().narrow(0, first, 10), OracleY().narrow(0, first, 10)}).values;
  }
  const double cka =
      sum[0][1].item<double>() / std::sqrt(sum[0][0].item<double>() * sum[1][1].item<double>());
  ExpectOracle(cka, 0.6940841044);
}

TEST(CkaTest, IsOneOfARepresentationAndItself) {
  const at::Tensor x = OracleX();
  EXPECT_NEAR(Debiased(x, x), 1, 1e-12);
  EXPECT_NEAR(Biased(x, x), 1, 1e-12);
  const AnalysisResult result = CkaOf(x, OracleY(), CkaEstimator::kDebiased);
  EXPECT_EQ(ArrayIn(result, "cka").diagonal().sum().item<double>(), 2);
}

TEST(CkaTest, IsTheSameWhenRowsAreTurnedScaledOrShifted) {
  const at::Tensor rotation = std::get<0>(at::linalg_qr(R(13, {6, 6})));
  const at::Tensor moved = 3e3 * OracleX().mm(rotation) + 1000;
  EXPECT_NEAR(Debiased(moved, OracleY() - 500), Debiased(OracleX(), OracleY()), 1e-9);
  EXPECT_NEAR(Biased(moved, OracleY() - 500), Biased(OracleX(), OracleY()), 1e-9);
}

TEST(CkaTest, IsTheSameInEitherOrder) {
  EXPECT_NEAR(Debiased(OracleX(), OracleY()), Debiased(OracleY(), OracleX()), 1e-14);
  const at::Tensor cka = ArrayIn(CkaOf(OracleX(), OracleY(), CkaEstimator::kDebiased), "cka");
  EXPECT_TRUE(cka.equal(cka.t()));
}

// Returns the CKA of matrices, without models.
double CkaOfSums(const at::Tensor& x, const at::Tensor& y, CkaEstimator estimator) {
  HsicSums sums({x.size(1), y.size(1)}, {x[0], y[0]});
  sums.Add({x, y});
  const at::Tensor hsic = sums.Estimate(estimator, static_cast<uint64_t>(x.size(0))).values;
  return hsic[0][1].item<double>() /
         std::sqrt(hsic[0][0].item<double>() * hsic[1][1].item<double>());
}

TEST(CkaTest, FindsNoSimilarityOfNoiseOnlyWhereDebiased) {
  double debiased = 0;
  for (uint64_t i = 0; i < 10; ++i) {
    const at::Tensor x = R(100 + i, {19, 768}), y = R(200 + i, {19, 768});
    EXPECT_GT(CkaOfSums(x, y, CkaEstimator::kBiased), 0.95);
    debiased += CkaOfSums(x, y, CkaEstimator::kDebiased) / 10;
  }
  EXPECT_NEAR(debiased, 0, 0.1);
}

TEST(CkaTest, NamesWhatIsComparedOfOneSubject) {
  const AnalysisResult result = Analyzed({CkaOptions{}, {ModelM()}, {8, ""}});
  ASSERT_EQ(result.numbers.size(), 3u);
  EXPECT_EQ(result.numbers[0].name, "cka/embedding/block.0.output");
  EXPECT_EQ(result.numbers[1].name, "cka/embedding/block.1.output");
  EXPECT_EQ(result.numbers[2].name, "cka/block.0.output/block.1.output");
  EXPECT_EQ(result.notes[0], "of 8 tokens in 4 features");
  EXPECT_EQ(result.notes[1],
            "representations in their order: embedding, block.0.output, block.1.output");
}

TEST(CkaTest, ComparesAllHookPointsOfAllSubjects) {
  AnalysisSubject deeper = ModelM();
  deeper.config.model.layers = 3;
  deeper = SubjectOf(deeper.config, 3);
  const AnalysisResult result = Analyzed({CkaOptions{}, {ModelM(), deeper}, {8, ""}});
  ASSERT_EQ(result.numbers.size(), 3u);  // block.2.output exists in only one of them
  EXPECT_EQ(result.numbers[2].name, "cka/block.1.output/subject.0/subject.1");
  EXPECT_EQ(ArrayIn(result, "cka").sizes(), at::IntArrayRef({7, 7}));
  EXPECT_THAT(result.notes[1], HasSubstr("subject.0.block.1.output, subject.1.embedding"));
}

TEST(CkaTest, IsUndefinedOfTooFewTokens) {
  EXPECT_EQ(ReasonIn(CkaOf(R(1, {3, 2}), R(2, {3, 2}), CkaEstimator::kDebiased), kBoth),
            Undefined::kTooFewTokens);
  EXPECT_EQ(ReasonIn(CkaOf(R(1, {1, 2}), R(2, {1, 2}), CkaEstimator::kBiased), kBoth),
            Undefined::kTooFewTokens);
  EXPECT_TRUE(std::isfinite(Debiased(R(1, {4, 2}), R(2, {4, 2}))));
  EXPECT_TRUE(std::isfinite(Biased(R(1, {2, 2}), R(2, {2, 2}))));
}

TEST(CkaTest, IsUndefinedWhereNothingVaries) {
  const at::Tensor same = at::ones({6, 3}, at::kDouble) * 0.1;
  for (const CkaEstimator estimator : {CkaEstimator::kDebiased, CkaEstimator::kBiased}) {
    const AnalysisResult result = CkaOf(R(1, {6, 3}), same, estimator);
    EXPECT_EQ(ReasonIn(result, kBoth), Undefined::kZeroVariance);
    const at::Tensor cka = ArrayIn(result, "cka");
    EXPECT_EQ(cka[0][0].item<double>(), 1);
    EXPECT_TRUE(std::isnan(cka[0][1].item<double>()));
    EXPECT_TRUE(std::isnan(cka[1][1].item<double>()));
  }
}

TEST(CkaTest, IsUndefinedWhereOneTokenIsAllThatDiffers) {
  // Without its diagonal such a Gram matrix is 0, and the denominator would be a rounding error.
  at::Tensor one = at::full({7, 3}, 0.3, at::kDouble);
  one[2] += 1;
  EXPECT_EQ(ReasonIn(CkaOf(R(1, {7, 3}), one, CkaEstimator::kDebiased), kBoth),
            Undefined::kZeroDenominator);
}

TEST(CkaTest, IsUndefinedWhereAValueIsNotFinite) {
  at::Tensor x = OracleX();
  x[3][1] = std::numeric_limits<double>::infinity();
  for (const CkaEstimator estimator : {CkaEstimator::kDebiased, CkaEstimator::kBiased}) {
    EXPECT_EQ(ReasonIn(CkaOf(x, OracleY(), estimator), kBoth), Undefined::kNonFinite);
  }
}

TEST(CkaTest, RefusesASingleRepresentation) {
  const auto made = MakeAnalysis({CkaOptions{{"embedding"}}, {ModelM()}, {8, ""}});
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(made.status().message(), HasSubstr("analysis.cka.sites: there is one only"));
}

TEST(CkaTest, IsExactByOneMinibatch) {
  const AnalysisRequest request = {
      CkaOptions{{}, CkaEstimator::kDebiased, 512}, {ModelM()}, {8, ""}};
  const AnalysisResult exact = Analyzed(request), one = CkaWithin(request, 0);
  ExpectSameNumbers(exact, one, 1e-12);
  EXPECT_TRUE(at::allclose(ArrayIn(exact, "hsic"), ArrayIn(one, "hsic"), 1e-11));
  EXPECT_EQ(one.notes.back(),
            "from 1 minibatches of 8 tokens or one more, for sums of all pairs are too large");
}

// Returns a request of 60 tokens in 12 blocks, at three hook points of 16 features: all sums take
// 12,288 bytes, the rows of a block 1,920.
AnalysisRequest TwelveBlocks() {
  RunConfig run = ModelM().config;
  std::vector<int> held_out;
  for (int i = 0; i < 61; ++i) held_out.push_back((i * i + i / 9) % 7);
  run.task = LettersTask(7, held_out);
  run.model.width = 16;
  run.model.context = 5;
  return {CkaOptions{{}, CkaEstimator::kDebiased, 5}, {SubjectOf(run, 2)}, {60, ""}};
}

TEST(CkaTest, MinibatchesAreDrawnFromAllTokens) {
  AnalysisRequest request = TwelveBlocks();
  const AnalysisResult exact = CkaWithin(request, 12'288), blocks = CkaWithin(request, 12'287);
  request.seed = 1;
  const AnalysisResult other = CkaWithin(request, 12'287);
  EXPECT_EQ(blocks.notes.back(),
            "from 12 minibatches of 5 tokens or one more, for sums of all pairs are too large");
  ASSERT_EQ(exact.numbers.size(), 3u);
  for (size_t i = 0; i < exact.numbers.size(); ++i) {
    EXPECT_NE(blocks.numbers[i].value, exact.numbers[i].value);
    EXPECT_NEAR(blocks.numbers[i].value, exact.numbers[i].value, 0.2);
    EXPECT_NE(blocks.numbers[i].value, other.numbers[i].value);
  }
}

TEST(CkaTest, MinibatchesReadEveryTokenOnce) {
  // If the block size doesn't divide the tokens, the last block has more.
  AnalysisRequest request = TwelveBlocks();
  std::get<CkaOptions>(request.options).block = 59;
  const at::Tensor exact = ArrayIn(CkaWithin(request, 12'288), "hsic");
  EXPECT_TRUE(at::allclose(ArrayIn(CkaWithin(request, 0), "hsic"), exact, 1e-11));
}

TEST(CkaTest, MinibatchesAreTheSameHoweverManyAreGathered) {
  const AnalysisRequest request = TwelveBlocks();
  const at::Tensor one = ArrayIn(CkaWithin(request, 0), "hsic");
  EXPECT_TRUE(one.equal(ArrayIn(CkaWithin(request, 2 * 1920), "hsic")));
  EXPECT_TRUE(one.equal(ArrayIn(CkaWithin(request, 5 * 1920), "hsic")));
}

TEST(CkaTest, MinibatchesGoOnFromAnyPiece) {
  const AnalysisRequest request = TwelveBlocks();
  const absl::StatusOr<AnalysisContext> analysis = ReadAnalysisContext(request);
  const auto make = [&] {
    return *MakeCka(std::get<CkaOptions>(request.options), *analysis, 5 * 1920);
  };
  auto computation = make();
  EXPECT_EQ(computation->pieces(), 3 * static_cast<int64_t>(analysis->batches.size()) + 12);
  for (int64_t piece = 0; piece < computation->pieces(); ++piece) {
    computation->Add(piece);
    auto next = make();
    const std::vector<StateTensor> from = computation->State(), to = next->State();
    for (size_t i = 0; i < from.size(); ++i) at::Tensor(to[i].tensor).copy_(from[i].tensor);
    computation = std::move(next);
  }
  ExpectSameBits(computation->Finish(), CkaWithin(request, 5 * 1920));
}

TEST(CkaTest, RefusesTheBiasedEstimateBeyondItsMemory) {
  AnalysisSubject deep = ModelM();
  deep.config.model.layers = 19;
  deep.config.model.width = 768;  // 20 representations, 210 pairs
  const auto made = [&](CkaEstimator estimator) {
    return MakeAnalysis({CkaOptions{{}, estimator}, {deep}, {8, ""}}).status();
  };
  EXPECT_THAT(made(CkaEstimator::kBiased).message(), Not(HasSubstr("estimator")))
      << "990,904,320 bytes";
  deep.config.model.layers = 20;
  EXPECT_EQ(made(CkaEstimator::kBiased).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      made(CkaEstimator::kBiased).message(),
      HasSubstr("analysis.cka.estimator: biased needs sums of all pairs, 1089994752 bytes"));
  EXPECT_THAT(made(CkaEstimator::kDebiased).message(), Not(HasSubstr("estimator")));
}

TEST(CkaTest, CostsWhatItCarries) {
  const AnalysisOptions small = CkaOptions{};
  const AnalysisCost exact = KindOf(small).cost(small, ModelM().config, 8, 2);
  EXPECT_EQ(exact.forwards, 2);
  EXPECT_EQ(exact.state_bytes, 8u * 4 * 4 * 21);  // six representations, including each with itself
  EXPECT_EQ(exact.array_bytes, 2u * 8 * 6 * 6);

  RunConfig run;
  run.model.layers = 12;
  run.model.width = 768;
  CkaOptions many = {{"embedding"}};
  for (int i = 0; i < 12; ++i) {
    for (const char* hook_point : {"attention.input", "attention.output", "feed_forward.output"}) {
      many.sites.push_back(absl::StrCat("block.", i, ".", hook_point));
    }
    many.sites.push_back(absl::StrCat("block.", i, ".output"));
  }
  const AnalysisOptions large = many;
  const AnalysisCost blocks = KindOf(large).cost(large, run, 20'000, 1);
  EXPECT_EQ(blocks.forwards, 4);  // 12 of 39 blocks at a time
  EXPECT_EQ(blocks.state_bytes, 12u * 512 * 4 * 49 * 768 + 49u * 8 * 512 * 512);
}

TEST(CkaTest, AgreesWithItsDefinitionOverTheFamily) {
  for (uint64_t number = 0; number < 24; ++number) {
    SCOPED_TRACE(number);
    const RunConfig run = DrawnRun(number);
    // The embedding comes first, independent of the order of hook points; the head's input may be
    // narrower.
    const std::vector<std::string> hook_points = {"embedding", "block.0.feed_forward.hidden",
                                                  "head.input", "logits"};
    AnalysisRequest request = {CkaOptions{hook_points}, {SubjectOf(run, number)}, {90, ""}};
    const absl::StatusOr<AnalysisContext> analysis = ReadAnalysisContext(request);
    ASSERT_TRUE(analysis.ok()) << analysis.status();
    std::vector<at::Tensor> rows;
    for (const std::string& hook_point : hook_points) {
      rows.push_back(RowsAlone(*analysis, analysis->subjects[0], hook_point));
    }
    const AnalysisResult debiased = Analyzed(request);
    std::get<CkaOptions>(request.options).estimator = CkaEstimator::kBiased;
    const AnalysisResult biased = Analyzed(request);
    const double tolerance = ToleranceIn(run.precision);
    for (size_t i = 0; i < hook_points.size(); ++i) {
      for (size_t j = i + 1; j < hook_points.size(); ++j) {
        const std::string name = "cka/" + hook_points[i] + "/" + hook_points[j];
        SCOPED_TRACE(name);
        const double expected =
            UnbiasedByMatrices(rows[i], rows[j]) /
            std::sqrt(UnbiasedByMatrices(rows[i], rows[i]) * UnbiasedByMatrices(rows[j], rows[j]));
        EXPECT_NEAR(NumberIn(debiased, name), expected, tolerance);
        EXPECT_NEAR(NumberIn(biased, name), BiasedByMatrices(rows[i], rows[j]), tolerance);
      }
    }
  }
}

}  // namespace
}  // namespace ablate::engine
