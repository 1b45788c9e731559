#include "server/engine/core/pretrained/source.h"

#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "server/engine/core/layout.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

template <typename... Parts>
absl::Status BadSource(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckKnown(const Family& family, const ModelConfig& model, const TensorFiles& files) {
  const ModelConfig widest = family.widest(model);
  absl::flat_hash_set<std::string> known;
  for (const ParameterInfo& parameter : MakeLayout(widest).parameters) {
    for (const StoredTensor& stored : family.tensors(widest, parameter)) known.insert(stored.name);
  }
  for (int block = 0; block < model.layers; ++block) {
    for (const absl::string_view constant : family.constants) {
      known.insert(absl::StrReplaceAll(constant, {{"#", absl::StrCat(block)}}));
    }
  }
  const FileTensor* unknown = nullptr;
  for (const auto& [name, tensor] : files.tensors) {
    if (known.contains(name)) continue;
    if (unknown == nullptr || tensor.view.name < unknown->view.name) unknown = &tensor;
  }
  if (unknown == nullptr) return absl::OkStatus();
  return BadSource(unknown->file, ": tensor ", Quoted(unknown->view.name), " isn't one of a ",
                   family.title, " with ", model.layers, " layers; expected only those of ",
                   family.architecture, ".");
}

// Returns the name of the only tensor of a parameter outside the blocks.
std::string TensorOf(const Family& family, const ModelConfig& model, Module module) {
  for (const ParameterInfo& parameter : MakeLayout(family.widest(model)).parameters) {
    if (parameter.module == module) return family.tensors(model, parameter)[0].name;
  }
  return "";
}

// Sets tied_head, which is tie_word_embeddings before. A tied head that is there alone becomes the
// embedding, too.
void SetHead(const Family& family, TensorFiles* files, FamilyConfig* config) {
  bool& tied = config->model.tied_head;
  const std::string head_name = TensorOf(family, config->model, Module::kHead);
  const std::string embedding_name = TensorOf(family, config->model, Module::kTokenEmbedding);
  const auto head = files->tensors.find(head_name);
  const auto embedding = files->tensors.find(embedding_name);
  if (!tied || head == files->tensors.end()) return;
  if (embedding == files->tensors.end()) {
    const FileTensor shared = head->second;
    files->tensors.emplace(embedding_name, shared);
    config->notes.push_back(absl::StrCat("The token embedding is ", head_name,
                                         ", because the head is tied and ", embedding_name,
                                         " is missing."));
    return;
  }
  const TensorView& a = head->second.view;
  const TensorView& b = embedding->second.view;
  tied = a.type == b.type && a.shape == b.shape && a.bytes == b.bytes;
  if (tied) return;
  config->notes.push_back(absl::StrCat("model.tied_head is false, because ", head_name,
                                       " differs from ", embedding_name,
                                       ", against tie_word_embeddings."));
}

std::string ShownShape(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckTensor(const StoredTensor& stored, const TensorFiles& files) {
  const auto found = files.tensors.find(stored.name);
  if (found == files.tensors.end()) {
    return BadSource("tensor ", stored.name, " is missing; expected ", ShownShape(stored.shape),
                     ".");
  }
  const auto& [file, view] = found->second;
  if (view.shape == stored.shape) return absl::OkStatus();
  return BadSource(file, ": tensor ", Quoted(view.name), " has shape ", ShownShape(view.shape),
                   "; expected ", ShownShape(stored.shape), ", by ", kConfigName, ".");
}

// Checks that each parameter has its tensors.
absl::Status CheckTensors(const Family& family, const ModelConfig& model,
                          const TensorFiles& files) {
  for (const ParameterInfo& parameter : MakeLayout(model).parameters) {
    for (const StoredTensor& stored : family.tensors(model, parameter)) {
      RETURN_IF_ERROR(CheckTensor(stored, files));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PretrainedSource> ReadSource(absl::Span<const FileView> files,
                                            const ImportOverrides& overrides) {
  ASSIGN_OR_RETURN(TensorFiles opened, OpenTensorFiles(files));
  const Family* family = nullptr;
  ASSIGN_OR_RETURN(FamilyConfig config, ReadFamilyConfig(opened.config, overrides, &family));
  RETURN_IF_ERROR(CheckKnown(*family, config.model, opened));
  if (family->infer != nullptr) {
    RETURN_IF_ERROR(family->infer(overrides, opened, &config));
  }
  SetHead(*family, &opened, &config);
  RETURN_IF_ERROR(CheckTensors(*family, config.model, opened));
  return PretrainedSource{family, config.model, std::move(opened), std::move(config.notes)};
}

}  // namespace ablate::engine
