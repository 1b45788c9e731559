// Gradients of the mean loss over everything that an analysis reads, one batch at a time.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_GRADIENTS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_GRADIENTS_H_

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "server/engine/analyze/material.h"

namespace ablate::engine {

// Returns a pass of an analysis, whose gradients are exact or those by which the run learns. A
// BatchNorm has the statistics of the batch if the analysis reads training batches (inputs.h): by
// its running ones no backward mode makes a difference.
Pass PassOf(const AnalysisOptions& options, GradientSignal signal, const RunConfig& config);

struct WantedGradients {
  bool parameters = false;
  std::vector<std::string> sites;  // of what goes on from them
  // Taps that look at the same pass.
  std::vector<std::pair<std::string, Tap>> observers;
};

// In float64; 0 where nothing of the loss depends on it.
struct Gradients {
  std::vector<at::Tensor> parameters;  // one a parameter of the layout, [shape…]
  std::vector<at::Tensor> sites;       // one a site, [n, features]
};

// What `batch` adds to the gradients of the mean over all targets of the material: its part of
// those of parameters, and all of those of sites, which no other batch has. `pass` needs no taps.
// Where float32 would lose the smallest gradients they are formed of a multiple of the loss, a
// power of two, and divided by it at the end.
Gradients GradientsOf(const Material& material, const SubjectModel& subject,
                      const TokenBatch& batch, Pass pass, WantedGradients wanted);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_GRADIENTS_H_
