// Watches an experiment until it has ended, through restarts of the server, and says how it ended.
#ifndef ABLATE_CLIENT_FOLLOW_H_
#define ABLATE_CLIENT_FOLLOW_H_

#include <functional>
#include <ostream>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/context.h"

namespace ablate::client {

// One watch; calls `alive` whenever the server says something. UNAVAILABLE if there is more to
// come.
using WatchOnceFunction = std::function<absl::Status(const std::function<void()>& alive)>;

// Watches again and again until that is OK or fails for good. A server that went away, or has no
// room for a watch, is given 60 s from when it was missed.
absl::Status KeepWatching(const Context& context, const WatchOnceFunction& watch_once);

using OnEvent = std::function<void(const v1::ExperimentEvent&)>;

// The experiment as it is when every run has ended, by KeepWatching: each watch goes on where the
// one before was, or from the start if the server has forgotten where that is.
absl::StatusOr<v1::Experiment> Follow(Connection* connection, const Context& context,
                                      const v1::Experiment& experiment, const OnEvent& on_event);

// Follow with progress on `out`, live if that is a terminal.
absl::StatusOr<v1::Experiment> FollowWithProgress(Connection* connection, const Context& context,
                                                  const v1::Experiment& experiment,
                                                  std::ostream* out, bool live);

// kFailure if a run FAILED, kCancelled if the experiment or a run was cancelled, else kSuccess.
int ExitCodeOf(const v1::Experiment& experiment);

// Says why waiting failed; the result is the exit code for it, which is none of ExitCodeOf.
int FailToWait(const Context& context, const absl::Status& status);

// A line about how it ended, with what to do about failed runs.
void PrintOutcome(const Context& context, const v1::Experiment& experiment);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_FOLLOW_H_
