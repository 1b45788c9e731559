// RenderTable: a comparison's main table as a file.
#ifndef ABLATE_SERVER_SERVICE_RENDER_TABLE_H_
#define ABLATE_SERVER_SERVICE_RENDER_TABLE_H_

#include "ablate/v1/report.pb.h"
#include "absl/status/status.h"
#include "server/service/trained_grid.h"

namespace ablate::service {

// Errors as CompareGrid's; RESOURCE_EXHAUSTED for a table larger than kPageBytes. Blocks on the
// store.
absl::Status RenderTable(storage::Store* store, const v1::RenderTableRequest& request,
                         const Cancelled& cancelled, v1::RenderTableResponse* response);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_RENDER_TABLE_H_
