// Tests guesses of analyses' times: they follow the computation and the trainer.
#include "server/experiment/analysis_time.h"

#include "gmock/gmock.h"
#include "server/engine/core/layout.h"
#include "server/experiment/analysis.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using engine::AnalysisOptions;
using ::testing::StartsWith;

engine::RunConfig ConfigOf(engine::LossPositions loss = engine::LossPositions::kAll) {
  engine::RunConfig config;
  config.task = engine::TextTask();
  config.model.width = 128;
  config.model.hidden = 512;
  config.model.layers = 1;
  config.model.heads = 4;
  config.model.context = 64;
  config.model.vocabulary = 65;
  config.model.loss = loss;
  return config;
}

AnalysisTime Guess(const AnalysisOptions& options, const engine::RunConfig& config,
                   uint64_t tokens = 5'000) {
  v1::AnalysisInputs inputs;
  inputs.set_tokens(tokens);
  Problems problems;
  const auto cost = CheckSubjects(options, inputs, 0, {config}, "", &problems);
  EXPECT_TRUE(problems.empty());
  return GuessAnalysisTime(engine::KindOf(options), cost, tokens, config);
}

TEST(AnalysisTimeTest, IsGroupedByKindAndWhatComputesIt) {
  engine::RunConfig config = ConfigOf();
  EXPECT_THAT(Guess(engine::LossLandscapeOptions(), config).group,
              StartsWith("loss_landscape/native/"));
  EXPECT_THAT(Guess(engine::HessianOptions(), config).group, StartsWith("hessian/torch/"));
  config.device = engine::Device::kCuda;
  config.precision = engine::Precision::kBfloat16;
  EXPECT_THAT(Guess(engine::LossLandscapeOptions(), config).group,
              StartsWith("loss_landscape/native/"))
      << "it is computed on the cores, in float32";
  config.model.norm.kind = engine::NormKind::kBatch;
  config.model.loss = engine::LossPositions::kLast;
  EXPECT_THAT(Guess(engine::LossLandscapeOptions(), config).group,
              StartsWith("loss_landscape/torch/"));
}

TEST(AnalysisTimeTest, GrowsWithWhatIsComputed) {
  const engine::RunConfig config = ConfigOf();
  engine::LossLandscapeOptions few, many;
  few.points = 100;
  many.points = 200;
  EXPECT_NEAR(Guess(many, config).micros / Guess(few, config).micros, 2, .1);
  EXPECT_GT(Guess(engine::HessianOptions(), config).micros,
            1000 * Guess(engine::GradientFlowOptions(), config).micros);
  EXPECT_GT(Guess(engine::SpectrumOptions(), config, 20'000).micros,
            Guess(engine::SpectrumOptions(), config, 5'000).micros);
  engine::RunConfig deep = config;
  deep.model.layers = 8;
  EXPECT_GT(Guess(engine::SpectrumOptions(), deep).micros,
            4 * Guess(engine::SpectrumOptions(), config).micros);
}

// If the loss reads the last position only, most of the last block is computed for that only.
// Values at sites are computed everywhere.
TEST(AnalysisTimeTest, CountsThePositionsThatArePassed) {
  const engine::RunConfig all = ConfigOf(), last = ConfigOf(engine::LossPositions::kLast);
  EXPECT_LT(Guess(engine::LossLandscapeOptions(), last).micros,
            Guess(engine::LossLandscapeOptions(), all).micros / 10);
  EXPECT_EQ(Guess(engine::SpectrumOptions(), last).micros,
            Guess(engine::SpectrumOptions(), all).micros);
}

TEST(AnalysisTimeTest, CountsTokensThatAKindMakesItself) {
  engine::RunConfig config = ConfigOf();
  config.model.context = 1024;
  engine::InductionOptions few, many;
  many.sequences = 10 * few.sequences;
  EXPECT_GT(Guess(many, config).micros, 3 * Guess(few, config).micros);
  EXPECT_EQ(Guess(few, config, 1'000).micros, Guess(few, config, 100'000).micros);
  engine::PatchOptions short_pair, long_pair;
  short_pair.clean = {"ab"};
  long_pair.clean = {std::string(100, 'a')};
  for (engine::PatchOptions* pair : {&short_pair, &long_pair}) {
    pair->corrupt = pair->clean;
    pair->right = {"a"};
    pair->wrong = {"b"};
  }
  EXPECT_GT(Guess(long_pair, config).micros, 3 * Guess(short_pair, config).micros);
}

TEST(AnalysisTimeTest, NeedsNoModelForAKindThatIsOfNone) {
  const AnalysisTime time =
      GuessAnalysisTime(engine::KindOf(engine::NormResponseOptions()), {}, 0, {});
  EXPECT_GT(time.micros, 0);
}

}  // namespace
}  // namespace ablate::spec
