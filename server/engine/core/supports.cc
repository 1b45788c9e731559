#include "server/engine/core/supports.h"

#include "server/engine/core/layout.h"

namespace ablate::engine {

std::string WhyNotNative(const RunConfig& config) {
  if (config.device != Device::kCpu) return "the native trainer runs on a CPU";
  if (config.precision != Precision::kFloat32) return "the native trainer computes in float32";
  if (config.training.threads > 1) return "the native trainer computes a run on one thread";
  const bool reads_batch = config.model.norm.kind == NormKind::kBatch && HasNorm(config.model.norm);
  if (reads_batch && config.model.loss == LossPositions::kLast) {
    return "the native trainer has no BatchNorm where the loss reads last positions alone";
  }
  return "";
}

}  // namespace ablate::engine
