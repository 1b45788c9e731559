// Finds the tensors of a pretrained model in its files: one safetensors file, or shards and their
// index. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_TENSOR_FILES_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_TENSOR_FILES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/safetensors.h"
#include "server/engine/pretrained.h"

namespace ablate::engine {

inline constexpr char kTensorsName[] = "model.safetensors";

struct FileTensor {
  absl::string_view file;  // its name
  TensorView view;         // with its name in the file
};

struct TensorFiles {
  absl::string_view config;  // bytes of config.json
  // By name without the prefix of a family; views into the files.
  absl::flat_hash_map<std::string, FileTensor> tensors;
};

// Returns INVALID_ARGUMENT if files are missing, repeated or malformed, if they and their index
// disagree, or if a tensor is there under both of its names.
absl::StatusOr<TensorFiles> OpenTensorFiles(absl::Span<const FileView> files);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_TENSOR_FILES_H_
