// Stored series of metrics as everybody walks them: which keys there are, a cursor that passes over
// what is damaged, and thinning for plots.
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

// INVALID_ARGUMENT in field `keys`, unless each can be a metric's and there are not too many.
absl::Status CheckKeys(const WantedKeys& wanted);
// The metric keys of an experiment's runs, sorted.
absl::StatusOr<std::vector<std::string>> ExperimentKeys(storage::Store* store,
                                                        const std::string& experiment);
// INVALID_ARGUMENT: no run of `experiment` has the key that `field` names. It says which there are:
// where a label of analyses stands before it, what numbers of these are called, else keys that
// begin alike, if there are any. Blocks on the store.
absl::Status NoSuchKey(storage::Store* store, absl::string_view field, const std::string& key,
                       const std::string& experiment);
// That error if there are points and none of the key: before the first one nothing is known to be
// wrong. Blocks on the store.
absl::Status CheckKnownKey(storage::Store* store, absl::string_view field, const std::string& key,
                           const std::string& experiment);

// Stored bytes that turned out to be damaged while the rest of what was asked for is delivered. One
// thread.
class Damages {
 public:
  // `status` is DATA_LOSS and names what is damaged.
  void Add(const absl::Status& status);
  bool empty() const { return count_ == 0; }
  // DATA_LOSS that names them, if they are many the first.
  absl::Status ToStatus() const;

 private:
  std::vector<std::string> named_;
  size_t count_ = 0;
};

// Why SeriesCursor::Read returned.
enum class SeriesEnd { kComplete, kStopped, kDamaged };

// Walks the series of one run after another, in as many pieces as its user likes. Damage is noted
// and passed over, or an error where nobody notes it. One thread. Blocks on the store.
class SeriesCursor {
 public:
  // Of each series the points from `first_step` to `last_step`. `damages` may be null; what is
  // pointed to outlives it.
  SeriesCursor(storage::Store* store, Damages* damages, uint32_t first_step = 0,
               uint32_t last_step = UINT32_MAX);

  // From now on runs have these metrics, too; null: none. They outlive the cursor.
  void Add(const analysis::AnalysisMetrics* metrics) { metrics_ = metrics; }

  // Goes to a run: to those of `wanted` that it has, in that order and each once, or to all it has
  // in ascending order if none is wanted.
  absl::Status OpenRun(const std::string& run, const WantedKeys& wanted);
  // Goes to one series, which may have no points.
  void OpenSeries(const std::string& run, const std::string& key);

  // Whether a series of the run is left, and its key.
  bool has_series() const { return key_ < keys_.size(); }
  const std::string& key() const { return keys_[key_]; }
  // Reads on in the series. If the visitor stopped it the next Read goes on after the points that
  // were taken; otherwise the cursor is at the next series.
  absl::StatusOr<SeriesEnd> Read(const storage::SeriesPiece& visit);

 private:
  void NextSeries();
  // What of these lies between the first and the last step is visited as ReadSeries does it.
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

// Thins a series for a plot: every bucket of steps keeps its first, smallest, largest and last
// point. Takes a series piece by piece; holds at most `max_points` points and a piece. A series
// that is not longer passes unchanged. Values and their bits are never altered; NaN is neither
// smallest nor largest. Not thread-safe.
class Downsampler {
 public:
  // `max_points` of at least 4. Buckets divide the steps from the first one seen to `last_step`,
  // where the series is expected to end.
  Downsampler(uint32_t max_points, uint32_t last_step);

  void Add(const std::vector<uint32_t>& steps, const std::vector<double>& values);
  // What is kept, at most max_points, ascending.
  analysis::Points Finish();

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
