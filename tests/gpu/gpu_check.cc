// Checks training and analyses on a GPU; deploy/gpu-check.sh runs it. Each check prints "ok" or
// "FAILED", its name and what it found. Needs LibTorch and the plugin, and no server.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/accelerator.h"
#include "server/engine/torch/device/accelerator_parts.h"
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

  // Each returns "" or what is wrong.
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
    std::string wrong;
    for (const AnalysisOptions& options : EveryKind()) {
      const std::string of_kind = WrongOnDevice(options, accelerator_);
      if (!of_kind.empty()) absl::StrAppend(&wrong, "\n  ", of_kind.substr(0, 200));
    }
    return wrong;
  }

  // The parameters fit; the activations of a batch don't fit on any device.
  std::string OutOfMemory() const {
    RunConfig run = SmallTextRun(1);
    run.model.width = 512;
    run.model.hidden = 2048;
    run.model.heads = 8;
    run.model.layers = 8;
    run.training.batch = 1 << 16;
    run.device = Device::kCuda;
    const auto trainer = MakeTrainer(run, accelerator_);
    absl::Status status = trainer.status();
    if (status.ok()) status = (*trainer)->Advance(1, [] { return false; }).status();
    if (status.code() != absl::StatusCode::kResourceExhausted) return status.ToString();
    const RunConfig small = DeviceRuns().front().second;
    return TrainBy(1000, *Make(small)) == TrainBy(7, *Make(small)) ? "" : "other bits afterwards";
  }

 private:
  std::unique_ptr<Trainer> Make(RunConfig run) const {
    run.device = Device::kCuda;
    absl::StatusOr<std::unique_ptr<Trainer>> trainer = MakeTrainer(run, accelerator_);
    if (!trainer.ok()) {
      std::cout << "FAILED a run of seed " << run.seed << ": " << trainer.status() << std::endl;
      std::_Exit(1);
    }
    return *std::move(trainer);
  }

  const std::shared_ptr<Accelerator> accelerator_;
};

struct Check {
  const char* name;
  std::string (Checks::*run)() const;
};

constexpr Check kChecks[] = {
    {"parity with the CPU in float64", &Checks::Parity},
    {"bits of single steps in blocks", &Checks::Blocks},
    {"bits after a resume", &Checks::Resume},
    {"step of divergence", &Checks::Divergence},
    {"bits beside other lanes", &Checks::Lanes},
    {"loss on names as on the CPU", &Checks::Names},
    {"analyses as on the CPU", &Checks::Analyses},
    {"out of memory, then training", &Checks::OutOfMemory},
};

// Runs a check in this process, and prints "ok" or "FAILED", its name and what is wrong.
int RunHere(const Check& check, const std::string& plugin) {
  PrepareLaneThread();
  const auto accelerator = OpenAccelerator(plugin);
  if (!accelerator.ok()) {
    std::cerr << accelerator.status() << "\n";
    return 2;
  }
  if (&check == kChecks) {
    const AcceleratorInfo info = InfoOf(**accelerator);
    std::printf("%s, %s, compute capability %s, %.1f GiB, torch %s\n", info.name.c_str(),
                info.uuid.c_str(), info.capability.c_str(),
                static_cast<double>(info.memory_bytes) / (1 << 30), TorchVersion().c_str());
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string wrong = (Checks(*accelerator).*check.run)();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s %s (%.1f s)%s\n", wrong.empty() ? "ok" : "FAILED", check.name, took.count(),
              wrong.empty() ? "" : absl::StrCat(": ", wrong.substr(0, 2000)).c_str());
  std::fflush(stdout);
  return wrong.empty() ? 0 : 1;
}

// Runs each check in a process of its own, so that one that crashes or hangs hides no other.
int Run(const std::string& plugin) {
  constexpr unsigned kMostSeconds = 120;  // of a check
  int failed = 0;
  for (const Check& check : kChecks) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kMostSeconds);
      std::_Exit(RunHere(check, plugin));
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      std::printf("FAILED %s: signal %d\n", check.name, WTERMSIG(status));
      std::fflush(stdout);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return 2;
    failed += status != 0;
  }
  return failed == 0 ? 0 : 1;
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
