#include "server/service/blob_pins.h"

#include <algorithm>
#include <utility>

namespace ablate::service {

void BlobPins::Hold(const std::string& lease, std::shared_ptr<storage::Blobs::Pin> pin) {
  MutexLock lock(&mutex_);
  held_[lease].push_back({std::move(pin), 0});
}

void BlobPins::Named(const std::string& lease, uint64_t seq, absl::string_view sha256) {
  MutexLock lock(&mutex_);
  const auto found = held_.find(lease);
  if (found == held_.end()) return;
  for (Held& held : found->second) {
    if (held.seq == 0 && held.pin->sha256() == sha256) held.seq = seq;
  }
}

void BlobPins::Acknowledged(const std::string& lease, uint64_t seq) {
  MutexLock lock(&mutex_);
  const auto found = held_.find(lease);
  if (found == held_.end()) return;
  std::vector<Held>& all = found->second;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [seq](const Held& held) { return held.seq != 0 && held.seq <= seq; }),
            all.end());
  if (all.empty()) held_.erase(found);
}

void BlobPins::DropLease(const std::string& lease) {
  MutexLock lock(&mutex_);
  held_.erase(lease);
}

std::vector<std::string> BlobPins::Leases() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> leases;
  for (const auto& [lease, held] : held_) leases.push_back(lease);
  return leases;
}

}  // namespace ablate::service
