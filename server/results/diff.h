// Lists the differences between two experiments, parts of them, or runs.
#ifndef ABLATE_SERVER_RESULTS_DIFF_H_
#define ABLATE_SERVER_RESULTS_DIFF_H_

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "server/lookup/cancelled.h"
#include "server/lookup/names.h"
#include "server/results/series.h"

namespace ablate::results {

// Compares the two operands' specs and provenance. Errors as FindOperand's and PartNames::Select's,
// in `left` and `right`. Blocks on the store.
absl::StatusOr<v1::DiffExperimentsResponse> Diff(const lookup::View& view,
                                                 const v1::DiffExperimentsRequest& request,
                                                 const lookup::Cancelled& cancelled);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_DIFF_H_
