// Admits runs to a device by the memory that they need.
#ifndef ABLATE_SERVER_WORKER_MEMORY_GATE_H_
#define ABLATE_SERVER_WORKER_MEMORY_GATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/engine/accelerator.h"
#include "server/worker/run_control.h"

namespace ablate::worker {

// Functions of the device. Both are null for one whose runs aren't checked: a CPU.
struct MemoryActions {
  std::function<absl::StatusOr<engine::DeviceMemory>()> memory;
  // Frees what ended runs have left.
  std::function<void()> release;
};

// A run begins if its estimated memory is free, less what runs were admitted for that haven't
// allocated it yet, or if no other run is on the device. Otherwise it waits, and later ones that
// fit may begin first, but only some of them. A run that was out of memory while others train
// begins again when fewer train. Thread-safe: each lane's run has one Share.
class MemoryGate {
 public:
  class Share;

  explicit MemoryGate(MemoryActions actions) : actions_(std::move(actions)) {}

  bool checks() const { return actions_.memory != nullptr; }
  // Returns the memory of the device; 0 if unknown.
  uint64_t total() const;
  // Returns how often a run was out of memory while others train.
  int failures() const;

 private:
  bool TryToEnter(Share* share);
  bool MayEnter(const Share& share) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Fits(const Share& share) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(Share* share) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MemoryActions actions_;
  mutable Mutex mutex_;
  std::list<Share*> inside_ ABSL_GUARDED_BY(mutex_);
  std::list<Share*> waiting_ ABSL_GUARDED_BY(mutex_);  // in order of arrival
  bool left_ ABSL_GUARDED_BY(mutex_) = true;  // runs may have left memory that can be released
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

// One run's part of the device. Used by one thread.
class MemoryGate::Share {
 public:
  explicit Share(MemoryGate* gate) : gate_(gate) {}
  ~Share() { Leave(); }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  // Waits until the run may begin with `bytes` of memory. Returns false if it was halted.
  bool Enter(double bytes, RunControl& control);
  // The run has allocated what it needs.
  void Settle();
  // The run has freed its memory.
  void Leave();
  // The run is out of memory, and has freed it. Returns false if it was alone, so that it can't
  // begin again.
  bool Retreat();

 private:
  friend class MemoryGate;

  MemoryGate* const gate_;
  bool has_settled_ = false;  // the thread's own copy: a lane asks after each piece of a run
  // Guarded by the gate's lock:
  double bytes_ = 0;
  bool inside_ = false;
  bool settled_ = false;
  bool accompanied_ = false;  // at some time since it entered
  size_t most_others_ = std::numeric_limits<size_t>::max();
  int overtaken_ = 0;
};

}  // namespace ablate::worker

#endif  // ABLATE_SERVER_WORKER_MEMORY_GATE_H_
