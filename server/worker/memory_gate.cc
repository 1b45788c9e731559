#include "server/worker/memory_gate.h"

#include <algorithm>
#include <utility>

namespace ablate::worker {
namespace {

// How many runs may begin before one that waits.
constexpr int kMostOvertaking = 8;
// Other processes may free memory, too.
constexpr absl::Duration kPoll = absl::Milliseconds(200);

}  // namespace

uint64_t MemoryGate::total() const {
  if (!checks()) return 0;
  const absl::StatusOr<engine::DeviceMemory> memory = actions_.memory();
  return memory.ok() ? memory->total : 0;
}

int MemoryGate::failures() const {
  MutexLock lock(&mutex_);
  return failures_;
}

bool MemoryGate::MayEnter(const Share& share) {
  for (const Share* first : waiting_) {
    if (first == &share) break;
    if (first->overtaken_ >= kMostOvertaking) return false;
  }
  if (inside_.empty()) return true;
  const size_t others = inside_.size();
  if (others > share.most_others_) return false;
  const auto crowded = [others](const Share* one) { return others > one->most_others_; };
  if (std::any_of(inside_.begin(), inside_.end(), crowded)) return false;
  if (Fits(share)) return true;
  if (!std::exchange(left_, false)) return false;
  actions_.release();
  return Fits(share);
}

bool MemoryGate::Fits(const Share& share) {
  const absl::StatusOr<engine::DeviceMemory> memory = actions_.memory();
  if (!memory.ok()) return true;
  double free = static_cast<double>(memory->free);
  for (const Share* one : inside_) {
    if (!one->settled_) free -= one->bytes_;
  }
  return share.bytes_ <= free;
}

bool MemoryGate::TryToEnter(Share* share) {
  MutexLock lock(&mutex_);
  if (!MayEnter(*share)) return false;
  for (Share* first : waiting_) {
    if (first == share) break;
    ++first->overtaken_;
  }
  for (Share* other : inside_) other->accompanied_ = true;
  share->accompanied_ = !inside_.empty();
  share->settled_ = false;
  share->overtaken_ = 0;
  share->inside_ = true;
  inside_.push_back(share);
  return true;
}

void MemoryGate::Leave(Share* share) {
  if (!std::exchange(share->inside_, false)) return;
  inside_.remove(share);
  left_ = true;
}

bool MemoryGate::Share::Enter(double bytes, RunControl& control) {
  if (!gate_->checks()) return true;
  const ServerWait waiting(control);
  has_settled_ = false;
  {
    MutexLock lock(&gate_->mutex_);
    bytes_ = bytes;
    gate_->waiting_.push_back(this);
  }
  while (!control.halted() && !gate_->TryToEnter(this)) control.Pause(kPoll);
  MutexLock lock(&gate_->mutex_);
  gate_->waiting_.remove(this);
  return inside_;
}

void MemoryGate::Share::Settle() {
  if (!gate_->checks() || std::exchange(has_settled_, true)) return;
  MutexLock lock(&gate_->mutex_);
  settled_ = true;
  gate_->left_ = true;  // by the passes before its first capture
}

void MemoryGate::Share::Leave() {
  MutexLock lock(&gate_->mutex_);
  gate_->Leave(this);
}

bool MemoryGate::Share::Retreat() {
  MutexLock lock(&gate_->mutex_);
  if (!inside_ || !accompanied_) return false;
  gate_->Leave(this);
  const size_t others = gate_->inside_.size();
  most_others_ = std::min(others, most_others_);
  if (most_others_ > 0) --most_others_;
  ++gate_->failures_;
  return true;
}

}  // namespace ablate::worker
