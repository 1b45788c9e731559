// Families of metrics, whose keys differ in one number, for the kinds `depth` and `levels`: their
// keys, and the values of a setting's seeds at one step. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_FAMILY_H_
#define ABLATE_SERVER_REPORT_FIGURE_FAMILY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/compare/metric_names.h"

namespace ablate::figure {

// The number in which a family's keys differ. It is the place on the x axis.
enum class Along {
  kBlocks,  // blocks passed: 0 is the embedding, i + 1 is block.i
  kLevels,  // level of a perturbation
};

// One run's values by place. They may be non-finite.
struct FamilySeed {
  uint32_t seed = 0;
  std::map<double, double> values;
};

// A row of the comparison.
struct FamilySetting {
  std::string label;
  size_t style = 0;               // index of its colour (StyleOf)
  std::optional<uint32_t> step;   // step of the values; none: no values at the requested step
  std::vector<FamilySeed> seeds;  // converged ones with points at the step
  size_t converged = 0;           // number of all its runs
  size_t diverged = 0;            // likewise; they are in no mean
};

// A family by block is the common part of its keys: `gradient` for gradient/block.0,
// gradient/block.1 and so on. If more follows the block, block.* stands for it, as in
// norm_jacobian/r_radial/block.*.attention_norm. In a family by level @* stands for the level, as
// in robustness/replace_words@*/increase for robustness/replace_words@0.1/increase and so on.

// Returns the family's metric at a place: "gradient/embedding", "gradient/block.0".
std::string KeyAt(Along along, absl::string_view family, double place);

// Returns the place at which `key` is the family's metric; nothing if it isn't one.
std::optional<double> PlaceOf(Along along, absl::string_view family, absl::string_view key);

// Returns the family of `key`; nothing if it has none. Of a family by block only the first block's
// metric has it.
std::optional<std::string> FamilyOf(Along along, absl::string_view key);

// Returns the perturbation of a family by level: "replace_words". "" if the family has no @*.
std::string PerturbationOf(absl::string_view family);

// Returns "gradient norm", "increase of loss under replace_words".
std::string FamilyText(Along along, absl::string_view family, report::MetricSource source);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_FAMILY_H_
