// Learning curves that grow, in buckets of steps, so that a page gets only what has changed.
#ifndef ABLATE_CLIENT_WEB_CURVES_H_
#define ABLATE_CLIENT_WEB_CURVES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ablate/v1/metric.pb.h"
#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace ablate::web {

// Buckets begin at multiples of their width, in steps, so that a bucket that is full never changes.
// A curve of one run has the least, mean and largest value of each bucket; a curve of several has
// the mean of their means, between the least and the largest of them. Values that aren't finite are
// left out. Thread-safe.
class CurveTable {
 public:
  // More are neither distinguished by colour nor worth their bytes.
  static constexpr size_t kMaxCurves = 100;
  static constexpr uint32_t kBuckets = 300;  // that a curve of `steps` has, at most

  struct Curve {
    std::string label;
    size_t hue = 0;
    std::vector<std::string> runs;  // runs/ID
  };

  CurveTable(std::vector<Curve> curves, uint32_t steps);

  // Adds points of a run. Those of steps that it has already are left out, so that points may come
  // again. Runs without a curve are ignored.
  void Add(const v1::Series& series);
  // Returns the first step that a run lacks.
  uint32_t NextStep(const std::string& run) const;

  // Returns the buckets that changed since the last call, or all of them, as JSON: whole, width,
  // labels, hues, and rows of [step, [low, mean, high] or null for each curve]. "" if none has
  // changed.
  std::string TakeChanges();
  std::string Whole() const;

 private:
  struct Bucket {
    double sum = 0, low = 0, high = 0;
    uint32_t count = 0;
    void Add(double value);
  };
  struct Run {
    uint32_t next = 0;
    std::vector<Bucket> buckets;
  };

  std::string Json(const std::set<size_t>& buckets, bool whole) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<Curve> curves_;
  const uint32_t width_;
  mutable Mutex mutex_;
  std::map<std::string, Run> runs_ ABSL_GUARDED_BY(mutex_);
  std::set<size_t> changed_ ABSL_GUARDED_BY(mutex_);
};

// Returns `text` as JSON has it, with quotes.
std::string JsonText(const std::string& text);

}  // namespace ablate::web

#endif  // ABLATE_CLIENT_WEB_CURVES_H_
