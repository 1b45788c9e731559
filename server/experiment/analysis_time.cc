#include "server/experiment/analysis_time.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/config/estimate.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/supports.h"
#include "server/engine/names.h"

namespace ablate::spec {
namespace {

// Increased when guesses change: stored times are compared with the guesses of their time.
constexpr int kVersion = 2;

constexpr double kStartMicros = 2'000;
// Time of LibTorch's calls in a block of a forward pass, whatever they compute.
constexpr double kBlockMicros = 150;

// Floating-point operations per microsecond.
constexpr double kNativeSpeed = 60e3;
constexpr double kOtherSpeed = 2e3;
double TorchSpeed(int width) { return 100e3 * width / (width + 80.0); }

// Returns the number of pieces in which the tokens are read.
double PiecesOf(const engine::AnalysisKind& kind, const engine::RunConfig& config, double tokens,
                double parameters) {
  const double pieces =
      std::ceil(tokens / static_cast<double>(engine::PieceTokens(kind, parameters)));
  if (!std::holds_alternative<engine::DocumentsTask>(config.task)) return pieces;
  // Documents of one length are read together.
  return std::max(pieces, std::min<double>(config.model.context, tokens / config.model.context));
}

}  // namespace

AnalysisTime GuessAnalysisTime(const engine::AnalysisKind& kind, const engine::AnalysisCost& cost,
                               uint64_t tokens, const engine::RunConfig& config) {
  engine::RunConfig computed = config;
  // Whatever trained the model.
  computed.device = engine::Device::kCpu;
  computed.precision = engine::Precision::kFloat32;
  const bool native =
      cost.pass == engine::AnalysisPass::kMoved && engine::WhyNoNativePass(computed).empty();
  const auto trainer = native ? engine::TrainerKind::kNative : engine::TrainerKind::kTorch;
  AnalysisTime time{absl::StrCat(kind.name, "/", engine::NameOf(trainer), "/", kVersion),
                    kStartMicros};
  if (kind.most_subjects == 0) return time;
  computed.training.trainer = trainer;
  if (cost.pass == engine::AnalysisPass::kEverywhere) {
    computed.model.loss = engine::LossPositions::kAll;
  }
  const auto parameters = static_cast<uint64_t>(engine::MakeLayout(config.model).size);
  if (parameters >= kGpuAnalysisParameters) time.group += "/large";
  const double speed = native ? kNativeSpeed : TorchSpeed(config.model.width);
  if (kind.default_tokens > 0 || cost.tokens > 0) {
    const double read = std::max(static_cast<double>(cost.tokens > 0 ? cost.tokens : tokens), 1.0);
    const double calls = native ? 0 : kBlockMicros * config.model.layers;
    const double passes =
        cost.calls > 0
            ? cost.calls
            : cost.forwards * PiecesOf(kind, config, read, static_cast<double>(parameters));
    time.micros +=
        cost.forwards * ForwardFlops(computed, parameters, read) / speed + calls * passes;
  }
  time.micros += cost.others / kOtherSpeed;
  return time;
}

}  // namespace ablate::spec
