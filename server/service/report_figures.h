// The figures of a report.
#ifndef ABLATE_SERVER_SERVICE_REPORT_FIGURES_H_
#define ABLATE_SERVER_SERVICE_REPORT_FIGURES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/report/figure/gnuplot.h"
#include "server/report/html/page.h"
#include "server/service/compare.h"
#include "storage/store.h"

namespace ablate::service {

struct FigureWish {
  figure::Gnuplot* gnuplot = nullptr;
  std::string prefix;  // of the figures' names, distinct in a page
};

// What can be drawn of the comparison; a figure that can't be drawn says why in its place. Each
// curve is read once for all figures, one setting's at a time; pictures are drawn side by side on
// the machine's cores. Errors: the store's, and CANCELLED. Blocks.
absl::StatusOr<std::vector<html::Figure>> ReportFigures(storage::Store* store,
                                                        const ComparedGrid& compared,
                                                        const FigureWish& wish,
                                                        const Cancelled& cancelled);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_REPORT_FIGURES_H_
