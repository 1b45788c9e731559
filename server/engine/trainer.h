// Interface between the scheduler of training and the trainers: advance, report points, export and
// import state.
#ifndef ABLATE_SERVER_ENGINE_TRAINER_H_
#define ABLATE_SERVER_ENGINE_TRAINER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/accelerator.h"
#include "server/engine/config.h"
#include "server/engine/names.h"

namespace ablate::engine {

// Part of every run's fingerprint. Raised whenever the same spec would produce other numbers.
inline constexpr uint32_t kNumericsVersion = 5;

// A family of metrics recorded per block, and the `record` option that enables it.
struct BlockMetrics {
  absl::string_view family;
  Record record;
};

inline constexpr BlockMetrics kGradientMetrics = {"gradient", Record::kGradientByBlock};
inline constexpr BlockMetrics kParameterGradientMetrics = {"parameter_gradient",
                                                           Record::kGradientByBlock};
inline constexpr BlockMetrics kAlignmentMetrics = {"alignment", Record::kRuleAlignment};
inline constexpr BlockMetrics kAlignmentRatioMetrics = {"alignment_ratio", Record::kRuleAlignment};

inline constexpr BlockMetrics kBlockMetrics[] = {kGradientMetrics, kParameterGradientMetrics,
                                                 kAlignmentMetrics, kAlignmentRatioMetrics};

// One value of one metric. Keys: train/loss, train/gradient_norm (before clipping), eval/loss,
// eval/accuracy, eval/ema_loss (of the EMA weights), and metrics per block
// (torch/train/recorder.h): gradient/embedding, and FAMILY/block.{i} of each family.
struct Point {
  std::string key;
  uint32_t step = 0;
  double value = 0;  // may be non-finite
};

struct Checkpoint {
  uint32_t step = 0;
  std::string safetensors;  // a whole file: parameters under their layout names, metadata with
                            // config and step
};

enum class Outcome { kTraining, kDone, kDiverged };
template <>
inline constexpr Named<Outcome> kNames<Outcome>[] = {
    {Outcome::kTraining, "training"}, {Outcome::kDone, "done"}, {Outcome::kDiverged, "diverged"}};

// The output of one Advance call.
struct RunProgress {
  std::vector<Point> points;            // ascending steps within a key
  std::vector<Checkpoint> checkpoints;  // ascending steps
  Outcome outcome = Outcome::kTraining;
  uint32_t step = 0;       // updates made so far; the last step of a diverged run
  uint64_t tokens = 0;     // read by the updates of this Advance, without padding and evaluations
  uint32_t evaluated = 0;  // evaluation batches in this Advance
};

// Trains one run. Not thread-safe: one thread at a time, and on a CPU a thread that has called
// PrepareLaneThread.
class Trainer {
 public:
  virtual ~Trainer() = default;

  // Makes up to `steps` more updates. At step s it first evaluates, then saves the checkpoint of s,
  // then makes the update s → s+1. Returns early when the run ends or `stop` returns true; `stop`
  // is called between two updates and between two evaluation batches, and must stay true
  // afterwards. The next call continues there, with the same bits. Errors:
  // - RESOURCE_EXHAUSTED: out of memory; the trainer remains usable, unless ExportState then has
  //   this error, too
  // - INTERNAL: discard this trainer; others on this device are unaffected
  // - UNAVAILABLE: this process has lost the device
  virtual absl::StatusOr<RunProgress> Advance(uint32_t steps, absl::FunctionRef<bool()> stop) = 0;

  // Returns the resume state between two Advance calls: parameters, buffers, moments, EMA weights,
  // step, generators, data cursor, first evaluation. A trainer that imports it continues bit for
  // bit; an evaluation that was interrupted is repeated. A run with more steps may import the state
  // of a finished run if everything else is equal and the schedule doesn't depend on the number of
  // steps.
  virtual absl::StatusOr<std::string> ExportState() = 0;

  // Replaces the initial parameters by those of a checkpoint, before the first Advance; EMA weights
  // begin as the same. The checkpoint's model must be the run's, except that its context may be
  // longer: the first positions are taken. Running statistics are taken if it has them. Returns
  // INVALID_ARGUMENT with the problem, also if the checkpoint says that its tokens stand for other
  // text than the run's; nothing is changed then.
  virtual absl::Status StartFrom(absl::string_view checkpoint) = 0;

  // Loads a state. Returns INVALID_ARGUMENT if it is malformed, and FAILED_PRECONDITION if its
  // trainer, numerics version, environment or shape differs; nothing is changed then.
  virtual absl::Status ImportState(absl::string_view state) = 0;

  // Returns the current parameters as the bytes of a checkpoint.
  virtual absl::StatusOr<std::string> ExportCheckpoint() = 0;
};

// Creates the trainer that `run` asks for. Returns INVALID_ARGUMENT if its data can't be used, its
// model doesn't fit its task, or this trainer or machine can't train it. The caller checks the
// ranges of numbers. LibTorch's exceptions become a Status here. A run with device cuda needs an
// accelerator, which several trainers share.
absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer(
    const RunConfig& run, const std::shared_ptr<Accelerator>& accelerator = nullptr);

// Returns the version of the linked tensor library ("2.13.0").
std::string TorchVersion();

// Returns the interpreter of the Python environment whose wheel has the loaded tensor library;
// empty if the library isn't in one.
std::string TorchPython();

// Returns the environment that the bits of a run depend on, in addition to config, trainer and
// numerics version. For kTorch: the tensor library and the instruction set that it selects kernels
// for ("torch 2.13.0, AVX512 (Intel, AMX)"), or the accelerator ("torch 2.13.0, NVIDIA H100 80GB
// HBM3"). For kNative: whether multiply-add rounds once ("native, fused").
std::string Environment(TrainerKind trainer, const Accelerator* accelerator = nullptr);

// Prepares the calling thread as a training slot: its tensor operations run on this thread alone.
void PrepareLaneThread();

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAINER_H_
