// Writes parameters and the model's description.
#include "server/engine/train/checkpoint.h"

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/data/documents.h"
#include "server/engine/model/model_json.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

using Json = nlohmann::ordered_json;

std::string Utf8Of(char32_t code_point) {
  const auto tail = [code_point](int shift) {
    return static_cast<char>(0x80 | ((code_point >> shift) & 0x3F));
  };
  const auto head = [code_point](int mark, int shift) {
    return static_cast<char>(mark | (code_point >> shift));
  };
  if (code_point < 0x80) return {head(0, 0)};
  if (code_point < 0x800) return {head(0xC0, 6), tail(0)};
  if (code_point < 0x10000) return {head(0xE0, 12), tail(6), tail(0)};
  return {head(0xF0, 18), tail(12), tail(6), tail(0)};
}

}  // namespace

absl::StatusOr<std::string> VocabularyJson(const TaskConfig& task) {
  const auto* documents = std::get_if<DocumentsTask>(&task);
  if (documents == nullptr) return std::string();
  const absl::StatusOr<TokenizedDocuments> tokenized = TokenizeDocuments(documents->text);
  if (!tokenized.ok()) return tokenized.status();
  Json characters = Json::array();
  for (const char32_t code_point : tokenized->alphabet) characters.push_back(Utf8Of(code_point));
  return Json{{"characters", characters}, {"bos", tokenized->bos()}}.dump();
}

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

}  // namespace ablate::engine
