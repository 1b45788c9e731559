// Plain description of one run: what to train, on which data, how. The server links it too.
#ifndef ABLATE_SERVER_ENGINE_CONFIG_H_
#define ABLATE_SERVER_ENGINE_CONFIG_H_

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace ablate::engine {

// Raised with every field and every enum value that a spec gains (tests/spec/engine_config_test.cc
// notices): a worker declares it when it attaches, and a server grants runs only to workers that
// know all it may ask for. It says nothing about the numbers that come out, as kNumericsVersion
// does, and is no part of a fingerprint.
inline constexpr uint32_t kConfigVersion = 2;

enum class NormKind { kLayer, kRms };
enum class NormPlacement { kPre, kPost, kNone };
enum class Activation { kRelu, kGelu, kGeluTanh };  // kGelu is the exact one (erf).
enum class Positions { kLearned, kNone };
enum class InitKind { kPytorch, kPytorchMha, kXavier, kGpt2 };
enum class InitStreams { kByName, kSequential };
enum class OptimizerKind { kAdamW, kAdam, kSgd };
enum class ScheduleKind { kConstant, kLinear, kCosine };
enum class Tokenizer { kChars };

// Which output positions of a sequence the loss reads.
enum class LossPositions { kAll, kLast };

// How the gradient of a linear layer's input is formed. An argument of the forward pass.
enum class LearningRule { kBackprop };

// Where the arithmetic is done, and in which precision.
enum class Device { kCpu, kCuda };
enum class Precision { kFloat32, kFloat64 };

struct NormConfig {
  NormKind kind = NormKind::kLayer;
  NormPlacement placement = NormPlacement::kPre;
  bool attention = true;     // a norm at the attention site of every block
  bool feed_forward = true;  // a norm at the feed-forward site of every block
  bool final = true;         // a norm before the head, whatever the placement
  double eps = 1e-5;         // added to the variance (LayerNorm) or the mean square (RMSNorm)
  bool gain = true;          // learned scale per feature, starts at 1
  bool bias = true;          // learned shift per feature, starts at 0

  bool operator==(const NormConfig&) const = default;
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
  bool bias = true;        // biases of attention and feed-forward linears
  bool residual = true;    // residual additions around both sublayers
  bool tied_head = false;  // the head's weight is the token embedding
  bool head_bias = true;   // must be false when tied_head
  bool causal = true;
  Activation activation = Activation::kGelu;
  int hidden = 512;  // feed-forward width
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

  bool operator==(const OptimizerConfig&) const = default;
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  uint32_t warmup = 0;  // steps over which the rate rises linearly: rate·(step+1)/(warmup+1)

  bool operator==(const ScheduleConfig&) const = default;
};

struct TrainingConfig {
  uint32_t steps = 1000;
  uint32_t batch = 32;  // documents, sequences or windows a step
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double clip = 0;  // largest global gradient norm; 0 is no clipping
  LearningRule rule = LearningRule::kBackprop;
  // Ascending steps in 0…steps; `final_checkpoint` stands for −1.
  std::vector<uint32_t> checkpoints;
  bool final_checkpoint = true;  // a checkpoint where the run ends, diverged or not

  bool operator==(const TrainingConfig&) const = default;
};

struct EvaluationConfig {
  uint32_t every = 100;  // steps; also at step 0 and at the end
  // Batches of an evaluation: generated ones, or the first of a text's; 0 is all of a text's. No
  // matter to documents.
  uint32_t batches = 8;

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
