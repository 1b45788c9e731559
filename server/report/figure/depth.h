// Metrics by block of a setting's seeds at one step: what the kind `depth` draws.
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
  std::optional<uint32_t> step;  // at which the values are; none: there are none at a wanted step
  std::vector<DepthSeed> seeds;  // that converged and have points at the step
  size_t converged = 0;          // of all its runs
  size_t diverged = 0;           // likewise; they are in no mean
};

// A family of metrics by block is what their keys have in common: `gradient` of gradient/block.0,
// gradient/block.1 and so on, or with block.* in the place of the block what has more behind it,
// such as norm_jacobian/r_radial/block.*.attention_norm.

// The metric of a family at a position: "gradient/embedding", "gradient/block.0".
std::string KeyAt(absl::string_view family, uint32_t position);

// The position that `key` is the family's metric at; nothing if it is none of the family.
std::optional<uint32_t> PositionOf(absl::string_view family, absl::string_view key);

// The family that the key is the first block's metric of; nothing if it is no such metric.
std::optional<std::string> FamilyOf(absl::string_view key);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_DEPTH_H_
