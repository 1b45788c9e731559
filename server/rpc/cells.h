// The cells of an experiment, however many there are.
#ifndef ABLATE_SERVER_RPC_CELLS_H_
#define ABLATE_SERVER_RPC_CELLS_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace ablate::rpc {

// What is done with a page of them: whether to go on.
using CellVisitor = absl::FunctionRef<absl::StatusOr<bool>(std::vector<storage::CellRecord> page)>;

// Reads the cells of `experiment`, an id that there is, in the grid's order and gives them to
// `visit`, kCellsAtOnce at a time, until it returns false or an error, which is then the result.
absl::Status VisitCells(storage::Store* store, absl::string_view experiment, CellVisitor visit);

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_CELLS_H_
