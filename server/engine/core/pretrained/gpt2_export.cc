// Writes a model's parameters as GPT-2 files.
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/safetensors.h"
#include "base/status_macros.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/pretrained/float_values.h"
#include "server/engine/core/pretrained/gpt2_config.h"
#include "server/engine/core/pretrained/gpt2_family.h"
#include "server/engine/core/pretrained/gpt2_files.h"
#include "server/engine/gpt2.h"

namespace ablate::engine {
namespace {

absl::string_view BytesOfFloats(absl::Span<const float> floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
}

}  // namespace

absl::StatusOr<std::vector<NamedFile>> WriteGpt2(const ModelConfig& model,
                                                 absl::Span<const float> parameters) {
  RETURN_IF_ERROR(CheckGpt2Model(model));
  const ParameterLayout layout = MakeLayout(model);
  if (parameters.size() != static_cast<size_t>(layout.size)) {
    return absl::InvalidArgumentError(absl::StrCat("parameters: there are ", parameters.size(),
                                                   "; expected ", layout.size, " for the model."));
  }
  std::vector<float> stored(parameters.size());
  std::vector<TensorView> tensors;
  for (const ParameterInfo& parameter : layout.parameters) {
    const auto offset = static_cast<size_t>(parameter.offset);
    const auto size = static_cast<size_t>(parameter.size);
    const absl::Span<float> floats = absl::MakeSpan(stored).subspan(offset, size);
    const TensorView own = {parameter.name, TensorType::kF32, parameter.shape,
                            BytesOfFloats(parameters.subspan(offset, size))};
    const auto copy = IsTransposed(parameter) ? CopyTransposed : CopyFloats;
    RETURN_IF_ERROR(copy("model", own, floats));
    const bool is_head = parameter.module == Module::kHead;
    tensors.push_back({absl::StrCat(is_head ? "" : kGpt2Prefix, Gpt2TensorName(parameter)),
                       TensorType::kF32, Gpt2TensorShape(parameter), BytesOfFloats(floats)});
  }
  // transformers reads only files that name the framework they were written with.
  ASSIGN_OR_RETURN(std::string file, WriteSafetensors(tensors, {{"format", "pt"}}));
  std::vector<NamedFile> files;
  files.push_back({kGpt2ConfigName, WriteGpt2Config(model)});
  files.push_back({kGpt2TensorsName, std::move(file)});
  return files;
}

absl::StatusOr<std::vector<NamedFile>> ExportCheckpoint(const ModelConfig& model, LearningRule rule,
                                                        absl::string_view checkpoint) {
  RETURN_IF_ERROR(CheckGpt2Model(model));
  const ParameterLayout layout = MakeLayout(model, rule);
  ASSIGN_OR_RETURN(const CheckpointTensors tensors, ReadCheckpoint(layout, checkpoint));
  std::vector<float> parameters(static_cast<size_t>(layout.size));
  for (size_t i = 0; i < layout.parameters.size(); ++i) {
    const ParameterInfo& parameter = layout.parameters[i];
    RETURN_IF_ERROR(CopyFloats(
        "checkpoint", {parameter.name, tensors.type, parameter.shape, tensors.parameters[i]},
        absl::MakeSpan(parameters)
            .subspan(static_cast<size_t>(parameter.offset), static_cast<size_t>(parameter.size))));
  }
  return WriteGpt2(model, parameters);
}

}  // namespace ablate::engine
