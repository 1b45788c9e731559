// Selects what a watcher of an experiment receives, and when: changes of state and a run's first
// values at once, other progress at a pace that people can follow.
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

// Returns a watch token: the change number up to which its holder has an experiment's state, and
// the database's generation.
std::string WatchToken(absl::string_view generation, uint64_t change);

// Returns the change number in `token`; 0 for an empty token. INVALID_ARGUMENT if it isn't a token;
// OUT_OF_RANGE if it is another generation's or later than `newest`.
absl::StatusOr<uint64_t> ParseWatchToken(absl::string_view token, absl::string_view generation,
                                         uint64_t newest);

// Messages per second about progress, in addition to changes of state.
inline constexpr uint32_t kProgressPerSecond = 20;

// Paces a watcher's messages. No threads, no clock of its own: `now` is monotonic time. Not
// thread-safe.
class WatchFeed {
 public:
  // The watcher has everything up to change number `token`.
  explicit WatchFeed(uint64_t token) : seen_(token) {}

  // Adds cells whose runs changed after seen(), in order of change number; they must be complete up
  // to the last one's.
  void Changed(const std::vector<storage::CellRecord>& cells);
  uint64_t seen() const { return seen_; }

  // Returns the cells to send now. With `final`, holds nothing back.
  std::vector<storage::CellRecord> Take(absl::Duration now, bool final);
  // Records that values of this cell were sent, so that later ones count as progress.
  void ToldValues(uint32_t cell);

  // Returns when Take next has something if nothing else happens; nothing if never.
  std::optional<absl::Duration> next_time() const;
  // Returns the change number up to which the watcher has everything once the taken cells have
  // reached it.
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
  std::map<uint32_t, Held> held_;  // by cell index; the newest record of each
  std::deque<uint32_t> order_;     // keys of held_, oldest first; may have cells that have left
  absl::Duration next_progress_ = absl::ZeroDuration();
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_WATCH_FEED_H_
