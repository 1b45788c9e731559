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
inline constexpr uint32_t kConfigVersion = 15;

// Describes a norm's formula, x̂ = (x − μ)/√(Σ(x − μ)²/m + ε). Sums are over the features of a
// token; for kBatch they are over the positions of a batch.
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
  }
  return {};
}

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

  bool operator==(const NormConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<NormConfig> auto& norm, Visit&& visit) {
  auto& [kind, deviation, placement, attention, feed_forward, final, eps, gain, bias, backward] =
      norm;
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
}

struct AttentionConfig {
  AttentionKind kind = AttentionKind::kSoftmax;
  bool causal = true;
  double score_bias = 0;  // added to every attention score; kSigmoid only

  bool operator==(const AttentionConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<AttentionConfig> auto& attention, Visit&& visit) {
  auto& [kind, causal, score_bias] = attention;
  visit("kind", kind);
  visit("causal", causal);
  visit("score_bias", score_bias);
}

struct InitConfig {
  InitKind kind = InitKind::kPytorch;
  InitStreams streams = InitStreams::kByName;

  bool operator==(const InitConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<InitConfig> auto& init, Visit&& visit) {
  auto& [kind, streams] = init;
  visit("kind", kind);
  visit("streams", streams);
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
  int hidden = 512;  // feed-forward width; for kSwiglu the width of each half
  NormConfig norm;
  InitConfig init;
  LossPositions loss = LossPositions::kAll;  // set by the task

  bool operator==(const ModelConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<ModelConfig> auto& model, Visit&& visit) {
  auto& [vocabulary, layers, width, heads, context, positions, bias, residual, residual_scale,
         dropout, tied_head, head_bias, attention, activation, hidden, norm, init, loss] = model;
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

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0;      // SGD only
  double weight_decay = 0;  // decoupled for AdamW, added to the gradient for Adam and SGD
  WeightDecayOn weight_decay_on = WeightDecayOn::kAll;

  bool operator==(const OptimizerConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<OptimizerConfig> auto& optimizer, Visit&& visit) {
  auto& [kind, learning_rate, beta1, beta2, eps, momentum, weight_decay, weight_decay_on] =
      optimizer;
  visit("optimizer", kind);
  visit("learning_rate", learning_rate);
  visit("beta1", beta1);
  visit("beta2", beta2);
  visit("eps", eps);
  visit("momentum", momentum);
  visit("weight_decay", weight_decay);
  visit("weight_decay_on", weight_decay_on);
}

// A schedule of the learning rate. LearningRate() in torch/train/run_loop.h has the formulas.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  uint32_t warmup = 0;  // steps over which the learning rate rises

  bool operator==(const ScheduleConfig&) const = default;
};
template <typename Visit>
void ForEachField(IsConfig<ScheduleConfig> auto& schedule, Visit&& visit) {
  auto& [kind, warmup] = schedule;
  visit("schedule", kind);
  visit("warmup", warmup);
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
  auto& [steps, batch, accumulation, optimizer, schedule, clip, label_smoothing, ema, rule, trainer,
         threads, checkpoints, final_checkpoint] = training;
  visit("steps", steps);
  visit("batch", batch);
  visit("accumulation", accumulation);
  ForEachField(optimizer, visit);
  ForEachField(schedule, visit);
  visit("clip", clip);
  visit("label_smoothing", label_smoothing);
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
