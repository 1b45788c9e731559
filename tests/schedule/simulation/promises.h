// What the server has acknowledged must hold for ever, unless a backup is restored.
#ifndef ABLATE_TESTS_SCHEDULE_SIMULATION_PROMISES_H_
#define ABLATE_TESTS_SCHEDULE_SIMULATION_PROMISES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ablate/worker/v1/worker.pb.h"
#include "storage/leases.h"

namespace ablate::simulation {

// Per run: from where it may be trained again at the earliest, and whether it may be at all.
struct Promises {
  std::map<std::string, uint32_t> resume_step;
  std::set<std::string> finished;
};

class PromiseKeeper {
 public:
  void Sent(const worker::v1::Event& event);
  void Acknowledged(const worker::v1::Ack& ack);
  // Empty if the grant breaks no promise.
  std::string CheckGrant(const storage::GrantedRun& run) const;

  const Promises& promises() const { return promises_; }
  // What was acknowledged after the backup was made is no promise any more.
  void Restore(Promises promises) { promises_ = std::move(promises); }

 private:
  struct Promise {
    std::string run;
    uint32_t resume_step = 0;
    bool finished = false;
  };
  // By lease and number.
  std::map<std::pair<std::string, uint64_t>, Promise> sent_;
  Promises promises_;
};

}  // namespace ablate::simulation

#endif  // ABLATE_TESTS_SCHEDULE_SIMULATION_PROMISES_H_
