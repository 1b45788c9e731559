// Shows the owners of experiments, data sets and analyses, if there may be more than one.
#ifndef ABLATE_CLIENT_OUTPUT_OWNERS_H_
#define ABLATE_CLIENT_OUTPUT_OWNERS_H_

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "google/protobuf/repeated_field.h"

namespace ablate::client {

// Returns "mia", or "mia, private"; a dash without an owner.
template <class Row>
std::string OwnerText(const Row& row) {
  return absl::StrCat(row.owner().empty() ? "—" : row.owner(), row.private_() ? ", private" : "");
}

// Returns true if the list should show an owner column. On a local server it should not if all rows
// have one owner and are public.
template <class Row>
bool ShowsOwners(const Connection& connection,
                 const google::protobuf::RepeatedPtrField<Row>& rows) {
  return connection.is_elsewhere() ||
         std::any_of(rows.begin(), rows.end(), [&rows](const Row& row) {
           return row.private_() || row.owner() != rows.begin()->owner();
         });
}

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_OWNERS_H_
