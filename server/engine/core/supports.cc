#include "server/engine/core/supports.h"

#include "absl/strings/str_cat.h"
#include "server/engine/core/layout.h"

namespace ablate::engine {
namespace {

// A switch that the native trainer lacks.
struct Lacking {
  const char* what;
  bool (*used)(const RunConfig& config);
};

constexpr Lacking kLacking[] = {
    {"size of heads other than width/heads",
     [](const RunConfig& config) { return config.model.attention.head_size > 0; }},
    {"capped scores", [](const RunConfig& config) { return config.model.attention.score_cap > 0; }},
    {"windows of attention",
     [](const RunConfig& config) { return config.model.attention.window > 0; }},
    {"sinks of attention", [](const RunConfig& config) { return config.model.attention.sink; }},
    {"value residuals",
     [](const RunConfig& config) {
       return config.model.attention.value_residual != ValueResidual::kNone;
     }},
    {"ALiBi", [](const RunConfig& config) { return config.model.positions == Positions::kAlibi; }},
    {"µP", [](const RunConfig& config) { return WidthRatio(config.model) != 1; }},
};

// The same for training alone.
constexpr Lacking kLackingInTraining[] = {
    {"Muon",
     [](const RunConfig& config) {
       return config.training.optimizer.kind == OptimizerKind::kMuon;
     }},
};

template <size_t kCount>
std::string FirstLacking(const Lacking (&switches)[kCount], const RunConfig& config) {
  for (const Lacking& lacking : switches) {
    if (lacking.used(config)) return absl::StrCat("the native trainer has no ", lacking.what);
  }
  return "";
}

}  // namespace

std::string WhyNoNativePass(const RunConfig& config) {
  if (config.device != Device::kCpu) return "the native trainer runs on a CPU";
  if (config.precision != Precision::kFloat32) return "the native trainer computes in float32";
  if (config.training.threads > 1) return "the native trainer computes a run on one thread";
  const bool reads_batch = config.model.norm.kind == NormKind::kBatch && HasNorm(config.model);
  if (reads_batch && config.model.loss == LossPositions::kLast) {
    return "the native trainer has no BatchNorm where the loss reads last positions alone";
  }
  return FirstLacking(kLacking, config);
}

std::string WhyNotNative(const RunConfig& config) {
  const std::string why = WhyNoNativePass(config);
  return why.empty() ? FirstLacking(kLackingInTraining, config) : why;
}

}  // namespace ablate::engine
