#include "server/engine/core/checkpoint.h"

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/engine/core/config_json.h"
#include "server/engine/names.h"
#include "server/engine/trainer.h"

namespace ablate::engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kNoNorm = "none";

Json NormSites(const ModelConfig& model) {
  const absl::string_view kind = NameOf(model.norm.kind);
  Json sites = Json::object();
  const bool sandwich = model.norm.placement == NormPlacement::kSandwich;
  for (int i = 0; i < model.layers; ++i) {
    const auto add = [&](absl::string_view sublayer, bool has_norm) {
      const std::string site = absl::StrCat("block.", i, ".", sublayer);
      sites[site + ".norm"] = has_norm ? kind : kNoNorm;
      if (sandwich) sites[site + ".post_norm"] = has_norm ? kind : kNoNorm;
    };
    add("attention", HasAttentionNorm(model));
    add("feed_forward", HasFeedForwardNorm(model));
  }
  sites["final_norm"] = model.norm.final ? kind : kNoNorm;
  return sites;
}

// Returns a part of a run's flat bytes.
template <typename Info>
TensorView ViewOf(const Info& info, TensorType type, absl::string_view flat) {
  const auto width = static_cast<size_t>(WidthOf(type));
  return {info.name, type, info.shape,
          flat.substr(static_cast<size_t>(info.offset) * width,
                      static_cast<size_t>(info.size) * width)};
}

template <typename Info>
absl::Status Find(const SafetensorsFile& file, TensorType type, const std::vector<Info>& wanted,
                  std::vector<absl::string_view>* bytes) {
  for (const Info& info : wanted) {
    const TensorView* view = file.Find(info.name);
    if (view == nullptr || view->type != type || view->shape != info.shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("checkpoint: it has no tensor ", info.name, " of the model's shape"));
    }
    bytes->push_back(view->bytes);
  }
  return absl::OkStatus();
}

bool IsFloating(TensorType type) { return type == TensorType::kF32 || type == TensorType::kF64; }

// Returns true if a tensor has the parameter's values: in its shape or, for positions, in its first
// rows.
bool Holds(const TensorView& view, const ParameterInfo& info) {
  if (view.shape == info.shape) return true;
  return info.role == ParameterRole::kPosition && view.shape.size() == 2 &&
         view.shape[0] >= info.shape[0] && view.shape[1] == info.shape[1];
}

template <typename From, typename To>
void CopyAs(const char* from, int64_t count, char* to) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<int64_t>(sizeof value), sizeof value);
    const To converted = static_cast<To>(value);
    std::memcpy(to + i * static_cast<int64_t>(sizeof converted), &converted, sizeof converted);
  }
}

// Copies the first `count` values of a tensor to element `offset` of flat bytes of `type`.
void CopyValues(const TensorView& view, int64_t count, TensorType type, int64_t offset,
                std::string* flat) {
  char* const to = flat->data() + offset * WidthOf(type);
  const bool wide = view.type == TensorType::kF64;
  if (type == TensorType::kF64) {
    wide ? CopyAs<double, double>(view.bytes.data(), count, to)
         : CopyAs<float, double>(view.bytes.data(), count, to);
  } else {
    wide ? CopyAs<double, float>(view.bytes.data(), count, to)
         : CopyAs<float, float>(view.bytes.data(), count, to);
  }
}

// Returns the meaning of a task's tokens without the boundary of documents if a tokenizer has it: a
// text's tokens are the same then.
std::string WithoutOwnBoundary(absl::string_view vocabulary) {
  Json json = Json::parse(vocabulary, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("tokens") || !json.contains("bos")) {
    return std::string(vocabulary);
  }
  if (json["bos"] < json["tokens"]) json.erase("bos");
  return json.dump();
}

}  // namespace

std::string ModelJson(const ModelConfig& model) {
  Json fields = ConfigJson(model), json = Json::object();
  for (auto& [name, value] : fields.items()) {
    json[name] = std::move(value);
    if (name == "norm") json["norm_sites"] = NormSites(model);
  }
  return json.dump();
}

absl::StatusOr<std::string> WriteCheckpoint(const CheckpointHeader& header,
                                            const ParameterLayout& layout,
                                            const RunTensors& tensors) {
  std::vector<TensorView> views;
  views.reserve(layout.parameters.size() + layout.buffers.size());
  for (const ParameterInfo& parameter : layout.parameters) {
    views.push_back(ViewOf(parameter, tensors.type, tensors.parameters));
  }
  for (const BufferInfo& buffer : layout.buffers) {
    views.push_back(ViewOf(buffer, tensors.type, tensors.buffers));
  }
  std::map<std::string, std::string> metadata = {
      {"format", "ablate.checkpoint"},
      {"trainer", header.backend.trainer},
      {"numerics_version", absl::StrCat(kNumericsVersion)},
      {header.backend.library, header.backend.library_version},
      {"model", ModelJson(header.model)},
      {"step", absl::StrCat(header.step)}};
  if (!header.vocabulary.empty()) metadata["vocabulary"] = std::string(header.vocabulary);
  return WriteSafetensors(views, metadata);
}

absl::StatusOr<CheckpointTensors> ReadCheckpoint(const ParameterLayout& layout,
                                                 absl::string_view file) {
  ASSIGN_OR_RETURN(const SafetensorsFile parsed, ParseSafetensors(file));
  const size_t count = layout.parameters.size() + layout.buffers.size();
  if (parsed.tensors.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("checkpoint: it has ", parsed.tensors.size(),
                                                   " tensors, but the model has ", count));
  }
  CheckpointTensors tensors;
  const bool is_double = !parsed.tensors.empty() && parsed.tensors[0].type == TensorType::kF64;
  tensors.type = is_double ? TensorType::kF64 : TensorType::kF32;
  absl::Status found = Find(parsed, tensors.type, layout.parameters, &tensors.parameters);
  if (found.ok()) found = Find(parsed, tensors.type, layout.buffers, &tensors.buffers);
  if (!found.ok()) return found;
  return tensors;
}

absl::Status CopyParameters(const WantedModel& wanted, TensorType type, absl::string_view file,
                            std::string* parameters, std::string* buffers) {
  const ParameterLayout& layout = wanted.layout;
  ASSIGN_OR_RETURN(const SafetensorsFile parsed, ParseSafetensors(file));
  const auto vocabulary = parsed.metadata.find("vocabulary");
  if (vocabulary != parsed.metadata.end() && !wanted.vocabulary.empty() &&
      WithoutOwnBoundary(vocabulary->second) != WithoutOwnBoundary(wanted.vocabulary)) {
    return absl::InvalidArgumentError(
        "its tokens stand for other text than the task's; expected the same characters or "
        "tokenizer");
  }
  for (const ParameterInfo& info : layout.parameters) {
    const TensorView* view = parsed.Find(info.name);
    if (view == nullptr || !IsFloating(view->type) || !Holds(*view, info)) {
      return absl::InvalidArgumentError(absl::StrCat("the checkpoint has no tensor ", info.name,
                                                     " of shape [", absl::StrJoin(info.shape, ", "),
                                                     "]"));
    }
    CopyValues(*view, info.size, type, info.offset, parameters);
  }
  for (const BufferInfo& info : layout.buffers) {
    const TensorView* view = parsed.Find(info.name);
    const bool is_statistic = info.role != BufferRole::kFeedback;
    if (!is_statistic || view == nullptr || !IsFloating(view->type) || view->shape != info.shape) {
      continue;
    }
    CopyValues(*view, info.size, type, info.offset, buffers);
  }
  return absl::OkStatus();
}

}  // namespace ablate::engine
