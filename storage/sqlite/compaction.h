// Row groups of ended runs become chunks, one key each.
#ifndef ABLATE_STORAGE_SQLITE_COMPACTION_H_
#define ABLATE_STORAGE_SQLITE_COMPACTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/writer.h"

namespace ablate::storage {

struct Chunk {
  uint32_t key = 0;
  uint32_t first_step = 0;
  uint32_t last_step = 0;
  std::string data;
};

// The oldest row groups of one run, as chunks.
struct CompactedSlice {
  int64_t run = 0;
  uint64_t last_group = 0;
  std::vector<Chunk> chunks;
  std::string unreadable;  // why the run can't be compacted; then there are no chunks
};

// The next slice; nothing if every ended run is compacted. Only reads: the work of encoding is not
// done on the writer's thread.
absl::StatusOr<std::optional<CompactedSlice>> NextSlice(Connection& db);
// Replaces the row groups by the chunks, unless the run is gone. What is unreadable stays as it is
// and is noted in the run's history.
void StoreSlice(Transaction& t, const CompactedSlice& slice);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_COMPACTION_H_
