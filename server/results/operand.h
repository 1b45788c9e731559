// What a comparison or a diff names: an experiment, or a part of one. EXP/PART is a cell
// (post-lr0.01-s42), the cells of all its seeds (post-lr0.01), or those of all tuned values, too
// (post).
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
#include "server/rpc/names.h"
#include "storage/records.h"

namespace ablate::results {

struct Operand {
  std::string experiment;  // its whole id
  std::string part;        // "" of all of it
};

// `name` is `experiments/ID` or an ID, or the beginning of one, with /PART behind it or not. Errors
// as rpc::FindExperiment's, in `field`. Whether there is such a part, PartNames knows.
absl::StatusOr<Operand> FindOperand(const rpc::View& view, absl::string_view name,
                                    absl::string_view field);

// "names-norm-7f3k/post"; the experiment alone without a part.
std::string OperandName(const std::string& experiment, absl::string_view part);

// What parts of an experiment are called.
class PartNames {
 public:
  explicit PartNames(const v1::ExperimentSpec& spec);

  // Of a cell: its name without the seed, and without the tuned values, too. Each is "" where
  // nothing is left.
  static std::string Combination(const storage::CellRecord& cell);
  std::string Setting(const storage::CellRecord& cell) const;

  // The indexes of the cells that `part` names, all of "". INVALID_ARGUMENT in `field` says what
  // there is.
  absl::StatusOr<std::vector<size_t>> Select(const std::vector<storage::CellRecord>& cells,
                                             const Operand& operand, absl::string_view field) const;

 private:
  // By axis and label what stands for it in a cell's name; of axes that are not tuned.
  std::map<std::pair<std::string, std::string>, std::string> parts_;
};

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_OPERAND_H_
