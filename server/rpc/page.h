// Pages: of lists that are answered, their size and the token that leads to the next; and of an
// experiment's cells, as they are read.
#ifndef ABLATE_SERVER_RPC_PAGE_H_
#define ABLATE_SERVER_RPC_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace ablate::rpc {

// Cells that are read from the store at once.
inline constexpr uint32_t kCellsAtOnce = 1'000;

// What is done with a page of them: whether to go on.
using CellVisitor = absl::FunctionRef<absl::StatusOr<bool>(std::vector<storage::CellRecord> page)>;

// Reads the cells of `experiment`, an id that there is, in the grid's order and gives them to
// `visit`, kCellsAtOnce at a time, until it returns false or an error, which is then the result.
absl::Status VisitCells(storage::Store* store, absl::string_view experiment, CellVisitor visit);

// The rows of a page whose request names no size.
inline constexpr uint32_t kDefaultPage = 100;

// Which rows of a list are asked for: at most `size` of those after `position`, which is empty for
// the first page.
struct Page {
  uint32_t size = 0;
  std::string position;
};

// Returns the page of `list` that is asked for, by a request's page_size, `fallback` if it is 0,
// and page_token. INVALID_ARGUMENT if the size is over kMaxPageSize, or the token is none of this
// list's.
absl::StatusOr<Page> ReadPage(uint32_t page_size, absl::string_view page_token,
                              absl::string_view list, uint32_t fallback);
template <class Request>
absl::StatusOr<Page> ReadPage(const Request& request, absl::string_view list, uint32_t fallback) {
  return ReadPage(request.page_size(), request.page_token(), list, fallback);
}

// An opaque token for the rows of `list` after `position`.
std::string PageToken(absl::string_view list, absl::string_view position);

// INVALID_ARGUMENT about such a token.
absl::Status NotAPageToken(absl::string_view token);

// Bytes left in an answer.
class Room {
 public:
  explicit Room(size_t bytes) : bytes_(bytes) {}
  // Whether a row of so many bytes still fits; the first always does.
  bool Take(size_t bytes) {
    const bool fits = used_ == 0 || used_ + bytes <= bytes_;
    if (fits) used_ += bytes;
    return fits;
  }

 private:
  const size_t bytes_;
  size_t used_ = 0;
};

}  // namespace ablate::rpc

#endif  // ABLATE_SERVER_RPC_PAGE_H_
