#include "server/lookup/page.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"

namespace ablate::lookup {

absl::Status VisitCells(storage::Store* store, absl::string_view experiment, CellVisitor visit) {
  uint32_t next = 0;
  while (true) {
    ASSIGN_OR_RETURN(auto page, store->ListCells(experiment, next, kCellsAtOnce));
    const auto size = static_cast<uint32_t>(page.size());
    if (size == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool more, visit(std::move(page)));
    if (!more || size < kCellsAtOnce) return absl::OkStatus();
    next += size;
  }
}

absl::Status NotAPageToken(absl::string_view token) {
  return InvalidField("page_token",
                      absl::StrCat(reflect::Quoted(token), " does not belong to this list"),
                      "next_page_token of an answer to the same list, while its last row exists");
}

std::string PageToken(absl::string_view list, absl::string_view position) {
  return absl::WebSafeBase64Escape(absl::StrCat(list, "|", position));
}

absl::StatusOr<Page> ReadPage(uint32_t page_size, absl::string_view page_token,
                              absl::string_view list, uint32_t fallback) {
  if (page_size > kMaxPageSize) {
    return InvalidField("page_size", absl::StrCat(page_size, " is too large"),
                        absl::StrCat("0 (the default) to ", kMaxPageSize));
  }
  Page page{page_size == 0 ? fallback : page_size, ""};
  if (page_token.empty()) return page;
  std::string plain;
  absl::string_view position;
  if (page_token.size() <= kMaxPageTokenBytes && absl::WebSafeBase64Unescape(page_token, &plain)) {
    position = plain;
  }
  if (!absl::ConsumePrefix(&position, absl::StrCat(list, "|")) || position.empty()) {
    return NotAPageToken(page_token);
  }
  page.position = std::string(position);
  return page;
}

}  // namespace ablate::lookup
