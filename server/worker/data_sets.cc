#include "server/worker/data_sets.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ablate::worker {

absl::StatusOr<std::shared_ptr<const engine::TaskData>> DataSets::Get(const RightfulBlob& blob,
                                                                      const engine::TaskKind& task,
                                                                      RunControl& control) {
  const std::string key = absl::StrCat(task.name, " ", blob.sha256);
  {
    MutexLock lock(&mutex_);
    if (auto known = Find(key)) return known;
  }
  const absl::StatusOr<std::string> file = blobs_->Read(blob.right, blob.sha256, control);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::shared_ptr<const engine::TaskData>> data = task.read(*file);
  if (!data.ok()) return data;
  return Keep({key, *std::move(data)});
}

std::shared_ptr<const engine::TaskData> DataSets::Find(const std::string& key) {
  const auto found = std::find_if(recent_.begin(), recent_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  if (found == recent_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found);
  return recent_.front().data;
}

std::shared_ptr<const engine::TaskData> DataSets::Keep(Entry entry) {
  MutexLock lock(&mutex_);
  if (auto known = Find(entry.key)) return known;
  recent_.push_front(std::move(entry));
  uint64_t bytes = 0;
  for (const Entry& known : recent_) bytes += known.data->bytes();
  while (bytes > capacity_bytes_ && recent_.size() > 1) {
    bytes -= recent_.back().data->bytes();
    recent_.pop_back();
  }
  return recent_.front().data;
}

}  // namespace ablate::worker
