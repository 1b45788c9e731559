// Reads and writes models in the files of Hugging Face's transformers: config.json, and
// model.safetensors or its shards. Torch-free.
//
// The families are GPT-2, Llama, Qwen2, Qwen3 and GPT-NeoX with their heads for language modelling
// (core/pretrained/family.h). Of GPT-2 there are variants, too: RMSNorm instead of LayerNorm, and
// norms left out of all attention sublayers, of all feed-forward sublayers or before the head. A
// LayerNorm has a weight and a bias, or a weight only; an RMSNorm has a weight only; a norm that is
// left out has no tensors. The member "ablate" of config.json, which WritePretrained adds, keeps
// what the family's own members can't.
#ifndef ABLATE_SERVER_ENGINE_PRETRAINED_H_
#define ABLATE_SERVER_ENGINE_PRETRAINED_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/config.h"

namespace ablate::engine {

// A file to read; `bytes` is owned by the caller.
struct FileView {
  std::string name;  // without its folder
  absl::string_view bytes;
};

// A file to write.
struct NamedFile {
  std::string name;
  std::string bytes;
};

// Settings that the files may leave open. One that contradicts the files is refused.
struct ImportOverrides {
  std::optional<NormKind> norm_kind;  // kLayer or kRms, for norms of a GPT-2 with a weight only
  std::optional<double> dropout;      // if the probabilities of config.json differ
};

struct ImportedModel {
  ModelConfig model;
  std::string family;              // "gpt2", "llama", …: model_type of config.json
  std::vector<float> parameters;   // [P] in the order of MakeLayout(model); finite
  std::vector<std::string> notes;  // sentences about inferred and given settings
};

// Reads config.json and either one *.safetensors file, or the shards that
// model.safetensors.index.json names; other files are ignored. Tensors may be F16, BF16, F32 or
// F64; F64 is rounded to nearest. Every tensor must be the model's, apart from constants that old
// files have. A context above the largest of a model is shortened, where positions are rotary.
// Returns INVALID_ARGUMENT with file, field or tensor, value and what is allowed. Never reads a
// pickle. Needs 4 bytes of memory per parameter.
absl::StatusOr<ImportedModel> ReadPretrained(absl::Span<const FileView> files,
                                             const ImportOverrides& overrides);

// Returns config.json and model.safetensors, F32, of the family that can hold the model.
// `parameters` are in the order of MakeLayout(model). ReadPretrained returns the same model and
// bits. transformers loads the files, unless they are a variant of GPT-2: those name an
// architecture of their own, which it refuses to load as a plain GPT-2. Returns INVALID_ARGUMENT
// with the field that keeps the model out of the most similar family, and with the tensor if a
// value isn't finite.
absl::StatusOr<std::vector<NamedFile>> WritePretrained(const ModelConfig& model,
                                                       absl::Span<const float> parameters);

// Returns the files of a checkpoint (core/checkpoint.h) of a model that was trained by `rule`. F64
// is rounded to nearest. Feedback matrices are left out.
absl::StatusOr<std::vector<NamedFile>> ExportCheckpoint(const ModelConfig& model, LearningRule rule,
                                                        absl::string_view checkpoint);

// Returns the bytes of a checkpoint of an imported model, at step 0.
absl::StatusOr<std::string> ImportedCheckpoint(const ImportedModel& imported);

// Returns the logits [T, V] after each of T tokens, 1 ≤ T ≤ context, or [V] after the last, of a
// model of one of the families. Computed in float64 by loops that share no code with the engine's
// passes, to validate an import; on the calling thread.
enum class LogitPositions { kAll, kLast };
absl::StatusOr<std::vector<double>> PlainLogits(const ImportedModel& imported,
                                                absl::Span<const int64_t> tokens,
                                                LogitPositions positions);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_PRETRAINED_H_
