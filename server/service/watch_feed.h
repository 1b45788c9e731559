// What a watcher of an experiment is told, and when: changes of state and a run's first values at
// once, other progress at a pace that people can follow.
#ifndef ABLATE_SERVER_SERVICE_WATCH_FEED_H_
#define ABLATE_SERVER_SERVICE_WATCH_FEED_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/records.h"

namespace ablate::service {

// The token of a watch: up to which change its holder knows an experiment, in which file.
std::string WatchToken(absl::string_view generation, uint64_t change);

// The change number in `token`; 0 for no token. INVALID_ARGUMENT if it is not a token; OUT_OF_RANGE
// if it is another generation's or later than `newest`.
absl::StatusOr<uint64_t> ParseWatchToken(absl::string_view token, absl::string_view generation,
                                         uint64_t newest);

// Messages a second about progress; changes of state come on top.
inline constexpr uint32_t kProgressPerSecond = 20;

// No threads, no clock of its own: `now` is monotonic time. Not thread-safe.
class WatchFeed {
 public:
  // Everything up to change number `token` is known to the watcher.
  explicit WatchFeed(uint64_t token) : seen_(token) {}

  // Cells whose runs changed after seen(), by ascending change number, all of them up to the last
  // one's.
  void Changed(const std::vector<storage::CellRecord>& cells);
  uint64_t seen() const { return seen_; }

  // Cells to tell the watcher about now. After `final` nothing is held back.
  std::vector<storage::CellRecord> Take(absl::Duration now, bool final);
  // The watcher was told about values of this cell, so that what follows is progress.
  void ToldValues(uint32_t cell);

  // When Take has something to give if nothing else happens; nothing if it never does.
  std::optional<absl::Duration> next_time() const;
  // The watcher knows everything up to here once what was taken has reached it.
  uint64_t token() const;

 private:
  struct Told {
    std::optional<storage::RunState> state;
    bool values = false;
  };
  struct Held {  // progress that waits
    uint64_t since = 0;
    storage::CellRecord cell;
  };

  bool IsUrgent(const storage::CellRecord& cell) const;

  uint64_t seen_;
  std::vector<Told> told_;  // by cell index
  std::vector<storage::CellRecord> urgent_;
  std::map<uint32_t, Held> held_;  // by cell index; newest record of each
  std::deque<uint32_t> order_;     // of held_, oldest first; may name cells that have left
  absl::Duration next_progress_ = absl::ZeroDuration();
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_WATCH_FEED_H_
