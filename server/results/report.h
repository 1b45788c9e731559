// Describes a stored experiment for a report.
#ifndef ABLATE_SERVER_RESULTS_REPORT_H_
#define ABLATE_SERVER_RESULTS_REPORT_H_

#include <string>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "absl/status/statusor.h"
#include "server/lookup/cancelled.h"
#include "server/report/html/page.h"
#include "server/results/trained_grid.h"
#include "server/schedule/analyses.h"
#include "storage/store.h"

namespace ablate::results {

// Services that reports are made with; all are thread-safe.
struct ReportSources {
  storage::Store* store = nullptr;
  schedule::Analyses* analyses = nullptr;  // makes samples: may be null if no spec asks for them
};

// Returns the content of a page about one experiment, compared as `request` says. Figure names
// begin with `prefix`; its commands write to `output`, as ReportCommand's. Errors as CompareGrid's;
// a figure that can't be drawn or samples that can't be made aren't errors. Blocks on the store and
// on the worker for analyses.
absl::StatusOr<html::Experiment> DescribeExperiment(
    const ReportSources& sources, StoredExperiment stored, const v1::CompareRequest& request,
    const std::string& output, const std::string& prefix, const lookup::Cancelled& cancelled);

// Returns the `ablate report` command, quoted for a shell, that makes the page of these
// experiments, compared as `request` says. It writes to `output`, or to report.html if that is
// empty.
std::string ReportCommand(const std::vector<std::string>& experiments,
                          const v1::CompareRequest& request, const std::string& output);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_REPORT_H_
