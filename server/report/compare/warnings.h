// What a reader of a comparison must know before believing it.
#ifndef ABLATE_SERVER_REPORT_COMPARE_WARNINGS_H_
#define ABLATE_SERVER_REPORT_COMPARE_WARNINGS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/grid.h"
#include "server/report/compare/selection.h"

namespace ablate::report {

// At most one warning a kind, and for the grid's edge one a tuned axis and row. `selections`
// and `comparison.rows` are by grid row. Pure.
std::vector<Warning> FindWarnings(const ComparisonInput& input, const CellGrid& grid,
                                  const std::vector<Selection>& selections,
                                  const Comparison& comparison);

// What a kind is about, in a few words: "unequal seeds".
absl::string_view WarningName(WarningKind kind);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_WARNINGS_H_
