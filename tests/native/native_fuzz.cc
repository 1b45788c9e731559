// Compares the native backend with the reference backend over drawn settings that no test has, for
// as long as one likes; run by hand (docs/trainers.md).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "server/engine/native/supports.h"
#include "server/engine/trainer.h"
#include "tests/native/three_ways.h"

namespace ablate::engine {
namespace {

// A tensor's error may be this many times the reference's own by bad luck.
constexpr double kWorst = 30;

class Fuzz {
 public:
  void Try(uint64_t number) {
    const GridCase drawn = DrawCase(number);
    const RunConfig config = ConfigOf(drawn);
    if (!WhyNotNative(config).empty()) return;
    const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
    const std::vector<TokenBatch>& batches = drawn.batches[static_cast<size_t>(drawn.compared)];
    const RunConfig once = ForGradient(config);
    const ThreeWays gradient = TrainThreeWays(once, layout, {batches.front()});
    Judge(drawn, once, gradient, 2e-6,
          Compare({gradient.native.first_slot, gradient.reference.first_slot,
                   gradient.exact.first_slot},
                  once, layout, 3e-7),
          gradients_);
    const ThreeWays updates = TrainThreeWays(config, layout, batches);
    Judge(drawn, config, updates, 1e-4,
          Compare({updates.native.values, updates.reference.values, updates.exact.values}, config,
                  layout, 1e-6),
          updates_);
    ++settings_;
  }

  // Whether no setting was beyond its bound.
  bool Report() const {
    std::printf("%d settings, %d beyond their bound\n", settings_, bad_);
    for (const auto& [what, tally] : {std::pair("gradients", gradients_), {"updates", updates_}}) {
      std::printf(
          "%s: %d tensors, %d beyond twice the reference's error, %d the other way, mean ratio "
          "%.3f, worst %.1f in %s\n",
          what, tally.tensors, tally.beyond, tally.reference_beyond, tally.MeanRatio(), tally.worst,
          tally.where.c_str());
    }
    return bad_ == 0;
  }

 private:
  void Judge(const GridCase& drawn, const RunConfig& config, const ThreeWays& trained, double bound,
             const Tally& tally, Tally& all) {
    all.Add(tally);
    bool good = tally.worst <= kWorst;
    for (size_t step = 0; step < trained.exact.losses.size(); ++step) {
      const double exact = trained.exact.losses[step];
      // Where rounding grows from step to step, the reference's grows too.
      const double allowed = std::max(bound * std::max(1.0, exact),
                                      4 * std::abs(trained.reference.losses[step] - exact));
      good = good && std::abs(trained.native.losses[step] - exact) <= allowed;
    }
    if (good) return;
    ++bad_;
    std::printf("beyond its bound: %s; worst %.1f in %s\n", Describe(drawn, config).c_str(),
                tally.worst, tally.where.c_str());
  }

  int settings_ = 0;
  int bad_ = 0;
  Tally gradients_;
  Tally updates_;
};

int Run(double seconds, uint64_t first) {
  PrepareLaneThread();
  const auto begin = std::chrono::steady_clock::now();
  Fuzz fuzz;
  for (uint64_t number = first;
       std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds;
       ++number) {
    fuzz.Try(number);
  }
  return fuzz.Report() ? 0 : 1;
}

}  // namespace
}  // namespace ablate::engine

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: native_fuzz SECONDS FIRST_SETTING\n";
    return 2;
  }
  return ablate::engine::Run(std::atof(argv[1]), std::strtoull(argv[2], nullptr, 10));
}
