// Writes parameters and the model's description; reads the parameters back.
#include "server/engine/train/checkpoint.h"

#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/model/model_json.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
TensorView ViewOf(std::string name, const at::Tensor& tensor) {
  const TensorType type = tensor.scalar_type() == at::kDouble ? TensorType::kF64 : TensorType::kF32;
  return {std::move(name), type, tensor.sizes().vec(),
          absl::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes())};
}

absl::StatusOr<std::string> WriteCheckpoint(const ModelConfig& model, const ParameterLayout& layout,
                                            const at::Tensor& parameters, uint32_t step,
                                            absl::string_view vocabulary) {
  const at::Tensor flat = parameters.to(at::kCPU).contiguous();
  std::vector<TensorView> tensors;
  tensors.reserve(layout.parameters.size());
  for (const ParameterInfo& parameter : layout.parameters) {
    tensors.push_back(ViewOf(
        parameter.name, flat.narrow(0, parameter.offset, parameter.size).view(parameter.shape)));
  }
  std::map<std::string, std::string> metadata = {
      {"format", "ablate.checkpoint"},
      {"trainer", std::string(TorchTrainerName())},
      {"numerics_version", absl::StrCat(kNumericsVersion)},
      {"torch_version", TorchVersion()},
      {"model", ModelJson(model)},
      {"step", absl::StrCat(step)}};
  if (!vocabulary.empty()) metadata["vocabulary"] = std::string(vocabulary);
  return WriteSafetensors(tensors, metadata);
}

absl::StatusOr<at::Tensor> ReadCheckpoint(const ParameterLayout& layout, absl::string_view file) {
  const absl::StatusOr<SafetensorsFile> parsed = ParseSafetensors(file);
  if (!parsed.ok()) return parsed.status();
  const bool is_double = !parsed->tensors.empty() && parsed->tensors[0].type == TensorType::kF64;
  const TensorType type = is_double ? TensorType::kF64 : TensorType::kF32;
  at::Tensor flat = at::empty({layout.size}, is_double ? at::kDouble : at::kFloat);
  if (parsed->tensors.size() != layout.parameters.size()) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint: it has ", parsed->tensors.size(),
                                                   " tensors, but the model has ",
                                                   layout.parameters.size()));
  }
  for (const ParameterInfo& parameter : layout.parameters) {
    const TensorView* view = parsed->Find(parameter.name);
    if (view == nullptr || view->type != type || view->shape != parameter.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("checkpoint: it has no tensor ", parameter.name, " of the model's shape"));
    }
    const at::Tensor place = flat.narrow(0, parameter.offset, parameter.size);
    std::memcpy(place.mutable_data_ptr(), view->bytes.data(), view->bytes.size());
  }
  return flat;
}

}  // namespace ablate::engine
