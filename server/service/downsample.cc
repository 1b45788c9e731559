// Thins a series for a plot: every bucket of steps keeps its first, smallest, largest and last
// point.
#include "server/service/downsample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace ablate::service {
namespace {

constexpr uint32_t kPointsPerBucket = 4;

}  // namespace

Downsampler::Downsampler(uint32_t max_points, uint32_t last_step)
    : max_points_(max_points), last_step_(last_step) {}

void Downsampler::Add(const std::vector<uint32_t>& steps, const std::vector<double>& values) {
  for (size_t i = 0; i < steps.size(); ++i) AddPoint(steps[i], values[i]);
}

void Downsampler::AddPoint(uint32_t step, double value) {
  if (!bucketing_) {
    if (kept_.steps.size() < max_points_) {
      kept_.steps.push_back(step);
      kept_.values.push_back(value);
      return;
    }
    StartBuckets();
  }
  AddToBucket({seen_++, step, value});
}

void Downsampler::StartBuckets() {
  bucketing_ = true;
  const Points all = std::exchange(kept_, {});
  first_step_ = all.steps.front();
  const double span = static_cast<double>(std::max(last_step_, all.steps.back())) - first_step_ + 1;
  const uint32_t buckets = max_points_ / kPointsPerBucket;
  buckets_per_step_ = buckets / span;
  for (size_t i = 0; i < all.steps.size(); ++i) {
    AddToBucket({seen_++, all.steps[i], all.values[i]});
  }
}

void Downsampler::AddToBucket(const Point& point) {
  const auto wanted = static_cast<uint32_t>((point.step - first_step_) * buckets_per_step_);
  const uint32_t bucket = std::min(wanted, max_points_ / kPointsPerBucket - 1);
  if (bucket != bucket_) CloseBucket();
  bucket_ = bucket;
  if (bucket_empty_) {
    first_ = smallest_ = largest_ = point;
    bucket_empty_ = false;
  }
  if (point.value < smallest_.value || std::isnan(smallest_.value)) smallest_ = point;
  if (point.value > largest_.value || std::isnan(largest_.value)) largest_ = point;
  last_ = point;
}

void Downsampler::CloseBucket() {
  if (bucket_empty_) return;
  std::array<Point, kPointsPerBucket> points = {first_, smallest_, largest_, last_};
  if (points[1].place > points[2].place) std::swap(points[1], points[2]);
  for (size_t i = 0; i < points.size(); ++i) {
    if (i > 0 && points[i].place == points[i - 1].place) continue;
    kept_.steps.push_back(points[i].step);
    kept_.values.push_back(points[i].value);
  }
  bucket_empty_ = true;
}

Points Downsampler::Finish() {
  CloseBucket();
  return std::exchange(kept_, {});
}

}  // namespace ablate::service
