// Decides about a comparison for a program that acts on it: keep a change, drop it, or go on. Pure
// functions, safe from any thread.
#ifndef ABLATE_SERVER_REPORT_COMPARE_GATE_H_
#define ABLATE_SERVER_REPORT_COMPARE_GATE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/compare/comparison.h"
#include "server/report/compare/statistics.h"

namespace ablate::report {

// Number of changes for which the levels of a session are planned.
inline constexpr size_t kPlannedChanges = 100;

struct GateOptions {
  // Decide by the test at any look, because the gate is asked again after further pairs.
  bool looks = false;
  // Rows are changes of one session, each with a one-sided level of its own (LevelOfChange).
  // Includes `looks`.
  bool session = false;
  double level = kAlpha;             // of the comparison or the session, at most kAlpha
  std::vector<std::string> changes;  // that the session has judged, in order
};

enum class GateDecision {
  kBetter,     // some row is established better
  kNotShown,   // none is, some row isn't worse either, and further pairs aren't worth it
  kWorse,      // every row is established worse
  kCannotSay,  // none is better, and more pairs are needed before one can be
};

struct Gate {
  GateDecision decision = GateDecision::kCannotSay;
  std::string text;       // one sentence
  size_t more_pairs = 0;  // the fewest with which an undecided row could be established; 0: unknown
  std::string next;  // undecided row with the most evidence for "better"; empty if there is none
  std::vector<std::string> changes;  // as in GateOptions, with this comparison's rows
};

// Decides about all rows that are compared. At any look p is Holm-adjusted over the rows; in a
// session their levels replace that.
Gate DecideGate(const Comparison& comparison, const GateOptions& options);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_COMPARE_GATE_H_
