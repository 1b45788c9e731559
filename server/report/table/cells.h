// Cells of the numbers of a comparison, a function for each kind. Pure functions.
#ifndef ABLATE_SERVER_REPORT_TABLE_CELLS_H_
#define ABLATE_SERVER_REPORT_TABLE_CELLS_H_

#include <cstddef>
#include <string>

#include "server/report/compare/comparison.h"
#include "server/report/table/table.h"

namespace ablate::report {

// What does not exist is a dash with the reason as its note.

// "2.437 [2.42, 2.45]" with the decimals of its column, by DecimalsIn; of a mean without an
// interval the note says why.
TableCell MeanCell(const Number& mean, const Interval& interval, int decimals = -1,
                   Scale scale = Scale::kDifference);

// The same of a sample; the note counts the runs that have a value if some do not: "4 of 6 runs".
TableCell SampleCell(const Summary& over, size_t left_out, int decimals = -1);

// "+.031 [+.024, +.038]", "×1.42 [1.31, 1.55]".
TableCell DifferenceCell(Scale scale, const PairedStatistics& difference, int decimals = -1);

// ".031", "<.001", "≈.012" if not `exact`.
TableCell PCell(const Number& p, bool exact);

// A number about pairs with two decimals, and with a sign if asked for.
TableCell PairNumberCell(const Number& number, bool sign);

// Three significant digits.
TableCell NumberCell(const Number& number);

// Adds to the cell's note.
void AddNote(TableCell* cell, std::string note);

// Returns the name of what the rows are compared with: "pre", or the labels that all baselines
// share; "baseline" if they share none.
std::string BaselineName(const Comparison& comparison);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_CELLS_H_
