// Parts of sentences about a compared row, which verdicts and headlines are made of. Pure
// functions.
#ifndef ABLATE_SERVER_REPORT_COMPARE_PHRASES_H_
#define ABLATE_SERVER_REPORT_COMPARE_PHRASES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/decision.h"

namespace ablate::report {

// `row` is compared with a baseline, and one of the comparison's rows.

// “pre”.
std::string BaselineLabel(const Comparison& comparison, const ComparisonRow& row);

// "held-out loss".
std::string MetricText(const Comparison& comparison);

// "higher by .031 [.024, .038]" of a row that is decided, leans, or is exploratory; else signed, or
// a ratio: "×1.02 [.97, 1.07]".
std::string DifferenceText(const Comparison& comparison, const ComparisonRow& row);

// The same of a row at shared tuned values, which is not judged: with a direction where its
// interval leaves out 0. Its difference has a mean.
std::string MatchedText(Scale scale, const ComparisonRow& matched);

// "“post” diverged on 3 of 12 seeds, “pre” on 0".
std::string DivergedText(const ComparisonRow& row, const std::string& baseline);

// "over 12 seeds", or which of them could be subtracted.
std::string OverText(const ComparisonRow& row, const std::string& baseline);

// ", each at its chosen lr", or whose choice that was; "" where nothing is tuned.
std::string TunedText(const Comparison& comparison);

// "lr .004", or how many of a row's seeds chose which: "lr .002 (6/12), .004 (6/12)". Without
// `axes` the values alone. "" where nothing is tuned.
std::string ChosenText(const ComparisonRow& row, const std::vector<std::string>& axes = {});

// " with Holm over 2 rows"; "" of one row.
std::string FamilyText(size_t family);

// "held-out loss higher by .031 [.024, .038] over 12 seeds, each at its chosen lr".
std::string MeasuredText(const Comparison& comparison, const ComparisonRow& row);

// The same, or where there is no difference who diverged.
std::string SeenText(const Comparison& comparison, const ComparisonRow& row);

// What the row's test was made on.
std::string EvidenceText(const Comparison& comparison, const ComparisonRow& row,
                         const Decision& decision);

// "p = .016 with Holm over 2 rows, the least that 8 pairs allow".
std::string EstablishedText(const Comparison& comparison, const ComparisonRow& row);

// "smaller than .01 either way (p = .003 with Holm over 2 rows)", "within a factor of 1.1 either
// way …"; the comparison has a margin.
std::string EquivalentText(const Comparison& comparison, const ComparisonRow& row);

// "5 pairs cannot reach p < .05 in a sign-flip test, so this rests on roughly normal differences
// (t-test, p = .003); 6 seeds would let the sign-flip test decide".
std::string ProbableText(const Comparison& comparison, const ComparisonRow& row);

// The same of all such rows together, for where each has its p beside it: "probably: so few pairs
// cannot reach …". "" where there is none.
std::string ProbableNote(const Comparison& comparison);

// "24 of 60 runs, “pre” 60 of 60": how many runs of a row and of its baseline have ended.
std::string ProgressText(const Comparison& comparison, const ComparisonRow& row);

// "p = .078 with Holm over 2 rows", "p = .188"; "" without one.
std::string AdjustedText(const Comparison& comparison, const ComparisonRow& row);

// "not shown to be smaller than .01 either way (p = .3 with Holm over 2 rows)", of a row that is
// not equivalent; "" without a margin or such a p.
std::string NotEquivalentText(const Comparison& comparison, const ComparisonRow& row);

// What more seeds would do for a row that is not decided: "the least difference that 12 seeds would
// find with 80 % power is .009; the difference seen takes about 105 seeds (40 to 1,000)". A test
// that chooses tuned values again has less power than that of the differences, which is what is
// known.
std::string PowerText(const Comparison& comparison, const ComparisonRow& row);

// A number of seeds to two digits: no more of it is known.
size_t RoundedSeeds(size_t seeds);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_PHRASES_H_
