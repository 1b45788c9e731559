// Reads lists page by page: sizes and tokens of the pages of answers, and an experiment's cells.
#ifndef ABLATE_SERVER_LOOKUP_PAGE_H_
#define ABLATE_SERVER_LOOKUP_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace ablate::lookup {

// Number of cells that are read from the store at once.
inline constexpr uint32_t kCellsAtOnce = 1'000;

// Processes a page of cells; returns false to stop.
using CellVisitor = absl::FunctionRef<absl::StatusOr<bool>(std::vector<storage::CellRecord> page)>;

// Reads the cells of `experiment`, an existing id, in the grid's order and passes them to `visit`,
// kCellsAtOnce at a time, until it returns false or an error. Returns that error.
absl::Status VisitCells(storage::Store* store, absl::string_view experiment, CellVisitor visit);

// Rows of a page if the request names no size.
inline constexpr uint32_t kDefaultPage = 100;

// Selects rows of a list: at most `size` after `position`, which is empty for the first page.
struct Page {
  uint32_t size = 0;
  std::string position;
};

// Parses a request's page_size (`fallback` if 0) and page_token for `list`. INVALID_ARGUMENT if the
// size exceeds kMaxPageSize or the token doesn't belong to this list.
absl::StatusOr<Page> ReadPage(uint32_t page_size, absl::string_view page_token,
                              absl::string_view list, uint32_t fallback);
template <class Request>
absl::StatusOr<Page> ReadPage(const Request& request, absl::string_view list, uint32_t fallback) {
  return ReadPage(request.page_size(), request.page_token(), list, fallback);
}

// Returns an opaque token for the rows of `list` after `position`.
std::string PageToken(absl::string_view list, absl::string_view position);

// Returns INVALID_ARGUMENT about an invalid page token.
absl::Status NotAPageToken(absl::string_view token);

// Counts the bytes left in an answer.
class Room {
 public:
  explicit Room(size_t bytes) : bytes_(bytes) {}
  // Returns true if a row of so many bytes still fits; the first always does.
  bool Take(size_t bytes) {
    const bool fits = used_ == 0 || used_ + bytes <= bytes_;
    if (fits) used_ += bytes;
    return fits;
  }

 private:
  const size_t bytes_;
  size_t used_ = 0;
};

}  // namespace ablate::lookup

#endif  // ABLATE_SERVER_LOOKUP_PAGE_H_
