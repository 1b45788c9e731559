// Declares the analyses of trained models: their options, their results, and how one is computed in
// pieces, so that it can pause, give way to another and resume. docs/reference/analyses/ has the
// formulas. Torch-free; the server links everything except MakeAnalysis.
#ifndef ABLATE_SERVER_ENGINE_ANALYSIS_H_
#define ABLATE_SERVER_ENGINE_ANALYSIS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/safetensors.h"
#include "base/shared_bytes.h"
#include "server/engine/accelerator.h"
#include "server/engine/analysis_options.h"
#include "server/engine/config.h"
#include "server/engine/names.h"
#include "server/engine/samples.h"

namespace ablate::engine {

// The options of each kind and their enums are generated from analysis_options.proto, which
// describes them. Options without a declared default begin as 0 or empty. The server sets those of
// loss_landscape; the others then have the default in their help.

// Memory limit of the sums over tokens of CKA, for all pairs together. Below it CKA is exact.
inline constexpr uint64_t kMostCkaBytes = 1'000'000'000;
// Largest number of values whose quantiles are computed exactly. Quantiles of more values come from
// a second pass that counts them in bins, as histograms do.
inline constexpr int64_t kExactQuantiles = int64_t{1} << 22;
inline constexpr int64_t kQuantileBins = 4096;
inline constexpr int64_t kHistogramBins = 256;

// Returns the period: by default 25, or the largest that fits the model's context.
uint32_t PeriodOf(const InductionOptions& options, const ModelConfig& model);

// Returns the options with the levels that are used: their own, or by default 0.1, 0.2 and 0.4, of
// replace_words if the model's task has text, else of embedding_noise.
RobustnessOptions LevelsOf(const RobustnessOptions& options, const ModelConfig& model);

// Selects the tokens that are read, in one of three ways: whole held-out sequences of each subject
// in their order, up to `tokens` tokens in all but at least one sequence; the first `documents`
// sequences; or a prompt.
struct AnalysisInputs {
  uint64_t tokens = 0;
  std::string prompt;      // UTF-8; if not empty, it replaces the sequences
  uint64_t documents = 0;  // if not 0, it replaces `tokens`
  // The bytes of another data set, which replaces the held-out sequences. It is read from its
  // beginning, in the characters of the run's data set. Null: held-out sequences.
  std::shared_ptr<const std::string> text = nullptr;
};
// Largest number of tokens in `documents` sequences together.
inline constexpr uint64_t kMaxReadTokens = 1'000'000;

// A trained model: its configuration and the checkpoint to load.
struct AnalysisSubject {
  RunConfig config;
  SharedBytes checkpoint;  // a file's bytes
};

struct AnalysisRequest {
  AnalysisOptions options;
  std::vector<AnalysisSubject> subjects;
  AnalysisInputs inputs;
  uint32_t seed = 0;  // seeds every random draw
};

// The reasons for which a number is undefined.
enum class Undefined {
  kZeroVariance,
  kTooFewTokens,
  kNoAttention,
  kUnnormalised,
  kZeroGradient,
  kZeroDenominator,
  kNonFinite,
  kNoNorm,
  kOneClass,
};
// Their names in analysis.proto.
template <>
inline constexpr Named<Undefined> kNames<Undefined>[] = {
    {Undefined::kZeroVariance, "ZERO_VARIANCE"}, {Undefined::kTooFewTokens, "TOO_FEW_TOKENS"},
    {Undefined::kNoAttention, "NO_ATTENTION"},   {Undefined::kUnnormalised, "UNNORMALISED"},
    {Undefined::kZeroGradient, "ZERO_GRADIENT"}, {Undefined::kZeroDenominator, "ZERO_DENOMINATOR"},
    {Undefined::kNonFinite, "NON_FINITE"},       {Undefined::kNoNorm, "NO_NORM"},
    {Undefined::kOneClass, "ONE_CLASS"}};

// A headline number: a finite value, or the reason why it is undefined.
struct AnalysisNumber {
  std::string name;  // such as participation_ratio, or r_mean/block.0.attention_norm
  double value = 0;
  std::optional<Undefined> undefined;
};

// Returns the number; it is undefined for the reason given, or as kNonFinite if the value isn't
// finite.
AnalysisNumber NumberOf(std::string name, double value,
                        std::optional<Undefined> undefined = std::nullopt);
AnalysisNumber UndefinedNumber(std::string name, Undefined reason);

struct AnalysisArray {
  std::string name;
  std::vector<std::string> axes;  // one name per dimension, such as block, feature
  std::vector<int64_t> shape;
  TensorType type = TensorType::kF64;
  std::string bytes;  // little-endian, row-major
};

struct AnalysisResult {
  std::vector<AnalysisNumber> numbers;  // names are distinct
  std::vector<AnalysisArray> arrays;    // likewise
  std::vector<std::string> notes;       // sentences without their full stop
};

// Returns the arrays as one safetensors file. Its metadata holds the axes of each array as
// axes.NAME, separated by commas.
absl::StatusOr<std::string> WriteArrays(const std::vector<AnalysisArray>& arrays);

// Computes one analysis piece by piece. Not thread-safe. On a CPU the calling thread must have
// called PrepareLaneThread.
class Analysis {
 public:
  virtual ~Analysis() = default;

  // Number of pieces, at least one, made in order; a piece reads one batch or less.
  virtual int64_t pieces() const = 0;
  virtual int64_t made() const = 0;
  // Computes the next piece. Returns CANCELLED once `stop` is true, which is checked in every block
  // of a forward pass; the piece is then undone and may be computed again. Other errors as
  // Trainer's.
  virtual absl::Status Advance(const std::atomic<bool>& stop) = 0;
  // Returns the state so far. An analysis that restores it produces the same numbers.
  virtual absl::StatusOr<std::string> Save() = 0;
  // Size of the state that Save would return now, without its header.
  virtual uint64_t state_bytes() const = 0;
  // Returns INVALID_ARGUMENT if `state` isn't a state of this analysis, which is then unchanged.
  virtual absl::Status Restore(absl::string_view state) = 0;
  // Returns the result. Call it once all pieces are made.
  virtual absl::StatusOr<AnalysisResult> Finish() = 0;
};

// Creates an analysis. Returns INVALID_ARGUMENT, which names options and inputs by their field in
// the request, if the model lacks a site, its data can't spell the prompt or the other text, the
// subjects read different sequences, or the checkpoint belongs to another model. Other errors as
// MakeTrainer's. With an accelerator, models and activations are on its device, and only analyses
// there can continue from the states.
absl::StatusOr<std::unique_ptr<Analysis>> MakeAnalysis(
    AnalysisRequest request, const std::shared_ptr<Accelerator>& accelerator = nullptr);

// Selects how the forward passes of an analysis are computed.
enum class AnalysisPass {
  kScored,      // by LibTorch, at the positions that the run's loss reads
  kEverywhere,  // by LibTorch, at all positions
  kMoved,       // at other parameters, forward only: by the native backend if it supports the run
};

// Estimates the cost of an analysis in advance, for one subject's model and a number of tokens.
struct AnalysisCost {
  double forwards = 0;       // passes over all tokens; a gradient counts as three
  uint64_t state_bytes = 0;  // carried from piece to piece
  uint64_t array_bytes = 0;
  AnalysisPass pass = AnalysisPass::kScored;
  double others = 0;    // float64 operations in addition to the passes; a logarithm counts as ten
  uint64_t tokens = 0;  // tokens of a pass over sequences that the kind makes itself
  double calls = 0;     // number of passes; 0: forwards, each in pieces of its tokens
};

struct TaggedRows;  // core/analyses/tagged_rows.h

// Summarises all sequences that are read.
struct SequenceSummary {
  uint64_t sequences = 0;
  uint64_t shortest = 0;  // in tokens
  uint64_t longest = 0;
  uint64_t tokens = 0;                 // of all together
  const TaggedRows* tagged = nullptr;  // null: they aren't tagged sentences
};

// A row of the table of kinds. Rows are in the order of AnalysisOptions.
struct AnalysisKind {
  absl::string_view name;
  // Number of models that one analysis takes.
  size_t least_subjects = 1;
  size_t most_subjects = 1;
  uint64_t default_tokens = 0;  // 0: the kind takes no inputs
  // Returns the problems of the options for this model; empty if there are none. An option that
  // depends on neither another option nor the model is checked against its range in
  // analysis_options.proto.
  std::vector<OptionProblem> (*check)(const AnalysisOptions& options, const ModelConfig& model) =
      [](const AnalysisOptions&, const ModelConfig&) { return std::vector<OptionProblem>(); };
  AnalysisCost (*cost)(const AnalysisOptions& options, const RunConfig& config, uint64_t tokens,
                       size_t subjects);
  // Returns the problems of the options for all models together. Null: several models have no
  // problem that a single model lacks.
  std::vector<OptionProblem> (*check_all)(const AnalysisOptions& options,
                                          const std::vector<const ModelConfig*>& models) = nullptr;
  // Returns the problems of the options for such sequences, or of the inputs, with fields such as
  // inputs.dataset. Null: no sequences are a problem.
  std::vector<OptionProblem> (*check_read)(const AnalysisOptions& options, const ModelConfig& model,
                                           const SequenceSummary& read) = nullptr;
  // Passes that a piece makes over its tokens; a gradient counts as three.
  double piece_forwards = 1;
  // True if the subjects must be checkpoints of one run, by ascending step.
  bool steps_of_one_run = false;
  // True if the inputs must name a data set of tagged sentences.
  bool needs_tagged = false;
  // Raised when the kind's numbers change, so that results stored earlier aren't reused.
  int revision = 0;
  // Returns the problems of options that depend on the run's data, which is loaded. Errors as
  // CheckRead's. Null: none does.
  absl::StatusOr<std::vector<OptionProblem>> (*check_data)(const AnalysisOptions& options,
                                                           const RunConfig& config) = nullptr;
};

// Returns the largest number of tokens in a piece; `parameters` is the total over its models.
uint64_t PieceTokens(const AnalysisKind& kind, double parameters);

absl::Span<const AnalysisKind> AnalysisKinds();
const AnalysisKind& KindOf(const AnalysisOptions& options);

// Returns the problems, by fields of a request, for which MakeAnalysis would reject what these
// models would read, or options that depend on their data. `subjects` has at least one run, with
// its task's data loaded. Returns an error if the data can't be used.
absl::StatusOr<std::vector<OptionProblem>> CheckRead(const AnalysisOptions& options,
                                                     const AnalysisInputs& inputs,
                                                     const std::vector<const RunConfig*>& subjects);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYSIS_H_
