// Analyses of models: what may be asked, what comes of it, and how it is made piece by piece, so
// that it can stop, yield to another and go on. docs/reference/analyses/ has the formulas.
// Torch-free; the server links all but MakeAnalysis.
#ifndef ABLATE_SERVER_ENGINE_ANALYSIS_H_
#define ABLATE_SERVER_ENGINE_ANALYSIS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/safetensors.h"
#include "server/engine/samples.h"

namespace ablate::engine {

// What a gradient is formed by: exact backpropagation, or the learning rule and the norms' backward
// mode that the run learns by.
enum class GradientSignal { kExact, kRule };
// How a direction in the space of parameters is scaled.
enum class Direction { kRaw, kUnit, kFilter, kLayer };
enum class RemovedPart { kHead, kAttention, kFeedForward };
enum class Replacement { kMean, kZero, kUniform };
enum class AttentionMaps { kHeads, kLayers, kModel };
enum class CkaEstimator { kDebiased, kBiased };

// The options of each kind, with their defaults. A site that is empty is the last block's output.
struct SpectrumOptions {
  std::string site;
};

struct CkaOptions {
  std::vector<std::string> sites;  // empty: the embedding and every block's output
  CkaEstimator estimator = CkaEstimator::kDebiased;
  uint32_t block = 512;  // tokens of a minibatch, where sums take above kMostCkaBytes
};
// The memory of sums over tokens, for all pairs together, by which CKA is exact.
inline constexpr uint64_t kMostCkaBytes = 1'000'000'000;

struct ActivationsOptions {
  std::vector<std::string> sites;  // empty: the embedding and every block's output
  bool histograms = false;
};

struct WeightsOptions {
  bool histograms = false;
};
// Quantiles of so many values are exact; those of more come from a second pass that counts them in
// bins, as one does for histograms.
inline constexpr int64_t kExactQuantiles = int64_t{1} << 22;
inline constexpr int64_t kQuantileBins = 4096;
inline constexpr int64_t kHistogramBins = 256;

struct CaptureOptions {
  std::vector<std::string> sites;  // at least one
};

struct LossLandscapeOptions {
  Direction direction = Direction::kFilter;
  uint32_t dims = 1;         // 1 or 2
  uint32_t directions = 10;  // or planes
  double radius = 1;
  uint32_t points = 51;  // along each direction
};

struct HessianOptions {
  uint32_t top = 1;  // eigenvalues from either end
  uint32_t iterations = 80;
  uint32_t trace_samples = 100;
  uint32_t density_runs = 4;
};

struct GradientFlowOptions {
  GradientSignal signal = GradientSignal::kExact;
};

struct GradientAlignmentOptions {};

struct NormJacobianOptions {
  GradientSignal signal = GradientSignal::kRule;
};

struct NormStatisticsOptions {
  std::vector<uint32_t> batch;  // sequences a batch by which BatchNorm's statistics are taken, too
};

struct NormResponseOptions {
  double mean = 5;
  double deviation = 10;
  uint32_t size = 100;
};

struct AttentionOptions {
  std::vector<AttentionMaps> maps;  // of a prompt
};

struct RemoveOptions {
  RemovedPart part = RemovedPart::kHead;
  Replacement replacement = Replacement::kMean;
};

struct TrajectoryOptions {
  uint32_t points = 21;  // along each axis
};

using AnalysisOptions =
    std::variant<SpectrumOptions, CkaOptions, ActivationsOptions, WeightsOptions, CaptureOptions,
                 LossLandscapeOptions, HessianOptions, GradientFlowOptions,
                 GradientAlignmentOptions, NormJacobianOptions, NormStatisticsOptions,
                 NormResponseOptions, AttentionOptions, RemoveOptions, TrajectoryOptions>;

// What is read: whole held-out sequences of each subject, in their order, as long as they have at
// most so many tokens together, but one at least; or the first so many; or a prompt.
struct AnalysisInputs {
  uint64_t tokens = 0;
  std::string prompt;      // UTF-8; not empty: instead of sequences
  uint64_t documents = 0;  // not 0: instead of `tokens`
  // Another data set, a file's bytes: read from its beginning on, in characters of the run's, in
  // place of held-out sequences. Null: held-out ones.
  std::shared_ptr<const std::string> text = nullptr;
};
// Tokens that documents may have together.
inline constexpr uint64_t kMaxReadTokens = 1'000'000;

// A model: that of `config` at a checkpoint.
struct AnalysisSubject {
  RunConfig config;
  std::string checkpoint;  // a file's bytes
};

struct AnalysisRequest {
  AnalysisOptions options;
  std::vector<AnalysisSubject> subjects;
  AnalysisInputs inputs;
  uint32_t seed = 0;  // of every random draw
};

// Why a number does not exist.
enum class Undefined {
  kZeroVariance,
  kTooFewTokens,
  kNoAttention,
  kUnnormalised,
  kZeroGradient,
  kZeroDenominator,
  kNonFinite,
  kNoNorm,
};

// A headline number: a finite value, or the reason that there is none.
struct AnalysisNumber {
  std::string name;  // such as participation_ratio, or r_mean/block.0.attention_norm
  double value = 0;
  std::optional<Undefined> undefined;
};

// The number, undefined for the reason that is given, or as kNonFinite where the value is not
// finite.
AnalysisNumber NumberOf(std::string name, double value,
                        std::optional<Undefined> undefined = std::nullopt);
AnalysisNumber UndefinedNumber(std::string name, Undefined reason);

struct AnalysisArray {
  std::string name;
  std::vector<std::string> axes;  // one a dimension, such as block, feature
  std::vector<int64_t> shape;
  TensorType type = TensorType::kF64;
  std::string bytes;  // little-endian, row-major
};

struct AnalysisResult {
  std::vector<AnalysisNumber> numbers;  // names are distinct
  std::vector<AnalysisArray> arrays;    // likewise
  std::vector<std::string> notes;       // sentences without their full stop
};

// The arrays as one safetensors file, whose metadata has the axes of each as axes.NAME, separated
// by commas.
absl::StatusOr<std::string> WriteArrays(const std::vector<AnalysisArray>& arrays);

// One analysis on its way. Not thread-safe; on a CPU the calling thread has called
// PrepareLaneThread.
class Analysis {
 public:
  virtual ~Analysis() = default;

  // The parts that it is made in, one after the other, each a batch or less: never none.
  virtual int64_t pieces() const = 0;
  virtual int64_t made() const = 0;
  // Makes the next one. CANCELLED once `stop` is true, which is looked at in every block of a
  // forward pass: the piece is then as if it had not begun, and may be made again. Errors as
  // Trainer's.
  virtual absl::Status Advance(const std::atomic<bool>& stop) = 0;
  // What was made so far, to go on from with the same numbers.
  virtual absl::StatusOr<std::string> Save() = 0;
  // Size of what Save gives now, without its header.
  virtual uint64_t state_bytes() const = 0;
  // INVALID_ARGUMENT if it is no state of this analysis, which stays as it was.
  virtual absl::Status Restore(absl::string_view state) = 0;
  // Once all pieces are made.
  virtual absl::StatusOr<AnalysisResult> Finish() = 0;
};

// INVALID_ARGUMENT names what can't be, options and inputs by their field in a request: a site that
// the model lacks, a prompt or another text that its data can't spell, subjects that read different
// sequences; or a checkpoint of another model. Other errors as MakeTrainer's.
absl::StatusOr<std::unique_ptr<Analysis>> MakeAnalysis(AnalysisRequest request);

// How the passes of an analysis are computed.
enum class AnalysisPass {
  kScored,      // by LibTorch, as far as the run's loss reads
  kEverywhere,  // by LibTorch, at all positions
  kMoved,       // forward at other parameters: by the native backend if it supports the run
};

// What an analysis takes, before it is made: for one subject's model with that many tokens.
struct AnalysisCost {
  double forwards = 0;       // passes over all tokens, a gradient as three
  uint64_t state_bytes = 0;  // carried from piece to piece
  uint64_t array_bytes = 0;
  AnalysisPass pass = AnalysisPass::kScored;
  double others = 0;  // operations in float64 in addition to the passes; a logarithm as ten
};

// Of all sequences that are read.
struct SequenceLengths {
  uint64_t sequences = 0;
  uint64_t shortest = 0;  // in tokens
  uint64_t longest = 0;
};

// A row of the table of kinds, in the order of AnalysisOptions.
struct AnalysisKind {
  absl::string_view name;
  // Models that one analysis is about.
  size_t least_subjects;
  size_t most_subjects;
  uint64_t default_tokens;  // 0: it reads none
  // What is wrong with the options for this model, empty if nothing is. Every option that depends
  // on no other and on no model is checked by its range in analysis.proto.
  std::vector<OptionProblem> (*check)(const AnalysisOptions& options, const ModelConfig& model);
  AnalysisCost (*cost)(const AnalysisOptions& options, const RunConfig& config, uint64_t tokens,
                       size_t subjects);
  // The same as `check` of all models together; null: nothing is wrong with several that is not
  // with one.
  std::vector<OptionProblem> (*check_all)(const AnalysisOptions& options,
                                          const std::vector<const ModelConfig*>& models) = nullptr;
  // What is wrong with the options for such sequences; null: nothing, whatever is read.
  std::vector<OptionProblem> (*check_read)(const AnalysisOptions& options, const ModelConfig& model,
                                           const SequenceLengths& read) = nullptr;
  // Passes that a piece makes over its tokens, a gradient as three.
  double piece_forwards = 1;
  // Whether its subjects are checkpoints of one run, by ascending step.
  bool steps_of_one_run = false;
  // Raised when its numbers change, so that stored ones from before don't count as the new ones.
  int revision = 0;
};

// Tokens of a piece at most; its models have `parameters` together.
uint64_t PieceTokens(const AnalysisKind& kind, double parameters);

absl::Span<const AnalysisKind> AnalysisKinds();
const AnalysisKind& KindOf(const AnalysisOptions& options);

// What is wrong with what these models, one at least, would read, whose tasks' data was read: what
// MakeAnalysis refuses of it, by fields of a request. Errors if the data can't be used.
absl::StatusOr<std::vector<OptionProblem>> CheckRead(const AnalysisOptions& options,
                                                     const AnalysisInputs& inputs,
                                                     const std::vector<const RunConfig*>& subjects);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYSIS_H_
