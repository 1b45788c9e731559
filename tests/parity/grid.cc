// Draws settings and batches from a fixed stream.
#include "tests/parity/grid.h"

#include <algorithm>

#include "server/engine/core/data/random.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : generator_(seed) {}

  bool Flip() { return generator_.Below(2) == 1; }
  int Between(int low, int high) {
    return low + static_cast<int>(generator_.Below(static_cast<uint64_t>(high - low) + 1));
  }
  template <typename Value>
  Value Pick(std::initializer_list<Value> values) {
    return *(values.begin() + generator_.Below(values.size()));
  }

 private:
  SplitMix64 generator_;
};

NormConfig DrawNorm(Dice& dice) {
  NormConfig norm;
  norm.kind = dice.Pick(
      {NormKind::kLayer, NormKind::kLayer, NormKind::kRms, NormKind::kBatch, NormKind::kL2});
  norm.placement = dice.Pick(
      {NormPlacement::kPre, NormPlacement::kPost, NormPlacement::kSandwich, NormPlacement::kNone});
  norm.attention = dice.Between(0, 3) > 0;
  norm.feed_forward = dice.Between(0, 3) > 0;
  norm.final = dice.Flip();
  norm.eps = dice.Pick({1e-5, 1e-3});
  norm.gain = dice.Between(0, 3) > 0;
  norm.bias = dice.Flip();
  norm.backward =
      dice.Pick({NormBackward::kExact, NormBackward::kExact, NormBackward::kExact,
                 NormBackward::kCenterScale, NormBackward::kProjected, NormBackward::kIdentity});
  if (!HasBackward(norm)) norm.backward = NormBackward::kProjected;
  norm.deviation = dice.Pick({NormDeviation::kPopulation, NormDeviation::kUnbiasedEpsOutside});
  if (!HasDeviation(norm)) norm.deviation = NormDeviation::kPopulation;
  return norm;
}

// One in twelve is as large as the models that users train: wider than a vector, deeper than three
// blocks.
void DrawSizes(Dice& dice, ModelConfig& model) {
  const bool large = dice.Between(0, 11) == 0;
  model.vocabulary = dice.Between(3, 20);
  model.layers = large ? dice.Between(4, 6) : dice.Between(1, 3);
  model.heads = dice.Between(1, 4);
  model.width =
      model.heads * (large ? dice.Between(8, 10) * 8 / model.heads : dice.Between(1, 6)) * 2;
  model.context = large ? dice.Between(16, 24) : dice.Between(5, 12);
  model.hidden = large ? dice.Between(64, 160) : dice.Between(4, 40);
}

// Each switch of attention is on in some of the cases.
void DrawAttention(Dice& dice, ModelConfig& model) {
  AttentionConfig& attention = model.attention;
  const auto now_and_then = [&dice] { return dice.Between(0, 4) == 0; };
  if (attention.kind == AttentionKind::kNone) return;
  attention.kv_heads = model.heads;
  if (now_and_then()) attention.kv_heads = model.heads % 2 == 0 ? model.heads / 2 : 1;
  if (now_and_then()) {
    QkNormConfig& norm = attention.qk_norm;
    norm.kind = dice.Pick({QkNormKind::kRms, QkNormKind::kLayer, QkNormKind::kL2});
    norm.scope = dice.Pick({QkNormScope::kHead, QkNormScope::kAll});
    norm.place = dice.Pick({QkNormPlace::kBefore, QkNormPlace::kAfter});
    norm.gain = dice.Flip();
    norm.scale = dice.Pick({0.4, 3.0});
    // A norm of one or two features has a gradient of 0 in exact arithmetic.
    if (model.width / model.heads <= 2 && norm.scope == QkNormScope::kHead) {
      norm.scope = QkNormScope::kAll;
    }
    if (model.width <= 4) norm.kind = QkNormKind::kNone;
  }
  if (now_and_then()) attention.score_cap = 1.5;
  if (now_and_then()) attention.window = dice.Between(1, 6);
  if (now_and_then()) attention.full_every = dice.Between(1, 3);
  attention.sink = attention.kind == AttentionKind::kSoftmax && now_and_then();
  if (now_and_then()) {
    attention.value_residual = dice.Pick({ValueResidual::kFixed, ValueResidual::kLearned});
  }
}

// Likewise of the norms, the blocks, the embeddings and the head.
void DrawSwitches(Dice& dice, ModelConfig& model) {
  const auto now_and_then = [&dice] { return dice.Between(0, 5) == 0; };
  DrawAttention(dice, model);
  if (dice.Flip()) {
    model.activation = dice.Pick({Activation::kRelu2, Activation::kGeglu, Activation::kReglu});
  }
  if (now_and_then()) {
    model.norm.kind = dice.Pick({NormKind::kDyt, NormKind::kDerf});
    model.norm.backward = NormBackward::kExact;
    model.norm.deviation = NormDeviation::kPopulation;
  }
  model.norm.gain_form = dice.Pick({GainForm::kScale, GainForm::kOnePlus});
  if (now_and_then()) model.positions = Positions::kAlibi;
  if (now_and_then()) model.rotary.theta = 500;
  if (now_and_then() && model.width / model.heads % 4 == 0) model.rotary.share = 0.5;
  if (now_and_then()) model.rotary.skip_every = 2;
  if (now_and_then() && Attends(model)) {
    model.parallel = model.residual = true;
    model.norm.placement = dice.Pick({NormPlacement::kPre, NormPlacement::kNone});
  }
  if (now_and_then()) model.update_gain = dice.Pick({UpdateGain::kFeature, UpdateGain::kScalar});
  if (now_and_then()) model.embedding_scale = 1.7;
  model.embedding_norm = now_and_then();
  if (now_and_then()) model.logit_cap = 2;
  if (now_and_then()) model.base_width = dice.Between(2, 20);
}

// Draws what the families of other programs have. Heads of another size keep rotary positions and
// norms possible: an even number of features, more than the drawn one.
void DrawShapes(Dice& dice, ModelConfig& model) {
  const bool grows = dice.Between(0, 5) == 0;
  if (grows && Attends(model)) model.attention.head_size = 2 * (model.width / model.heads / 2) + 4;
  model.attention.qkv_bias = Attends(model) && !model.bias && dice.Between(0, 2) == 0;
  model.parallel_norms = model.parallel && dice.Flip();
}

ModelConfig DrawModel(Dice& dice, bool switched) {
  ModelConfig model;
  DrawSizes(dice, model);
  model.positions = dice.Pick(
      {Positions::kLearned, Positions::kNone, Positions::kSinusoidal, Positions::kRotary});
  model.bias = dice.Flip();
  model.residual = dice.Between(0, 3) > 0;
  if (model.residual) model.residual_scale = dice.Pick({1.0, 1.0, 0.4});
  model.dropout = dice.Pick({0.0, 0.0, 0.2});
  model.tied_head = dice.Flip();
  model.head_bias = !model.tied_head && dice.Flip();
  model.attention.kind =
      dice.Pick({AttentionKind::kSoftmax, AttentionKind::kSoftmax, AttentionKind::kSoftmax,
                 AttentionKind::kSigmoid, AttentionKind::kSigmoid, AttentionKind::kNone});
  model.attention.causal = dice.Flip();
  if (model.attention.kind == AttentionKind::kSigmoid) {
    model.attention.score_bias = dice.Pick({0.0, -1.5});
  }
  model.activation = dice.Pick({Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                Activation::kSilu, Activation::kSwiglu});
  model.loss = dice.Pick({LossPositions::kAll, LossPositions::kLast});
  model.norm = DrawNorm(dice);
  if (switched) DrawSwitches(dice, model);
  return model;
}

double PeakOf(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
      return 0.002;
    case OptimizerKind::kSgd:
    case OptimizerKind::kMuon:
      return 0.02;
    case OptimizerKind::kLion:
      break;
  }
  return 0.0005;
}

// Draws what only some optimizers and schedules have.
void DrawParticulars(Dice& dice, TrainingConfig* training) {
  OptimizerConfig& optimizer = training->optimizer;
  if (optimizer.kind == OptimizerKind::kMuon) {
    optimizer.muon = {dice.Pick({MuonAdjust::kOriginal, MuonAdjust::kMatchRms}),
                      dice.Pick({3, 5}),
                      dice.Flip(),
                      MuonPrecision::kFloat32,
                      0.002,
                      dice.Pick({0.0, 0.1})};
  }
  optimizer.weight_decay_form =
      dice.Pick({WeightDecayForm::kScaled, WeightDecayForm::kIndependent});
  if (dice.Between(0, 2) == 0) {
    optimizer.rates = {dice.Pick({0.5, 2.0}), dice.Pick({0.5, 2.0}), dice.Pick({0.1, 1.0})};
  }
  training->schedule.decay = dice.Pick({0u, 2u, 6u});
  training->schedule.decay_form =
      dice.Pick({DecayForm::kLinear, DecayForm::kSqrt, DecayForm::kCosine});
  training->schedule.final_rate = dice.Pick({0.0, 0.0, 0.1});
}

TrainingConfig DrawTraining(Dice& dice) {
  TrainingConfig training;
  training.steps = 10;
  training.accumulation = dice.Pick({1u, 1u, 2u, 3u});
  training.batch = training.accumulation * static_cast<uint32_t>(dice.Between(1, 3));
  OptimizerConfig& optimizer = training.optimizer;
  optimizer.kind = dice.Pick({OptimizerKind::kAdamW, OptimizerKind::kAdam, OptimizerKind::kSgd,
                              OptimizerKind::kMuon, OptimizerKind::kLion});
  optimizer.learning_rate = PeakOf(optimizer.kind);
  optimizer.beta1 = dice.Pick({0.85, 0.9});
  optimizer.beta2 = dice.Pick({0.99, 0.999});
  optimizer.eps = dice.Pick({1e-8, 1e-6});
  optimizer.momentum = dice.Pick({0.0, 0.9});
  optimizer.weight_decay = dice.Pick({0.0, 0.01, 0.1});
  optimizer.weight_decay_on = dice.Pick({WeightDecayOn::kAll, WeightDecayOn::kMatrices});
  training.schedule.kind =
      dice.Pick({ScheduleKind::kConstant, ScheduleKind::kLinear, ScheduleKind::kCosine,
                 ScheduleKind::kOneCycle, ScheduleKind::kInverseSqrt, ScheduleKind::kWsd});
  // PyTorch's cycle can't start at its peak.
  training.schedule.warmup =
      training.schedule.kind == ScheduleKind::kOneCycle ? 3 : dice.Pick({0u, 3u});
  training.label_smoothing = dice.Pick({0.0, 0.1});
  training.ema = dice.Pick({0.0, 0.3, 0.9});
  training.clip = dice.Pick({0.0, 0.1, 100.0});
  return training;
}

TokenBatch DrawBatch(Dice& dice, const ModelConfig& model, int64_t rows, bool padded) {
  TokenBatch batch;
  batch.rows = rows;
  // At least half of a large model's positions; a norm over positions needs at least two.
  batch.length = dice.Between(model.context >= 16 ? 16 : 2, model.context);
  const int shortest = model.norm.kind == NormKind::kBatch ? 2 : 1;
  const bool last = model.loss == LossPositions::kLast;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t length =
        padded && row > 0 ? dice.Between(shortest, static_cast<int>(batch.length)) : batch.length;
    batch.lengths.push_back(length);
    for (int64_t i = 0; i < batch.length; ++i) {
      batch.inputs.push_back(i < length ? dice.Between(0, model.vocabulary - 1) : 0);
      const int64_t target = dice.Between(0, model.vocabulary - 1);
      if (!last) batch.targets.push_back(i < length ? target : TokenBatch::kIgnored);
    }
    if (last) batch.targets.push_back(dice.Between(0, model.vocabulary - 1));
  }
  return batch;
}

}  // namespace

GridCase DrawCase(uint64_t number, bool switched) {
  Dice dice(number);
  GridCase drawn;
  drawn.name = "grid" + std::to_string(number);
  drawn.model = DrawModel(dice, switched);
  // Rotary positions rotate pairs of features, so that only other models can have heads of one
  // feature.
  if (number % 16 == 15 && drawn.model.positions != Positions::kRotary) {
    drawn.model.heads = drawn.model.width;
    drawn.model.attention.kv_heads = drawn.model.width;
    drawn.model.attention.qk_norm.scope = QkNormScope::kAll;
  }
  drawn.precision = number % 2 == 0 ? Precision::kFloat64 : Precision::kFloat32;
  drawn.training = DrawTraining(dice);
  if (switched) drawn.training.z_loss = dice.Pick({0.0, 0.0, 0.01});
  // From a stream of its own, so that the other draws stay as they are.
  Dice more(number + (uint64_t{1} << 32));
  if (switched) DrawShapes(more, drawn.model);
  DrawParticulars(more, &drawn.training);
  // Lion moves a parameter by the sign of its gradient even if that is 0 in exact arithmetic, as
  // that of the keys' bias is, and as several are before a BatchNorm; or if it is nearly 0, because
  // all positions are alike after blocks without residual.
  OptimizerConfig& optimizer = drawn.training.optimizer;
  if (optimizer.kind == OptimizerKind::kLion) {
    drawn.model.bias = drawn.model.attention.qkv_bias = false;
    drawn.model.residual = true;
    if (drawn.model.norm.kind == NormKind::kBatch) drawn.model.norm.kind = NormKind::kLayer;
  }
  // Large models, and feedback that grows through the blocks, get a small learning rate. Otherwise
  // ten steps would diverge and amplify every rounding error.
  if (drawn.model.width >= 64) {
    optimizer.learning_rate *= 0.05;
    optimizer.muon.adamw_learning_rate *= 0.05;
  }
  drawn.training.rule =
      dice.Pick({LearningRule::kBackprop, LearningRule::kBackprop, LearningRule::kFeedbackAlignment,
                 LearningRule::kDirectFeedbackAlignment});
  drawn.seed = static_cast<uint32_t>(dice.Between(1, 3));
  const bool padded = dice.Flip();
  for (uint32_t step = 0; step < drawn.training.steps; ++step) {
    drawn.batches.push_back(DrawBatch(dice, drawn.model, drawn.training.batch, padded));
  }
  return drawn;
}

std::vector<GridCase> MakeGrid() {
  constexpr uint64_t kCases = 600;
  std::vector<GridCase> grid;
  for (uint64_t number = 0; number < kCases; ++number) grid.push_back(DrawCase(number));
  return grid;
}

RunConfig ConfigOf(const GridCase& grid) {
  RunConfig config;
  config.model = grid.model;
  config.training = grid.training;
  config.seed = 7;
  return config;
}

TokenBatch ShortRows(const ModelConfig& model, int64_t rows, int64_t length) {
  TokenBatch batch;
  batch.rows = rows;
  batch.length = length;
  batch.lengths.assign(static_cast<size_t>(rows), length);
  SplitMix64 generator(static_cast<uint64_t>(rows * length));
  const auto tokens = static_cast<uint64_t>(std::min(model.vocabulary, 3));
  const auto draw = [&] { return static_cast<int64_t>(generator.Below(tokens)); };
  for (int64_t i = 0; i < rows * length; ++i) batch.inputs.push_back(draw());
  const int64_t targets = model.loss == LossPositions::kAll ? rows * length : rows;
  for (int64_t i = 0; i < targets; ++i) {
    batch.targets.push_back(generator.Below(9) == 0 ? TokenBatch::kIgnored : draw());
  }
  return batch;
}

}  // namespace ablate::engine
