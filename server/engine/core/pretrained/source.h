// Finds out which model the files of a pretrained model hold, and checks their tensors. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_SOURCE_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_SOURCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/config.h"
#include "server/engine/core/pretrained/family.h"
#include "server/engine/core/pretrained/tensor_files.h"
#include "server/engine/pretrained.h"

namespace ablate::engine {

struct PretrainedSource {
  const Family* family;
  ModelConfig model;
  TensorFiles files;  // has every tensor of the model, in its shape
  std::vector<std::string> notes;
};

// Reads config and tensors' headers. Returns INVALID_ARGUMENT if a tensor is unknown, missing or of
// another shape, and if a setting stays open. Values aren't read, apart from a comparison of the
// head with the embedding.
absl::StatusOr<PretrainedSource> ReadSource(absl::Span<const FileView> files,
                                            const ImportOverrides& overrides);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_SOURCE_H_
