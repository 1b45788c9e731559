// The windows that a spec asks for (report.summaries), read for the rows of a comparison.
#ifndef ABLATE_SERVER_SERVICE_ROW_WINDOWS_H_
#define ABLATE_SERVER_SERVICE_ROW_WINDOWS_H_

#include "absl/status/statusor.h"
#include "server/report/compare/windows.h"
#include "server/service/trained_grid.h"

namespace ablate::service {

// Over each row's own converged runs. Reads one curve at a time, none if no window is asked for.
// `rows` are CellsOfRows'. Damaged curves are left out and told. Blocks on the store.
absl::StatusOr<report::RowWindows> ReadRowWindows(storage::Store* store, const TrainedGrid& grid,
                                                  const report::Comparison& comparison,
                                                  const std::vector<std::vector<size_t>>& rows,
                                                  const Cancelled& cancelled, Damages* damages);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_ROW_WINDOWS_H_
