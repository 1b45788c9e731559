// A comparison as tables: for people, in short, and for programs; and as a terminal shows it. Pure
// functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_TABLE_COMPARISON_TABLES_H_
#define ABLATE_SERVER_REPORT_TABLE_COMPARISON_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "server/report/compare/comparison.h"
#include "server/report/compare/windows.h"
#include "server/report/table/table.h"

namespace ablate::report {

// The report's main table: settings, parameters, chosen values, n, diverged, mean and difference
// with intervals, p values, effect, wins, correlation, costs. Columns without a cell are left out.
// While runs have not ended its note says how many, and so does the brief table's.
Table MainTable(const Comparison& comparison);

// What fits a terminal: settings with what was chosen, n where it is not the same for all, mean,
// difference, Holm's p, wins, diverged.
// The first title says the metric, at which step, and that each setting has the values chosen for
// it.
Table BriefTable(const Comparison& comparison);

// Settings and their windows, mean and interval; no columns without windows.
Table WindowTable(const Comparison& comparison, const RowWindows& windows);

// Every number in its shortest decimal that reads back, empty where undefined; titles are fixed
// names, and an axis of such a name is called axis_NAME. docs/comparison.md lists them.
Table DataTable(const Comparison& comparison);

// Returns the title of an axis whose own name another column has: axis_NAME.
std::string AxisColumn(const std::string& axis);

// Main effects, then interactions, of crossed axes; without columns where there are none.
Table FactorialTable(const Comparison& comparison);

// How many runs have ended, where that is not all; the brief table, the note about matched values,
// the verdict, the warnings and the windows, each on lines of its own. Fit for a terminal.
std::string ComparisonText(const Comparison& comparison, const RowWindows& windows);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_COMPARISON_TABLES_H_
