#include "server/rpc/cells.h"

#include <cstdint>
#include <utility>

#include "server/rpc/page.h"

namespace ablate::rpc {

absl::Status VisitCells(storage::Store* store, absl::string_view experiment, CellVisitor visit) {
  uint32_t next = 0;
  while (true) {
    auto page = store->ListCells(experiment, next, kCellsAtOnce);
    if (!page.ok()) return page.status();
    const auto size = static_cast<uint32_t>(page->size());
    if (size == 0) return absl::OkStatus();
    const absl::StatusOr<bool> more = visit(*std::move(page));
    if (!more.ok()) return more.status();
    if (!*more || size < kCellsAtOnce) return absl::OkStatus();
    next += size;
  }
}

}  // namespace ablate::rpc
