// Compares one float32 update of each backend with PyTorch's in float64.
//
// Both start from the state of PyTorch's run before the update, so that earlier updates amplify no
// rounding error. An error is measured in a unit that reference.py computes for each tensor: the
// expected effect of float32 rounding on it, by Monte Carlo arithmetic (rounding.py). If terms
// cancel, as in a gradient that a norm removes, the unit is that of the terms. A result that is 0
// in exact arithmetic therefore needs no looser bound, and the processor makes no difference.
#ifndef ABLATE_TESTS_PARITY_UPDATE_CHECK_H_
#define ABLATE_TESTS_PARITY_UPDATE_CHECK_H_

#include <map>
#include <string>
#include <vector>

#include "tests/parity/grid.h"

namespace ablate::engine {

// A larger error, in units, is a failure.
inline constexpr double kMaxUnits = 16;  // the largest of the grid is 13

// The errors of one backend.
struct UpdateTally {
  int cases = 0;
  std::vector<double> errors;  // of each tensor, in its unit

  // Returns their root mean square.
  double MeanError() const;
  // Returns the fraction of errors above `units`.
  double Beyond(double units) const;
  double Worst() const;
};

struct UpdateCheck {
  std::string missing;   // why nothing could be checked: no Python, no torch
  std::string failures;  // one per line
  std::map<std::string, UpdateTally>
      tallies;  // by backend: "native" if it supports the case, "torch"
};

UpdateCheck CheckUpdates(const std::vector<GridCase>& cases);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_PARITY_UPDATE_CHECK_H_
