// Holds an experiment in a store in memory whose runs end as a test decides, without server or
// worker.
#ifndef ABLATE_TESTS_RESULTS_STORED_GRID_H_
#define ABLATE_TESTS_RESULTS_STORED_GRID_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/spec.pb.h"
#include "absl/strings/str_cat.h"
#include "server/lookup/cancelled.h"
#include "storage/blobs.h"
#include "storage/store.h"

namespace ablate::results {

// Returns the spec of small runs, of seeds 1, 2, …; axes and a report may be appended.
inline std::string SmallGrid(int seeds) {
  return absl::StrCat(R"(
    name: "small"
    base {
      task { legacy_recall { keys: 20 draw: 4 } }
      model { layers: 1 width: 8 heads: 2 }
      training { steps: 10 batch: 2 }
    }
    seeds { first: 1 count: )",
                      seeds, "}");
}

inline constexpr char kPlacementAxis[] = R"(
  axes {
    name: "placement"
    settings { label: "pre" }
    settings { label: "post" set { key: "model.norm.placement" value { string_value: "post" } } }
  }
)";

// Never cancels.
inline const lookup::Cancelled kNever = [] { return false; };

class StoredGrid {
 public:
  using Curves = std::map<std::string, std::map<uint32_t, double>>;  // key → step → value

  // `text` is the textproto of a spec of legacy_recall. Each run then takes 1 s of device time. The
  // store is in `folder`, or in memory.
  explicit StoredGrid(const std::string& text, const std::string& folder = "");

  // Submits another experiment to the same store, which shares runs of equal spec; later calls use
  // it.
  void Submit(const std::string& text);

  storage::Store* store() { return store_.get(); }
  const std::string& experiment() const { return experiment_; }
  const storage::CellRecord& cell(const std::string& name) const { return cells_.at(name); }

  // Trains the run of a cell such as post-s1 to its end, with a checkpoint there.
  void Finish(const std::string& cell, const Curves& curves, bool diverged = false);
  // Reports points of a run that goes on.
  void Report(const std::string& cell, const Curves& curves);
  void Fail(const std::string& cell);
  // Stores an analysis of a finished run at its end, with a label of its own. `result` is the bytes
  // of a v1::Analysis; `request` likewise, with kind and inputs; `arrays` are a file's bytes, for a
  // store in a folder.
  void Analyze(const std::string& cell, const std::string& label, const std::string& result,
               const std::string& request = "", const std::string& arrays = "");

 private:
  // Starts the cell's run under a lease of its own.
  void Start(const std::string& cell);
  // Publishes bytes; returns their hash.
  std::string Publish(const std::string& bytes);
  void Send(const std::string& cell, std::vector<storage::LeaseEvent> events);

  std::unique_ptr<storage::Store> store_;
  std::string experiment_;
  std::map<std::string, storage::CellRecord> cells_;
  uint64_t leases_ = 0, submits_ = 0;
  std::vector<std::shared_ptr<storage::Blobs::Pin>> pins_;  // pins of published blobs
};

}  // namespace ablate::results

#endif  // ABLATE_TESTS_RESULTS_STORED_GRID_H_
