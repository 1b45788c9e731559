// Operands of a comparison or a diff: an experiment, or a part of one. EXP/PART is a cell
// (post-lr0.01-s42), the cells of all its seeds (post-lr0.01), or also of all tuned values (post).
#ifndef ABLATE_SERVER_RESULTS_OPERAND_H_
#define ABLATE_SERVER_RESULTS_OPERAND_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/spec.pb.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/lookup/names.h"
#include "storage/records.h"

namespace ablate::results {

struct Operand {
  std::string experiment;  // whole ID
  std::string part;        // "": all of it
};

// Finds the operand `name`: `experiments/ID`, an ID or its beginning, with /PART or without. Errors
// as rpc::FindExperiment's, in `field`. Doesn't check that the part exists; PartNames does.
absl::StatusOr<Operand> FindOperand(const lookup::View& view, absl::string_view name,
                                    absl::string_view field);

// Returns "names-norm-7f3k/post", or only the experiment if `part` is empty.
std::string OperandName(const std::string& experiment, absl::string_view part);

// Resolves names of an experiment's parts.
class PartNames {
 public:
  explicit PartNames(const v1::ExperimentSpec& spec);

  // Return a cell's name without the seed, and without the tuned values, too. Each is "" if nothing
  // is left.
  static std::string Combination(const storage::CellRecord& cell);
  std::string Setting(const storage::CellRecord& cell) const;

  // Returns the indexes of the cells that `part` names, all for "". INVALID_ARGUMENT in `field`
  // lists the existing parts.
  absl::StatusOr<std::vector<size_t>> Select(const std::vector<storage::CellRecord>& cells,
                                             const Operand& operand, absl::string_view field) const;

 private:
  // Maps axis and label to their text in a cell's name, for axes that aren't tuned.
  std::map<std::pair<std::string, std::string>, std::string> parts_;
};

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_OPERAND_H_
