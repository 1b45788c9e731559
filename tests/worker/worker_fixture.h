// A worker with fake trainers attached to a fake server.
#ifndef ABLATE_TESTS_WORKER_WORKER_FIXTURE_H_
#define ABLATE_TESTS_WORKER_WORKER_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "server/worker/worker.h"
#include "tests/worker/fake_server.h"
#include "tests/worker/fake_trainer.h"

namespace ablate::worker {

// Lower-case hex.
std::string Sha256Of(const std::string& bytes);

class WorkerTest : public testing::Test {
 protected:
  WorkerTest();
  ~WorkerTest() override;

  // One lane, points at every chance, no resume states; changed by tests before Start.
  WorkerOptions options;
  void Start();
  // Waits until Worker::Run has returned; its answer.
  absl::Status WaitForEnd();
  Worker& worker() { return *worker_; }

  // A run named "run-SEED" with a spec that is set as the server sets it.
  static v1::GrantedRun RecallRun(uint32_t seed, uint32_t steps);
  static v1::GrantedRun DocumentsRun(uint32_t seed, uint32_t steps, const std::string& blob);
  static std::string NameOf(uint32_t seed) { return "run-" + std::to_string(seed); }
  // Puts a blob on the server.
  std::string AddBlob(const std::string& bytes);

  // Waits for Finished, Failed or Released of a run.
  ServerState WaitForRun(uint32_t seed);
  // Whether the worker's series is complete: steps `first` to `last` - 1, once each, in order.
  static void ExpectWholeSeries(const ServerState& state, uint32_t seed, uint32_t first,
                                uint32_t last);

  std::string folder_;
  FakeTrainers trainers_;
  std::unique_ptr<FakeServer> server_;

 private:
  std::unique_ptr<Worker> worker_;
  absl::Status end_;
  std::thread thread_;
};

}  // namespace ablate::worker

#endif  // ABLATE_TESTS_WORKER_WORKER_FIXTURE_H_
