// Thins a series for a plot: every bucket of steps keeps its first, smallest, largest and last
// point.
#ifndef ABLATE_SERVER_SERVICE_DOWNSAMPLE_H_
#define ABLATE_SERVER_SERVICE_DOWNSAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ablate::service {

struct Points {
  std::vector<uint32_t> steps;  // ascending
  std::vector<double> values;   // as many
};

// Takes a series piece by piece; holds at most `max_points` points and a piece. A series that is
// not longer passes unchanged. Values and their bits are never altered; NaN is neither smallest nor
// largest. Not thread-safe.
class Downsampler {
 public:
  // `max_points` of at least 4. Buckets divide the steps from the first one seen to `last_step`,
  // where the series is expected to end.
  Downsampler(uint32_t max_points, uint32_t last_step);

  void Add(const std::vector<uint32_t>& steps, const std::vector<double>& values);
  // What is kept, at most max_points, ascending.
  Points Finish();

 private:
  struct Point {
    uint64_t place = 0;  // in the series
    uint32_t step = 0;
    double value = 0;
  };

  void AddPoint(uint32_t step, double value);
  void StartBuckets();
  void AddToBucket(const Point& point);
  void CloseBucket();

  const uint32_t max_points_;
  const uint32_t last_step_;
  Points kept_;
  uint64_t seen_ = 0;
  bool bucketing_ = false;
  uint32_t first_step_ = 0;
  double buckets_per_step_ = 0;
  uint32_t bucket_ = 0;
  bool bucket_empty_ = true;
  Point first_, smallest_, largest_, last_;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_DOWNSAMPLE_H_
