// Measures analyses and samples of a model of GPT-2's size on a GPU and on one core, in turns;
// deploy/gpu-check.sh runs it. Prints a Markdown table.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
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

// Returns the seconds of an analysis with its reading of the model; nothing if it failed.
std::optional<double> AnalysisSeconds(const AnalysisRequest& request,
                                      const std::shared_ptr<Accelerator>& on) {
  const std::atomic<bool> stop{false};
  const auto begin = Clock::now();
  const auto analysis = MakeAnalysis(request, on);
  absl::Status status = analysis.status();
  while (status.ok() && (*analysis)->made() < (*analysis)->pieces()) {
    status = (*analysis)->Advance(stop);
  }
  if (status.ok()) status = (*analysis)->Finish().status();
  if (!status.ok()) std::cerr << KindOf(request.options).name << ": " << status << "\n";
  return status.ok() ? std::optional(SecondsSince(begin)) : std::nullopt;
}

std::optional<double> SamplesSeconds(const AnalysisSubject& subject,
                                     const std::shared_ptr<Accelerator>& on) {
  SampleOptions options;
  options.count = 4;
  options.max_tokens = 50;
  const std::atomic<bool> stop{false};
  const auto begin = Clock::now();
  const auto counts = GenerateSamples(
      subject.config, subject.checkpoint.view(), options, stop, [](const auto&) {}, on);
  if (!counts.ok()) std::cerr << "samples: " << counts.status() << "\n";
  return counts.ok() ? std::optional(SecondsSince(begin)) : std::nullopt;
}

// Prints the median of three measurements on the GPU, after one that loads its kernels, next to one
// on a core. Returns false, and says so, if one failed.
template <typename Measure>
bool PrintRow(const std::string& name, const Measure& measure,
              const std::shared_ptr<Accelerator>& accelerator) {
  std::vector<double> seconds;
  for (const auto& on : {accelerator, accelerator, accelerator, accelerator, {}}) {
    const std::optional<double> took = measure(on);
    if (!took.has_value()) {
      std::printf("\nFAILED %s\n", name.c_str());
      std::fflush(stdout);
      return false;
    }
    seconds.push_back(*took);
  }
  std::sort(seconds.begin() + 1, seconds.begin() + 4);
  std::printf("| %s | %.2f | %.2f | %.1f |\n", name.c_str(), seconds[2], seconds[4],
              seconds[4] / seconds[2]);
  std::fflush(stdout);
  return true;
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
  const std::vector<AnalysisOptions> kinds = {
      PredictionsOptions{}, LogitLensOptions{},    AttentionOptions{}, CkaOptions{},
      SpectrumOptions{},    GradientFlowOptions{}, WeightsOptions{}};
  bool all = true;
  for (const AnalysisOptions& options : kinds) {
    const AnalysisRequest request = {options, {subject}, {2048, ""}};
    const auto measure = [&](const auto& on) { return AnalysisSeconds(request, on); };
    all = PrintRow(std::string(KindOf(options).name), measure, *accelerator) && all;
  }
  const auto samples = [&](const auto& on) { return SamplesSeconds(subject, on); };
  all = PrintRow("4 samples of 50 tokens", samples, *accelerator) && all;
  return all ? 0 : 1;
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
