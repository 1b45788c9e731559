// Benchmarks the API on a real store: points stored per second, a query of many long series, and
// the memory of large dry runs. Run by hand; each prints one line of JSON.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "server/lookup/limits.h"
#include "tests/service/raw_call.h"
#include "tests/service/sharing_fixture.h"

namespace ablate::service {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Memory of this process in MB: VmRSS now, or VmHWM since ForgetPeak.
double Megabytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (absl::StartsWith(line, key + ":")) return std::stod(line.substr(key.size() + 1)) / 1024;
  }
  return 0;
}
void ForgetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

constexpr uint32_t kRuns = 100, kKeys = 10, kSteps = 10'000;

// Reports kKeys series of kSteps steps of one run, in row groups of `group` steps.
void Report(FakeWorker* worker, const FakeWorker::Leased& run, uint32_t group) {
  std::vector<FakeWorker::Series> series(kKeys);
  for (uint32_t begin = 0; begin < kSteps; begin += group) {
    for (uint32_t key = 0; key < kKeys; ++key) {
      series[key].key = "key/" + std::to_string(key);
      series[key].steps.resize(group);
      series[key].values.resize(group);
      for (uint32_t i = 0; i < group; ++i) {
        const uint32_t step = begin + i;
        series[key].steps[i] = step;
        series[key].values[i] = 1 / (1 + .01 * step) + .01 * ((step * 2654435761u) >> 8 & 0xff);
      }
    }
    worker->Points(run, series, begin + group);
  }
}

class ServiceBench : public ServiceTest {};

TEST_F(ServiceBench, StoresAndQueriesTenMillionPoints) {
  const std::string experiment = Create(SmallSpec(kRuns / 2, "bench", kSteps)).experiment().name();
  const std::unique_ptr<FakeWorker> worker = MakeWorker("cpu-train", 100);
  double storing = 0;
  for (uint32_t i = 0; i < kRuns; ++i) {
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    worker->Settle();
    const Clock::time_point begin = Clock::now();
    Report(worker.get(), run, 500);
    worker->Settle();
    storing += SecondsSince(begin);
    worker->Finished(run, kSteps);
    worker->Settle();
  }
  constexpr double kPoints = 1.0 * kRuns * kKeys * kSteps;
  std::printf("{\"bench\": \"store\", \"points\": %.0f, \"million_points_a_second\": %.2f}\n",
              kPoints, kPoints / storing / 1e6);

  ASSERT_TRUE(store().Maintain().ok());
  v1::QueryMetricsRequest request;
  request.set_experiment(experiment);
  request.set_max_points(500);
  std::vector<double> seconds;
  for (int round = 0; round < 5; ++round) {
    const Clock::time_point begin = Clock::now();
    const std::vector<v1::Series> series = Query(request);
    seconds.push_back(SecondsSince(begin));
    ASSERT_EQ(series.size(), kRuns * kKeys);
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf(
      "{\"bench\": \"query_downsampled\", \"series\": %u, \"points_each\": %u, \"median_s\": "
      "%.3f}\n",
      kRuns * kKeys, kSteps, seconds[seconds.size() / 2]);
}

// Compares TLS and a token with the unix socket, alternately. The worker is also in this process,
// so that the encryption of both ends is measured.
class RemoteBench : public SharingTest {
 protected:
  // Returns the seconds until the points of one run are acknowledged.
  static double Train(FakeWorker* worker) {
    const FakeWorker::Leased run = worker->NextRun();
    worker->Started(run);
    worker->Settle();
    const Clock::time_point begin = Clock::now();
    Report(worker, run, 500);
    worker->Settle();
    const double seconds = SecondsSince(begin);
    worker->Finished(run, kSteps);
    worker->Settle();
    return seconds;
  }
};

TEST_F(RemoteBench, StoresPointsOfAWorkerElsewhere) {
  constexpr int kRounds = 21;
  Create(SmallSpec(kRounds + 4, "bench", kSteps));  // each worker holds one run in advance
  const auto near = MakeWorker("cpu-train", 1);
  FakeWorker elsewhere(ChannelAs(SecretOf("gpu2", storage::Role::kWorker)), "cpu-train", 1);
  std::vector<double> ratios, local_seconds;
  for (int round = 0; round < kRounds; ++round) {
    local_seconds.push_back(Train(near.get()));
    ratios.push_back(local_seconds.back() / Train(&elsewhere));
  }
  std::sort(ratios.begin(), ratios.end());
  std::sort(local_seconds.begin(), local_seconds.end());
  std::printf(
      "{\"bench\": \"remote_points\", \"rounds\": %d, \"million_points_a_second_local\": %.2f, "
      "\"remote_over_local\": {\"median\": %.3f, \"quartiles\": [%.3f, %.3f]}}\n",
      kRounds, kKeys * kSteps / local_seconds[kRounds / 2] / 1e6, ratios[kRounds / 2],
      ratios[kRounds / 4], ratios[3 * kRounds / 4]);
}

TEST_F(RemoteBench, AnswersACallFromElsewhere) {
  constexpr int kCalls = 1'001;
  v1::GetExperimentRequest request;
  request.set_name(Create(SmallSpec(1, "bench", kSteps)).experiment().name());
  v1::Experiments::Stub elsewhere(ChannelAs(SecretOf("ada", storage::Role::kMember)));
  std::vector<double> local, remote;
  for (int call = 0; call < 2 * kCalls; ++call) {
    Context context;
    v1::Experiment experiment;
    const Clock::time_point begin = Clock::now();
    const grpc::Status status = (call % 2 == 0 ? experiments_.get() : &elsewhere)
                                    ->GetExperiment(&context, request, &experiment);
    ASSERT_TRUE(status.ok()) << status.error_message();
    (call % 2 == 0 ? local : remote).push_back(1e3 * SecondsSince(begin));
  }
  for (std::vector<double>* milliseconds : {&local, &remote}) {
    std::sort(milliseconds->begin(), milliseconds->end());
  }
  std::printf(
      "{\"bench\": \"remote_call\", \"calls\": %d, \"median_ms\": {\"local\": %.3f, \"remote\": "
      "%.3f}, \"p99_ms\": {\"local\": %.3f, \"remote\": %.3f}}\n",
      kCalls, local[kCalls / 2], remote[kCalls / 2], local[kCalls * 99 / 100],
      remote[kCalls * 99 / 100]);
}

// The clients are threads of this process, and each holds its request in memory.
TEST_F(ServiceBench, TakesAndGivesBackMemoryForLargeDryRuns) {
  std::string bytes;
  {
    v1::CreateExperimentRequest request;
    request.set_validate_only(true);
    *request.mutable_spec() = SmallSpec();
    v1::Axis* axis = request.mutable_spec()->add_axes();
    axis->set_field("training.learning_rate");
    for (size_t i = 0; i < (lookup::kMaxSpecBytes - 1'000) / 2; ++i) axis->add_values();
    bytes = request.SerializeAsString();
  }
  const auto dry_run = [this, &bytes] {
    return RawCall(channel_, "/ablate.v1.Experiments/CreateExperiment", {bytes}).status;
  };
  EXPECT_TRUE(dry_run().ok());
  for (const int at_once : {1, 60}) {
    const double before = Megabytes("VmRSS");
    ForgetPeak();
    std::vector<std::thread> clients;
    for (int i = 0; i < at_once; ++i) {
      clients.emplace_back([&dry_run] { EXPECT_TRUE(dry_run().ok()); });
    }
    for (std::thread& client : clients) client.join();
    std::printf(
        "{\"bench\": \"dry_run_memory\", \"at_once\": %d, \"request_mb\": %.1f, \"peak_mb\": %.0f, "
        "\"left_mb\": %.0f}\n",
        at_once, static_cast<double>(bytes.size()) / 1e6, Megabytes("VmHWM") - before,
        Megabytes("VmRSS") - before);
  }
}

}  // namespace
}  // namespace ablate::service
