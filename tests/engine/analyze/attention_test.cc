#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/engine/analyze/drawn_subjects.h"

namespace ablate::engine {
namespace {

const char kPromptOfM[] = "becgbecg";

AnalysisResult AttentionOfM(AnalysisInputs inputs, std::vector<AttentionMaps> maps = {}) {
  return Analyzed({AttentionOptions{std::move(maps)}, {ModelM()}, std::move(inputs)});
}

TEST(AttentionTest, GivesTheOracle) {
  for (const AnalysisInputs& inputs : {AnalysisInputs{40, ""}, AnalysisInputs{0, kPromptOfM}}) {
    const AnalysisResult result = AttentionOfM(inputs);
    ExpectOracle(NumberIn(result, "entropy/block.0.head.0"), 0.6124454614);
    ExpectOracle(NumberIn(result, "entropy/block.0.head.1"), 0.5235215922);
    ExpectOracle(NumberIn(result, "entropy/block.1.head.0"), 0.711138094);
    ExpectOracle(NumberIn(result, "entropy/block.1.head.1"), 0.9720616501);
    ExpectOracle(NumberIn(result, "entropy/block.1"), (0.711138094 + 0.9720616501) / 2);
    ExpectOracle(NumberIn(result, "mean_map_entropy"), 0.9066537206);
    ExpectOracle(NumberIn(result, "first_token/block.0.head.0"), 0.1207421397);
    ExpectOracle(NumberIn(result, "first_token/block.0.head.1"), 0.1837598155);
    ExpectOracle(NumberIn(result, "first_token/block.1.head.0"), 0.1010307758);
    ExpectOracle(NumberIn(result, "first_token/block.1.head.1"), 0.2625461313);
    ExpectOracle(NumberIn(result, "sink_share"), 0.25);
    ExpectOracle(NumberIn(result, "head_distance/block.0"), 0.2681240789);
    ExpectOracle(NumberIn(result, "head_distance/block.1"), 0.1576758061);
    ExpectOracle(NumberIn(result, "head_distance_without_first/block.0"), 0.3027253436);
    ExpectOracle(NumberIn(result, "head_distance_without_first/block.1"), 0.1451847791);
  }
}

TEST(AttentionTest, GivesTheMapsOfAPrompt) {
  const AnalysisResult result = AttentionOfM(
      {0, kPromptOfM}, {AttentionMaps::kHeads, AttentionMaps::kLayers, AttentionMaps::kModel});
  const at::Tensor heads = ArrayIn(result, "head_maps");
  ASSERT_EQ(heads.sizes(), (std::vector<int64_t>{2, 2, 8, 8}));
  const at::Tensor row = heads[1][0][3];
  ExpectOracle(row[0].item<double>(), 0.1531216262);
  ExpectOracle(row[1].item<double>(), 0.1716193986);
  ExpectOracle(row[2].item<double>(), 0.4899194502);
  ExpectOracle(row[3].item<double>(), 0.1853395251);
  EXPECT_EQ(row[4].item<double>(), 0);
  EXPECT_TRUE(at::allclose(ArrayIn(result, "layer_maps"), heads.mean(1)));
  EXPECT_TRUE(at::allclose(ArrayIn(result, "model_map"), heads.mean(1).mean(0)));
  const AnalysisSubject subject = DrawnSubject(0);  // several windows
  EXPECT_EQ(MakeAnalysis({AttentionOptions{{AttentionMaps::kHeads}}, {subject}, {400, ""}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AttentionTest, HasTheTextOfTheTokensOfMaps) {
  const AnalysisResult result = AttentionOfM({0, kPromptOfM}, {AttentionMaps::kModel});
  EXPECT_EQ(ArrayNamed(result, "token_text").bytes, kPromptOfM);
  EXPECT_TRUE(at::equal(ArrayIn(result, "token_ends"), at::arange(1, 9, at::kDouble)));
  for (const AnalysisArray& array : AttentionOfM({0, kPromptOfM}).arrays) {
    EXPECT_NE(array.name, "token_text") << "no maps were requested";
  }
  RunConfig run;
  run.model.layers = 1;
  run.model.width = run.model.heads = 2;
  run.model.context = 4;
  run.task = *ReadDocumentsTask("éa\naé\naa\n", 1);
  run.model.vocabulary = KindOf(run.task).shape(run.task)->vocabulary;
  const AnalysisResult documents =
      Analyzed({AttentionOptions{{AttentionMaps::kModel}}, {SubjectOf(run, 0)}, {0, "aé"}});
  EXPECT_EQ(ArrayNamed(documents, "token_text").bytes, "aé");
  const at::Tensor ends = at::tensor({0, 1, 3}, at::kDouble);  // the boundary has no bytes
  EXPECT_TRUE(at::equal(ArrayIn(documents, "token_ends"), ends));
}

// Returns model M with its queries and keys times a factor.
AnalysisSubject WithSharpness(double factor) {
  return Changed(ModelM(), [&](const ParameterInfo& parameter, const at::Tensor& values) {
    if (parameter.module == Module::kQkv) values.narrow(0, 0, parameter.size / 3 * 2) *= factor;
  });
}

TEST(AttentionTest, IsOneWhereWeightsAreEqualAndZeroWhereOneHasAll) {
  const AnalysisResult even = Analyzed({AttentionOptions{}, {WithSharpness(0)}, {40, ""}});
  ExpectOracle(NumberIn(even, "entropy"), 1);
  ExpectOracle(NumberIn(even, "mean_map_entropy"), 1);
  EXPECT_NEAR(NumberIn(even, "head_distance"), 0, 1e-15);
  const AnalysisResult sharp = Analyzed({AttentionOptions{}, {WithSharpness(300)}, {40, ""}});
  EXPECT_NEAR(NumberIn(sharp, "entropy"), 0, 1e-9);
  EXPECT_NEAR(NumberIn(sharp, "largest_weight"), 1, 1e-9);
}

TEST(AttentionTest, LeavesOutRowsWhoseOtherWeightsAreRoundedAwayInFloat32) {
  for (double factor = 1; factor < 100; factor *= 1.1) {
    const AnalysisSubject sharp = WithSettings(
        WithSharpness(factor), [](RunConfig& run) { run.precision = Precision::kFloat32; });
    const double distance =
        NumberIn(Analyzed({AttentionOptions{}, {sharp}, {40, ""}}), "head_distance_without_first");
    EXPECT_TRUE(distance >= 0 && distance <= std::log(2)) << factor << ": " << distance;
  }
}

TEST(AttentionTest, FollowsHeadsThatChangePlaces) {
  const auto exchange = [](const at::Tensor& all, int64_t axis, int64_t first) {
    const at::Tensor heads = all.narrow(axis, first, 4);
    heads.copy_(heads.roll(2, axis).clone());
  };
  const auto change = [&](const ParameterInfo& parameter, const at::Tensor& values) {
    const at::Tensor view = values.view(parameter.shape);
    for (int64_t part = 0; parameter.module == Module::kQkv && part < 3; ++part) {
      exchange(view, 0, 4 * part);
    }
    if (parameter.module == Module::kProjection && parameter.role == ParameterRole::kWeight) {
      exchange(view, 1, 0);
    }
  };
  const AnalysisResult before = AttentionOfM({40, ""});
  const AnalysisResult after =
      Analyzed({AttentionOptions{}, {Changed(ModelM(), change)}, {40, ""}});
  for (const std::string name : {"entropy", "largest_weight", "first_token"}) {
    ExpectOracle(NumberIn(after, name + "/block.1.head.0"),
                 NumberIn(before, name + "/block.1.head.1"));
    ExpectOracle(NumberIn(after, name), NumberIn(before, name));
  }
  ExpectOracle(NumberIn(after, "head_distance"), NumberIn(before, "head_distance"));
}

TEST(AttentionTest, IsUndefinedWithoutAChoice) {
  const auto [subject, prompt] = ModelOfRows(R(1, {1, 3}));
  const AnalysisResult one = Analyzed({AttentionOptions{}, {subject}, {0, prompt}});
  ExpectUndefined(one, Undefined::kTooFewTokens,
                  {"entropy", "mean_map_entropy/block.0", "sink_share"});
  const auto [several, letters] = ModelOfRows(R(1, {5, 3}));  // one head
  const AnalysisResult alone = Analyzed({AttentionOptions{}, {several}, {0, letters}});
  EXPECT_EQ(ReasonIn(alone, "head_distance"), Undefined::kZeroDenominator);
  EXPECT_GT(NumberIn(alone, "entropy"), 0);
  AnalysisSubject none = ModelM();
  none.config.model.attention.kind = AttentionKind::kNone;
  EXPECT_EQ(MakeAnalysis({AttentionOptions{}, {none}, {40, ""}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(AttentionTest, TellsTheMassOfRowsThatAreNotNormalised) {
  const AnalysisSubject subject = WithSettings(
      ModelM(), [](RunConfig& run) { run.model.attention.kind = AttentionKind::kSigmoid; });
  const AnalysisResult result = Analyzed({AttentionOptions{}, {subject}, {40, ""}});
  ExpectUndefined(result, Undefined::kUnnormalised,
                  {"entropy", "largest_weight", "first_token/block.0.head.1", "sink_share",
                   "head_distance/block.1", "mean_map_entropy"});
  EXPECT_GT(NumberIn(result, "row_mass"), 0);
  EXPECT_LT(NumberIn(result, "share_entropy"), 1);
}

// With equal weights the first token gets 1/(i + 1) of row i. Over n rows of a causal model its
// mean is the harmonic number of n, divided by n.
TEST(AttentionTest, CountsTheFirstRowInTheShareOfSinks) {
  const auto share = [](bool causal, const std::string& prompt) {
    const AnalysisSubject even = WithSettings(
        WithSharpness(0), [&](RunConfig& run) { run.model.attention.causal = causal; });
    return NumberIn(Analyzed({AttentionOptions{}, {even}, {0, prompt}}), "sink_share");
  };
  EXPECT_EQ(share(true, "abcdefga"), 1) << "2.718/8 = 0.34; 0.245 over rows with a choice";
  EXPECT_EQ(share(false, "abc"), 1) << "a third, at each row";
  EXPECT_EQ(share(false, "abcd"), 0) << "a quarter";
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double EntropyOf(const at::Tensor& p) { return at::special_entr(p).sum().item<double>(); }

// Returns the Jensen–Shannon divergence.
double DivergenceOf(const at::Tensor& p, const at::Tensor& q) {
  const at::Tensor m = (p + q) / 2;
  const auto from = [&](const at::Tensor& a) { return (at::xlogy(a, a) - at::xlogy(a, m)).sum(); };
  return ((from(p) + from(q)) / 2).item<double>();
}

// Returns each number of one block row by row; its mean is what the analysis gives.
std::map<std::string, std::vector<double>> NumbersOfBlock(const AnalysisRequest& request,
                                                          int block) {
  const AnalysisContext analysis = *ReadAnalysisContext(request);
  const SubjectModel& subject = analysis.subjects[0];
  const ModelConfig& model = subject.config.model;
  const bool softmax = model.attention.kind == AttentionKind::kSoftmax;
  std::map<std::string, std::vector<double>> numbers;
  std::map<std::pair<int64_t, int64_t>, std::vector<double>>
      pairs;  // differ in the rows that count
  for (const TokenBatch& batch : analysis.batches) {
    const at::Tensor weights =
        CaptureHookPoints(analysis, subject, batch,
                          {HookPointName(HookPoint::kAttentionWeights, block)})[0]
            .to(at::kDouble)
            .view({batch.rows, model.heads, batch.length, -1});
    for (int64_t b = 0; b < batch.rows; ++b) {
      for (int64_t i = 0; i < batch.length; ++i) {
        const int64_t keys = model.attention.causal ? i + 1 : batch.length;
        if (keys < 2) continue;
        const at::Tensor rows = weights[b].select(1, i).narrow(1, 0, keys);  // [heads, keys]
        const at::Tensor others =
            rows.narrow(1, 1, keys - 1) / rows.narrow(1, 1, keys - 1).sum(1, true);
        for (int64_t h = 0; h < model.heads; ++h) {
          const std::string head = "/head." + std::to_string(h);
          const double entropy = EntropyOf(rows[h] / rows[h].sum()) / std::log(keys);
          numbers[(softmax ? "entropy" : "share_entropy") + head].push_back(entropy);
          if (!softmax) {
            numbers["row_mass" + head].push_back(rows[h].sum().item<double>());
            continue;
          }
          numbers["largest_weight" + head].push_back(rows[h].max().item<double>());
          numbers["first_token" + head].push_back(rows[h][0].item<double>());
          for (int64_t g = 0; g < h; ++g) {
            numbers["head_distance"].push_back(DivergenceOf(rows[h], rows[g]));
            // If the first token gets all of a row, nothing is left to distribute.
            const double left = DivergenceOf(others[h], others[g]);
            if (keys > 2 && std::isfinite(left)) pairs[{h, g}].push_back(left);
          }
        }
      }
    }
  }
  for (const auto& [pair, rows] : pairs)
    numbers["head_distance_without_first"].push_back(MeanOf(rows));
  return numbers;
}

TEST(AttentionTest, EqualsLoopsOverRowsInDrawnSettings) {
  int compared = 0;
  for (uint64_t number = 0; compared < 24; ++number) {
    SCOPED_TRACE(number);
    const AnalysisSubject subject = DrawnSubject(number);
    if (!Attends(subject.config.model)) continue;
    ++compared;
    const AnalysisRequest request = {AttentionOptions{}, {subject}, {40, ""}};
    const AnalysisResult result = Analyzed(request);
    const int block = subject.config.model.layers - 1;
    const std::string place = "/block." + std::to_string(block);
    for (const auto& [name, rows] : NumbersOfBlock(request, block)) {
      const size_t slash = name.find('/');
      const std::string full = slash == std::string::npos
                                   ? name + place
                                   : name.substr(0, slash) + place + "." + name.substr(slash + 1);
      ExpectNearIn(subject.config.precision, NumberIn(result, full), MeanOf(rows), 1);
    }
    if (subject.config.model.attention.kind != AttentionKind::kSoftmax) continue;
    EXPECT_GE(NumberIn(result, "mean_map_entropy"), NumberIn(result, "entropy") - 1e-6);
  }
}

}  // namespace
}  // namespace ablate::engine
