#include "server/worker/contention.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace ablate::worker {

absl::Duration RunQueueDelay() {
  std::ifstream in("/proc/thread-self/schedstat");
  std::string line;
  std::getline(in, line);
  return ParseRunQueueDelay(line);
}

absl::Duration ParseRunQueueDelay(absl::string_view schedstat) {
  const std::vector<absl::string_view> words = absl::StrSplit(schedstat, ' ');
  uint64_t waited = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &waited)) return absl::ZeroDuration();
  return absl::Nanoseconds(static_cast<int64_t>(waited));
}

}  // namespace ablate::worker
