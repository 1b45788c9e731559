// A model's description as it is written into checkpoints.
#ifndef ABLATE_SERVER_ENGINE_MODEL_MODEL_JSON_H_
#define ABLATE_SERVER_ENGINE_MODEL_MODEL_JSON_H_

#include <string>

#include "server/engine/config.h"

namespace ablate::engine {

// Every field of the model as JSON, and under "norm_sites" the norm of each site by name ("layer",
// "rms" or "none"): a site without a norm must stay one wherever the parameters are loaded.
std::string ModelJson(const ModelConfig& model);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_MODEL_MODEL_JSON_H_
