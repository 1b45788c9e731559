// Finds the warnings that a reader of a comparison needs before believing it.
#ifndef ABLATE_SERVER_REPORT_COMPARE_WARNINGS_H_
#define ABLATE_SERVER_REPORT_COMPARE_WARNINGS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::report {

struct CellGrid;
struct Comparison;
struct ComparisonInput;
struct Selection;

enum class WarningKind {
  kScoredDifferently,
  kMissingCells,
  kFailedCells,
  kNonFiniteValues,
  kUnbalancedSeeds,
  kTooFewSeeds,
  kNoBaseline,
  kUnequalParameters,
  kSeveralChanges,
  kMixedProvenance,
  kContendedThroughput,
  kGridEdge,
  kTunedOnSameSeed,
  kDamagedRuns,
  kSeveralExperiments,
  kNotPositive,
  kOtherCandidates,
  kHighStart,
  kSeedsAdded,
  kNotBySequence,
  kSkewedDifferences,
  kUnequalNoise,
  kManyTies,
};

struct Warning {
  WarningKind kind;
  std::string text;  // one sentence without its full stop
};

// Returns a kind's name in a few words: "unequal seeds".
absl::string_view WarningName(WarningKind kind);

// Returns at most one warning per kind, and for the grid's edge one per tuned axis and row.
// `selections` and `comparison.rows` are by grid row. Pure.
std::vector<Warning> FindWarnings(const ComparisonInput& input, const CellGrid& grid,
                                  const std::vector<Selection>& selections,
                                  const Comparison& comparison);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_WARNINGS_H_
