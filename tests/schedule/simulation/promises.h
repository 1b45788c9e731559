// Checks that what the server has acknowledged holds forever, unless a backup is restored.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_PROMISES_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_PROMISES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ablate/worker/v1/worker.pb.h"
#include "storage/lease_store.h"

namespace ablate::simulation {

// Per run: the earliest step from which it may be trained again, in the environment that made its
// state, and whether it may be trained at all.
struct Promises {
  struct Resume {
    uint32_t step = 0;
    std::string environment;
  };
  std::map<std::string, Resume> resume;
  std::set<std::string> finished;
};

class PromiseKeeper {
 public:
  // `environment` is the worker's; without one a state promises nothing, because the next worker
  // may refuse it.
  void Sent(const worker::v1::Event& event, const std::string& environment);
  void Acknowledged(const worker::v1::Ack& ack);
  // Returns the broken promise, or empty. States of other environments than the worker's are void
  // from now on.
  std::string CheckGrant(const storage::NewLease& lease, const storage::GrantedRun& granted);

  const Promises& promises() const { return promises_; }
  // Acknowledgements after the backup promise nothing any more.
  void Restore(Promises promises) { promises_ = std::move(promises); }

 private:
  struct Promise {
    std::string run;
    Promises::Resume resume;
    bool finished = false;
  };
  std::map<std::string, std::string> runs_;  // by lease
  // By lease and number.
  std::map<std::pair<std::string, uint64_t>, Promise> sent_;
  Promises promises_;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_PROMISES_H_
