// The figures of a report.
#ifndef ABLATE_SERVER_SERVICE_REPORT_FIGURES_H_
#define ABLATE_SERVER_SERVICE_REPORT_FIGURES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "server/report/html/page.h"
#include "server/service/backend.h"
#include "server/service/compare.h"

namespace ablate::service {

// What can be drawn of the comparison; a figure that can't says why in its place. Blocks on the
// store and on gnuplot.
absl::StatusOr<std::vector<html::Figure>> ReportFigures(const Backend& backend,
                                                        const ComparedGrid& compared,
                                                        const Cancelled& cancelled);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_REPORT_FIGURES_H_
