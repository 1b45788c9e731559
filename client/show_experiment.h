// Prints an experiment: question, state, result per setting, and the commands that come next.
#ifndef ABLATE_CLIENT_SHOW_EXPERIMENT_H_
#define ABLATE_CLIENT_SHOW_EXPERIMENT_H_

#include "ablate/v1/experiment.pb.h"
#include "absl/status/status.h"
#include "client/connection.h"
#include "client/context.h"

namespace ablate::client {

// Reads the experiment's runs and prints it to the console's `out`.
absl::Status ShowExperiment(const Context& context, Connection* connection,
                            const v1::Experiment& experiment);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SHOW_EXPERIMENT_H_
