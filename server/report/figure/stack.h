// Stacks figures of one kind, one per label of an analysis, into one picture. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_STACK_H_
#define ABLATE_SERVER_REPORT_FIGURE_STACK_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/figure/kinds.h"

namespace ablate::figure {

struct LabelledDrawing {
  std::string label;
  Drawing drawing;
};

inline constexpr size_t kMaxStacked = 6;

// Places the drawings, 1 to kMaxStacked of one width, one below another, each with its label as a
// heading; a single one stays as it is. Joins their CSV below one head. FAILED_PRECONDITION, naming
// the field `key`, if their heads differ.
absl::StatusOr<Drawing> Stack(std::vector<LabelledDrawing> drawings);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_STACK_H_
