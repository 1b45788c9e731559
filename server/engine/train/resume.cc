// Writes a resume state, and reads one back only if it fits in every respect.
#include "server/engine/train/resume.h"

#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/names.h"
#include "server/engine/safetensors.h"
#include "server/engine/train/checkpoint.h"

namespace ablate::engine {
namespace {

using Metadata = std::map<std::string, std::string>;

std::string LayoutText(const ParameterLayout& layout) {
  std::string text;
  for (const ParameterInfo& parameter : layout.parameters) {
    absl::StrAppend(&text, parameter.name, "[", absl::StrJoin(parameter.shape, ","), "];");
  }
  return text;
}

// What must be equal between the writer's run and the reader's.
Metadata IdentityOf(const RunConfig& run, const ParameterLayout& layout) {
  return {{"format", "ablate.resume"},
          {"trainer", std::string(TorchTrainerName())},
          {"numerics_version", absl::StrCat(kNumericsVersion)},
          {"environment", Environment()},
          {"layout", LayoutText(layout)},
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
    const absl::StatusOr<std::string> found = Field(file, key);
    if (!found.ok()) return found.status();
    if (*found == value) continue;
    if (key == "layout") {
      return absl::FailedPreconditionError("resume state: its parameters are another model's");
    }
    return absl::FailedPreconditionError(
        absl::StrCat("resume state: ", key, " is '", *found, "', but this run's is '", value, "'"));
  }
  return absl::OkStatus();
}

// A tensor of exactly this name, type and shape.
absl::StatusOr<TensorView> FindTensor(const SafetensorsFile& file, absl::string_view name,
                                      TensorType type, const std::vector<int64_t>& shape) {
  const TensorView* tensor = file.Find(name);
  if (tensor == nullptr || tensor->type != type || (!shape.empty() && tensor->shape != shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat("resume state: tensor '", name, "' is missing or of another type or shape"));
  }
  return *tensor;
}

absl::StatusOr<at::Tensor> ReadVector(const SafetensorsFile& file, absl::string_view name,
                                      Precision precision, int64_t size) {
  const bool wide = precision == Precision::kFloat64;
  const absl::StatusOr<TensorView> view =
      FindTensor(file, name, wide ? TensorType::kF64 : TensorType::kF32, {size});
  if (!view.ok()) return view.status();
  at::Tensor tensor = at::empty({size}, wide ? at::kDouble : at::kFloat);
  std::memcpy(tensor.mutable_data_ptr(), view->bytes.data(), view->bytes.size());
  return tensor;
}

absl::Status ReadProgress(const SafetensorsFile& file, const RunConfig& run, ResumeState& state) {
  const absl::StatusOr<std::string> step = Field(file, "step");
  if (!step.ok()) return step.status();
  if (!absl::SimpleAtoi(*step, &state.step) || state.step > run.training.steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("resume state: step '", *step, "' is not in 0…", run.training.steps));
  }
  const absl::StatusOr<std::string> outcome = Field(file, "outcome");
  if (!outcome.ok()) return outcome.status();
  const std::optional<Outcome> known = FindByName<Outcome>(*outcome);
  if (!known.has_value()) return absl::InvalidArgumentError("resume state: unknown outcome");
  state.outcome = *known;
  if (file.Find("first_evaluation") != nullptr) {
    const auto view = FindTensor(file, "first_evaluation", TensorType::kF64, {1});
    if (!view.ok()) return view.status();
    state.first_evaluation.emplace();
    std::memcpy(&*state.first_evaluation, view->bytes.data(), sizeof(double));
  }
  const auto cursor = FindTensor(file, "cursor", TensorType::kU64, {});
  if (!cursor.ok()) return cursor.status();
  state.cursor.resize(cursor->bytes.size() / sizeof(uint64_t));
  std::memcpy(state.cursor.data(), cursor->bytes.data(), cursor->bytes.size());
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

absl::StatusOr<std::string> WriteResumeState(const RunConfig& run, const ParameterLayout& layout,
                                             const ResumeState& state) {
  std::vector<TensorView> tensors = {ViewOf("parameters", state.parameters)};
  for (const OptimizerSlot& slot : state.slots) tensors.push_back(ViewOf(slot.name, slot.values));
  tensors.push_back(
      ViewOfNumbers("cursor", TensorType::kU64, state.cursor.data(), state.cursor.size()));
  if (state.first_evaluation.has_value()) {
    tensors.push_back(
        ViewOfNumbers("first_evaluation", TensorType::kF64, &*state.first_evaluation, 1));
  }
  Metadata metadata = IdentityOf(run, layout);
  metadata["step"] = absl::StrCat(state.step);
  metadata["outcome"] = std::string(NameOf(state.outcome));
  return WriteSafetensors(tensors, metadata);
}

absl::StatusOr<ResumeState> ReadResumeState(const RunConfig& run, const ParameterLayout& layout,
                                            const std::vector<OptimizerSlot>& slots,
                                            absl::string_view file) {
  const absl::StatusOr<SafetensorsFile> parsed = ParseSafetensors(file);
  if (!parsed.ok()) return parsed.status();
  absl::Status status = CheckIdentity(*parsed, IdentityOf(run, layout));
  if (!status.ok()) return status;
  ResumeState state;
  status = ReadProgress(*parsed, run, state);
  if (!status.ok()) return status;
  absl::StatusOr<at::Tensor> values = ReadVector(*parsed, "parameters", run.precision, layout.size);
  if (!values.ok()) return values.status();
  state.parameters = *std::move(values);
  for (const OptimizerSlot& slot : slots) {
    values = ReadVector(*parsed, slot.name, run.precision, layout.size);
    if (!values.ok()) return values.status();
    state.slots.push_back({slot.name, *std::move(values)});
  }
  return state;
}

}  // namespace ablate::engine
