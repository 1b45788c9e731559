#include "server/config/estimate.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_format.h"
#include "server/engine/core/layout.h"
#include "server/engine/native/columns.h"
#include "server/engine/task.h"

namespace ablate::spec {
namespace {

constexpr uint64_t kFloat = 4;
// A step and a double, before compression.
constexpr uint64_t kPoint = 12;
// A tensor's entry in a file's header: name, type, shape, offsets.
constexpr uint64_t kTensorHeader = 120;
constexpr uint64_t kFileHeader = 1000;
// Generators and the data's cursor in a resume state.
constexpr uint64_t kGenerators = 10'000;

uint64_t Points(const engine::RunConfig& config) {
  const uint64_t steps = config.training.steps;
  const uint64_t evaluations = 1 + (steps + config.evaluation.every - 1) / config.evaluation.every;
  // Loss and accuracy, the EMA weights' loss, and what is recorded by block.
  uint64_t evaluated = config.training.ema > 0 ? 3 : 2;
  evaluated += 2 * config.evaluation.record.size() * static_cast<uint64_t>(config.model.layers);
  return 2 * steps + evaluated * evaluations;  // loss and gradient norm of each step
}

// Returns the copies of the parameters in a resume state: themselves and the optimizer's slots.
uint64_t ResumeCopies(const engine::TrainingConfig& training) {
  return 1 + engine::OptimizerSlots(training).size();
}

// Returns true if attention keeps no weights for the backward pass over `rows` sequences.
bool FusesAttention(const engine::RunConfig& config, double rows, double length) {
  const engine::ModelConfig& model = config.model;
  const bool fuses = config.device == engine::Device::kCuda ||
                     config.precision == engine::Precision::kBfloat16 ||
                     (model.loss == engine::LossPositions::kAll &&
                      engine::HasManyLogits(static_cast<int64_t>(rows * length), model.vocabulary));
  return config.training.trainer == engine::TrainerKind::kTorch && fuses && model.dropout == 0 &&
         engine::HasPlainScores(model);
}

// Returns the numbers that a sequence's forward pass keeps for the backward pass: the least that
// its blocks need.
double NumbersASequence(const engine::RunConfig& config, bool fuses, double length) {
  const engine::ModelConfig& model = config.model;
  const double width = model.width;
  const double queries = engine::Attends(model) ? engine::QueryWidth(model) : 0;
  // Normalised inputs, queries, keys, values, context, stream; the feed-forward before and after
  // its activation; a row of the attention's weights for each head, or its sum.
  const double row = fuses ? 1 : length;
  const double block = length * (4 * (width + queries) + 2.0 * model.hidden + model.heads * row);
  if (!engine::Attends(model)) {
    // Normalised inputs and stream; if only the last position is scored the last block sees no
    // other.
    const bool last = model.loss == engine::LossPositions::kLast;
    const double positions = last ? (model.layers - 1) * length + 1 : model.layers * length;
    return positions * (2 * width + 2.0 * model.hidden);
  }
  if (model.loss == engine::LossPositions::kAll) return model.layers * block;
  // If only the last position is scored the last block has one query, and applies its feed-forward
  // to that only: of the others it keeps the stream, the normalised inputs, keys and values.
  const double last = length * (2 * (width + queries) + model.heads) + 2.0 * model.hidden;
  return (model.layers - 1) * block + last;
}

// Returns the cost of a sequence as long as the model's context: two operations per parameter and
// position forward, and twice as many backward.
double FlopsPerSequence(const engine::RunConfig& config, uint64_t parameters) {
  const engine::ModelConfig& model = config.model;
  const double width = model.width, context = model.context;
  const double head = model.vocabulary * width;
  double blocks = static_cast<double>(parameters) - head;
  if (!model.tied_head) blocks -= head;  // the embedding is looked up
  if (model.positions == engine::Positions::kLearned) blocks -= context * width;
  const bool attends = engine::Attends(model);
  const double queries = attends ? engine::QueryWidth(model) : 0;
  if (model.loss == engine::LossPositions::kAll) {
    const double attention = 12.0 * model.layers * queries * context * context;
    return 6 * (blocks + head) * context + attention;
  }
  // If only the last position is scored, the last block computes only keys and values for the
  // others; a single native block doesn't even have those.
  const double others = blocks * (model.layers - 1) / model.layers;
  const bool absorbed =
      config.training.trainer == engine::TrainerKind::kNative && model.layers == 1;
  const double keys = attends && !absorbed ? 2 * width * engine::KvWidth(model) : 0;
  const double attention = 12.0 * queries * context * ((model.layers - 1) * context + 1);
  return 6 * ((others + keys) * context + blocks / model.layers + head) + attention;
}

// Returns the cost of Muon's matrix products in an update: with r the shorter side and c the
// longer, two of r·r·c and one of r·r·r multiplications in each iteration.
double MuonFlops(const engine::RunConfig& config) {
  if (config.training.optimizer.kind != engine::OptimizerKind::kMuon) return 0;
  double flops = 0;
  const engine::ParameterLayout layout = engine::MakeLayout(config.model);
  for (const engine::MatrixView& matrix : engine::BlockMatrices(config.model, layout)) {
    const auto [shorter, longer] = std::minmax(matrix.rows, matrix.columns);
    flops +=
        2.0 * static_cast<double>(shorter * shorter) * static_cast<double>(2 * longer + shorter);
  }
  return flops * config.training.optimizer.muon.iterations;
}

double ScoredPositions(const engine::ModelConfig& model, const Sequences& data) {
  return model.loss == engine::LossPositions::kAll ? data.mean : 1;
}

// Returns how many of `rows` sequences of a mean length the trainer computes at the same time.
double SequencesTogether(const engine::RunConfig& config, double rows, double length) {
  const bool reads_batch =
      config.model.norm.kind == engine::NormKind::kBatch && engine::HasNorm(config.model);
  if (config.training.trainer != engine::TrainerKind::kNative || reads_batch) return rows;
  constexpr auto kTokens = static_cast<double>(engine::native::kTogether);
  return std::min(rows, std::max(1.0, std::floor(kTokens / length)));
}

// Returns the numbers that the loss of `targets` targets takes: `copies` of its logits (themselves,
// log-probabilities, the gradient of those), or two of a chunk.
double LossNumbers(const engine::RunConfig& config, double targets, double copies) {
  const double logits = targets * config.model.vocabulary;
  if (config.training.trainer == engine::TrainerKind::kNative) return logits;
  const bool chunks = config.training.rule != engine::LearningRule::kDirectFeedbackAlignment &&
                      engine::ComputesLossInChunks(config.device, static_cast<int64_t>(targets),
                                                   config.model.vocabulary);
  const auto most = static_cast<double>(engine::MostLogitsTogether(config.device));
  // Logits in bfloat16, and in float32 a copy and log-probabilities.
  const double together = config.precision == engine::Precision::kBfloat16 ? 2.5 : 2;
  return chunks ? together * std::min(logits, most) : copies * logits;
}

// Returns the mean length of sequences as a fraction of the context; 1 if it is unknown.
double ShareOfContext(const engine::ModelConfig& model, const Sequences& data) {
  return data.mean > 1 ? data.mean / model.context : 1;
}

// Returns the number of sequences in an evaluation's largest batch.
double EvaluatedTogether(const engine::ModelConfig& model, const Sequences& data) {
  return data.evaluated / ScoredPositions(model, data);
}

}  // namespace

uint64_t ResumeBytes(const engine::TrainingConfig& training, const ModelSize& size) {
  return kFloat * (ResumeCopies(training) * size.parameters + size.buffers) + kGenerators;
}

uint64_t StoredBytes(const engine::RunConfig& config, const ModelSize& size) {
  const uint64_t checkpoints =
      config.training.checkpoints.size() + (config.training.final_checkpoint ? 1 : 0);
  const uint64_t checkpoint =
      kFloat * (size.parameters + size.buffers) + kTensorHeader * size.tensors + kFileHeader;
  return kPoint * Points(config) + checkpoints * checkpoint;
}

double TrainingBytes(const engine::RunConfig& config, const ModelSize& size,
                     const Sequences& data) {
  const engine::ModelConfig& model = config.model;
  const double copies = static_cast<double>(ResumeCopies(config.training));
  // Parameters and slots, gradients, the update's scratch, buffers; and the resume state being
  // written.
  const double held = (copies + 2 + copies) * static_cast<double>(size.parameters) +
                      2 * static_cast<double>(size.buffers);
  // Micro-batches are computed one after another.
  const uint32_t rows = config.training.batch / config.training.accumulation;
  const double batch = SequencesTogether(config, rows, data.mean);
  const double read = ScoredPositions(model, data);
  const double factors = config.precision == engine::Precision::kBfloat16 ? 0.5 : 1;
  const double kept =
      factors * NumbersASequence(config, FusesAttention(config, batch, data.mean), data.mean);
  const double step = batch * kept + LossNumbers(config, batch * read, 3);
  // An evaluation keeps nothing of a block except the next one's input.
  const double evaluated = SequencesTogether(config, data.evaluated / read, data.mean) * read;
  double evaluation = LossNumbers(config, evaluated, 2);
  // Recorded gradients are the exception: they take a backward pass over one of its batches.
  if (!config.evaluation.record.empty()) {
    evaluation = data.evaluated * 3.0 * model.vocabulary +
                 EvaluatedTogether(model, data) * NumbersASequence(config, false, data.mean) +
                 static_cast<double>(size.parameters);
  }
  return kFloat * (held + std::max(step, evaluation));
}

double DeviceBytes(const engine::RunConfig& config) {
  // Workspaces of cuBLAS on each stream; blocks of memory that are larger than their tensors.
  constexpr double kStream = 64 << 20, kBlocks = 1.25;
  const engine::ParameterLayout layout = engine::MakeLayout(config.model, config.training.rule);
  const ModelSize size{static_cast<uint64_t>(layout.size),
                       layout.parameters.size() + layout.buffers.size(),
                       static_cast<uint64_t>(layout.buffer_size)};
  const double context = config.model.context;
  const double rows = std::max<double>(config.training.batch, engine::kEvaluatedTogether);
  const double evaluated = rows * (config.model.loss == engine::LossPositions::kAll ? context : 1);
  return kStream + kBlocks * TrainingBytes(config, size, {.mean = context, .evaluated = evaluated});
}

std::string BytesText(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < std::size(kUnits)) {
    bytes /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", bytes < 9.95 && unit > 0 ? 1 : 0, bytes, kUnits[unit]);
}

double FlopsPerStep(const engine::RunConfig& config, uint64_t parameters, const Sequences& data) {
  return config.training.batch * FlopsPerSequence(config, parameters) *
             ShareOfContext(config.model, data) +
         MuonFlops(config);
}

double ForwardFlops(const engine::RunConfig& config, uint64_t parameters, double tokens) {
  return tokens / config.model.context * FlopsPerSequence(config, parameters) / 3;
}

EvaluationCost CostOfEvaluation(const engine::RunConfig& config, uint64_t parameters,
                                const Sequences& data) {
  const double sequence = FlopsPerSequence(config, parameters) * ShareOfContext(config.model, data);
  const double times = config.training.ema > 0 ? 2 : 1;
  EvaluationCost cost{times * data.batches, times * data.held_out * sequence / 3};
  if (config.evaluation.record.empty()) return cost;
  // The exact gradient of the largest batch, and the learning rule's gradient.
  const auto& record = config.evaluation.record;
  const bool aligned =
      std::find(record.begin(), record.end(), engine::Record::kRuleAlignment) != record.end();
  const double gradients = aligned ? 2 : 1;
  cost.passes += 2 * gradients;
  cost.flops += gradients * EvaluatedTogether(config.model, data) * sequence;
  return cost;
}

Speed GuessSpeed(const engine::RunConfig& config) {
  // Measured on an H100 in float32 (docs/explanation/benchmarks.md): a small step takes 1 ms in
  // each of four lanes, and one lane makes 40 TFLOP/s with GPT-2.
  const double passes = 2.0 * config.training.accumulation;
  if (config.device == engine::Device::kCuda) return {500, 40e6, passes};
  // Measured with models of 1 to 12 layers and width 16 to 768, on a Xeon with AMX
  // (docs/explanation/benchmarks.md). Eager calls take most of the time of a small pass, and those
  // of narrow layers compute little.
  constexpr double kFlopsPerMicro = 80e3, kFullWidth = 128;
  const double layers = config.model.layers;
  if (config.training.trainer == engine::TrainerKind::kNative) {
    return {5 + 3 * layers, kFlopsPerMicro, passes};
  }
  const double wide = std::min(config.model.width / kFullWidth, 1.0);
  const double products = config.precision == engine::Precision::kBfloat16 ? 2 : 1;
  return {250 + 225 * layers, kFlopsPerMicro * wide * products, passes};
}

}  // namespace ablate::spec
