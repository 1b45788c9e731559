// Plain description of one run: what to train, on which data, how. The server links it too.
#ifndef ABLATE_SERVER_ENGINE_CONFIG_H_
#define ABLATE_SERVER_ENGINE_CONFIG_H_

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace ablate::engine {

// Raised with every field and every enum value that a spec, or what is asked of an analysis, gains
// (tests/spec/engine_config_test.cc notices): a worker declares it when it attaches, and a server
// grants runs, and hands analyses, only to workers that know all it may ask for. It says nothing
// about the numbers that come out, as kNumericsVersion does, and is no part of a fingerprint.
inline constexpr uint32_t kConfigVersion = 6;

enum class NormKind { kLayer, kRms, kBatch, kL2 };
// z = (x − μ)/√(Σ(x − μ)²/m + ε), summed over the features of a token, by kBatch over the positions
// of a batch.
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
// What a LayerNorm divides by: √(population variance + eps), or √(unbiased variance) + eps.
enum class NormDeviation { kPopulation, kUnbiasedEpsOutside };
enum class NormPlacement { kPre, kPost, kNone, kSandwich };
// What a norm hands back as the gradient of its input, given that of its standardised output z.
enum class NormBackward { kExact, kCenterScale, kProjected, kIdentity };
enum class AttentionKind { kSoftmax, kNone, kSigmoid };
enum class Activation { kRelu, kGelu, kGeluTanh, kSilu, kSwiglu };  // kGelu is the exact one (erf).
enum class Positions { kLearned, kNone, kSinusoidal, kRotary };
enum class InitKind { kPytorch, kPytorchMha, kXavier, kGpt2 };
enum class InitStreams { kByName, kSequential };
enum class OptimizerKind { kAdamW, kAdam, kSgd };
enum class ScheduleKind { kConstant, kLinear, kCosine, kOneCycle, kInverseSqrt };
enum class WeightDecayOn { kAll, kMatrices };  // kMatrices: no biases, no gains
enum class Tokenizer { kChars };

// Which output positions of a sequence the loss reads.
enum class LossPositions { kAll, kLast };

// What the parameters learn from. An argument of the forward pass. Feedback alignment: the gradient
// of a block linear's input is formed with a fixed random matrix in place of the weight. Direct
// feedback alignment: the gradient of a block's output is the output error through a fixed random
// matrix.
enum class LearningRule { kBackprop, kFeedbackAlignment, kDirectFeedbackAlignment };

// What computes: autograd of LibTorch, which trains everything, or explicit passes for small models
// on a CPU (native/supports.h).
enum class TrainerKind { kTorch, kNative };

// Where the arithmetic is done, and in which precision.
enum class Device { kCpu, kCuda };
enum class Precision { kFloat32, kFloat64 };

struct NormConfig {
  NormKind kind = NormKind::kLayer;
  NormDeviation deviation = NormDeviation::kPopulation;  // another one: kLayer only
  NormPlacement placement = NormPlacement::kPre;
  bool attention = true;     // a norm at the attention site of every block
  bool feed_forward = true;  // a norm at the feed-forward site of every block
  bool final = true;         // a norm before the head, whatever the placement
  double eps = 1e-5;         // added to what the root is taken of, or, by deviation, to the root
  bool gain = true;          // learned scale per feature, starts at 1
  bool bias = true;          // learned shift per feature, starts at 0
  NormBackward backward = NormBackward::kExact;

  bool operator==(const NormConfig&) const = default;
};

struct AttentionConfig {
  AttentionKind kind = AttentionKind::kSoftmax;
  bool causal = true;
  double score_bias = 0;  // added to every score; kSigmoid only

  bool operator==(const AttentionConfig&) const = default;
};

struct InitConfig {
  InitKind kind = InitKind::kPytorch;
  InitStreams streams = InitStreams::kByName;

  bool operator==(const InitConfig&) const = default;
};

// The model family: a transformer whose parts can be switched. Every switch is a field.
struct ModelConfig {
  int vocabulary = 0;  // tokens; set by the task
  int layers = 4;
  int width = 128;
  int heads = 4;
  int context = 64;  // longest sequence, in tokens
  Positions positions = Positions::kLearned;
  bool bias = true;           // biases of attention and feed-forward linears
  bool residual = true;       // residual additions around both sublayers
  double residual_scale = 1;  // a sublayer's update is multiplied by it before it is added
  double dropout =
      0;  // share of embeddings, attention weights and updates that training leaves out
  bool tied_head = false;  // the head's weight is the token embedding
  bool head_bias = true;   // must be false when tied_head
  AttentionConfig attention;
  Activation activation = Activation::kGelu;
  int hidden = 512;  // feed-forward width; of each half for kSwiglu
  NormConfig norm;
  InitConfig init;
  LossPositions loss = LossPositions::kAll;  // set by the task

  bool operator==(const ModelConfig&) const = default;
};

struct TokenizedDocuments;  // data/documents.h

// One document a line; tokens are the distinct code points in ascending order, then BOS, which
// opens and closes every document.
struct DocumentsTask {
  // The data set as task.h reads it; runs share it. Null until then.
  std::shared_ptr<const TokenizedDocuments> documents;
  // Documents at the end of the shuffled order, evaluated and never trained on.
  uint32_t held_out = 0;

  // Documents are compared by what they say.
  bool operator==(const DocumentsTask& other) const;
};

// seeds.md S0: `draw` distinct keys of `keys`; the first is the query and the label, the others are
// the context, then one token 0, then the query.
struct LegacyRecallTask {
  int keys = 400;
  int draw = 40;

  bool operator==(const LegacyRecallTask&) const = default;
};

// `pairs` tokens of pairs (e, a) of distinct entities, then the token of one of these entities; the
// label is its attribute. Pair (e, a) is token e·attributes + a; entities follow the pairs,
// attributes the entities.
struct RecallTask {
  int entities = 20;
  int attributes = 20;
  int pairs = 20;

  bool operator==(const RecallTask&) const = default;
};

struct TokenizedText;  // data/whole_text.h

// One text as a whole, of which the end is validated on.
struct TextTask {
  // The data set as task.h reads it; runs share it. Null until then.
  std::shared_ptr<const TokenizedText> text;
  Tokenizer tokenizer = Tokenizer::kChars;
  double validation = 0.1;  // share of the text that is never trained on

  // Texts are compared by what they say.
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

// LearningRate() in train/run_loop.h has the formulas.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  uint32_t warmup = 0;  // steps over which the rate rises

  bool operator==(const ScheduleConfig&) const = default;
};

// Whether the rate of a step depends on how many steps its run has in all. Where it does not, a
// longer run begins as a shorter one does.
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
  uint32_t batch = 32;  // documents, sequences or windows a step
  // Parts in which a step's batch is computed, one after the other: consecutive rows, as many in
  // each. The gradient is that of the mean over all tokens of the batch, whatever the parts.
  uint32_t accumulation = 1;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double clip = 0;  // largest global gradient norm; 0 is no clipping
  // Of the training loss only: this share of each target is spread evenly over the vocabulary.
  double label_smoothing = 0;
  // Above 0, an average of the parameters is kept and evaluated beside them. It begins with the
  // initial ones; after each update it is ema·average + (1−ema)·parameters.
  double ema = 0;
  LearningRule rule = LearningRule::kBackprop;
  TrainerKind trainer = TrainerKind::kTorch;
  // Ascending steps in 0…steps; `final_checkpoint` stands for −1.
  std::vector<uint32_t> checkpoints;
  bool final_checkpoint = true;  // a checkpoint where the run ends, diverged or not

  bool operator==(const TrainingConfig&) const = default;
};

// What is recorded of a run's gradients (train/recorder.h).
enum class Record { kGradientByBlock, kRuleAlignment };

struct EvaluationConfig {
  uint32_t every = 100;  // steps; also at step 0 and at the end
  // Batches of an evaluation: generated ones, or the first of a text's; 0 is all of a text's. No
  // matter to documents.
  uint32_t batches = 8;
  std::vector<Record> record;  // ascending, each once; at every evaluation

  bool operator==(const EvaluationConfig&) const = default;
};

struct RunConfig {
  TaskConfig task;
  ModelConfig model;
  TrainingConfig training;
  EvaluationConfig evaluation;
  uint32_t seed = 0;
  Device device = Device::kCpu;
  Precision precision = Precision::kFloat32;

  bool operator==(const RunConfig&) const = default;
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CONFIG_H_
