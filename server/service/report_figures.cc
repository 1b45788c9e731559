// The figures of a report.
#include "server/service/report_figures.h"

namespace ablate::service {

absl::StatusOr<std::vector<html::Figure>> ReportFigures(const Backend&, const ComparedGrid&,
                                                        const Cancelled&) {
  return std::vector<html::Figure>();
}

}  // namespace ablate::service
