// Describes imported models in words.
#ifndef ABLATE_CLIENT_OUTPUT_MODEL_TEXT_H_
#define ABLATE_CLIENT_OUTPUT_MODEL_TEXT_H_

#include <string>

#include "ablate/v1/model.pb.h"

namespace ablate::client {

// Returns the kind of the norms and their sites: "layer (attention, feed-forward, final)", or
// "none".
std::string NormText(const v1::ModelSpec& model);

// Returns the lines of `ablate model show` about the model itself.
std::string ModelText(const v1::Model& model);

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_OUTPUT_MODEL_TEXT_H_
