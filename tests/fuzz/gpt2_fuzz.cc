// Fuzzes the files of GPT-2 models with libFuzzer: config.json, a safetensors file and an index.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/core/layout.h"
#include "server/engine/pretrained.h"

namespace ablate::engine {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Removes the bytes before the first NUL, and returns them.
absl::string_view TakeText(absl::string_view* rest) {
  const absl::string_view text = rest->substr(0, rest->find('\0'));
  rest->remove_prefix(std::min(rest->size(), text.size() + 1));
  return text;
}

// Checks that an imported model is complete, and equal after a round trip.
void CheckImported(const ImportedModel& imported) {
  Require(imported.parameters.size() == static_cast<size_t>(MakeLayout(imported.model).size));
  for (const float value : imported.parameters) Require(std::isfinite(value));
  Require(ImportedCheckpoint(imported).ok());
  const auto logits = PlainLogits(imported, {0}, LogitPositions::kLast);
  Require(logits.ok() && logits->size() == static_cast<size_t>(imported.model.vocabulary));
  const auto written = WritePretrained(imported.model, imported.parameters);
  Require(written.ok());
  std::vector<FileView> views;
  for (const NamedFile& file : *written) views.push_back({file.name, file.bytes});
  const auto again = ReadPretrained(views, {});
  Require(again.ok());
  Require(again->model == imported.model && again->parameters == imported.parameters);
}

// The first byte chooses whether there is an index, and the kind of norm that is given. Texts end
// with a NUL; the tensors are the rest.
void Try(absl::string_view data) {
  if (data.empty()) return;
  const auto flags = static_cast<unsigned char>(data.front());
  data.remove_prefix(1);
  ImportOverrides overrides;
  if ((flags & 2) != 0) overrides.norm_kind = (flags & 4) != 0 ? NormKind::kRms : NormKind::kLayer;
  std::vector<FileView> files = {{"config.json", TakeText(&data)}};
  if ((flags & 1) != 0) files.push_back({"model.safetensors.index.json", TakeText(&data)});
  files.push_back({"model.safetensors", data});
  const auto imported = ReadPretrained(files, overrides);
  if (imported.ok()) CheckImported(*imported);
}

}  // namespace
}  // namespace ablate::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ablate::engine::Try(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
