// Reads and writes GPT-2 models in the files of Hugging Face's transformers: config.json, and
// model.safetensors or its shards. Torch-free.
//
// The models are those of GPT2LMHeadModel, and variants of them: RMSNorm instead of LayerNorm, and
// norms left out of all attention sublayers, of all feed-forward sublayers or before the head. A
// LayerNorm has a weight and a bias, or a weight only; an RMSNorm has a weight only; a norm that is
// left out has no tensors. The member "ablate" of config.json, which WriteGpt2 adds, keeps the kind
// and the sites of the norms.
#ifndef ABLATE_SERVER_ENGINE_GPT2_H_
#define ABLATE_SERVER_ENGINE_GPT2_H_

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
struct Gpt2Overrides {
  std::optional<NormKind> norm_kind;  // kLayer or kRms, for norms with a weight only
  std::optional<double> dropout;      // if embd_pdrop, attn_pdrop and resid_pdrop differ
};

struct ImportedModel {
  ModelConfig model;
  std::vector<float> parameters;   // [P] in the order of MakeLayout(model); finite
  std::vector<std::string> notes;  // sentences about inferred and given settings
};

// Reads config.json and either one *.safetensors file, or the shards that
// model.safetensors.index.json names; other files are ignored. Tensors may be F16, BF16, F32 or
// F64; F64 is rounded to nearest. Every tensor must be the model's, apart from the masks attn.bias
// and attn.masked_bias. Returns INVALID_ARGUMENT with file, field or tensor, value and what is
// allowed. Never reads a pickle. Needs 4 bytes of memory per parameter.
absl::StatusOr<ImportedModel> ReadGpt2(absl::Span<const FileView> files,
                                       const Gpt2Overrides& overrides);

// Returns config.json and model.safetensors, F32. `parameters` are in the order of
// MakeLayout(model). ReadGpt2 returns the same model and bits. GPT2LMHeadModel loads the files if
// the model has LayerNorms with weight and bias at all sites; for other norms the files name an
// architecture of their own, which transformers refuses to load as a plain GPT-2. Returns
// INVALID_ARGUMENT with the field if GPT-2 lacks another property of the model, and with the tensor
// if a value isn't finite.
absl::StatusOr<std::vector<NamedFile>> WriteGpt2(const ModelConfig& model,
                                                 absl::Span<const float> parameters);

// Returns the files of a checkpoint (core/checkpoint.h) of a model that was trained by `rule`. F64
// is rounded to nearest. Feedback matrices are left out.
absl::StatusOr<std::vector<NamedFile>> ExportCheckpoint(const ModelConfig& model, LearningRule rule,
                                                        absl::string_view checkpoint);

// Returns the bytes of a checkpoint of an imported model, at step 0.
absl::StatusOr<std::string> ImportedCheckpoint(const ImportedModel& imported);

// Returns the logits [T, V] after each of T tokens, 1 ≤ T ≤ context, or [V] after the last.
// Computed in float64 from the files' own tensors, by loops that share no code with the engine's
// passes, to validate an import; on the calling thread.
enum class Gpt2Positions { kAll, kLast };
absl::StatusOr<std::vector<double>> Gpt2Logits(absl::Span<const FileView> files,
                                               const Gpt2Overrides& overrides,
                                               absl::Span<const int64_t> tokens,
                                               Gpt2Positions positions);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_GPT2_H_
