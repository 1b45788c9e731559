// Defines which runs the native backend trains. Torch-free and without kernels; the server links
// it, too.
#ifndef ABLATE_SERVER_ENGINE_CORE_SUPPORTS_H_
#define ABLATE_SERVER_ENGINE_CORE_SUPPORTS_H_

#include <string>

#include "server/engine/config.h"

namespace ablate::engine {

// Returns why the native backend doesn't train a run, as a clause that names the setting; empty if
// it does.
std::string WhyNotNative(const RunConfig& config);

// Does the same for the forward and backward passes of a run's model, whatever trained it.
std::string WhyNoNativePass(const RunConfig& config);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_SUPPORTS_H_
