// Estimates a run's storage, memory and computation before it starts.
#ifndef ABLATE_SERVER_CONFIG_ESTIMATE_H_
#define ABLATE_SERVER_CONFIG_ESTIMATE_H_

#include <cstdint>
#include <string>

#include "server/engine/config.h"

namespace ablate::spec {

// Sizes of a run's layout.
struct ModelSize {
  uint64_t parameters = 0;
  uint64_t tensors = 0;  // that hold parameters and buffers
  uint64_t buffers = 0;  // elements: running statistics and feedback
};

// Returns the size of a resume state: parameters and buffers, the optimizer's slots (with the EMA
// weights, if any), generators and the data's cursor. It is deleted when its run ends; if the run
// can be extended, the last one is kept for a while.
uint64_t ResumeBytes(const engine::TrainingConfig& training, const ModelSize& size);

// Returns the bytes of points and checkpoints, which stay after a run has ended.
uint64_t StoredBytes(const engine::RunConfig& config, const ModelSize& size);

// Lengths of a run's sequences, in tokens.
struct Sequences {
  double mean = 1;       // of a training sequence
  double evaluated = 1;  // scored positions of an evaluation's largest batch
  double held_out = 1;   // sequences of an evaluation
  double batches = 1;    // their number of batches
};

// Returns the least memory of training in bytes, while it steps, evaluates and writes a resume
// state. A double, so that no model overflows it.
double TrainingBytes(const engine::RunConfig& config, const ModelSize& size, const Sequences& data);

// Returns a guess of a run's memory on a GPU: that of TrainingBytes for sequences as long as the
// context, and what LibTorch and captured graphs take in addition.
double DeviceBytes(const engine::RunConfig& config);

// Formats as "1.3 TB", "850 MB": decimal units, two digits.
std::string BytesText(double bytes);

// Returns the floating-point operations of one step, forward and backward: 6 for each token and
// parameter that multiplies, and 12 · width · context² for the products of a layer's attention over
// a sequence. The mean length of sequences counts, or the model's context if it is unknown (1).
double FlopsPerStep(const engine::RunConfig& config, uint64_t parameters,
                    const Sequences& data = {});

// Returns the operations of a forward pass over `tokens` in sequences, by the config's trainer.
double ForwardFlops(const engine::RunConfig& config, uint64_t parameters, double tokens);

// Cost of an evaluation, including that of the EMA weights and of recorded quantities.
struct EvaluationCost {
  double passes = 0;  // passes through the model, forward or backward: a step makes one of each
  double flops = 0;
};

// Returns the cost of an evaluation. Sequences count as in FlopsPerStep.
EvaluationCost CostOfEvaluation(const engine::RunConfig& config, uint64_t parameters,
                                const Sequences& data);

// A guess of how fast a trainer computes on a lane.
struct Speed {
  double pass_micros = 0;      // of a pass through the model, whatever it computes
  double flops_per_micro = 1;  // beyond that
  double passes_per_step = 2;  // forward and backward, of each micro-batch

  bool operator==(const Speed&) const = default;
};
Speed GuessSpeed(const engine::RunConfig& config);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_CONFIG_ESTIMATE_H_
