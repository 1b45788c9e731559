// Stored metrics by block, read for the figure over depth.
#ifndef ABLATE_SERVER_RESULTS_DEPTH_H_
#define ABLATE_SERVER_RESULTS_DEPTH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/figure/depth.h"
#include "server/results/analysed.h"
#include "server/results/compare.h"
#include "server/results/series.h"
#include "server/rpc/cancelled.h"
#include "storage/store.h"

namespace ablate::results {

// The values of `family` of each row's converged runs at `step`, or without one at the last step
// that all of the row's runs have which have the family at all. Of a series only the points at that
// step are held; of block.0, which says what steps there are, two at a time.
// INVALID_ARGUMENT in field `step` if some run has the family, but none at that step;
// RESOURCE_EXHAUSTED if there are more than kMaxBlockValues. Blocks on the store.
absl::StatusOr<std::vector<figure::DepthSetting>> ReadDepth(storage::Store* store,
                                                            const ComparedGrid& compared,
                                                            const std::string& family,
                                                            std::optional<uint32_t> step,
                                                            const rpc::Cancelled& cancelled);

// Those of the families that a report shows which some run of the experiment has: of what training
// recorded, and of each label of an analysis of gradients the most telling one.
absl::StatusOr<std::vector<std::string>> ReportedFamilies(storage::Store* store,
                                                          const std::string& experiment,
                                                          const LabelledResults& results);

// INVALID_ARGUMENT in field `key`: no run has the family; names those that there are.
absl::Status NoSuchFamily(storage::Store* store, const std::string& experiment,
                          const std::string& family);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_DEPTH_H_
