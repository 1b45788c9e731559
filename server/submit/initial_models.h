// Finds the models that experiments begin with (model_from).
#ifndef ABLATE_SERVER_SUBMIT_INITIAL_MODELS_H_
#define ABLATE_SERVER_SUBMIT_INITIAL_MODELS_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/experiment/resolution.h"
#include "server/lookup/names.h"

namespace ablate::submit {

// Returns the model that `name` means for an experiment that is private to `private_to`, or public
// if empty: models/NAME, an imported model, or EXPERIMENT/CELL, the last checkpoint of a run that
// is done. INVALID_ARGUMENT, NOT_FOUND or FAILED_PRECONDITION with a sentence. Blocks on the store.
absl::StatusOr<spec::ModelFacts> FindInitialModel(const lookup::View& view,
                                                  const std::string& private_to,
                                                  const std::string& name);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_INITIAL_MODELS_H_
