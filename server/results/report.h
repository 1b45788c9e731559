// A stored experiment as a report says it.
#ifndef ABLATE_SERVER_RESULTS_REPORT_H_
#define ABLATE_SERVER_RESULTS_REPORT_H_

#include <string>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "absl/status/statusor.h"
#include "server/report/html/page.h"
#include "server/results/trained_grid.h"
#include "server/rpc/cancelled.h"
#include "server/schedule/analyses.h"
#include "storage/store.h"

namespace ablate::results {

// What reports are made with; all of it is thread-safe.
struct ReportSources {
  storage::Store* store = nullptr;
  schedule::Analyses* analyses = nullptr;  // of samples: may be null where no spec asks for them
};

// Everything that a page says about one experiment, compared as `request` says; its figures' names
// begin with `prefix`, and its commands write to `output`, as ReportCommand's. Errors as
// CompareGrid's; figures that can't be drawn, or samples that can't be had, are none. Blocks on the
// store and on the worker for analyses.
absl::StatusOr<html::Experiment> DescribeExperiment(
    const ReportSources& sources, StoredExperiment stored, const v1::CompareRequest& request,
    const std::string& output, const std::string& prefix, const rpc::Cancelled& cancelled);

// Returns the `ablate report` command that makes the page of these experiments, compared as
// `request` says, as a shell reads it. It writes to the file `output`; if that is empty, to
// report.html.
std::string ReportCommand(const std::vector<std::string>& experiments,
                          const v1::CompareRequest& request, const std::string& output);

}  // namespace ablate::results

#endif  // ABLATE_SERVER_RESULTS_REPORT_H_
