// Reads stored families of metrics for the figures over depth and over levels.
#ifndef ABLATE_SERVER_RESULTS_FAMILIES_H_
#define ABLATE_SERVER_RESULTS_FAMILIES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/lookup/cancelled.h"
#include "server/report/figure/family.h"
#include "server/results/analyzed.h"
#include "server/results/compare.h"
#include "server/results/series.h"
#include "storage/store.h"

namespace ablate::results {

// Returns the values of `family` for each row's converged runs at `step`, or by default at the last
// step that all of the row's runs with the family share. Holds only the points at that step of each
// series; of those that determine the steps, two series at a time. INVALID_ARGUMENT in field `step`
// if some run has the family, but none at that step; RESOURCE_EXHAUSTED if there are more than
// kMaxFamilyValues. Blocks on the store.
absl::StatusOr<std::vector<figure::FamilySetting>> ReadFamily(
    storage::Store* store, const ComparedGrid& compared, figure::Along along,
    const std::string& family, std::optional<uint32_t> step, const lookup::Cancelled& cancelled);

// Returns those of the families that a report shows which some run has. By block: those recorded by
// training, and for each label of a gradient analysis the most informative one. By level: the
// increase of the loss under each perturbation.
absl::StatusOr<std::vector<std::string>> ReportedFamilies(storage::Store* store,
                                                          const std::string& experiment,
                                                          const LabelledResults& results,
                                                          figure::Along along);

// Returns the family that a figure draws by default: the `usual` one, or if no run has that, the
// first that a report shows, or else the first of all. The usual one if there is none.
absl::StatusOr<std::string> DefaultFamily(storage::Store* store, const std::string& experiment,
                                          const LabelledResults& results, figure::Along along,
                                          const std::string& usual);

// Returns INVALID_ARGUMENT in field `key` for a family that no run has; names the existing ones. If
// it wasn't `asked` for but is the default, and there are no others, returns OK.
absl::Status CheckKnownFamily(storage::Store* store, const std::string& experiment,
                              figure::Along along, const std::string& family, bool asked);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_FAMILIES_H_
