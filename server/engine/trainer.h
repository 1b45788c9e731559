// The seam between whoever schedules training and whatever trains: advance, emit points, export and
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
#include "server/engine/config.h"

namespace ablate::engine {

// Part of every run's fingerprint: raised whenever the same spec would give other numbers.
inline constexpr uint32_t kNumericsVersion = 3;

// A family of metrics that are recorded by block, and what asks for it.
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
// eval/accuracy, eval/ema_loss (of the averaged parameters), and what is recorded by block
// (train/recorder.h): gradient/embedding, and FAMILY/block.{i} of each family.
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

// What a run produced during one Advance.
struct RunProgress {
  std::vector<Point> points;            // ascending steps within a key
  std::vector<Checkpoint> checkpoints;  // ascending steps
  Outcome outcome = Outcome::kTraining;
  uint32_t step = 0;       // updates made so far; where a diverged run ended
  uint64_t tokens = 0;     // read in the updates of this Advance, without padding and evaluations
  uint32_t evaluated = 0;  // batches of evaluations in this Advance
};

// Trains one run. Not thread-safe: one thread at a time, and on a CPU a thread that called
// PrepareLaneThread.
class Trainer {
 public:
  virtual ~Trainer() = default;

  // Makes up to `steps` more updates, evaluating and checkpointing on the way: at step s first the
  // evaluation of s, then the checkpoint of s, then the update s → s+1. Ends early when the run has
  // ended, or when `stop` says so, which is asked between two updates and between two batches of an
  // evaluation: the next call goes on there, with the same bits. Once it has said so it must not
  // change its mind. Errors: RESOURCE_EXHAUSTED (out of memory; the trainer is still usable),
  // INTERNAL (discard it; others on this device are well), UNAVAILABLE (the device is lost to this
  // process).
  virtual absl::StatusOr<RunProgress> Advance(uint32_t steps, absl::FunctionRef<bool()> stop) = 0;

  // State of the run between two Advance calls: parameters, buffers, moments, average, step,
  // generators, data cursor, first evaluation. Importing it continues the same sequence bit for
  // bit; an evaluation that was left midway is made again. That of a run that is done may be
  // imported by one that is the same but for more steps, under a schedule that does not depend on
  // them: it goes on to its own end.
  virtual absl::StatusOr<std::string> ExportState() = 0;

  // INVALID_ARGUMENT if the state is malformed, FAILED_PRECONDITION if it is another trainer's,
  // numerics version's, environment's or shape's; nothing is changed then.
  virtual absl::Status ImportState(absl::string_view state) = 0;

  // The run's parameters now, as a checkpoint's bytes.
  virtual absl::StatusOr<std::string> ExportCheckpoint() = 0;
};

// The trainer of the kind that `run` asks for. INVALID_ARGUMENT if its data can't be used, its
// model is not one of its task, or this trainer or machine does not train it; ranges of its numbers
// are the caller's to check. Errors of LibTorch become a Status here.
absl::StatusOr<std::unique_ptr<Trainer>> MakeTrainer(const RunConfig& run);

// Version of the tensor library that is linked ("2.13.0").
std::string TorchVersion();

// What the bits of a run depend on beside its config, trainer and numerics version: of kTorch the
// tensor library and the instructions for which it chooses its kernels ("torch 2.13.0, AVX512
// (Intel)"), of kNative whether a product and a sum are rounded once ("native, fused").
std::string Environment(TrainerKind trainer);

// Makes the calling thread a lane: its tensor operations use this thread alone.
void PrepareLaneThread();

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_TRAINER_H_
