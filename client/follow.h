// Watches an experiment until it has ended, through restarts of the server, and prints its outcome.
#ifndef ABLATE_CLIENT_FOLLOW_H_
#define ABLATE_CLIENT_FOLLOW_H_

#include <functional>
#include <ostream>

#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/context.h"

namespace ablate::client {

// Runs one watch; calls `alive` after each message of the server. UNAVAILABLE if there is more to
// come.
using WatchOnceFunction = std::function<absl::Status(const std::function<void()>& alive)>;

// Takes the reason before each new try; `lost` is when the server was first missed.
using OnAway = std::function<void(const absl::Status& reason, absl::Time lost)>;

// Time that a server gets to come back.
inline constexpr absl::Duration kMaxTimeAway = absl::Seconds(60);

// Watches again until a watch is OK or fails for good. A server that went away, or has no room for
// a watch, gets kMaxTimeAway from when it was missed. Without `on_away`, prints a note if it is
// away for long.
absl::Status KeepWatching(const Context& context, const WatchOnceFunction& watch_once,
                          const OnAway& on_away = nullptr);

using OnEvent = std::function<void(const v1::ExperimentEvent&)>;

// Returns the experiment when every run has ended. Uses KeepWatching. Events have snapshots.
absl::StatusOr<v1::Experiment> Follow(Connection* connection, const Context& context,
                                      const v1::Experiment& experiment, const OnEvent& on_event,
                                      const OnAway& on_away = nullptr);

// Does the same with the events of cells. Each watch continues after the one before, or from the
// current state if its position expired.
absl::StatusOr<v1::Experiment> FollowCells(Connection* connection, const Context& context,
                                           const v1::Experiment& experiment,
                                           const OnEvent& on_event);

// Does the same as Follow with progress on `out`, which is the console's: a screen if `live`,
// otherwise lines. At the end, shows the verdict.
absl::StatusOr<v1::Experiment> FollowWithProgress(Connection* connection, const Context& context,
                                                  const v1::Experiment& experiment,
                                                  std::ostream* out, bool live);

// Returns kFailure if a run FAILED, kCancelled if the experiment or a run was cancelled, otherwise
// kSuccess.
int ExitCodeOf(const v1::Experiment& experiment);

// Prints why waiting failed; returns the exit code for it, which ExitCodeOf never returns.
int FailToWait(const Context& context, const absl::Status& status);

// Prints the outcome, or why waiting failed; returns the exit code of `wait` and `watch`.
int FinishWait(const Context& context, Connection* connection,
               const absl::StatusOr<v1::Experiment>& ended);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_FOLLOW_H_
