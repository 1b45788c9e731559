// Finds out which model the files of a GPT-2 hold, and checks their tensors. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_SOURCE_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_SOURCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/core/pretrained/gpt2_files.h"
#include "server/engine/gpt2.h"

namespace ablate::engine {

struct Gpt2Source {
  ModelConfig model;
  Gpt2Files files;  // has every tensor of the model, in its shape
  std::vector<std::string> notes;
};

// Reads config and tensors' headers. Returns INVALID_ARGUMENT if a tensor is unknown, missing or of
// another shape, and if the kind of norm stays open. Values aren't read, apart from a comparison of
// lm_head with wte.
absl::StatusOr<Gpt2Source> ReadGpt2Source(absl::Span<const FileView> files,
                                          const Gpt2Overrides& overrides);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_SOURCE_H_
