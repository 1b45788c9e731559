// Metrics by block of a setting's seeds at one step, for the kind `depth`.
#ifndef ABLATE_SERVER_REPORT_FIGURE_DEPTH_H_
#define ABLATE_SERVER_REPORT_FIGURE_DEPTH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::figure {

// One run's values by position: 0 is the embedding, i + 1 is block.i. They may be non-finite.
struct DepthSeed {
  uint32_t seed = 0;
  std::map<uint32_t, double> values;
};

// A row of the comparison.
struct DepthSetting {
  std::string label;
  size_t style = 0;              // index of its colour (StyleOf)
  std::optional<uint32_t> step;  // step of the values; none: no values at the requested step
  std::vector<DepthSeed> seeds;  // converged ones with points at the step
  size_t converged = 0;          // number of all its runs
  size_t diverged = 0;           // likewise; they are in no mean
};

// A family of metrics by block is the common part of their keys: `gradient` for gradient/block.0,
// gradient/block.1 and so on. If more follows the block, block.* stands for it, as in
// norm_jacobian/r_radial/block.*.attention_norm.

// Returns the family's metric at a position: "gradient/embedding", "gradient/block.0".
std::string KeyAt(absl::string_view family, uint32_t position);

// Returns the position at which `key` is the family's metric; nothing if it isn't one.
std::optional<uint32_t> PositionOf(absl::string_view family, absl::string_view key);

// Returns the family whose first block's metric is `key`; nothing if it isn't such a metric.
std::optional<std::string> FamilyOf(absl::string_view key);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_DEPTH_H_
