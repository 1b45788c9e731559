// A number that may not exist: its value, or the reason why there is none.
#ifndef ABLATE_SERVER_REPORT_NUMBER_H_
#define ABLATE_SERVER_REPORT_NUMBER_H_

#include <limits>

#include "absl/strings/string_view.h"

namespace ablate::report {

// Why a statistic does not exist. Never averaged away, never printed as 0 or NaN.
enum class Undefined {
  kNo,                 // it exists
  kTooFewRuns,         // fewer values than the statistic needs
  kTooFewPairs,        // fewer seeds with both runs than the statistic needs
  kZeroVariance,       // all values equal, up to the rounding of the numbers they come from
  kNonFinite,          // a value, or the result, is infinite or not a number
  kAllDiverged,        // no seed on which all the runs in question converged
  kNoBaseline,         // the grid has no baseline to compare with
  kIsBaseline,         // the baseline is not compared with itself
  kBeyondLimit,        // larger than what is searched
  kNotRecorded,        // no run carries it
  kScoredDifferently,  // the runs in question are scored on different data
};

// The name that scripts read, e.g. "TOO_FEW_PAIRS"; "" for kNo.
absl::string_view UndefinedName(Undefined undefined);

struct Number {
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN where undefined
  Undefined undefined = Undefined::kTooFewRuns;

  bool defined() const { return undefined == Undefined::kNo; }
};

// Ends of an interval, low <= high; both NaN where undefined.
struct Interval {
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
  Undefined undefined = Undefined::kTooFewRuns;

  bool defined() const { return undefined == Undefined::kNo; }
};

// `value` as a Number; kNonFinite if it is not finite.
Number Defined(double value);

// [low, high]; kNonFinite if an end is not finite.
Interval DefinedInterval(double low, double high);

// No number, for `reason`, which is not kNo.
Number NoNumber(Undefined reason);
Interval NoInterval(Undefined reason);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_NUMBER_H_
