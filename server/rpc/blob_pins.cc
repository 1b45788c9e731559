#include "server/rpc/blob_pins.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::rpc {

absl::Status BlobPins::Begin(const std::string& lease, uint64_t bytes, uint64_t most) {
  MutexLock lock(&mutex_);
  if (BytesOf(lease) + bytes > most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("lease ", lease, ": ", BytesOf(lease),
                     " written bytes without a durable event; expected at most ", most));
  }
  writing_[lease] += bytes;
  return absl::OkStatus();
}

void BlobPins::End(const std::string& lease, uint64_t bytes) {
  MutexLock lock(&mutex_);
  const auto found = writing_.find(lease);
  if (found == writing_.end()) return;
  found->second -= std::min(bytes, found->second);
  if (found->second == 0) writing_.erase(found);
}

uint64_t BlobPins::BytesOf(const std::string& lease) const {
  const auto writing = writing_.find(lease);
  uint64_t bytes = writing == writing_.end() ? 0 : writing->second;
  const auto held = held_.find(lease);
  if (held == held_.end()) return bytes;
  for (const Held& blob : held->second) bytes += blob.pin->size();
  return bytes;
}

void BlobPins::Hold(const std::string& lease, std::shared_ptr<storage::Blobs::Pin> pin) {
  MutexLock lock(&mutex_);
  held_[lease].push_back({std::move(pin), 0});
}

void BlobPins::Named(const std::string& lease, uint64_t seq, absl::string_view sha256) {
  MutexLock lock(&mutex_);
  const auto found = held_.find(lease);
  if (found == held_.end()) return;
  const auto acknowledged = acknowledged_.find(lease);
  if (acknowledged != acknowledged_.end() && seq <= acknowledged->second) return;
  for (Held& held : found->second) {
    if (held.seq == 0 && held.pin->sha256() == sha256) held.seq = seq;
  }
}

bool BlobPins::Holds(const std::string& lease, absl::string_view sha256) const {
  MutexLock lock(&mutex_);
  const auto found = held_.find(lease);
  return found != held_.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [sha256](const Held& held) { return held.pin->sha256() == sha256; });
}

void BlobPins::Acknowledged(const std::string& lease, uint64_t seq) {
  MutexLock lock(&mutex_);
  const auto found = held_.find(lease);
  if (found == held_.end()) return;
  uint64_t& newest = acknowledged_[lease];
  newest = std::max(newest, seq);
  std::vector<Held>& all = found->second;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [seq](const Held& held) { return held.seq != 0 && held.seq <= seq; }),
            all.end());
  if (!all.empty()) return;
  held_.erase(found);
  acknowledged_.erase(lease);
}

void BlobPins::DropLease(const std::string& lease) {
  MutexLock lock(&mutex_);
  held_.erase(lease);
  acknowledged_.erase(lease);
}

std::vector<std::string> BlobPins::Leases() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> leases;
  for (const auto& [lease, held] : held_) leases.push_back(lease);
  return leases;
}

}  // namespace ablate::rpc
