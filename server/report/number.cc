// Names of the reasons, and the only places where a Number or an Interval is made.
#include "server/report/number.h"

#include <cmath>

namespace ablate::report {

absl::string_view UndefinedName(Undefined undefined) {
  switch (undefined) {
    case Undefined::kNo:
      return "";
    case Undefined::kTooFewRuns:
      return "TOO_FEW_RUNS";
    case Undefined::kTooFewPairs:
      return "TOO_FEW_PAIRS";
    case Undefined::kZeroVariance:
      return "ZERO_VARIANCE";
    case Undefined::kNonFinite:
      return "NON_FINITE";
    case Undefined::kAllDiverged:
      return "ALL_DIVERGED";
    case Undefined::kNoBaseline:
      return "NO_BASELINE";
    case Undefined::kIsBaseline:
      return "IS_BASELINE";
    case Undefined::kBeyondLimit:
      return "BEYOND_LIMIT";
    case Undefined::kNotRecorded:
      return "NOT_RECORDED";
    case Undefined::kScoredDifferently:
      return "SCORED_DIFFERENTLY";
  }
  return "";
}

Number Defined(double value) {
  if (!std::isfinite(value)) return NoNumber(Undefined::kNonFinite);
  return {value, Undefined::kNo};
}

Interval DefinedInterval(double low, double high) {
  if (!std::isfinite(low) || !std::isfinite(high)) return NoInterval(Undefined::kNonFinite);
  return {low, high, Undefined::kNo};
}

Number NoNumber(Undefined reason) {
  Number none;
  none.undefined = reason;
  return none;
}

Interval NoInterval(Undefined reason) {
  Interval none;
  none.undefined = reason;
  return none;
}

}  // namespace ablate::report
