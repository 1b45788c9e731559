// Explains a filter that no run meets by the values that runs have.
#ifndef ABLATE_CLIENT_NEAR_VALUES_H_
#define ABLATE_CLIENT_NEAR_VALUES_H_

#include <string>
#include <vector>

#include "ablate/v1/run.pb.h"
#include "client/connection.h"

namespace ablate::client {

// Returns a sentence about each comparison of the request's filter that no run meets, with the
// nearest values that there are. Asks the server twice per comparison, about four of them at most.
std::vector<std::string> NearValues(Connection* connection, const v1::ListRunsRequest& request);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_NEAR_VALUES_H_
