// Converts the tensors of files to the engine's parameters, and these to a checkpoint.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/core/checkpoint.h"
#include "server/engine/core/layout.h"
#include "server/engine/core/pretrained/family.h"
#include "server/engine/core/pretrained/float_values.h"
#include "server/engine/core/pretrained/source.h"
#include "server/engine/pretrained.h"

namespace ablate::engine {

absl::StatusOr<ImportedModel> ReadPretrained(absl::Span<const FileView> files,
                                             const ImportOverrides& overrides) {
  ASSIGN_OR_RETURN(PretrainedSource source, ReadSource(files, overrides));
  const ParameterLayout layout = MakeLayout(source.model);
  ImportedModel imported = {source.model, std::string(source.family->type),
                            std::vector<float>(static_cast<size_t>(layout.size)),
                            std::move(source.notes)};
  size_t rounded = 0, tensors = 0;
  for (const ParameterInfo& parameter : layout.parameters) {
    for (const StoredTensor& stored : source.family->tensors(source.model, parameter)) {
      const FileTensor& tensor = source.files.tensors.at(stored.name);
      RETURN_IF_ERROR(
          CopySwapped(tensor.file, tensor.view, stored.a, stored.b,
                      ElementsOf(stored, parameter, absl::MakeSpan(imported.parameters))));
      if (tensor.view.type == TensorType::kF64) ++rounded;
      ++tensors;
    }
  }
  if (rounded > 0) {
    imported.notes.push_back(
        absl::StrCat(rounded, " of ", tensors, " tensors were rounded from float64 to float32."));
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
  const BackendIdentity origin = {"imported", "", "imported_from", imported.family};
  return WriteCheckpoint({imported.model, origin, /*step=*/0, /*vocabulary=*/""}, layout,
                         {TensorType::kF32, bytes, "", {}});
}

}  // namespace ablate::engine
