// Tests that the experiment files that come with the program resolve as they claim.
#include <cmath>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "client/submit/experiment_file.h"
#include "gmock/gmock.h"
#include "server/experiment/resolution.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Reads an example as the client does, which replaces its shorthands.
v1::ExperimentSpec ReadExample(const std::string& name) {
  std::istringstream none;
  client::ExperimentFile file =
      client::LoadExperimentFile(absl::StrCat(ABLATE_EXAMPLES, "/", name), none);
  EXPECT_THAT(file.problems, IsEmpty()) << name;
  return std::move(file.spec);
}

TEST(ExamplesTest, NamesNormIsTheExperimentThatTheTestsKnow) {
  v1::ExperimentSpec spec = ReadExample("names-norm.yaml");
  EXPECT_EQ(spec.base().task().documents().dataset(), "data/names.txt");
  spec.mutable_base()->mutable_task()->mutable_documents()->set_dataset("names");
  const Resolution resolution = Resolved(spec);
  const Resolution known = Resolved(NamesNorm());
  ASSERT_THAT(resolution.cells, SizeIs(180));
  for (size_t i = 0; i < resolution.cells.size(); ++i) {
    EXPECT_EQ(resolution.cells[i].name, known.cells[i].name);
    EXPECT_EQ(resolution.cells[i].fingerprint, known.cells[i].fingerprint);
  }
}

TEST(ExamplesTest, NamesOptimizerTunesEachOptimizerOverItsOwnValues) {
  v1::ExperimentSpec spec = ReadExample("names-optimizer.yaml");
  spec.mutable_base()->mutable_task()->mutable_documents()->set_dataset("names");
  const Resolution resolution = Resolved(spec);
  EXPECT_THAT(resolution.cells, SizeIs(64));
  std::set<std::string> settings;
  for (const v1::SettingParameters& row : resolution.parameters) {
    settings.insert(absl::StrCat(row.labels().at("optimizer"), " ", row.labels().at("lr")));
  }
  EXPECT_THAT(settings, ElementsAre("adamw 0.003", "adamw 0.01", "adamw 0.03", "adamw 0.1",
                                    "sgd 0.03", "sgd 0.0965", "sgd 0.311", "sgd 1"));
}

TEST(ExamplesTest, RecallLegacyHasThePublishedSizes) {
  const Resolution resolution = Resolved(ReadExample("recall-legacy.yaml"));
  ASSERT_THAT(resolution.cells, SizeIs(64));
  EXPECT_EQ(resolution.cells[0].name, "layernorm-lr5e-05-s0");
  EXPECT_EQ(resolution.parameters[0].parameters(), 301'586u);
  EXPECT_EQ(resolution.parameters[4].parameters(), 301'074u);
  EXPECT_EQ(resolution.spec.limits().priority(), v1::Priority::background);
  EXPECT_THAT(resolution.notes,
              ElementsAre("norm: parameters differ: layernorm 301,586, none 301,074"));
  const v1::BaseSpec& spec = resolution.cells[0].run.spec();
  EXPECT_EQ(spec.model().context(), 41u);
  EXPECT_EQ(spec.training().weight_decay(), 0);
}

// Resolves the example with the tests' data set.
Resolution ResolvedExample(const std::string& name) {
  v1::ExperimentSpec spec = ReadExample(name);
  if (std::string* dataset = MutableDatasetOf(spec.mutable_base()->mutable_task())) {
    *dataset = spec.base().task().has_text() ? "shakespeare" : "names";
  }
  return Resolved(spec);
}

TEST(ExamplesTest, NamesRmsLayerHasThePublishedSizes) {
  const Resolution resolution = ResolvedExample("names-rms-layer.yaml");
  ASSERT_THAT(resolution.cells, SizeIs(96));
  EXPECT_EQ(resolution.cells.front().parameters, 4240u);
  EXPECT_EQ(resolution.cells.back().parameters, 4288u);
}

TEST(ExamplesTest, NamesWarmupHasBothDepths) {
  const Resolution resolution = ResolvedExample("names-warmup.yaml");
  ASSERT_THAT(resolution.cells, SizeIs(1008));
  EXPECT_EQ(resolution.cells.front().parameters, 25'968u) << "pre-norm, 8 layers";
  EXPECT_EQ(resolution.cells.back().parameters, 100'448u) << "post-norm, 32 layers";
  EXPECT_EQ(resolution.cells.back().run.spec().training().warmup(), 300u);
}

TEST(ExamplesTest, NamesBatchnormIsNative) {
  const Resolution resolution = ResolvedExample("names-batchnorm.yaml");
  ASSERT_THAT(resolution.cells, SizeIs(336));
  const v1::BaseSpec& last = resolution.cells.back().run.spec();
  EXPECT_EQ(last.model().norm().kind(), v1::NormKind::batch);
  EXPECT_EQ(last.training().batch(), 32u);
  EXPECT_EQ(last.training().trainer(), v1::Trainer::native);
}

TEST(ExamplesTest, RecallLayernormHasBothTasks) {
  const Resolution resolution = ResolvedExample("recall-layernorm.yaml");
  ASSERT_THAT(resolution.cells, SizeIs(128));
  EXPECT_EQ(resolution.cells.front().parameters, 301'586u);
  const v1::BaseSpec& recall = resolution.cells.back().run.spec();
  EXPECT_EQ(recall.task().recall().pairs(), 20u);
  EXPECT_EQ(recall.model().context(), 21u);
  EXPECT_EQ(recall.model().heads(), 4u);
  EXPECT_FALSE(recall.model().attention().causal());
}

// 26 minutes of a core with AVX-512, an hour of one with AVX2.
TEST(ExamplesTest, RecallLayernormsAnalysesFitItsLimit) {
  const Resolution resolution = ResolvedExample("recall-layernorm.yaml");
  const std::vector<AskedAnalysis> asked = AskedAnalyses(resolution.spec);
  double seconds = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const double chosen = 4. * 8;  // settings and seeds
    for (const auto& [group, time] : resolution.analyses.at(i).times) {
      seconds += chosen * static_cast<double>(asked[i].analyses_of_a_run()) * time.mean / 1e6;
    }
  }
  EXPECT_GT(seconds, 900);
  EXPECT_LT(seconds, 7200);
  EXPECT_LT(seconds, resolution.spec.limits().device_time().seconds());
}

TEST(ExamplesTest, RecallHeadsHasAModelWithoutAttention) {
  const Resolution resolution = ResolvedExample("recall-heads.yaml");
  ASSERT_THAT(resolution.cells, SizeIs(40));
  EXPECT_EQ(resolution.cells.front().parameters, 311'352u);
  EXPECT_EQ(resolution.cells.back().parameters, 245'048u);
}

TEST(ExamplesTest, ResidualDepthGoesToAHundredBlocks) {
  const Resolution resolution = ResolvedExample("residual-depth.yaml");
  ASSERT_THAT(resolution.cells, SizeIs(216));
  EXPECT_EQ(resolution.cells.back().run.spec().model().layers(), 100u);
  EXPECT_THAT(resolution.cells.front().run.spec().evaluation().record(),
              ElementsAre(v1::Record::gradient_by_block));
}

TEST(ExamplesTest, NormJacobianHasEveryRuleAndBackwardMode) {
  const Resolution resolution = ResolvedExample("norm-jacobian.yaml");
  ASSERT_THAT(resolution.cells, SizeIs(160));
  std::set<std::string> fingerprints;
  for (const ResolvedCell& cell : resolution.cells) fingerprints.insert(cell.fingerprint);
  EXPECT_THAT(fingerprints, SizeIs(160)) << "no two are one run";
  EXPECT_NEAR(resolution.cells[32].run.spec().model().attention().score_bias(), -std::log(64),
              1e-12);
}

}  // namespace
}  // namespace ablate::spec
