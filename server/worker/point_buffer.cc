#include "server/worker/point_buffer.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace ablate::worker {
namespace {

uint64_t Micros(absl::Duration duration) {
  return static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Microseconds(duration), 0));
}

// Returns the growth of `total` over `*reported`, up to `max`, and adds it to `*reported`.
uint64_t Growth(uint64_t total, uint64_t max, uint64_t* reported) {
  const uint64_t growth = std::min(total - std::min(*reported, total), max);
  *reported += growth;
  return growth;
}

}  // namespace

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

void PointBuffer::Add(const std::vector<engine::Point>& points) {
  for (const engine::Point& point : points) {
    v1::Column& column = columns_[point.key];
    column.add_steps(point.step);
    column.add_values(point.value);
  }
}

v1::Points PointBuffer::Take(uint32_t step, const LaneUse& use) {
  v1::Points points;
  points.set_step(step);
  points.set_busy_us(Growth(Micros(use.busy), UINT64_MAX, &busy_us_));
  // Limited to busy, because it is read a moment later.
  points.set_contended_us(Growth(Micros(use.contended), points.busy_us(), &contended_us_));
  points.set_tokens(Growth(use.tokens, UINT64_MAX, &tokens_));
  for (auto& [key, column] : columns_) {
    column.set_key(key);
    *points.add_columns() = std::move(column);
  }
  columns_.clear();
  return points;
}

}  // namespace ablate::worker
