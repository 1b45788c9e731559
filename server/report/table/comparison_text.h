// A comparison as people read it on a terminal.
#ifndef ABLATE_SERVER_REPORT_TABLE_COMPARISON_TEXT_H_
#define ABLATE_SERVER_REPORT_TABLE_COMPARISON_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "server/report/comparison.h"
#include "server/report/window_summary.h"

namespace ablate::report {

// How many runs have ended, where that is not all; the brief table, the note about matched values,
// the verdict, the warnings and the windows, each on lines of its own. Fit for a terminal. `at` is
// the step that the metric was read at, if it was not the end.
std::string ComparisonText(const Comparison& comparison, const RowWindows& windows,
                           std::optional<uint32_t> at);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_COMPARISON_TEXT_H_
