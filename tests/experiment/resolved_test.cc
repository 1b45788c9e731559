// Tests the content of a resolved cell: defaults, the engine's config, costs.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "server/config/engine_config.h"
#include "server/config/estimate.h"
#include "server/engine/core/layout.h"
#include "server/engine/names.h"
#include "server/experiment/resolve.h"
#include "tests/experiment/specs.h"

namespace ablate::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::ExperimentSpec WithBase(const std::string& base) {
  return FromText("name: \"x\" base { " + base + " }");
}

v1::BaseSpec FilledBase(const std::string& base) {
  return Resolved(WithBase(base)).cells.at(0).run.spec();
}

// Expects the common defaults of tasks that read text.
void ExpectDefaultsOfReading(const v1::BaseSpec& base) {
  EXPECT_EQ(base.model().context(), 64u);
  EXPECT_TRUE(base.model().attention().causal());
  EXPECT_FALSE(base.evaluation().has_batches());
}

TEST(DefaultsTest, OfDocumentsDiffer) {
  const v1::BaseSpec base = FilledBase(R"(task { documents { dataset: "names" } })");
  EXPECT_EQ(base.task().documents().held_out(), 1000u);
  EXPECT_EQ(base.task().documents().tokenizer(), "chars");
  ExpectDefaultsOfReading(base);
}

TEST(DefaultsTest, OfRecall) {
  const v1::BaseSpec base = FilledBase("task { recall { } }");
  EXPECT_EQ(base.task().recall().ShortDebugString(), "entities: 20 attributes: 20 pairs: 20");
  EXPECT_EQ(base.model().context(), 21u);
  EXPECT_FALSE(base.model().attention().causal());
  EXPECT_EQ(base.evaluation().batches(), 8u);
  EXPECT_EQ(FilledBase("task { recall { pairs: 7 } }").model().context(), 8u);
}

TEST(DefaultsTest, OfText) {
  const v1::BaseSpec base = FilledBase(R"(task { text { dataset: "shakespeare" } })");
  EXPECT_EQ(base.task().text().dataset(), "datasets/shakespeare-86c4e6");
  EXPECT_EQ(base.task().text().tokenizer(), "chars");
  EXPECT_EQ(base.task().text().validation(), 0.1);
  ExpectDefaultsOfReading(base);
}

TEST(TokenizerTest, MakesTokensTheDataOfARun) {
  for (const char* tokenizer : {"gpt2", "datasets/gpt2-111111"}) {
    const Resolution resolution = Resolved(FromText(absl::StrCat(
        R"(name: "a" base { task { text { dataset: "shakespeare" tokenizer: ")", tokenizer,
        R"(" } } model { layers: 1 width: 4 heads: 1 feed_forward { hidden: 4 } } })")));
    const ResolvedCell& cell = resolution.cells.at(0);
    const v1::TextTask& text = cell.run.spec().task().text();
    EXPECT_EQ(text.dataset(), "datasets/shakespeare-86c4e6-gpt2");
    EXPECT_EQ(text.tokenizer(), "stored");
    EXPECT_EQ(cell.dataset_sha256, std::string(63, '0') + "6");
    EXPECT_EQ(resolution.configs.at(0).model.vocabulary, 50'257);
    EXPECT_TRUE(std::get<engine::TextTask>(resolution.configs[0].task).stored);
    // The experiment says what was asked for, by names that keep their meaning.
    EXPECT_EQ(resolution.spec.base().task().text().dataset(), "datasets/shakespeare-86c4e6");
    EXPECT_EQ(resolution.spec.base().task().text().tokenizer(), "datasets/gpt2-111111");
  }
}

TEST(TokenizerTest, MakesTokensTheDataOfARunOnDocuments) {
  const Resolution resolution = Resolved(FromText(R"(
    name: "a"
    base { task { documents { dataset: "names" tokenizer: "gpt2" } }
           model { layers: 1 width: 4 heads: 1 context: 4 feed_forward { hidden: 4 } } })"));
  const ResolvedCell& cell = resolution.cells.at(0);
  const v1::DocumentsTask& documents = cell.run.spec().task().documents();
  EXPECT_EQ(documents.dataset(), "datasets/names-0a30b5-gpt2");
  EXPECT_EQ(documents.tokenizer(), "stored");
  EXPECT_EQ(cell.dataset_sha256, std::string(63, '0') + "8");
  EXPECT_EQ(resolution.configs.at(0).model.vocabulary, 50'257) << "with the boundary";
  EXPECT_TRUE(std::get<engine::DocumentsTask>(resolution.configs[0].task).stored);
  EXPECT_EQ(resolution.spec.base().task().documents().tokenizer(), "datasets/gpt2-111111");
  EXPECT_THAT(resolution.notes, ::testing::Contains("50 % of documents are longer than context 4 "
                                                    "and are cut; longest 5"));
  const Resolution direct = Resolved(FromText(R"(
    name: "a" base { task { documents { dataset: "id lines" } } })"));
  EXPECT_EQ(direct.cells.at(0).run.spec().task().documents().tokenizer(), "stored");
  EXPECT_EQ(direct.configs.at(0).model.vocabulary, 50'257);
}

// Runs on characters have the fingerprints that they had without a tokenizer.
TEST(TokenizerTest, OfCharactersChangesNoFingerprint) {
  const auto with = [](const std::string& tokenizer) {
    return Resolved(
               FromText(absl::StrCat("name: \"a\" base { task { documents { dataset: \"names\" ",
                                     tokenizer, " } } }")))
        .cells.at(0);
  };
  EXPECT_EQ(with("tokenizer: \"chars\"").fingerprint, with("").fingerprint);
  EXPECT_NE(with("tokenizer: \"gpt2\"").fingerprint, with("").fingerprint);
}

TEST(TokenizerTest, IsStoredWithTokens) {
  const v1::BaseSpec base = FilledBase(R"(task { text { dataset: "ids" } })");
  EXPECT_EQ(base.task().text().tokenizer(), "stored");
  EXPECT_EQ(base.task().text().dataset(), "datasets/ids-222222");
  EXPECT_EQ(
      FilledBase(R"(task { text { dataset: "ids" tokenizer: "stored" } })").ShortDebugString(),
      base.ShortDebugString());
}

// Only a tokenizer of that name is none.
TEST(TokenizerTest, LeavesItsWordsToDataSets) {
  const Resolution resolution = Resolved(FromText(R"(
    name: "a"
    base { task { text { dataset: "chars" tokenizer: "chars" } } model { context: 4 } })"));
  EXPECT_EQ(resolution.spec.base().task().text().dataset(), "datasets/tiny-000000");
  EXPECT_EQ(resolution.spec.base().task().text().tokenizer(), "chars");
}

TEST(TokenizerTest, IsAnAxis) {
  const Resolution resolution = Resolved(FromText(R"(
    name: "a"
    base { task { text { dataset: "shakespeare" } } }
    axes { field: "task.text.tokenizer" values { string_value: "chars" }
           values { string_value: "gpt2" } })"));
  ASSERT_EQ(resolution.cells.size(), 2u);
  EXPECT_NE(resolution.cells[0].dataset_sha256, resolution.cells[1].dataset_sha256);
  EXPECT_EQ(resolution.parameters[0].parameters() < resolution.parameters[1].parameters(), true);
}

TEST(ModelFromTest, GivesTheFieldsOfTheModel) {
  const Resolution resolution = Resolved(FromText(R"(
    name: "a"
    base { model_from: "plays/s0" task { text { dataset: "shakespeare" } } })"));
  const ResolvedCell& cell = resolution.cells.at(0);
  const v1::BaseSpec& spec = cell.run.spec();
  EXPECT_EQ(spec.model().layers(), 2u);
  EXPECT_EQ(spec.model().context(), 32u);
  EXPECT_EQ(spec.model().norm().kind(), v1::NormKind::rms);
  EXPECT_EQ(spec.training().steps(), 0u) << "without training nothing is trained";
  EXPECT_EQ(spec.model_from(), "plays-ab12/s0");
  EXPECT_EQ(cell.initial_sha256, std::string(63, '0') + "7");
  EXPECT_EQ(cell.run.vocabulary(), 70u);
  EXPECT_EQ(resolution.configs.at(0).model.vocabulary, 70);
}

TEST(ModelFromTest, MayTrainWithOtherDropoutAndAShorterContext) {
  const Resolution resolution = Resolved(FromText(R"(
    name: "a"
    base {
      model_from: "plays/s0" task { text { dataset: "shakespeare" } }
      model { dropout: 0.1 context: 16 layers: 2 }
      training { learning_rate: 0.1 }
    })"));
  const v1::BaseSpec& spec = resolution.cells.at(0).run.spec();
  EXPECT_EQ(spec.model().dropout(), 0.1);
  EXPECT_EQ(spec.model().context(), 16u);
  EXPECT_EQ(spec.training().steps(), 1000u);
}

// Equal specs that begin with different parameters are different runs.
TEST(ModelFromTest, IsPartOfTheFingerprint) {
  const std::string task = R"( task { text { dataset: "shakespeare" } } training { steps: 3 } )";
  const auto from = Resolved(FromText(R"(name: "a" base { model_from: "plays/s0")" + task + "}"));
  v1::ExperimentSpec drawn;
  drawn.set_name("a");
  *drawn.mutable_base() = from.cells[0].run.spec();
  drawn.mutable_base()->clear_model_from();
  const Resolution other = Resolved(drawn);
  EXPECT_NE(other.cells[0].fingerprint, from.cells[0].fingerprint);
  EXPECT_NE(other.cells[0].trajectory, from.cells[0].trajectory);
  EXPECT_NE(other.cells[0].growth, from.cells[0].growth);
}

TEST(DefaultsTest, FollowOtherFields) {
  const std::string task = "task { legacy_recall { draw: 9 } } ";
  EXPECT_EQ(FilledBase(task).model().context(), 10u);
  EXPECT_EQ(FilledBase(task + "model { width: 64 }").model().feed_forward().hidden(), 256u);
  EXPECT_FALSE(FilledBase(task + "model { norm { kind: rms } }").model().norm().bias());
  EXPECT_FALSE(FilledBase(task + "model { tied_head: true }").model().head_bias());
  EXPECT_FALSE(FilledBase(task + "model { bias: false }").model().head_bias());
  EXPECT_EQ(FilledBase(task + "training { optimizer: adam }").training().weight_decay(), 0);
}

// A default never changes: a new kind can't get this one later.
TEST(DefaultsTest, ANormShiftsUnlessItIsRmsOrL2) {
  for (const auto& kind : engine::kNames<engine::NormKind>) {
    const v1::BaseSpec base = FilledBase(
        "task { legacy_recall {} } model { norm { kind: " + std::string(kind.name) + " } }");
    const bool shifts = engine::IsPointwise(kind.value) || engine::FormulaOf(kind.value).centres;
    EXPECT_EQ(base.model().norm().bias(), shifts) << kind.name;
  }
}

TEST(DefaultsTest, LeaveOutWhatTheOptimizerDoesNotHave) {
  const v1::TrainingSpec sgd =
      FilledBase("task { legacy_recall {} } training { optimizer: sgd }").training();
  EXPECT_EQ(sgd.momentum(), 0);
  EXPECT_TRUE(sgd.has_momentum());
  EXPECT_THAT(sgd.betas(), IsEmpty());
  EXPECT_FALSE(sgd.has_eps());
  EXPECT_EQ(sgd.weight_decay(), 0);
  EXPECT_FALSE(FilledBase("task { legacy_recall {} }").training().has_momentum());
}

TEST(EngineConfigTest, CarriesEveryField) {
  const v1::BaseSpec base = FilledBase(R"(
    task { legacy_recall { keys: 50 draw: 7 } }
    model {
      layers: 3 width: 24 heads: 6 context: 20 positions: none bias: false residual: false
      tied_head: true init { kind: xavier streams: sequential } attention { causal: true }
      norm {
        kind: rms placement: post attention: false feed_forward: false final: false eps: 0.25
        gain: false bias: true
      }
      feed_forward { hidden: 30 activation: gelu_tanh }
    }
    training {
      steps: 77 batch: 6 optimizer: sgd learning_rate: 0.5 momentum: 0.75 weight_decay: 0.125
      schedule: cosine warmup: 11 clip: 3 checkpoints: [70, 0, 70]
      accumulation: 3 weight_decay_on: matrices ema: 0.75 label_smoothing: 0.25
    }
    evaluation { every: 13 batches: 4 })");
  v1::RunSpec run;
  *run.mutable_spec() = base;
  run.set_seed(9);
  const engine::RunConfig config =
      *ToEngineConfig(run, engine::LegacyRecallShape(engine::LegacyRecallTask{50, 7}));
  EXPECT_EQ(std::get<engine::LegacyRecallTask>(config.task).keys, 50);
  EXPECT_EQ(std::get<engine::LegacyRecallTask>(config.task).draw, 7);
  const engine::ModelConfig& model = config.model;
  EXPECT_EQ(model.vocabulary, 52);
  EXPECT_EQ(model.layers, 3);
  EXPECT_EQ(model.width, 24);
  EXPECT_EQ(model.heads, 6);
  EXPECT_EQ(model.context, 20);
  EXPECT_EQ(model.positions, engine::Positions::kNone);
  EXPECT_FALSE(model.bias);
  EXPECT_FALSE(model.residual);
  EXPECT_TRUE(model.tied_head);
  EXPECT_FALSE(model.head_bias);
  EXPECT_TRUE(model.attention.causal);
  EXPECT_EQ(model.activation, engine::Activation::kGeluTanh);
  EXPECT_EQ(model.hidden, 30);
  EXPECT_EQ(model.loss, engine::LossPositions::kLast);
  EXPECT_EQ(model.init.kind, engine::InitKind::kXavier);
  EXPECT_EQ(model.init.streams, engine::InitStreams::kSequential);
  EXPECT_EQ(model.norm.kind, engine::NormKind::kRms);
  EXPECT_EQ(model.norm.placement, engine::NormPlacement::kPost);
  EXPECT_FALSE(model.norm.attention);
  EXPECT_FALSE(model.norm.feed_forward);
  EXPECT_FALSE(model.norm.final);
  EXPECT_EQ(model.norm.eps, 0.25);
  EXPECT_FALSE(model.norm.gain);
  EXPECT_TRUE(model.norm.bias);
  const engine::TrainingConfig& training = config.training;
  EXPECT_EQ(training.steps, 77u);
  EXPECT_EQ(training.batch, 6u);
  EXPECT_EQ(training.accumulation, 3u);
  EXPECT_EQ(training.optimizer.kind, engine::OptimizerKind::kSgd);
  EXPECT_EQ(training.optimizer.learning_rate, 0.5);
  EXPECT_EQ(training.optimizer.momentum, 0.75);
  EXPECT_EQ(training.optimizer.weight_decay, 0.125);
  EXPECT_EQ(training.optimizer.weight_decay_on, engine::WeightDecayOn::kMatrices);
  EXPECT_EQ(training.ema, 0.75);
  EXPECT_EQ(training.label_smoothing, 0.25);
  EXPECT_EQ(training.schedule.kind, engine::ScheduleKind::kCosine);
  EXPECT_EQ(training.schedule.warmup, 11u);
  EXPECT_EQ(training.clip, 3);
  EXPECT_THAT(training.checkpoints, ElementsAre(0u, 70u));
  EXPECT_FALSE(training.final_checkpoint);
  EXPECT_EQ(config.evaluation.every, 13u);
  EXPECT_EQ(config.evaluation.batches, 4u);
  EXPECT_EQ(config.seed, 9u);
  EXPECT_EQ(config.device, engine::Device::kCpu);
}

TEST(EngineConfigTest, CarriesWhatDocumentsAndAdamHave) {
  const ResolvedCell cell = Resolved(NamesNorm()).cells.at(0);
  const engine::RunConfig config = *ToEngineConfig(cell.run, engine::DocumentsShape(27));
  EXPECT_EQ(std::get<engine::DocumentsTask>(config.task).held_out, 2000u);
  EXPECT_EQ(config.model.vocabulary, 27);
  EXPECT_EQ(config.model.loss, engine::LossPositions::kAll);
  EXPECT_EQ(config.model.activation, engine::Activation::kRelu);
  EXPECT_EQ(config.training.optimizer.kind, engine::OptimizerKind::kAdamW);
  EXPECT_EQ(config.training.optimizer.beta1, 0.85);
  EXPECT_EQ(config.training.optimizer.beta2, 0.99);
  EXPECT_EQ(config.training.optimizer.eps, 1e-8);
  EXPECT_EQ(config.training.schedule.kind, engine::ScheduleKind::kLinear);
  EXPECT_THAT(config.training.checkpoints, ElementsAre(0u, 100u, 500u));
  EXPECT_TRUE(config.training.final_checkpoint);
}

TEST(EngineConfigTest, CarriesTheOtherTasks) {
  const v1::ExperimentSpec recall =
      WithBase("task { recall { entities: 9 attributes: 5 pairs: 3 } }");
  const engine::RunConfig of_recall =
      *ToEngineConfig(Resolved(recall).cells.at(0).run, engine::RecallShape({9, 5, 3}));
  EXPECT_EQ(std::get<engine::RecallTask>(of_recall.task), (engine::RecallTask{9, 5, 3}));
  EXPECT_EQ(of_recall.model.vocabulary, 59);
  EXPECT_EQ(of_recall.model.loss, engine::LossPositions::kLast);
  v1::ExperimentSpec text = TextSpec();
  text.mutable_base()->mutable_task()->mutable_text()->set_validation(0.25);
  const engine::TaskShape shape = engine::TextShape({1'115'394, 65});
  const engine::RunConfig of_text = *ToEngineConfig(Resolved(text).cells.at(0).run, shape);
  EXPECT_EQ(std::get<engine::TextTask>(of_text.task).validation, 0.25);
  EXPECT_EQ(of_text.model.vocabulary, 65);
  EXPECT_EQ(of_text.model.loss, engine::LossPositions::kAll);
  EXPECT_EQ(of_text.evaluation.batches, 0u) << "all of them";
  text.mutable_base()->mutable_evaluation()->set_batches(4);
  EXPECT_EQ(ToEngineConfig(Resolved(text).cells.at(0).run, shape)->evaluation.batches, 4u);
}

TEST(EstimateTest, CountsTheVocabularyOfATextWithItsLineFeed) {
  // 65 rows of 128 in the embedding and in the head, and the head's bias.
  const auto parameters = [](const v1::ExperimentSpec& spec) {
    return Resolved(spec).cells.at(0).parameters;
  };
  v1::ExperimentSpec documents = TextSpec();
  documents.mutable_base()->mutable_task()->mutable_documents()->set_dataset("shakespeare");
  EXPECT_EQ(parameters(TextSpec()), parameters(documents)) << "which have a boundary instead";
  v1::ExperimentSpec recall = WithBase("task { recall {} } model { context: 64 }");
  EXPECT_EQ(parameters(recall) - parameters(TextSpec()), (440u - 65u) * (128 + 128 + 1));
}

TEST(EstimateTest, CountsBytes) {
  // 2·1000 training points and 2·11 of evaluation at 12 bytes; four checkpoints of 25,968 floats in
  // 52 tensors; a resume state, which isn't permanent, of three such copies.
  const uint64_t checkpoint = 4 * 25'968 + 52 * 120 + 1000;
  const ResolvedCell cell = Resolved(NamesNorm()).cells.at(0);
  EXPECT_EQ(cell.bytes, 12 * 2022 + 4 * checkpoint);
  EXPECT_EQ(cell.resume_bytes, 3 * 4 * 25'968 + 10'000u);
}

TEST(EstimateTest, CountsOperations) {
  // Sixteen positions; all parameters except the embeddings (27 + 16 rows of 16) multiply.
  EXPECT_EQ(Resolved(NamesNorm()).cells.at(0).flops_per_step,
            6.0 * (25'968 - 43 * 16) * 16 + 12.0 * 8 * 16 * 16 * 16);
}

TEST(EstimateTest, CountsDocumentsByTheirMeanLength) {
  engine::RunConfig config;
  config.model.context = 16;
  config.model.vocabulary = 27;
  const Sequences names{7, 1, 100, 4};
  EXPECT_DOUBLE_EQ(FlopsPerStep(config, 1'000'000, names),
                   FlopsPerStep(config, 1'000'000) * 7 / 16);
  EXPECT_DOUBLE_EQ(CostOfEvaluation(config, 1'000'000, names).flops,
                   100 * FlopsPerStep(config, 1'000'000, names) / config.training.batch / 3);
}

TEST(EstimateTest, GuessesTheSpeedOfTheTrainer) {
  engine::RunConfig config;
  config.model.width = 16;
  config.model.layers = 4;
  const Speed torch = GuessSpeed(config);
  config.training.trainer = engine::TrainerKind::kNative;
  const Speed native = GuessSpeed(config);
  EXPECT_GT(torch.pass_micros, 20 * native.pass_micros) << "its calls take most of a small pass";
  EXPECT_EQ(native.flops_per_micro, 8 * torch.flops_per_micro);
  config.training.trainer = engine::TrainerKind::kTorch;
  config.model.layers = 8;
  EXPECT_GT(GuessSpeed(config).pass_micros, torch.pass_micros);
  config.model.width = 512;
  EXPECT_EQ(GuessSpeed(config).flops_per_micro, native.flops_per_micro);
  config.precision = engine::Precision::kBfloat16;
  EXPECT_EQ(GuessSpeed(config).flops_per_micro, 2 * native.flops_per_micro);
  EXPECT_EQ(GuessSpeed(config).passes_per_step, 2);
  config.training.accumulation = 4;
  EXPECT_EQ(GuessSpeed(config).passes_per_step, 8) << "of each micro-batch";
  config.device = engine::Device::kCuda;
  EXPECT_GT(GuessSpeed(config).flops_per_micro, 100 * native.flops_per_micro);
}

TEST(EstimateTest, GrowsWithWhatIsAskedFor) {
  engine::RunConfig config;
  engine::OptimizerConfig& optimizer = config.training.optimizer;
  const uint64_t adam = ResumeBytes(config.training, {1000});
  optimizer.kind = engine::OptimizerKind::kSgd;
  EXPECT_EQ(adam - ResumeBytes(config.training, {1000}), 4 * 1000u)
      << "momentum 0 has its slot, too";
  optimizer.momentum = 0.9;
  EXPECT_EQ(adam - ResumeBytes(config.training, {1000}), 4 * 1000u);
  config.training.ema = 0.9;
  EXPECT_EQ(adam, ResumeBytes(config.training, {1000})) << "the average has a slot";
  EXPECT_EQ(ResumeBytes(config.training, {1000, 0, 300}) - adam, 4 * 300u) << "and so have buffers";
  const uint64_t averaged = StoredBytes(config, {1000, 10});
  config.training.ema = 0;
  EXPECT_EQ(averaged - StoredBytes(config, {1000, 10}), 11 * 12u) << "a point an evaluation";
  config.training.checkpoints = {};
  const uint64_t final = StoredBytes(config, {1000, 10});
  config.training.checkpoints = {0};
  EXPECT_GT(StoredBytes(config, {1000, 10}), final + 4 * 1000u);
  config.training.final_checkpoint = false;
  EXPECT_EQ(StoredBytes(config, {1000, 10}), final);
  config.model.tied_head = true;
  EXPECT_GT(FlopsPerStep(config, 1'000'000), 0);
}

TEST(EstimateTest, ModelSizesDoNotOverflow) {
  const ResolvedCell cell =
      Resolved(WithBase("task { legacy_recall {} } model { layers: 200 width: 8192 heads: 8 "
                        "feed_forward { hidden: 65536 } }"))
          .cells.at(0);
  EXPECT_GT(cell.parameters, 260'000'000'000u);
  EXPECT_GT(cell.bytes, 4 * cell.parameters);
  EXPECT_GT(cell.resume_bytes, 12 * cell.parameters);
}

TEST(EstimateTest, CountsWhatAnEvaluationComputes) {
  engine::RunConfig config;
  config.model.vocabulary = 100;
  const Sequences data{64, 32 * 64, 100, 4};
  const EvaluationCost plain = CostOfEvaluation(config, 1'000'000, data);
  const double sequence = FlopsPerStep(config, 1'000'000) / config.training.batch;
  EXPECT_EQ(plain.passes, 4);
  EXPECT_DOUBLE_EQ(plain.flops, 100 * sequence / 3) << "forward only";
  config.training.ema = 0.9;
  EXPECT_EQ(CostOfEvaluation(config, 1'000'000, data).passes, 8);
  EXPECT_DOUBLE_EQ(CostOfEvaluation(config, 1'000'000, data).flops, 2 * plain.flops);
  config.training.ema = 0;
  config.evaluation.record = {engine::Record::kGradientByBlock};
  EXPECT_EQ(CostOfEvaluation(config, 1'000'000, data).passes, 4 + 2);
  EXPECT_DOUBLE_EQ(CostOfEvaluation(config, 1'000'000, data).flops, plain.flops + 32 * sequence);
  config.evaluation.record.push_back(engine::Record::kRuleAlignment);
  EXPECT_EQ(CostOfEvaluation(config, 1'000'000, data).passes, 4 + 2 * 2);
}

TEST(EstimateTest, CountsWhatTheLastPositionNeedsWhereItAloneIsScored) {
  engine::RunConfig config;
  config.model.layers = 1;
  config.model.width = 128;
  config.model.context = 41;
  config.model.vocabulary = 402;
  config.model.positions = engine::Positions::kNone;
  config.training.batch = 128;
  const double all = FlopsPerStep(config, 301'586);
  config.model.loss = engine::LossPositions::kLast;
  config.training.trainer = engine::TrainerKind::kTorch;
  const double torch = FlopsPerStep(config, 301'586);
  config.training.trainer = engine::TrainerKind::kNative;
  const double native = FlopsPerStep(config, 301'586);
  EXPECT_NEAR(native, 0.2e9, 0.02e9) << "as its kernels count";
  EXPECT_NEAR(torch, 1.2e9, 0.1e9);
  EXPECT_GT(all, 30 * native);
  config.model.layers = 2;
  EXPECT_GT(FlopsPerStep(config, 500'000), 10 * native) << "all but the last block see all";
}

TEST(EstimateTest, CountsEvaluationsOfEveryTask) {
  const auto passes = [](const v1::ExperimentSpec& spec) {
    return Resolved(spec).cells.at(0).evaluation.passes;
  };
  EXPECT_EQ(passes(SmallSpec()), 8);
  EXPECT_EQ(passes(RecallSpec()), 8);
  EXPECT_EQ(passes(TextSpec()), 55) << "1,742 windows, 32 at once";
  v1::ExperimentSpec text = TextSpec();
  text.mutable_base()->mutable_evaluation()->set_batches(20);
  EXPECT_EQ(passes(text), 20);
  EXPECT_EQ(passes(NamesNorm()), 8) << "2,000 documents, 256 at once";
}

TEST(EstimateTest, GuessesMoreMemoryOnADeviceThanTrainingNeeds) {
  engine::RunConfig config;
  config.device = engine::Device::kCuda;
  config.model.vocabulary = 50'257;
  config.model.width = 768;
  config.model.hidden = 3072;
  config.model.heads = config.model.layers = 12;
  config.model.context = 1024;
  config.training.batch = 8;
  const double guess = DeviceBytes(config);
  const double least = TrainingBytes(config, {163'000'000}, {1024, 32 * 1024});
  EXPECT_GT(guess, least);
  EXPECT_LT(guess, 1.5 * least);
  engine::RunConfig small;
  small.model.vocabulary = 30;
  small.model.width = small.model.context = 16;
  small.model.hidden = 64;
  small.training.batch = 4;
  EXPECT_LT(DeviceBytes(small), 100e6);
}

TEST(EstimateTest, CountsMemory) {
  engine::RunConfig config;
  config.model.vocabulary = 100;
  const double adamw = TrainingBytes(config, {1'000'000'000}, {});
  // Parameters and two moments, gradients, scratch, and the three of them being written.
  EXPECT_NEAR(adamw, 8 * 4e9, 1e7);
  config.training.optimizer.kind = engine::OptimizerKind::kSgd;
  EXPECT_NEAR(adamw - TrainingBytes(config, {1'000'000'000}, {}), 2 * 4e9, 1);
  const double one = TrainingBytes(config, {}, {64, 1});
  EXPECT_GT(TrainingBytes(config, {}, {128, 1}), 2 * one) << "attention grows faster";
  config.training.batch *= 2;
  EXPECT_EQ(TrainingBytes(config, {}, {64, 1}), 2 * one);
  config.training.accumulation = 4;
  EXPECT_EQ(TrainingBytes(config, {}, {64, 1}), one / 2) << "the activations of a part";
  const engine::RunConfig without = config;
  config.training.ema = 0.9;
  EXPECT_EQ(
      TrainingBytes(config, {1'000'000'000}, {}) - TrainingBytes(without, {1'000'000'000}, {}),
      2 * 4e9);
}

TEST(EstimateTest, CountsLogitsThatAreInMemoryTogether) {
  engine::RunConfig config;
  config.model.layers = 1;
  config.training.batch = 1;
  const auto evaluating = [&config](double tokens) {
    return TrainingBytes(config, {}, {64, tokens}) - TrainingBytes(config, {}, {64, 1});
  };
  config.model.vocabulary = 100'000;
  for (const engine::Device device : {engine::Device::kCuda, engine::Device::kCpu}) {
    config.device = device;
    config.training.rule = engine::LearningRule::kDirectFeedbackAlignment;
    EXPECT_GE(evaluating(1e6), 1e11 * 4) << "of all targets";
    config.training.rule = engine::LearningRule::kBackprop;
    const auto most = static_cast<double>(engine::MostLogitsTogether(device));
    EXPECT_LE(evaluating(1e6), 2 * 4 * most) << "of a chunk";
  }
  config.training.trainer = engine::TrainerKind::kNative;
  EXPECT_LE(evaluating(1e6), 64 * 1e5 * 4) << "of a few tokens";
}

TEST(EstimateTest, CountsNoWeightsOfFusedAttention) {
  engine::RunConfig config;
  config.model.vocabulary = 100;
  config.training.batch = 1;
  config.precision = engine::Precision::kBfloat16;
  const double fused = TrainingBytes(config, {}, {1'024, 1});
  config.model.dropout = 0.1;
  // Half as many bytes in bfloat16.
  const double weights = 2.0 * config.model.layers * config.model.heads * 1'024 * 1'023;
  EXPECT_EQ(TrainingBytes(config, {}, {1'024, 1}) - fused, weights);
}

TEST(EstimateTest, CountsOnePositionOfTheLastBlockWhenOnlyTheLastIsScored) {
  engine::RunConfig config;
  config.model.vocabulary = 2;
  config.model.width = 16;
  config.model.hidden = 4'096;
  config.model.heads = 8;
  config.training.batch = 1;
  const auto with = [&config](engine::LossPositions loss, int layers) {
    config.model.loss = loss;
    config.model.layers = layers;
    return TrainingBytes(config, {}, {64, 1});
  };
  const auto last = engine::LossPositions::kLast, all = engine::LossPositions::kAll;
  // Four times the width and a weight per head at 64 positions; the feed-forward of one; its
  // logits.
  EXPECT_EQ(with(last, 1), 4 * (64 * (4 * 16 + 8) + 2 * 4'096 + 3 * 2.));
  EXPECT_EQ(with(last, 3) - with(last, 1), with(all, 3) - with(all, 1)) << "the others are whole";
}

TEST(EstimateTest, SaysBytesInWords) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1234), "1.2 kB");
  EXPECT_EQ(BytesText(33.6e9), "34 GB");
  EXPECT_EQ(BytesText(999.6e9), "1.0 TB");
  EXPECT_EQ(BytesText(2.577e12), "2.6 TB");
}

v1::ExperimentSpec Wide(const std::string& values) {
  return FromText(absl::StrCat(R"(name: "wide" base { task { legacy_recall {} }
    model { layers: 100 heads: 8 } } axes { field: "model.width" )",
                               values, "} seeds { count: 8 }"));
}

TEST(MemoryTest, RefusesWhatNoDeviceHasRoomFor) {
  Surroundings surroundings = TestSurroundings();
  surroundings.memory["cpu"] = {8'000'000'000, 2};
  const Resolution resolution = Resolve(Wide("values { number_value: 16 } values { number_value: "
                                             "4096 } values { number_value: 8192 }"),
                                        {}, surroundings);
  EXPECT_FALSE(resolution.sound);
  ASSERT_EQ(resolution.problems.size(), 2u) << "both that are too large";
  EXPECT_EQ(resolution.problems[1].field, "axes[0].values[2]");
  EXPECT_EQ(resolution.problems[1].message,
            "axes[0].values[2]: 100 layers of width 8,192 make 80,548,225,426 parameters: training "
            "them with batch 32 and context 41 takes at least 2.6 TB of memory, and the largest "
            "device has 8.0 GB; expected a model, batch and context that fit");
}

TEST(MemoryTest, NotesWhatFitsOnceButNotInEveryLane) {
  Surroundings surroundings = TestSurroundings();
  const v1::ExperimentSpec spec = Wide("values { number_value: 256 }");
  surroundings.memory["cpu"] = {8'000'000'000, 4};
  const Resolution resolution = Resolve(spec, {}, surroundings);
  ASSERT_TRUE(resolution.problems.empty()) << resolution.problems[0].message;
  ASSERT_EQ(resolution.notes.size(), 1u);
  EXPECT_EQ(resolution.notes[0],
            "training a run of 79,193,234 parameters takes at least 2.6 GB of memory, 4 at once 10 "
            "GB, and the device has 8.0 GB: give its worker fewer lanes");
  surroundings.memory["cpu"].lanes = 1;
  EXPECT_TRUE(Resolve(spec, {}, surroundings).notes.empty());
  surroundings.memory.clear();
  EXPECT_TRUE(Resolve(spec, {}, surroundings).notes.empty()) << "nothing is known";
}

}  // namespace
}  // namespace ablate::spec
