// Describes one run in plain structs: model, data and training. The server links it, too. The enums
// are generated from spec.proto, which describes their values.
#ifndef ABLATE_SERVER_ENGINE_CONFIG_H_
#define ABLATE_SERVER_ENGINE_CONFIG_H_

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <variant>
#include <vector>

#include "server/engine/names.h"
#include "server/engine/spec_enums.h"

namespace ablate::engine {

// Version of the set of options. Raised with every field and enum value that a spec or an analysis
// request gains (tests/config/engine_config_test.cc checks it). A worker declares it when it
// attaches. A server grants runs and hands analyses only to workers whose version covers what it
// may ask for. It isn't part of a fingerprint; kNumericsVersion covers changes of the numbers.
inline constexpr uint32_t kConfigVersion = 17;

// Returns true if a norm is a function of each feature alone: tanh(α·x) or erf(α·x + s). These have
// no statistics, no eps, no deviation and no backward mode.
constexpr bool IsPointwise(NormKind kind) {
  return kind == NormKind::kDyt || kind == NormKind::kDerf;
}

// Describes the formula of a norm that isn't pointwise, x̂ = (x − μ)/√(Σ(x − μ)²/m + ε). Sums are
// over the features of a token; for kBatch they are over the positions of a batch.
struct NormFormula {
  bool centres;   // μ is the mean of x, else 0
  bool averages;  // m is the number of summands, else 1
};
constexpr NormFormula FormulaOf(NormKind kind) {
  switch (kind) {
    case NormKind::kLayer:
    case NormKind::kBatch:
      return {true, true};
    case NormKind::kRms:
      return {false, true};
    case NormKind::kL2:
      return {false, false};
    case NormKind::kDyt:
    case NormKind::kDerf:
      break;
  }
  return {};
}

// Returns true if an activation is a function of one linear times another linear.
constexpr bool IsGated(Activation activation) {
  return activation == Activation::kSwiglu || activation == Activation::kGeglu ||
         activation == Activation::kReglu;
}

// Returns true for blocks n − 1, 2n − 1, …; never if n is 0.
constexpr bool IsNth(int n, int block) { return n > 0 && (block + 1) % n == 0; }

// The output positions of a sequence that the loss reads.
enum class LossPositions { kAll, kLast };
template <>
inline constexpr Named<LossPositions> kNames<LossPositions>[] = {{LossPositions::kAll, "all"},
                                                                 {LossPositions::kLast, "last"}};

template <typename T, typename Config>
concept IsConfig = std::same_as<std::remove_const_t<T>, Config>;

// In a run of a server, each member of the structs below is set from the spec
// (config/engine_config.cc) or by the task. The initial values here serve tests; they aren't the
// spec's defaults.
//
// ForEachField calls visit(name, member) for the members of a struct in order. It binds all of
// them, so that a new one doesn't compile until it is named. The name is the field's in the
// struct's message of spec.proto, or its path; settings that the spec lacks have the member's name.
// Conversions, checkpoints and the reference of the tests have their names from here.
struct NormConfig {
  NormKind kind = NormKind::kLayer;
  NormDeviation deviation = NormDeviation::kPopulation;  // the other value needs kLayer
  NormPlacement placement = NormPlacement::kPre;
  bool attention = true;     // a norm at the attention sublayer of every block
  bool feed_forward = true;  // a norm at the feed-forward sublayer of every block
  bool final = true;         // a norm before the head, independent of the placement
  double eps = 1e-5;         // added under the root, or to it, as `deviation` says
  bool gain = true;          // learned scale per feature, starts at 1
  bool bias = true;          // learned shift per feature, starts at 0
  NormBackward backward = NormBackward::kExact;  // torch/model/norm.h has the formulas
  GainForm gain_form = GainForm::kScale;
  double attention_alpha = 0.5;  // initial α at attention sublayers, of pointwise kinds
  double alpha = 0.5;            // initial α of the others

  bool operator==(const NormConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<NormConfig> auto& norm, Visit&& visit) {
  auto& [kind, deviation, placement, attention, feed_forward, final, eps, gain, bias, backward,
         gain_form, attention_alpha, alpha] = norm;
  visit("kind", kind);
  visit("deviation", deviation);
  visit("placement", placement);
  visit("attention", attention);
  visit("feed_forward", feed_forward);
  visit("final", final);
  visit("eps", eps);
  visit("gain", gain);
  visit("bias", bias);
  visit("backward", backward);
  visit("gain_form", gain_form);
  visit("attention_alpha", attention_alpha);
  visit("alpha", alpha);
}

// Returns the formula of a norm of queries and keys; not for kNone.
constexpr NormKind NormKindOf(QkNormKind kind) {
  return kind == QkNormKind::kRms     ? NormKind::kRms
         : kind == QkNormKind::kLayer ? NormKind::kLayer
                                      : NormKind::kL2;
}

// The norm of queries and keys; its eps is the model's norm's.
struct QkNormConfig {
  QkNormKind kind = QkNormKind::kNone;
  QkNormScope scope = QkNormScope::kHead;
  QkNormPlace place = QkNormPlace::kBefore;
  bool gain = true;  // learned scale per feature, starts at 1
  double scale = 1;  // factor of the scores

  bool operator==(const QkNormConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<QkNormConfig> auto& norm, Visit&& visit) {
  auto& [kind, scope, place, gain, scale] = norm;
  visit("kind", kind);
  visit("scope", scope);
  visit("place", place);
  visit("gain", gain);
  visit("scale", scale);
}

struct AttentionConfig {
  AttentionKind kind = AttentionKind::kSoftmax;
  bool causal = true;
  double score_bias = 0;  // added to every attention score; kSigmoid only
  int kv_heads = 0;       // heads of keys and values; 0: as many as of queries
  int head_size = 0;      // features of a head; 0: width/heads
  bool qkv_bias = false;  // biases of queries, keys and values even if ModelConfig::bias is false
  QkNormConfig qk_norm;
  double score_cap = 0;  // bound of the scores; 0: none
  int window = 0;        // positions that one attends to, itself included; 0: all
  int full_every = 0;  // blocks full_every − 1, 2·full_every − 1, … have no window; 0: none
  bool sink = false;   // a key without value, with a learned score; kSoftmax only
  ValueResidual value_residual = ValueResidual::kNone;

  bool operator==(const AttentionConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<AttentionConfig> auto& attention, Visit&& visit) {
  auto& [kind, causal, score_bias, kv_heads, head_size, qkv_bias, qk_norm, score_cap, window,
         full_every, sink, value_residual] = attention;
  visit("kind", kind);
  visit("causal", causal);
  visit("score_bias", score_bias);
  visit("kv_heads", kv_heads);
  visit("head_size", head_size);
  visit("qkv_bias", qkv_bias);
  visit("qk_norm", qk_norm);
  visit("score_cap", score_cap);
  visit("window", window);
  visit("full_every", full_every);
  visit("sink", sink);
  visit("value_residual", value_residual);
}

// Rotary positions.
struct RotaryConfig {
  double theta = 1e4;  // base of the frequencies
  double share = 1;    // fraction of a head's features that is rotated
  int skip_every = 0;  // blocks skip_every − 1, 2·skip_every − 1, … don't rotate; 0: none

  bool operator==(const RotaryConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<RotaryConfig> auto& rotary, Visit&& visit) {
  auto& [theta, share, skip_every] = rotary;
  visit("theta", theta);
  visit("share", share);
  visit("skip_every", skip_every);
}

struct InitConfig {
  InitKind kind = InitKind::kPytorch;
  InitStreams streams = InitStreams::kByName;
  InitOutputs outputs = InitOutputs::kDrawn;

  bool operator==(const InitConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<InitConfig> auto& init, Visit&& visit) {
  auto& [kind, streams, outputs] = init;
  visit("kind", kind);
  visit("streams", streams);
  visit("outputs", outputs);
}

// Describes the model: a transformer with one field per switch.
struct ModelConfig {
  int vocabulary = 0;  // number of tokens: the task's, or more
  int layers = 4;
  int width = 128;
  int heads = 4;
  int context = 64;  // longest sequence, in tokens
  Positions positions = Positions::kLearned;
  bool bias = true;           // biases of attention and feed-forward linears
  bool residual = true;       // residual additions around both sublayers
  double residual_scale = 1;  // factor of a sublayer's update before the residual addition
  double dropout = 0;  // fraction of embeddings, attention weights and updates dropped in training
  bool tied_head = false;  // the head's weight is the token embedding
  bool head_bias = true;   // must be false when tied_head
  AttentionConfig attention;
  Activation activation = Activation::kGelu;
  int hidden = 512;  // feed-forward width; of each half, if the activation is gated
  NormConfig norm;
  InitConfig init;
  LossPositions loss = LossPositions::kAll;  // set by the task
  RotaryConfig rotary;
  bool parallel = false;        // both sublayers read the block's input
  bool parallel_norms = false;  // then each has a norm of it; else they share the attention's
  UpdateGain update_gain = UpdateGain::kNone;
  double update_gain_start = 0;
  double embedding_scale = 1;   // factor of the token embeddings
  bool embedding_norm = false;  // a norm of the embeddings
  double logit_cap = 0;         // bound of the logits; 0: none
  int base_width = 0;           // of µP; 0: none

  bool operator==(const ModelConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<ModelConfig> auto& model, Visit&& visit) {
  auto& [vocabulary, layers, width, heads, context, positions, bias, residual, residual_scale,
         dropout, tied_head, head_bias, attention, activation, hidden, norm, init, loss, rotary,
         parallel, parallel_norms, update_gain, update_gain_start, embedding_scale, embedding_norm,
         logit_cap, base_width] = model;
  visit("vocabulary", vocabulary);
  visit("layers", layers);
  visit("width", width);
  visit("heads", heads);
  visit("context", context);
  visit("positions", positions);
  visit("bias", bias);
  visit("residual", residual);
  visit("residual_scale", residual_scale);
  visit("dropout", dropout);
  visit("tied_head", tied_head);
  visit("head_bias", head_bias);
  visit("attention", attention);
  visit("feed_forward.activation", activation);
  visit("feed_forward.hidden", hidden);
  visit("norm", norm);
  visit("init", init);
  visit("loss", loss);
  visit("rotary", rotary);
  visit("parallel", parallel);
  visit("parallel_norms", parallel_norms);
  visit("update_gain", update_gain);
  visit("update_gain_start", update_gain_start);
  visit("embedding_scale", embedding_scale);
  visit("embedding_norm", embedding_norm);
  visit("logit_cap", logit_cap);
  visit("base_width", base_width);
}

struct TokenizedDocuments;  // core/data/documents.h

// Documents, one per line. Tokens are the distinct code points in ascending order, or a
// tokenizer's. BOS opens and closes every document (core/data/documents.h).
struct DocumentsTask {
  // True if the data set holds the documents' tokens and their tokenizer, false if it is a text.
  bool stored = false;
  // The data set as task.h reads it, shared by runs. Null until it is read.
  std::shared_ptr<const TokenizedDocuments> documents;
  // Number of documents at the end of the shuffled order that are evaluated and never trained on.
  uint32_t held_out = 0;

  // Compares documents by their content.
  bool operator==(const DocumentsTask& other) const;
};

// The first recall task, whose keys are their own labels: `draw` distinct keys out of `keys`. The
// first is the query and the label. The others are the context, followed by one token 0 and the
// query.
struct LegacyRecallTask {
  int keys = 400;
  int draw = 40;

  bool operator==(const LegacyRecallTask&) const = default;
};

// A recall task: `pairs` tokens, each a pair (e, a) of an entity and its attribute, with distinct
// entities; then the token of one of these entities. The label is its attribute. Pair (e, a) is
// token e·attributes + a; entities follow the pairs, attributes the entities.
struct RecallTask {
  int entities = 20;
  int attributes = 20;
  int pairs = 20;

  bool operator==(const RecallTask&) const = default;
};

struct TokenizedText;  // core/data/whole_text.h

// One whole text; its end is the validation part.
struct TextTask {
  // True if the data set holds tokens and their tokenizer, false if a text, of which each character
  // is a token.
  bool stored = false;
  // The data set as task.h reads it, shared by runs. Null until it is read.
  std::shared_ptr<const TokenizedText> text;
  double validation = 0.1;  // fraction of the text that is never trained on

  // Compares texts by their content.
  bool operator==(const TextTask& other) const;
};

using TaskConfig = std::variant<DocumentsTask, LegacyRecallTask, RecallTask, TextTask>;

// Muon: matrices of the blocks move along orthogonalised momentum, the other parameters by AdamW.
struct MuonConfig {
  MuonAdjust adjust = MuonAdjust::kOriginal;
  int iterations = 5;    // of Newton and Schulz
  bool nesterov = true;  // form of the momentum
  MuonPrecision precision = MuonPrecision::kFloat32;
  double adamw_learning_rate = 1e-3;  // peak
  double adamw_weight_decay = 0;

  bool operator==(const MuonConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<MuonConfig> auto& muon, Visit&& visit) {
  auto& [adjust, iterations, nesterov, precision, adamw_learning_rate, adamw_weight_decay] = muon;
  visit("adjust", adjust);
  visit("iterations", iterations);
  visit("nesterov", nesterov);
  visit("precision", precision);
  visit("adamw_learning_rate", adamw_learning_rate);
  visit("adamw_weight_decay", adamw_weight_decay);
}

// Factors of the learning rate by group of parameters.
struct RateFactors {
  double embeddings = 1;
  double head = 1;
  double vectors = 1;  // whatever is no matrix

  bool operator==(const RateFactors&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<RateFactors> auto& rates, Visit&& visit) {
  auto& [embeddings, head, vectors] = rates;
  visit("embeddings", embeddings);
  visit("head", head);
  visit("vectors", vectors);
}

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0;      // SGD and Muon only
  double weight_decay = 0;  // added to the gradient for Adam and SGD, else decoupled
  WeightDecayOn weight_decay_on = WeightDecayOn::kAll;
  WeightDecayForm weight_decay_form = WeightDecayForm::kScaled;  // of decoupled decay
  MuonConfig muon;
  RateFactors rates;

  bool operator==(const OptimizerConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<OptimizerConfig> auto& optimizer, Visit&& visit) {
  auto& [kind, learning_rate, beta1, beta2, eps, momentum, weight_decay, weight_decay_on,
         weight_decay_form, muon, rates] = optimizer;
  visit("optimizer", kind);
  visit("learning_rate", learning_rate);
  visit("beta1", beta1);
  visit("beta2", beta2);
  visit("eps", eps);
  visit("momentum", momentum);
  visit("weight_decay", weight_decay);
  visit("weight_decay_on", weight_decay_on);
  visit("weight_decay_form", weight_decay_form);
  visit("muon", muon);
  visit("rates", rates);
}

// A schedule of the learning rate. LearningRate() in torch/train/run_loop.h has the formulas.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  uint32_t warmup = 0;  // steps over which the learning rate rises
  uint32_t decay = 0;   // steps at the end over which it falls; kWsd only
  DecayForm decay_form = DecayForm::kSqrt;
  double final_rate = 0;  // fraction of the learning rate at the end; kLinear, kCosine and kWsd

  bool operator==(const ScheduleConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<ScheduleConfig> auto& schedule, Visit&& visit) {
  auto& [kind, warmup, decay, decay_form, final_rate] = schedule;
  visit("schedule", kind);
  visit("warmup", warmup);
  visit("decay", decay);
  visit("decay_form", decay_form);
  visit("final_rate", final_rate);
}

// Returns true if the learning rate of a step depends on the run's total number of steps. If not, a
// longer run begins exactly like a shorter one.
constexpr bool DependsOnSteps(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
    case ScheduleKind::kInverseSqrt:
      return false;
    case ScheduleKind::kLinear:
    case ScheduleKind::kCosine:
    case ScheduleKind::kOneCycle:
    case ScheduleKind::kWsd:
      break;
  }
  return true;
}

struct TrainingConfig {
  uint32_t steps = 1000;
  uint32_t batch = 32;  // documents, sequences or windows per step
  // Number of micro-batches of a step, computed in order: consecutive rows, equally many in each.
  // The gradient is of the mean over all tokens of the batch, independent of this number.
  uint32_t accumulation = 1;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double clip = 0;  // largest global gradient norm; 0 is no clipping
  // Fraction of each target that is spread evenly over the vocabulary, in the training loss only.
  double label_smoothing = 0;
  double z_loss = 0;  // factor of (ln Σ e^logit)² in the training loss
  // Decay of the EMA weights; 0 keeps none. They start as the initial parameters; each update sets
  // EMA = ema·EMA + (1−ema)·parameters. They are evaluated, too.
  double ema = 0;
  LearningRule rule = LearningRule::kBackprop;  // an argument of the forward pass
  TrainerKind trainer = TrainerKind::kTorch;    // core/supports.h has what kNative trains
  uint32_t threads = 1;  // that share each operation; more than one are of kTorch on a CPU only
  // Ascending steps in 0…steps; `final_checkpoint` stands for −1 in a spec.
  std::vector<uint32_t> checkpoints;
  bool final_checkpoint = true;  // saves a checkpoint at the end, also of a diverged run

  bool operator==(const TrainingConfig&) const = default;
};
// Leaves out the steps of checkpoints, which the spec has in another form.
template <typename Visit>
void ForEachField(IsConfig<TrainingConfig> auto& training, Visit&& visit) {
  auto& [steps, batch, accumulation, optimizer, schedule, clip, label_smoothing, z_loss, ema, rule,
         trainer, threads, checkpoints, final_checkpoint] = training;
  visit("steps", steps);
  visit("batch", batch);
  visit("accumulation", accumulation);
  ForEachField(optimizer, visit);
  ForEachField(schedule, visit);
  visit("clip", clip);
  visit("label_smoothing", label_smoothing);
  visit("z_loss", z_loss);
  visit("ema", ema);
  visit("rule", rule);
  visit("trainer", trainer);
  visit("threads", threads);
}

struct EvaluationConfig {
  uint32_t every = 100;  // in steps; also at step 0 and at the end
  // Batches per evaluation: the number generated, or the first ones of a text; 0 means all of a
  // text's. Ignored for documents.
  uint32_t batches = 8;
  // Number of held-out tokens of a text, in place of batches, rounded up to whole windows; 0: as
  // batches says.
  uint32_t tokens = 0;
  // Ascending, each once; recorded at every evaluation (torch/train/recorder.h).
  std::vector<Record> record = {};

  bool operator==(const EvaluationConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<EvaluationConfig> auto& evaluation, Visit&& visit) {
  auto& [every, batches, tokens, record] = evaluation;
  visit("every", every);
  visit("batches", batches);
  visit("tokens", tokens);
  visit("record", record);
}

// Describes a run completely.
struct RunConfig {
  TaskConfig task;
  ModelConfig model;
  TrainingConfig training;
  EvaluationConfig evaluation;
  uint32_t seed = 0;
  Device device = Device::kCpu;
  // kTf32 (on devices only) and kBfloat16 are of matrix products; parameters, norms, losses and
  // updates are float32 then. kFloat64 serves tests.
  Precision precision = Precision::kFloat32;

  bool operator==(const RunConfig&) const = default;
};

// A struct whose members ForEachField visits.
template <typename T>
concept HasFields = requires(T& config, int visit) {
  ForEachField(config, visit);
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CONFIG_H_
