// Rows to columns.
#include "server/worker/point_buffer.h"

#include <algorithm>
#include <utility>

namespace ablate::worker {

void PointBuffer::Add(const std::vector<engine::Point>& points) {
  for (const engine::Point& point : points) {
    v1::Column& column = columns_[point.key];
    column.add_steps(point.step);
    column.add_values(point.value);
  }
}

v1::Points PointBuffer::Take(uint32_t step, absl::Duration busy) {
  v1::Points points;
  points.set_step(step);
  const auto busy_us = static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Microseconds(busy), 0));
  points.set_busy_us(busy_us - std::min(reported_us_, busy_us));
  reported_us_ = std::max(reported_us_, busy_us);
  for (auto& [key, column] : columns_) {
    column.set_key(key);
    *points.add_columns() = std::move(column);
  }
  columns_.clear();
  return points;
}

}  // namespace ablate::worker
