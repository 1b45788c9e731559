// Merges the points of a grid's combinations into the base, and names the combinations.
#ifndef ABLATE_SERVER_EXPERIMENT_MERGE_H_
#define ABLATE_SERVER_EXPERIMENT_MERGE_H_

#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "server/config/bad_paths.h"
#include "server/config/problems.h"
#include "server/experiment/expand.h"
#include "server/experiment/grid.h"

namespace ablate::spec {

// One combination. The spec is valid until the next one is merged.
struct Merged {
  const v1::BaseSpec& spec;                       // the base with the points' writes
  std::vector<const std::vector<Write>*> points;  // writes of each axis's point
  BadPaths bad;                                   // paths with problems of their own
  bool broken = false;                            // a point could not be read: don't check
};

// Merges combinations in the order of VisitGrid. Not thread-safe.
class Merger {
 public:
  // `input` must outlive it.
  explicit Merger(const ExpandInput& input);

  // `changed` as in VisitGrid.
  Merged Merge(const Indexes& indexes, size_t changed);

  // Returns the part of a cell's name before its seed.
  std::string NameOf(const Indexes& indexes) const;
  // Returns the name of each axis with the combination's label.
  std::vector<std::pair<std::string, std::string>> LabelsOf(const Indexes& indexes) const;
  // Reports two combinations of one name.
  void CheckName(const Indexes& indexes, Problems* problems);

 private:
  const Point& PointOf(const Indexes& indexes, size_t axis) const {
    return input_.grid.axes[axis].points[static_cast<size_t>(indexes[axis])];
  }

  const ExpandInput& input_;
  std::vector<v1::BaseSpec> merged_;  // after so many axes
  std::unordered_set<std::string> names_;
};

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_EXPERIMENT_MERGE_H_
