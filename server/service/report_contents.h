// A compared experiment as a report says it.
#ifndef ABLATE_SERVER_SERVICE_REPORT_CONTENTS_H_
#define ABLATE_SERVER_SERVICE_REPORT_CONTENTS_H_

#include <string>

#include "ablate/v1/comparison.pb.h"
#include "absl/status/statusor.h"
#include "server/report/html/page.h"
#include "server/service/compare.h"
#include "storage/store.h"

namespace ablate::service {

// Everything but figures and samples. `request` is what `compared` answers. Blocks on the store for
// the data sets.
absl::StatusOr<html::Experiment> ReportContents(storage::Store* store, const ComparedGrid& compared,
                                                const v1::CompareRequest& request);

// `ablate report …` as a shell would have to be told.
std::string ReportCommand(const v1::CompareRequest& request);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_REPORT_CONTENTS_H_
