// Finds the tensors of a GPT-2 model in its files: one safetensors file, or shards and their index.
// Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_FILES_H_
#define ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_FILES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/safetensors.h"
#include "server/engine/gpt2.h"

namespace ablate::engine {

inline constexpr char kGpt2TensorsName[] = "model.safetensors";

// In front of most tensors' names, unless the file is of the model without a head.
inline constexpr char kGpt2Prefix[] = "transformer.";

struct Gpt2Tensor {
  absl::string_view file;  // its name
  TensorView view;         // with its name in the file
};

struct Gpt2Files {
  absl::string_view config;  // bytes of config.json
  // By name without "transformer."; views into the files.
  absl::flat_hash_map<std::string, Gpt2Tensor> tensors;
};

// Returns INVALID_ARGUMENT if files are missing, repeated or malformed, if they and their index
// disagree, or if a tensor is there under both of its names.
absl::StatusOr<Gpt2Files> OpenGpt2Files(absl::Span<const FileView> files);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_PRETRAINED_GPT2_FILES_H_
