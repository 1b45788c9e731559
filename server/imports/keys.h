// Finds out which keys of runs are settings, and which is the seed.
#ifndef ABLATE_SERVER_IMPORTS_KEYS_H_
#define ABLATE_SERVER_IMPORTS_KEYS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "server/imports/results.h"

namespace ablate::imports {

inline constexpr char kSeedKey[] = "seed";  // key of the seed by default

// The settings of some runs as columns.
class Keys {
 public:
  // Reads the runs at `used`, at least one.
  Keys(const std::vector<Run>& runs, const std::vector<size_t>& used);

  const std::vector<std::string>& names() const { return names_; }
  bool Has(const std::string& key) const { return columns_.count(key) > 0; }
  // Returns true if the runs have different values of it.
  bool Varies(const std::string& key) const { return columns_.at(key).count > 1; }
  // Returns true if each run has its own value of it.
  bool NamesRuns(const std::string& key) const;
  // Returns true if runs with equal values of `from` have equal values of `to`.
  bool Determines(const std::string& from, const std::string& to) const;

 private:
  struct Column {
    std::vector<size_t> numbers;  // of each run's value; equal values have equal numbers
    size_t count = 0;             // of distinct values
  };
  std::vector<std::string> names_;
  std::map<std::string, Column> columns_;
  size_t runs_ = 0;
};

// Returns the key of the seed: `wanted`, or else the only one that varies and is called so; empty
// if there is none. INVALID_ARGUMENT about field seed.
absl::StatusOr<std::string> FindSeed(const Keys& keys, const std::string& wanted,
                                     std::vector<std::string>* notes);

// Returns the keys of the settings: `wanted`, or else those that vary, without those that other
// keys determine, and without those of which each run has its own value if others vary.
// INVALID_ARGUMENT about field settings.
absl::StatusOr<std::vector<std::string>> FindSettings(const Keys& keys, const std::string& seed,
                                                      const std::vector<std::string>& wanted,
                                                      std::vector<std::string>* notes);

// Returns the last part of a key with dots or slashes: lr of optimizer/lr.
std::string LastPart(const std::string& key);

// Returns the first names, for notes and errors.
std::string Listed(const std::vector<std::string>& names);

// Returns the value as text in which equal values are equal, also for a missing one.
std::string Identity(const Run& run, const std::string& key);

}  // namespace ablate::imports

#endif  // ABLATE_SERVER_IMPORTS_KEYS_H_
