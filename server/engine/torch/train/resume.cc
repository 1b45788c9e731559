#include "server/engine/torch/train/resume.h"

#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/safetensors.h"
#include "base/status_macros.h"
#include "server/engine/names.h"

namespace ablate::engine {
namespace {

using Metadata = std::map<std::string, std::string>;

std::string LayoutText(const ParameterLayout& layout) {
  std::string text;
  const auto append = [&text](const auto& infos) {
    for (const auto& info : infos) {
      absl::StrAppend(&text, info.name, "[", absl::StrJoin(info.shape, ","), "];");
    }
  };
  append(layout.parameters);
  append(layout.buffers);
  return text;
}

// Returns the metadata that must be equal for the writer's and the reader's run.
Metadata IdentityOf(const ResumeIdentity& identity) {
  const RunConfig& run = identity.run;
  return {{"format", "ablate.resume"},
          {"trainer", identity.backend.trainer},
          {"numerics_version", absl::StrCat(kNumericsVersion)},
          {"environment", identity.backend.environment},
          {"layout", LayoutText(identity.layout)},
          {"precision", std::string(NameOf(run.precision))},
          {"optimizer", std::string(NameOf(run.training.optimizer.kind))},
          {"seed", absl::StrCat(run.seed)}};
}

absl::StatusOr<std::string> Field(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) {
    return absl::InvalidArgumentError(absl::StrCat("resume state: metadata lacks '", key, "'"));
  }
  return found->second;
}

absl::Status CheckIdentity(const SafetensorsFile& file, const Metadata& expected) {
  for (const auto& [key, value] : expected) {
    ASSIGN_OR_RETURN(const std::string found, Field(file, key));
    if (found == value) continue;
    if (key == "layout") {
      return absl::FailedPreconditionError("resume state: its parameters are another model's");
    }
    return absl::FailedPreconditionError(
        absl::StrCat("resume state: ", key, " is '", found, "', but this run's is '", value, "'"));
  }
  return absl::OkStatus();
}

// Finds a tensor of exactly this name, type and shape.
absl::StatusOr<TensorView> FindTensor(const SafetensorsFile& file, absl::string_view name,
                                      TensorType type, const std::vector<int64_t>& shape) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr || tensor->type != type || (!shape.empty() && tensor->shape != shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("resume state: tensor '", name, "' is missing or of another type or shape"));
  }
  return *tensor;
}

// Reads the bytes of `size` numbers.
absl::Status ReadNumbers(const SafetensorsFile& file, absl::string_view name, TensorType type,
                         int64_t size, absl::string_view* bytes) {
  ASSIGN_OR_RETURN(const TensorView view, FindTensor(file, name, type, {size}));
  *bytes = view.bytes;
  return absl::OkStatus();
}

absl::StatusOr<RunTensors> ReadTensors(const SafetensorsFile& file, const RunConfig& run,
                                       const ParameterLayout& layout) {
  RunTensors tensors;
  tensors.type = run.precision == Precision::kFloat64 ? TensorType::kF64 : TensorType::kF32;
  absl::Status status =
      ReadNumbers(file, "parameters", tensors.type, layout.size, &tensors.parameters);
  if (status.ok() && layout.buffer_size > 0) {
    status = ReadNumbers(file, "buffers", tensors.type, layout.buffer_size, &tensors.buffers);
  }
  for (std::string& name : OptimizerSlots(run.training)) {
    if (!status.ok()) return status;
    NamedBytes& slot = tensors.slots.emplace_back();
    slot.name = std::move(name);
    status = ReadNumbers(file, slot.name, tensors.type, layout.size, &slot.bytes);
  }
  if (!status.ok()) return status;
  return tensors;
}

absl::Status ReadProgress(const SafetensorsFile& file, const RunConfig& run, ResumeState& state) {
  ASSIGN_OR_RETURN(const std::string step, Field(file, "step"));
  if (!absl::SimpleAtoi(step, &state.step) || state.step > run.training.steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("resume state: step '", step, "' is not in 0…", run.training.steps));
  }
  ASSIGN_OR_RETURN(const std::string outcome, Field(file, "outcome"));
  const std::optional<Outcome> known = FindByName<Outcome>(outcome);
  if (!known.has_value()) return absl::InvalidArgumentError("resume state: unknown outcome");
  state.outcome = *known;
  if (file.Find("first_evaluation") != nullptr) {
    ASSIGN_OR_RETURN(const auto view, FindTensor(file, "first_evaluation", TensorType::kF64, {1}));
    state.first_evaluation.emplace();
    std::memcpy(&*state.first_evaluation, view.bytes.data(), sizeof(double));
  }
  ASSIGN_OR_RETURN(const auto cursor, FindTensor(file, "cursor", TensorType::kU64, {}));
  state.cursor.resize(cursor.bytes.size() / sizeof(uint64_t));
  std::memcpy(state.cursor.data(), cursor.bytes.data(), cursor.bytes.size());
  return absl::OkStatus();
}

template <typename Value>
TensorView ViewOfNumbers(std::string name, TensorType type, const Value* numbers, size_t count) {
  return {std::move(name),
          type,
          {static_cast<int64_t>(count)},
          absl::string_view(reinterpret_cast<const char*>(numbers), count * sizeof(Value))};
}

}  // namespace

absl::StatusOr<std::string> WriteResumeState(const ResumeIdentity& identity,
                                             const ResumeState& state) {
  const RunTensors& run = state.tensors;
  const ParameterLayout& layout = identity.layout;
  std::vector<TensorView> tensors = {{"parameters", run.type, {layout.size}, run.parameters}};
  if (layout.buffer_size > 0) {
    tensors.push_back({"buffers", run.type, {layout.buffer_size}, run.buffers});
  }
  for (const NamedBytes& slot : run.slots) {
    tensors.push_back({slot.name, run.type, {layout.size}, slot.bytes});
  }
  tensors.push_back(
      ViewOfNumbers("cursor", TensorType::kU64, state.cursor.data(), state.cursor.size()));
  if (state.first_evaluation.has_value()) {
    tensors.push_back(
        ViewOfNumbers("first_evaluation", TensorType::kF64, &*state.first_evaluation, 1));
  }
  Metadata metadata = IdentityOf(identity);
  metadata["step"] = absl::StrCat(state.step);
  metadata["outcome"] = std::string(NameOf(state.outcome));
  return WriteSafetensors(tensors, metadata);
}

absl::StatusOr<ResumeState> ReadResumeState(const ResumeIdentity& identity,
                                            absl::string_view file) {
  ASSIGN_OR_RETURN(const SafetensorsFile parsed, ParseSafetensors(file));
  absl::Status status = CheckIdentity(parsed, IdentityOf(identity));
  if (!status.ok()) return status;
  ResumeState state;
  status = ReadProgress(parsed, identity.run, state);
  if (!status.ok()) return status;
  ASSIGN_OR_RETURN(state.tensors, ReadTensors(parsed, identity.run, identity.layout));
  return state;
}

}  // namespace ablate::engine
