// Judges one float32 update of each backend by PyTorch's in float64.
//
// Both begin from the state that PyTorch's run has before the update, so that no rounding is
// amplified by earlier ones. An error is measured in the unit that reference.py gives of each
// tensor: what float32's roundings must be expected to do to it, by Monte Carlo arithmetic
// (rounding.py). Where terms cancel, as in a gradient that a norm takes away, the unit is that of
// the terms: what is 0 in exact arithmetic needs no looser bound, and no processor decides.
#ifndef ABLATE_TESTS_PARITY_UPDATE_JUDGE_H_
#define ABLATE_TESTS_PARITY_UPDATE_JUDGE_H_

#include <map>
#include <string>
#include <vector>

#include "tests/parity/grid.h"

namespace ablate::engine {

// An error of more units is a fault.
inline constexpr double kMostUnits = 12;

// One backend's errors.
struct UpdateTally {
  int cases = 0;
  std::vector<double> errors;  // of each tensor, in its unit

  // Their root mean square.
  double MeanError() const;
  // The share of errors of more than so many units.
  double Beyond(double units) const;
  double Worst() const;
};

struct UpdateVerdict {
  std::string missing;   // why nothing could be judged: no Python, no torch
  std::string failures;  // a line each
  std::map<std::string, UpdateTally>
      tallies;  // by backend: "native" where it trains the case, "torch"
};

UpdateVerdict JudgeUpdates(const std::vector<GridCase>& cases);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_PARITY_UPDATE_JUDGE_H_
