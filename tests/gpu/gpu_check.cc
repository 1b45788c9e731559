// Checks training and analyses on a GPU; deploy/gpu-check.sh runs it. Each check prints "ok" or
// "FAILED", its name and what it found. Needs LibTorch and the plugin, and no server.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/accelerator.h"
#include "server/engine/device/accelerator_parts.h"
#include "server/engine/trainer.h"
#include "tests/engine/device_runs.h"
#include "tests/engine/on_device/compared.h"
#include "tests/parity/device_check.h"

namespace ablate::engine {
namespace {

class Checks {
 public:
  explicit Checks(std::shared_ptr<Accelerator> accelerator)
      : accelerator_(std::move(accelerator)) {}

  // Returns the number of failed checks.
  int Run() {
    Check("parity with the CPU in float64", [this] { return Parity(); });
    Check("bits of single steps in blocks", [this] { return Blocks(); });
    Check("bits after a resume", [this] { return Resume(); });
    Check("step of divergence", [this] { return Divergence(); });
    Check("bits beside other lanes", [this] { return Lanes(); });
    Check("loss on names as on the CPU", [this] { return Names(); });
    Check("analyses as on the CPU", [this] { return Analyses(); });
    Check("out of memory, then training", [this] { return OutOfMemory(); });
    return failed_;
  }

 private:
  using Body = std::function<std::string()>;

  // Runs a check, which returns "" or what is wrong.
  void Check(const std::string& name, const Body& body) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string wrong = body();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%s %s (%.1f s)%s\n", wrong.empty() ? "ok" : "FAILED", name.c_str(), took.count(),
                wrong.empty() ? "" : absl::StrCat(": ", wrong.substr(0, 2000)).c_str());
    std::fflush(stdout);
    if (!wrong.empty()) ++failed_;
  }

  std::unique_ptr<Trainer> Make(RunConfig run) const {
    run.device = Device::kCuda;
    absl::StatusOr<std::unique_ptr<Trainer>> trainer = MakeTrainer(run, accelerator_);
    if (!trainer.ok()) {
      std::cerr << run.seed << ": " << trainer.status() << "\n";
      std::exit(1);
    }
    return *std::move(trainer);
  }

  std::string Parity() const {
    constexpr uint64_t kCases = 60;
    std::string wrong;
    for (uint64_t number = 0; number < kCases; ++number) {
      GridCase grid = DrawCase(number);
      // A wide vocabulary has a head of its own.
      if (number % 10 == 0) grid.model.vocabulary = 1030;
      const std::string difference =
          DeviceDifference(std::move(grid), Device::kCuda, accelerator_->streams());
      if (!difference.empty()) {
        absl::StrAppend(&wrong, "\n  case ", number, ": ", difference.substr(0, 200));
      }
    }
    return wrong;
  }

  std::string Blocks() const {
    std::string wrong;
    for (const auto& [name, run] : DeviceRuns()) {
      const RunOutput single = TrainBy(1, *Make(run));
      for (const uint32_t steps : {1000u, 7u}) {
        if (TrainBy(steps, *Make(run)) != single)
          absl::StrAppend(&wrong, name, " by ", steps, "; ");
      }
    }
    return wrong;
  }

  std::string Resume() const {
    std::string wrong;
    for (const auto& [name, run] : DeviceRuns()) {
      const RunOutput whole = TrainBy(1000, *Make(run));
      for (const uint32_t at : {3u, 16u}) {
        const auto make = [this](const RunConfig& config) { return Make(config); };
        if (TrainResumed(at, run, make) != whole) absl::StrAppend(&wrong, name, " at ", at, "; ");
      }
    }
    return wrong;
  }

  std::string Divergence() const {
    const RunConfig run = DivergingRun();
    const RunOutput single = TrainBy(1, *Make(run)), found = TrainBy(1000, *Make(run));
    if (found.outcome != Outcome::kDiverged) return "didn't diverge";
    return found == single ? "" : absl::StrCat("step ", found.step, ", not ", single.step);
  }

  // Lanes of different shapes, several times over, so that captures meet replays.
  std::string Lanes() const {
    std::vector<RunOutput> alone;
    for (const auto& [name, run] : DeviceRuns()) alone.push_back(TrainBy(1000, *Make(run)));
    std::vector<std::string> wrong(8);
    std::vector<std::thread> threads;
    for (size_t lane = 0; lane < wrong.size(); ++lane) {
      threads.emplace_back([&, lane] {
        PrepareLaneThread();
        const auto runs = DeviceRuns();
        for (size_t i = 0; i < 2 * runs.size(); ++i) {
          const size_t which = (lane + i) % runs.size();
          if (TrainBy(1000, *Make(runs[which].second)) != alone[which]) {
            absl::StrAppend(&wrong[lane], runs[which].first, " in lane ", lane, "; ");
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::string all;
    for (const std::string& one : wrong) all += one;
    return all;
  }

  std::string Names() const {
    RunConfig run = NamesRun(42, NormPlacement::kPre, true);
    run.training.steps = 200;
    const RunOutput expected = TrainBy(1000, *MustMakeTrainer(run));
    const RunOutput found = TrainBy(1000, *Make(run));
    const auto loss = [](const std::vector<std::string>& points) {
      double last = 0;
      for (const std::string& point : points) {
        if (point.rfind("eval/loss", 0) != 0) continue;
        last = std::bit_cast<double>(std::stoull(point.substr(point.rfind(' ') + 1)));
      }
      return last;
    };
    const double a = loss(expected.points), b = loss(found.points);
    return std::abs(a - b) < 0.01 ? "" : absl::StrCat(b, ", not ", a);
  }

  std::string Analyses() const {
    for (const AnalysisOptions& options : EveryKind()) {
      if (std::string wrong = WrongOnDevice(options, accelerator_); !wrong.empty()) return wrong;
    }
    return "";
  }

  std::string OutOfMemory() const {
    RunConfig run = SmallTextRun(1);
    run.model.width = 4096;
    run.model.hidden = 1 << 14;
    run.model.heads = 1;
    run.model.layers = 64;
    run.device = Device::kCuda;
    const auto trainer = MakeTrainer(run, accelerator_);
    absl::Status status = trainer.status();
    if (status.ok()) status = (*trainer)->Advance(1, [] { return false; }).status();
    if (status.code() != absl::StatusCode::kResourceExhausted) return status.ToString();
    const RunConfig small = DeviceRuns().front().second;
    return TrainBy(1000, *Make(small)) == TrainBy(7, *Make(small)) ? "" : "other bits afterwards";
  }

  const std::shared_ptr<Accelerator> accelerator_;
  int failed_ = 0;
};

int Run(const std::string& plugin) {
  PrepareLaneThread();
  const auto accelerator = OpenAccelerator(plugin);
  if (!accelerator.ok()) {
    std::cerr << accelerator.status() << "\n";
    return 2;
  }
  const AcceleratorInfo info = InfoOf(**accelerator);
  std::printf("%s, %s, compute capability %s, %.1f GiB, torch %s\n", info.name.c_str(),
              info.uuid.c_str(), info.capability.c_str(),
              static_cast<double>(info.memory_bytes) / (1 << 30), TorchVersion().c_str());
  return Checks(*accelerator).Run() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ablate::engine

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: gpu_check PLUGIN\n";
    return 2;
  }
  return ablate::engine::Run(argv[1]);
}
