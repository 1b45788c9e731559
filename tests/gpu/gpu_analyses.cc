// Measures analyses and samples of a model of GPT-2's size on a GPU and on one core, in turns;
// deploy/gpu-check.sh runs it. Prints a Markdown table.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/accelerator.h"
#include "server/engine/analysis.h"
#include "server/engine/samples.h"
#include "server/engine/trainer.h"
#include "tests/engine/analyze/small_models.h"
#include "tests/gpu/gpt2_run.h"

namespace ablate::engine {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Returns the seconds of an analysis with its reading of the model; negative if it failed.
double AnalysisSeconds(const AnalysisRequest& request, const std::shared_ptr<Accelerator>& on) {
  const std::atomic<bool> stop{false};
  const auto begin = Clock::now();
  const auto analysis = MakeAnalysis(request, on);
  absl::Status status = analysis.status();
  while (status.ok() && (*analysis)->made() < (*analysis)->pieces()) {
    status = (*analysis)->Advance(stop);
  }
  if (status.ok()) status = (*analysis)->Finish().status();
  if (!status.ok()) std::cerr << KindOf(request.options).name << ": " << status << "\n";
  return status.ok() ? SecondsSince(begin) : -1;
}

double SamplesSeconds(const AnalysisSubject& subject, const std::shared_ptr<Accelerator>& on) {
  SampleOptions options;
  options.count = 4;
  options.max_tokens = 50;
  const std::atomic<bool> stop{false};
  const auto begin = Clock::now();
  const auto counts = GenerateSamples(
      subject.config, subject.checkpoint.view(), options, stop, [](const auto&) {}, on);
  if (!counts.ok()) std::cerr << "samples: " << counts.status() << "\n";
  return counts.ok() ? SecondsSince(begin) : -1;
}

// Prints the median of three measurements on the GPU, after one that loads its kernels, next to one
// on a core.
template <typename Measure>
void PrintRow(const std::string& name, const Measure& measure,
              const std::shared_ptr<Accelerator>& accelerator) {
  std::vector<double> seconds;
  measure(accelerator);
  for (int i = 0; i < 3; ++i) seconds.push_back(measure(accelerator));
  std::sort(seconds.begin(), seconds.end());
  const double on_core = measure(nullptr);
  std::printf("| %s | %.2f | %.2f | %.1f |\n", name.c_str(), seconds[1], on_core,
              on_core / seconds[1]);
  std::fflush(stdout);
}

int Measure(const std::string& plugin) {
  PrepareLaneThread();
  const auto accelerator = OpenAccelerator(plugin);
  if (!accelerator.ok()) {
    std::cerr << accelerator.status() << "\n";
    return 2;
  }
  const AnalysisSubject subject = UntrainedSubject(Gpt2Run());
  std::printf("| 2,048 tokens of a model of GPT-2's size | %s, s | one core, s | core / GPU |\n",
              InfoOf(**accelerator).name.c_str());
  std::printf("| --- | --- | --- | --- |\n");
  const HessianOptions hessian = {1, 3, 1, 1};
  const std::vector<AnalysisOptions> kinds = {
      PredictionsOptions{}, LogitLensOptions{},    AttentionOptions{}, CkaOptions{},
      SpectrumOptions{},    GradientFlowOptions{}, WeightsOptions{},   hessian};
  for (const AnalysisOptions& options : kinds) {
    const AnalysisRequest request = {options, {subject}, {2048, ""}};
    const auto measure = [&](const auto& on) { return AnalysisSeconds(request, on); };
    PrintRow(std::string(KindOf(options).name), measure, *accelerator);
  }
  const auto samples = [&](const auto& on) { return SamplesSeconds(subject, on); };
  PrintRow("4 samples of 50 tokens", samples, *accelerator);
  return 0;
}

}  // namespace
}  // namespace ablate::engine

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: gpu_analyses PLUGIN\n";
    return 2;
  }
  return ablate::engine::Measure(argv[1]);
}
