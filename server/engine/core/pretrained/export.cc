// Writes a model's parameters as files of its family.
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/safetensors.h"
#include "base/status_macros.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/pretrained/family.h"
#include "server/engine/core/pretrained/float_values.h"
#include "server/engine/core/pretrained/tensor_files.h"
#include "server/engine/pretrained.h"

namespace ablate::engine {
namespace {

absl::string_view BytesOfFloats(absl::Span<const float> floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
}

}  // namespace

absl::StatusOr<std::vector<NamedFile>> WritePretrained(const ModelConfig& model,
                                                       absl::Span<const float> parameters) {
  const Family& family = NearestFamily(model);
  RETURN_IF_ERROR(CheckFamily(family, model));
  const ParameterLayout layout = MakeLayout(model);
  if (parameters.size() != static_cast<size_t>(layout.size)) {
    return absl::InvalidArgumentError(absl::StrCat("parameters: there are ", parameters.size(),
                                                   "; expected ", layout.size, " for the model."));
  }
  std::vector<float> values(parameters.size());
  std::vector<TensorView> tensors;
  for (const ParameterInfo& parameter : layout.parameters) {
    for (StoredTensor& stored : family.tensors(model, parameter)) {
      const auto ours = ElementsOf(stored, parameter, parameters);
      const auto theirs = ElementsOf(stored, parameter, absl::MakeSpan(values));
      const TensorView own = {parameter.name, TensorType::kF32, stored.shape, BytesOfFloats(ours)};
      RETURN_IF_ERROR(CopySwapped("model", own, stored.b, stored.a, theirs));
      const bool is_head = parameter.module == Module::kHead;
      tensors.push_back({absl::StrCat(is_head ? "" : family.prefix, stored.name), TensorType::kF32,
                         std::move(stored.shape), BytesOfFloats(theirs)});
    }
  }
  // transformers reads only files that name the framework they were written with.
  ASSIGN_OR_RETURN(std::string file, WriteSafetensors(tensors, {{"format", "pt"}}));
  std::vector<NamedFile> files;
  files.push_back({kConfigName, WriteFamilyConfig(family, model)});
  files.push_back({kTensorsName, std::move(file)});
  return files;
}

absl::StatusOr<std::vector<NamedFile>> ExportCheckpoint(const ModelConfig& model, LearningRule rule,
                                                        absl::string_view checkpoint) {
  RETURN_IF_ERROR(CheckFamily(NearestFamily(model), model));
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
  return WritePretrained(model, parameters);
}

}  // namespace ablate::engine
