// The defaults that a spec leaves unsaid, written out.
#ifndef ABLATE_SERVER_SPEC_DEFAULTS_H_
#define ABLATE_SERVER_SPEC_DEFAULTS_H_

#include "ablate/v1/spec.pb.h"

namespace ablate::spec {

// Sets every absent field that applies (fields.h), betas where the optimizer has them, the device
// (auto becomes cuda or cpu), and the checkpoints in ascending order with −1 last, each once. Does
// so again without effect.
void FillDefaults(bool cuda, v1::BaseSpec* base);

}  // namespace ablate::spec

#endif  // ABLATE_SERVER_SPEC_DEFAULTS_H_
