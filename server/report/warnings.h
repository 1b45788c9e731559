// What a reader of a comparison must know before believing it.
#ifndef ABLATE_SERVER_REPORT_WARNINGS_H_
#define ABLATE_SERVER_REPORT_WARNINGS_H_

#include <vector>

#include "server/report/comparison.h"
#include "server/report/grid.h"
#include "server/report/row.h"
#include "server/report/selection.h"

namespace ablate::report {

// At most one warning a kind, and for the grid's edge one a tuned axis and row. `selections`,
// `runs` and `comparison.rows` are by grid row. Pure.
std::vector<Warning> FindWarnings(const ComparisonInput& input, const Grid& grid,
                                  const std::vector<Selection>& selections,
                                  const std::vector<std::vector<PickedRun>>& runs,
                                  const Comparison& comparison);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_WARNINGS_H_
