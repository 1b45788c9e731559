// What a run will store, hold and compute, before it starts.
#ifndef ABLATE_SERVER_SPEC_ESTIMATE_H_
#define ABLATE_SERVER_SPEC_ESTIMATE_H_

#include <cstdint>
#include <string>

#include "server/engine/config.h"

namespace ablate::spec {

// Of a run, as in its layout.
struct ModelSize {
  uint64_t parameters = 0;
  uint64_t tensors = 0;  // that hold parameters and buffers
  uint64_t buffers = 0;  // elements: running statistics and feedback
};

// A resume state: the parameters and buffers, the optimizer's slots (with the parameters' average,
// where there is one), generators and the data's cursor. It goes when its run ends, unless the run
// can grow: then the last one is kept for a while.
uint64_t ResumeBytes(const engine::TrainingConfig& training, const ModelSize& size);

// Points and checkpoints, which stay when a run has ended, in bytes.
uint64_t StoredBytes(const engine::RunConfig& config, const ModelSize& size);

// What a run reads at once, in tokens.
struct Sequences {
  double mean = 1;       // of a sequence of training
  double evaluated = 1;  // scored positions of the largest batch of an evaluation
  double held_out = 1;   // sequences of an evaluation
  double batches = 1;    // that they are in
};

// Memory that training takes at least, in bytes, while it steps, evaluates and writes a resume
// state. A double, so that no model overflows it.
double TrainingBytes(const engine::RunConfig& config, const ModelSize& size, const Sequences& data);

// "1.3 TB", "850 MB": decimal units, two digits.
std::string BytesText(double bytes);

// Floating-point operations of one step, forward and backward: 6 for each token and parameter that
// multiplies, and 12 · width · context² for the products of a layer's attention over a sequence.
// Sequences count as long as the model's context.
double FlopsPerStep(const engine::RunConfig& config, uint64_t parameters);

// The same of a forward pass over `tokens` in sequences, by the trainer that the config names.
double ForwardFlops(const engine::RunConfig& config, uint64_t parameters, double tokens);

// What an evaluation computes, of the parameters' average and for what is recorded, too.
struct EvaluationCost {
  double passes = 0;  // through the model, forward or backward: a step makes one of each
  double flops = 0;
};

// Sequences count as in FlopsPerStep.
EvaluationCost CostOfEvaluation(const engine::RunConfig& config, uint64_t parameters,
                                const Sequences& data);

// How many times as fast as eager, about, a run's trainer is on a core: 1 for torch.
double GuessedSpeed(const engine::RunConfig& config);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_ESTIMATE_H_
