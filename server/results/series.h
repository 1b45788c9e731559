// Reads stored series of metrics: lists the keys, walks the series and skips damaged ones, and
// thins them for plots.
#ifndef ABLATE_SERVER_RESULTS_SERIES_H_
#define ABLATE_SERVER_RESULTS_SERIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "server/analysis/metrics.h"
#include "storage/store.h"

namespace ablate::results {

// The metrics that a request names.
using WantedKeys = google::protobuf::RepeatedPtrField<std::string>;

// Checks that each key has the form of a metric's and that there aren't too many; INVALID_ARGUMENT
// in field `keys`.
absl::Status CheckKeys(const WantedKeys& wanted);
// Returns the metric keys of an experiment's runs, sorted.
absl::StatusOr<std::vector<std::string>> ExperimentKeys(storage::Store* store,
                                                        const std::string& experiment);
// Returns INVALID_ARGUMENT about a key in `field` that no run of `experiment` has. Lists the
// numbers of the label, if the key begins with a label of analyses; otherwise keys with a similar
// beginning, if any. The message ends with `next`. Blocks on the store.
absl::Status NoSuchKey(storage::Store* store, absl::string_view field, const std::string& key,
                       const std::string& experiment, absl::string_view next = "");
// Returns that error if there are points but none of the key; before the first point any key may be
// right. Blocks on the store.
absl::Status CheckKnownKey(storage::Store* store, absl::string_view field, const std::string& key,
                           const std::string& experiment);

// Collects damage found in stored bytes while the rest of a request is delivered. For one thread.
class Damages {
 public:
  // `status` is DATA_LOSS and names the damaged object.
  void Add(const absl::Status& status);
  bool empty() const { return count_ == 0; }
  // Returns DATA_LOSS that names them, or the first of them if there are many; OK if there are
  // none.
  absl::Status ToStatus() const;

 private:
  std::vector<std::string> named_;
  size_t count_ = 0;
};

// Why SeriesCursor::Read returned.
enum class SeriesEnd { kComplete, kStopped, kDamaged };

// Walks the series of one run after another, in as many pieces as its user likes. Damaged series
// are recorded and skipped, or are an error if there is no Damages. For one thread. Blocks on the
// store.
class SeriesCursor {
 public:
  // Reads the points from `first_step` to `last_step` of each series. `damages` may be null; the
  // pointers must outlive the cursor.
  SeriesCursor(storage::Store* store, Damages* damages, uint32_t first_step = 0,
               uint32_t last_step = UINT32_MAX);

  // Adds metrics to the runs from now on; null: none. They must outlive the cursor.
  void Add(const analysis::AnalysisMetrics* metrics) { metrics_ = metrics; }

  // Moves to a run: to those of `wanted` that it has, in that order, each once, or to all it has in
  // ascending order if `wanted` is empty.
  absl::Status OpenRun(const std::string& run, const WantedKeys& wanted);
  // Moves to one series, which may have no points.
  void OpenSeries(const std::string& run, const std::string& key);

  // Return whether the run has a series left, and its key.
  bool has_series() const { return key_ < keys_.size(); }
  const std::string& key() const { return keys_[key_]; }
  // Continues reading the series. If the visitor stopped it, the next Read continues after the
  // points that were taken; otherwise the cursor moves to the next series.
  absl::StatusOr<SeriesEnd> Read(const storage::SeriesPiece& visit);

 private:
  void NextSeries();
  // Visits the points between the first and the last step as ReadSeries does.
  SeriesEnd ReadPoints(const analysis::Points& points, const storage::SeriesPiece& visit);
  absl::Status Note(const absl::Status& damage);

  storage::Store* store_;
  Damages* damages_;
  uint32_t first_step_, last_step_;
  const analysis::AnalysisMetrics* metrics_ = nullptr;
  std::string run_;
  std::vector<std::string> keys_;
  size_t key_ = 0;
  storage::SeriesPosition position_;  // in the series
};

// Thins a series for a plot: keeps the first, smallest, largest and last point of every bucket of
// steps. Takes a series in pieces; holds at most `max_points` points and a piece. A series of at
// most that length passes unchanged. Values keep their bits; NaN is neither smallest nor largest.
// Not thread-safe.
class Downsampler {
 public:
  // `max_points` is at least 4. Buckets divide the steps from the first one seen to `last_step`,
  // the expected end of the series.
  Downsampler(uint32_t max_points, uint32_t last_step);

  void Add(const std::vector<uint32_t>& steps, const std::vector<double>& values);
  // Returns the points kept, at most max_points, in ascending order.
  analysis::Points Finish();

 private:
  struct Point {
    uint64_t place = 0;  // index in the series
    uint32_t step = 0;
    double value = 0;
  };

  void AddPoint(uint32_t step, double value);
  void StartBuckets();
  void AddToBucket(const Point& point);
  void CloseBucket();

  const uint32_t max_points_;
  const uint32_t last_step_;
  analysis::Points kept_;
  uint64_t seen_ = 0;
  bool bucketing_ = false;
  uint32_t first_step_ = 0;
  double buckets_per_step_ = 0;
  uint32_t bucket_ = 0;
  bool bucket_empty_ = true;
  Point first_, smallest_, largest_, last_;
};

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_SERIES_H_
