// Attaches a worker with fake trainers to a fake server.
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

// Returns the hash in lower-case hex.
std::string Sha256Of(const std::string& bytes);

class WorkerTest : public testing::Test {
 protected:
  WorkerTest();
  ~WorkerTest() override;

  // One lane, points as often as possible, no resume states; tests change them before Start.
  WorkerOptions options;
  void Start();
  // Waits until Worker::Run has returned. Returns its result.
  absl::Status WaitForEnd();
  Worker& worker() { return *worker_; }

  // Returns a run named "run-SEED" whose spec is resolved as by a server.
  static v1::GrantedRun RecallRun(uint32_t seed, uint32_t steps);
  static v1::GrantedRun DocumentsRun(uint32_t seed, uint32_t steps, const std::string& blob);
  static std::string NameOf(uint32_t seed) { return "run-" + std::to_string(seed); }
  // Stores a blob on the server.
  std::string AddBlob(const std::string& bytes);

  // Waits for Finished, Failed or Released of a run.
  ServerState WaitForRun(uint32_t seed);
  // Expects the worker's complete series: steps `first` to `last` - 1, once each, in order.
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
