#include "server/rpc/page.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/reflect/text.h"
#include "server/rpc/errors.h"
#include "server/rpc/limits.h"

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

absl::Status NotAPageToken(absl::string_view token) {
  return InvalidField("page_token",
                      absl::StrCat(reflect::Quoted(token), " does not belong to this list"),
                      "next_page_token of an answer to the same list, while its last row exists");
}

absl::StatusOr<uint32_t> PageSize(uint32_t asked, uint32_t fallback) {
  if (asked > kMaxPageSize) {
    return InvalidField("page_size", absl::StrCat(asked, " is too large"),
                        absl::StrCat("0 (the default) to ", kMaxPageSize));
  }
  return asked == 0 ? fallback : asked;
}

std::string PageToken(absl::string_view list, absl::string_view position) {
  return absl::WebSafeBase64Escape(absl::StrCat(list, "|", position));
}

absl::StatusOr<std::string> PagePosition(absl::string_view list, absl::string_view token) {
  if (token.empty()) return std::string();
  std::string plain;
  absl::string_view position;
  if (token.size() <= kMaxPageTokenBytes && absl::WebSafeBase64Unescape(token, &plain)) {
    position = plain;
  }
  if (!absl::ConsumePrefix(&position, absl::StrCat(list, "|")) || position.empty()) {
    return NotAPageToken(token);
  }
  return std::string(position);
}

}  // namespace ablate::rpc
