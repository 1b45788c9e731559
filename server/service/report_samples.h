// The samples of a report: what the models of each setting write.
#ifndef ABLATE_SERVER_SERVICE_REPORT_SAMPLES_H_
#define ABLATE_SERVER_SERVICE_REPORT_SAMPLES_H_

#include <optional>

#include "server/report/html/page.h"
#include "server/service/backend.h"
#include "server/service/compare.h"

namespace ablate::service {

// What the spec's `analyses` ask for, from one run a setting: the one of the lowest seed that
// converged. Nothing if they ask for no samples; a setting without samples says why. Blocks on the
// store and on the worker for analyses.
std::optional<html::Samples> ReportSamples(const Backend& backend, const ComparedGrid& compared,
                                           const Cancelled& cancelled);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_REPORT_SAMPLES_H_
