// Watches analyses until they have ended, through restarts of the server, and says how they ended.
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

// Waits until each has ended, which is then in its place, with progress on standard error. A server
// that went away is given time as by KeepWatching.
absl::Status FollowAnalyses(Connection* connection, const Context& context, const std::string& kind,
                            std::vector<LabelledAnalysis>* analyses);

// kFailure if one FAILED, kCancelled if one was cancelled, else kSuccess.
int ExitCodeOf(const std::vector<LabelledAnalysis>& analyses);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_FOLLOW_ANALYSES_H_
