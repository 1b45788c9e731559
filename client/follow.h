// Watches an experiment until it has ended, through restarts of the server, and prints its outcome.
#ifndef ABLATE_CLIENT_FOLLOW_H_
#define ABLATE_CLIENT_FOLLOW_H_

#include <functional>
#include <ostream>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/context.h"

namespace ablate::client {

// Runs one watch; calls `alive` after each message of the server. UNAVAILABLE if there is more to
// come.
using WatchOnceFunction = std::function<absl::Status(const std::function<void()>& alive)>;

// Watches again until a watch is OK or fails for good. A server that went away, or has no room for
// a watch, gets 60 s from when it was missed.
absl::Status KeepWatching(const Context& context, const WatchOnceFunction& watch_once);

using OnEvent = std::function<void(const v1::ExperimentEvent&)>;

// Returns the experiment when every run has ended. Uses KeepWatching: each watch continues after
// the one before, or from the current state if its position expired.
absl::StatusOr<v1::Experiment> Follow(Connection* connection, const Context& context,
                                      const v1::Experiment& experiment, const OnEvent& on_event);

// Does the same with progress on `out`, live if that is a terminal.
absl::StatusOr<v1::Experiment> FollowWithProgress(Connection* connection, const Context& context,
                                                  const v1::Experiment& experiment,
                                                  std::ostream* out, bool live);

// Returns kFailure if a run FAILED, kCancelled if the experiment or a run was cancelled, otherwise
// kSuccess.
int ExitCodeOf(const v1::Experiment& experiment);

// Prints why waiting failed; returns the exit code for it, which ExitCodeOf never returns.
int FailToWait(const Context& context, const absl::Status& status);

// Prints a line about the outcome, with the commands to examine failed runs.
void PrintOutcome(const Context& context, const v1::Experiment& experiment);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_FOLLOW_H_
