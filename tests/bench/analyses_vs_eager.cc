// Times an analysis of the published recall model for analyses_vs_eager.py: reads a number of
// points or products per line of standard input, computes them, and prints the milliseconds of
// processor time per point or product.
#include <atomic>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>

#include "server/engine/analysis.h"
#include "server/engine/trainer.h"
#include "tests/engine/train_configs.h"

namespace ablate::engine {
namespace {

constexpr uint64_t kTokens = 5000;
constexpr uint32_t kSide = 41, kIterations = 80, kSamples = 100;

// Returns the number of points plus the middle, or of products plus the gradient; a batch of each
// is a piece.
int64_t PartsOf(const std::string& name) {
  return 1 + (name == "landscape" ? kSide * kSide : kIterations + kSamples);
}

AnalysisRequest RequestOf(const std::string& name) {
  RunConfig run = RecallRun(0, NormPlacement::kPost);
  run.evaluation.batches = 1;
  const auto trainer = MakeTrainer(run);
  AnalysisRequest request;
  request.options = HessianOptions{1, kIterations, kSamples, 0};
  if (name == "landscape") {
    request.options = LossLandscapeOptions{Direction::kFilter, 2, 1, 1, kSide};
  }
  request.subjects = {{run, *(*trainer)->ExportCheckpoint()}};
  request.inputs.tokens = kTokens;
  return request;
}

int Serve(const std::string& name) {
  PrepareLaneThread();
  const AnalysisRequest request = RequestOf(name);
  const std::atomic<bool> stop{false};
  std::unique_ptr<Analysis> analysis = *MakeAnalysis(request);
  const int64_t batches = analysis->pieces() / PartsOf(name);
  int64_t count = 0;
  while (std::cin >> count) {
    const std::clock_t begin = std::clock();
    for (int64_t piece = 0; piece < count * batches; ++piece) {
      if (analysis->made() == analysis->pieces()) analysis = *MakeAnalysis(request);
      if (!analysis->Advance(stop).ok()) return 1;
    }
    const double took = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("%.4f\n", took / static_cast<double>(count));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace ablate::engine

int main(int argc, char** argv) {
  const std::string name = argc == 2 ? argv[1] : "";
  if (name != "landscape" && name != "hessian") {
    std::cerr << "usage: analyses_vs_eager landscape|hessian\n";
    return 2;
  }
  return ablate::engine::Serve(name);
}
