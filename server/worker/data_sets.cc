// A small least-recently-used cache by hash.
#include "server/worker/data_sets.h"

#include <algorithm>
#include <utility>

namespace ablate::worker {

absl::StatusOr<std::shared_ptr<const DataSet>> DataSets::Get(const std::string& right,
                                                             const std::string& sha256,
                                                             RunControl& control) {
  if (auto known = Find(sha256)) return known;
  absl::StatusOr<std::string> text = blobs_->Read(right, sha256, control);
  if (!text.ok()) return text.status();
  const absl::StatusOr<engine::DocumentFacts> facts = engine::InspectDocuments(*text);
  if (!facts.ok()) return facts.status();
  auto data_set = std::make_shared<const DataSet>(
      DataSet{sha256, *std::move(text), engine::DocumentsShape(*facts)});
  Keep(data_set);
  return data_set;
}

std::shared_ptr<const DataSet> DataSets::Find(const std::string& sha256) {
  MutexLock lock(&mutex_);
  const auto found = std::find_if(recent_.begin(), recent_.end(),
                                  [&](const auto& entry) { return entry->sha256 == sha256; });
  if (found == recent_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found);
  return recent_.front();
}

void DataSets::Keep(std::shared_ptr<const DataSet> data_set) {
  MutexLock lock(&mutex_);
  recent_.remove_if([&](const auto& entry) { return entry->sha256 == data_set->sha256; });
  recent_.push_front(std::move(data_set));
  uint64_t bytes = 0;
  for (const auto& entry : recent_) bytes += entry->text.size();
  while (bytes > capacity_bytes_ && recent_.size() > 1) {
    bytes -= recent_.back()->text.size();
    recent_.pop_back();
  }
}

}  // namespace ablate::worker
