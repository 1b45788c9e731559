// Benchmarks of the API on a real store: points stored a second, and a query of many long series.
// Run by hand; each prints one line of JSON.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/service/service_fixture.h"

namespace ablate::service {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr uint32_t kRuns = 100, kKeys = 10, kSteps = 10'000;

class ServiceBench : public ServiceTest {
 protected:
  // Reports kKeys series of kSteps steps of one run in row groups of `group` steps.
  static void Report(FakeWorker* worker, const FakeWorker::Leased& run, uint32_t group) {
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
};

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

}  // namespace
}  // namespace ablate::service
