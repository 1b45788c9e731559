// Lists that the server hands out page by page, as one.
#ifndef ABLATE_CLIENT_PAGES_H_
#define ABLATE_CLIENT_PAGES_H_

#include <utility>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace ablate::client {

// The rows of all pages from `request`'s on, in one response without a token; `call` fetches a
// page.
template <typename Response, typename Row, typename Request, typename Call>
absl::StatusOr<Response> AllPages(google::protobuf::RepeatedPtrField<Row>* (Response::*rows)(),
                                  Request request, const Call& call) {
  Response all;
  do {
    absl::StatusOr<Response> page = call(request);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
    for (Row& row : *((*page).*rows)()) *(all.*rows)()->Add() = std::move(row);
  } while (!request.page_token().empty());
  return all;
}

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_PAGES_H_
