// Watches analyses until they have ended, through restarts of the server, and returns their
// outcome.
#ifndef ABLATE_CLIENT_FOLLOW_ANALYSES_H_
#define ABLATE_CLIENT_FOLLOW_ANALYSES_H_

#include <string>
#include <vector>

#include "ablate/v1/analysis.pb.h"
#include "absl/status/status.h"
#include "client/connection.h"
#include "client/context.h"
#include "client/output/analysis_text.h"

namespace ablate::client {

bool HasEnded(const v1::Analysis& analysis);

// Waits until each has ended and stores it in its place. Prints progress on standard error. A
// server that went away gets time as in KeepWatching.
absl::Status FollowAnalyses(Connection* connection, const Context& context, const std::string& kind,
                            std::vector<LabelledAnalysis>* analyses);

// Returns kFailure if one FAILED, kCancelled if one was cancelled, otherwise kSuccess.
int ExitCodeOf(const std::vector<LabelledAnalysis>& analyses);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_FOLLOW_ANALYSES_H_
