// The server's process: the real scheduler over the real store, which can be killed, restarted, and
// restored from a backup.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_SERVER_PROCESS_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_SERVER_PROCESS_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "server/schedule/scheduler.h"
#include "storage/store.h"
#include "tests/schedule/fake_clock.h"
#include "tests/schedule/simulation/delayed_store.h"
#include "tests/schedule/simulation/random.h"

namespace ablate::simulation {

class ServerProcess {
 public:
  ServerProcess(const schedule::FakeClock* clock, Mutation mutation, Random* random);

  bool up() const { return scheduler_ != nullptr; }
  bool drained() const { return drained_; }
  schedule::Scheduler& scheduler() { return *scheduler_; }
  // Return the store as the scheduler sees it, and as it is on disk.
  DelayedStore& delayed() { return delayed_; }
  storage::Store& disk() { return *store_; }

  void Start();
  // Kills it; some of the waiting writes are still made.
  void Kill();
  void Drain();
  // Returns the number of answers of the store that the scheduler's thread has not handled.
  size_t posted() const { return posted_.size(); }
  void RunPosted();

  std::string Backup();
  // Call it only while the server is down.
  void Restore(const std::string& backup);

 private:
  std::unique_ptr<storage::Store> Open(const std::string& image) const;

  const schedule::FakeClock* const clock_;
  Random* const random_;
  std::unique_ptr<storage::Store> store_;
  DelayedStore delayed_;
  std::unique_ptr<schedule::Scheduler> scheduler_;
  schedule::SchedulerOptions options_;
  std::deque<std::function<void()>> posted_;
  uint64_t leases_ = 0;
  bool drained_ = false;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_SERVER_PROCESS_H_
