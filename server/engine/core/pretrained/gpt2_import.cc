// Converts the tensors of GPT-2 files to the engine's parameters, and these to a checkpoint.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/pretrained/float_values.h"
#include "server/engine/core/pretrained/gpt2_family.h"
#include "server/engine/core/pretrained/gpt2_source.h"
#include "server/engine/gpt2.h"

namespace ablate::engine {

absl::StatusOr<ImportedModel> ReadGpt2(absl::Span<const FileView> files,
                                       const Gpt2Overrides& overrides) {
  ASSIGN_OR_RETURN(Gpt2Source source, ReadGpt2Source(files, overrides));
  const ParameterLayout layout = MakeLayout(source.model);
  ImportedModel imported = {source.model, std::vector<float>(static_cast<size_t>(layout.size)),
                            std::move(source.notes)};
  size_t rounded = 0;
  for (const ParameterInfo& parameter : layout.parameters) {
    const Gpt2Tensor& tensor = source.files.tensors.at(Gpt2TensorName(parameter));
    const auto floats =
        absl::MakeSpan(imported.parameters)
            .subspan(static_cast<size_t>(parameter.offset), static_cast<size_t>(parameter.size));
    const auto copy = IsTransposed(parameter) ? CopyTransposed : CopyFloats;
    RETURN_IF_ERROR(copy(tensor.file, tensor.view, floats));
    if (tensor.view.type == TensorType::kF64) ++rounded;
  }
  if (rounded > 0) {
    imported.notes.push_back(absl::StrCat(rounded, " of ", layout.parameters.size(),
                                          " tensors were rounded from float64 to float32."));
  }
  return imported;
}

absl::StatusOr<std::string> ImportedCheckpoint(const ImportedModel& imported) {
  const ParameterLayout layout = MakeLayout(imported.model);
  if (imported.parameters.size() != static_cast<size_t>(layout.size)) {
    return absl::InvalidArgumentError(absl::StrCat("parameters: there are ",
                                                   imported.parameters.size(), "; expected ",
                                                   layout.size, " for the model."));
  }
  const absl::string_view bytes(reinterpret_cast<const char*>(imported.parameters.data()),
                                imported.parameters.size() * sizeof(float));
  const BackendIdentity origin = {"imported", "", "imported_from", kGpt2Type};
  return WriteCheckpoint({imported.model, origin, /*step=*/0, /*vocabulary=*/""}, layout,
                         {TensorType::kF32, bytes, "", {}});
}

}  // namespace ablate::engine
