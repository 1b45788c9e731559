// Makes tables of a comparison: for people, in short, and for programs; and its text for a
// terminal. Pure functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_TABLE_COMPARISON_TABLES_H_
#define ABLATE_SERVER_REPORT_TABLE_COMPARISON_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/compare/comparison.h"
#include "server/report/compare/finding.h"
#include "server/report/compare/windows.h"
#include "server/report/table/table.h"

namespace ablate::report {

// Returns the main table of the page, of text and of LaTeX: settings, parameters, chosen values, n,
// diverged, mean and difference with intervals, p values, effect, wins, correlation, costs. Columns
// in which no row has a text are left out, except settings, n, diverged, mean and difference.
// While runs have not ended its note counts them, and so does the brief table's.
Table MainTable(const Comparison& comparison);

// Ids of the main table's columns after the settings.
inline constexpr absl::string_view kMainColumns[] = {
    "parameters",       "chosen", "n",      "diverged", "mean",        "difference",
    "p_sign_flip",      "p_holm", "effect", "wins",     "correlation", "device_seconds",
    "tokens_per_second"};

// Returns a table of the first column and, in this order, those of the ids that it has.
Table WithColumns(const Table& table, const std::vector<std::string>& ids);

// Returns the columns of the main table that fit a terminal: settings with their chosen values, n
// if it differs, mean without its interval, difference, Holm's p, wins, diverged. The first title
// names the metric, its step and the tuned axes.
Table BriefTable(const Comparison& comparison);

// Returns a column for each shared combination of tuned values, of a long table the reference
// alone: differences, and the means of baselines.
Table MatchedTable(const Comparison& comparison);

// Returns the number of seeds for which each tuned value was selected: a group of columns per tuned
// axis, from the lowest to the highest selected value. Only settings if each axis has one selected
// value, or nothing is tuned.
Table SelectionTable(const Comparison& comparison);

// Returns a column for each window: mean and interval over the converged runs of each setting.
Table WindowTable(const Comparison& comparison, const RowWindows& windows);

// Returns main effects, then interactions, of crossed axes; p values only if nothing is tuned.
Table FactorialTable(const Comparison& comparison);

// Returns every number in its shortest decimal that reads back, empty if undefined; titles are
// fixed names, and an axis of such a name becomes axis_NAME. docs/reference/comparison.md lists
// them.
Table DataTable(const Comparison& comparison);

// Returns the title of an axis whose own name another column has: axis_NAME.
std::string AxisColumn(const std::string& axis);

// Returns the number of ended runs, unless all have ended, then the brief table, the note about
// matched values, the verdict, the warnings and the windows, each on lines of its own. Fit for a
// terminal.
std::string ComparisonText(const Comparison& comparison, const std::vector<Finding>& findings,
                           const RowWindows& windows);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_COMPARISON_TABLES_H_
