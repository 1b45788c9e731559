// Reads one key's values for all cells of a question, and decides a comparison for all of them.
#ifndef ABLATE_STORAGE_SQLITE_RUN_VALUES_H_
#define ABLATE_STORAGE_SQLITE_RUN_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "storage/run_query.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/summaries.h"

namespace ablate::storage {

// An experiment that the viewer of a question sees.
struct QueriedExperiment {
  int64_t id = 0;
  std::string name;
  std::string title;
  std::string owner;
  Micros create_time = 0;
  std::string tags;  // as in RunKey; empty: none
};

// Metrics of the runs that haven't ended, which are read from their summaries.
using OpenSummaries = std::vector<std::pair<int64_t, KeySummaries>>;

// The part of the store that one question reads. Its experiments are in the order of lists: newest
// first.
struct QueriedStore {
  Connection& db;
  const RunQuery& query;
  std::vector<QueriedExperiment> experiments = {};
  std::unordered_map<int64_t, size_t> place_of = {};  // in `experiments`, by id
  std::set<std::string> private_to = {};              // values of runs that the viewer sees
  OpenSummaries open = {};                            // if the query has a metric
  int64_t after = 0;  // number of the experiment of the page's position
};

// A cell, as far as questions read all of them.
struct ScannedCell {
  size_t experiment = 0;  // place in QueriedStore::experiments
  uint32_t place = 0;
  uint32_t variant = 0;
  uint32_t seed = 0;
  int64_t run = 0;
};

// The rows that share a value of a key.
enum class Level { kExperiment, kVariant, kRun, kCell };
Level LevelOf(RunKey::Kind kind);
// Returns true for a statistic of a metric.
bool IsMetric(RunKey::Kind kind);

// The key of a value in an order: missing ones are last, texts that are numbers before other texts.
struct SortKey {
  enum class Rank { kNumber, kText, kMissing };
  Rank rank = Rank::kMissing;
  double number = 0;
  std::string text;
};
SortKey SortKeyOf(const RunValue& value);
// Returns <0, 0 or >0 as `a` is before, with or after `b`.
int Compare(const SortKey& a, const SortKey& b, bool descending);

// Decides a test for one value. Comparisons with a missing one are false.
bool Holds(const RunTest& test, const RunValue& value);

// The values of one key, each once: by experiment, by variant, or by run. A copy of what the
// database has, some bytes a value.
class RunValues {
 public:
  // Reads all values; with `test`, only those runs' that it holds for need be there.
  static RunValues Load(const QueriedStore& store, const RunKey& key,
                        const RunTest* test = nullptr);

  // Return the value of all cells of an experiment, or the values by variant if they differ or some
  // are missing. For kExperiment and kVariant only.
  const RunValue& OfExperiment(size_t experiment) const { return of_experiment_[experiment]; }
  const std::vector<RunValue>& OfVariants(size_t experiment) const {
    return of_variant_[experiment];
  }
  RunValue Of(const ScannedCell& cell) const;
  // All runs with a value are among the `runs()` ones from first_run() on. For kRun only.
  int64_t first_run() const { return first_run_; }
  size_t runs() const { return of_run_.size(); }
  // Returns NaN for a run without a value. For kRun only, whose values are all numbers.
  double OfRun(int64_t run) const {
    const auto place = static_cast<uint64_t>(run - first_run_);
    return place < of_run_.size() ? of_run_[place] : kNone;
  }

 private:
  void LoadExperiments(const QueriedStore& store, RunKey::Kind kind);
  void LoadFields(const QueriedStore& store, const RunKey& key);
  void LoadRuns(const QueriedStore& store, RunKey::Kind kind, const RunTest* test);
  void LoadMetric(const QueriedStore& store, const RunKey& key, const RunTest* test);

  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  using RunNumbers = std::vector<std::pair<int64_t, double>>;

  // Puts the numbers where OfRun finds them.
  void KeepRuns(const RunNumbers& numbers);

  Level level_ = Level::kCell;
  std::vector<RunValue> of_experiment_;
  std::vector<std::vector<RunValue>> of_variant_;  // by experiment and variant; empty: common
  int64_t first_run_ = 0;
  std::vector<double> of_run_;  // from first_run_ on
};

// Reads the value of one cell of a page.
RunValue ReadValue(const QueriedStore& store, const RunKey& key, const ScannedCell& cell,
                   const KeySummaries& summaries);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_RUN_VALUES_H_
