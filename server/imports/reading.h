// Reads results that were trained elsewhere as a grid: which keys are settings, which is the seed,
// which run is in which cell, and each run's value. It never guesses between two readings: it says
// how the caller can tell them apart.
#ifndef ABLATE_SERVER_IMPORTS_READING_H_
#define ABLATE_SERVER_IMPORTS_READING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/import.pb.h"
#include "absl/status/statusor.h"
#include "google/protobuf/struct.pb.h"
#include "server/imports/results.h"
#include "server/report/compare/statistics.h"

namespace ablate::imports {

struct Axis {
  std::string key;   // as in the results
  std::string name;  // as an axis is called
  std::string path;  // as a setting is called, below `settings`
  bool tuned = false;
  std::vector<google::protobuf::Value> values;  // all of one kind; the first is the baseline
  std::vector<std::string> labels;              // one per value
};

struct Cell {
  std::vector<size_t> labels;  // one per axis
  uint32_t seed = 0;
  size_t run = 0;  // in Results::runs
  double value = 0;
  uint32_t step = 0;  // at which it was read
  bool diverged = false;
};

struct Reading {
  std::string metric;   // key of the results
  std::string primary;  // key of its values: the same, or METRIC@best, METRIC@STEP
  std::optional<v1::Better::Value> better;
  std::vector<Axis> axes;
  std::vector<Cell> cells;  // in grid order: last axis fastest, then seeds
  std::map<std::string, google::protobuf::Value> constants;  // equal in all cells, by path
  bool by_item = false;            // pairs are items of each cell's run, and seeds are all 0
  std::vector<std::string> notes;  // what was taken for what, and what was left out
};

// Reads the results. Takes runs that aren't finished, have no value, or repeat another one bit for
// bit, out of the cells. INVALID_ARGUMENT names the option that is missing or wrong.
absl::StatusOr<Reading> Read(const v1::ImportOptions& options, Results* results);

}  // namespace ablate::imports

#endif  // ABLATE_SERVER_IMPORTS_READING_H_
