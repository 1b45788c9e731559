// Watches an experiment on a live screen.
#ifndef ABLATE_CLIENT_FOLLOW_SCREEN_H_
#define ABLATE_CLIENT_FOLLOW_SCREEN_H_

#include <ostream>
#include <string>

#include "ablate/v1/comparison.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/context.h"

namespace ablate::client {

// Does what FollowWithProgress does, on a screen; leaves the leader board and the verdict behind.
absl::StatusOr<v1::Experiment> FollowOnScreen(Connection* connection, const Context& context,
                                              const v1::Experiment& experiment, std::ostream* out);

// Returns the text for Ctrl-C.
std::string HowToComeBack(const v1::Experiment& experiment);

// Compares the settings of an ended experiment, with the verdict. FAILED_PRECONDITION if it was
// cancelled.
absl::StatusOr<v1::Comparison> CompareEnded(Connection* connection,
                                            const v1::Experiment& experiment);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_FOLLOW_SCREEN_H_
