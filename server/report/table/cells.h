// Makes cells of the numbers of a comparison, with a function for each kind. Pure functions.
#ifndef ABLATE_SERVER_REPORT_TABLE_CELLS_H_
#define ABLATE_SERVER_REPORT_TABLE_CELLS_H_

#include <cstddef>
#include <string>

#include "server/report/compare/comparison.h"
#include "server/report/table/table.h"

namespace ablate::report {

// An undefined number is a dash with the reason as its note.

// Returns "2.437 [2.42, 2.45]" with the decimals of its column, by DecimalsIn; for a mean without
// an interval the note has the reason.
TableCell MeanCell(const Number& mean, const Interval& interval, int decimals = -1,
                   Scale scale = Scale::kDifference);

// The same for a sample; if some runs have no value the note counts the others: "4 of 6 runs".
TableCell SampleCell(const Summary& over, size_t left_out, int decimals = -1);

// Returns "+0.031 [+0.024, +0.038]", "×1.42 [1.31, 1.55]".
TableCell DifferenceCell(Scale scale, const PairedStatistics& difference, int decimals = -1);

// Returns "0.031", "<0.001", "≈0.012" if not `exact`.
TableCell PCell(const Number& p, bool exact);

// Returns a number about pairs with two decimals, and with a sign if requested.
TableCell PairNumberCell(const Number& number, bool sign);

// Returns a number with three significant digits.
TableCell NumberCell(const Number& number);

// Adds to the cell's note.
void AddNote(TableCell* cell, std::string note);

// Returns the name of the rows' baseline: "pre", or the labels that all baselines share; "baseline"
// if they share none.
std::string BaselineName(const Comparison& comparison);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_TABLE_CELLS_H_
