// Draws figures of a compared experiment: one as data, or all of a report.
#ifndef ABLATE_SERVER_RESULTS_FIGURES_H_
#define ABLATE_SERVER_RESULTS_FIGURES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/lookup/cancelled.h"
#include "server/report/figure/kinds.h"
#include "server/report/figure/layout.h"
#include "server/report/html/page.h"
#include "server/results/compare.h"
#include "storage/store.h"

namespace ablate::results {

struct FigureOptions {
  // The key of the curves, the family of metrics, or the analysis's label; "": the kind's own.
  std::string key;
  std::optional<uint32_t> step;  // for families and analyses; default: the last one
  double width = figure::kColumnWidth;
};

// Draws the figure as data. Reads the curves setting by setting, so that one setting's curves bound
// the memory; RESOURCE_EXHAUSTED if those have more than kMaxCurvePoints. Errors as ReadFamily's,
// LabelledResults::Read's and figure::Draw's. Blocks on the store.
absl::StatusOr<figure::Drawing> DrawFigure(storage::Store* store, const ComparedGrid& compared,
                                           const figure::Kind& kind, const FigureOptions& options,
                                           const lookup::Cancelled& cancelled);

// Draws all figures that the comparison allows; a figure that can't be drawn has the reason
// instead. Reads each curve once for all figures, one setting's at a time. The pictures' names
// begin with `prefix` and are distinct in a page. Errors: the store's, and CANCELLED. Blocks on the
// store.
absl::StatusOr<std::vector<html::Figure>> ReportFigures(storage::Store* store,
                                                        const ComparedGrid& compared,
                                                        const std::string& prefix,
                                                        const lookup::Cancelled& cancelled);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_FIGURES_H_
