// Maps the config's enum values to names, with one table per enum. The spec uses these names, and
// so do checkpoints and resume states. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_NAMES_H_
#define ABLATE_SERVER_ENGINE_NAMES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/engine/config.h"
#include "server/engine/trainer.h"

namespace ablate::engine {

template <typename Enum>
struct Named {
  Enum value;
  absl::string_view name;
};

// kNames<Enum> lists every value of the enum in the order of its declaration.
template <typename Enum>
inline constexpr std::nullptr_t kNames = nullptr;

template <>
inline constexpr Named<NormKind> kNames<NormKind>[] = {{NormKind::kLayer, "layer"},
                                                       {NormKind::kRms, "rms"},
                                                       {NormKind::kBatch, "batch"},
                                                       {NormKind::kL2, "l2"}};
template <>
inline constexpr Named<NormDeviation> kNames<NormDeviation>[] = {
    {NormDeviation::kPopulation, "population"},
    {NormDeviation::kUnbiasedEpsOutside, "unbiased_eps_outside"}};
template <>
inline constexpr Named<NormPlacement> kNames<NormPlacement>[] = {
    {NormPlacement::kPre, "pre"},
    {NormPlacement::kPost, "post"},
    {NormPlacement::kNone, "none"},
    {NormPlacement::kSandwich, "sandwich"}};
template <>
inline constexpr Named<NormBackward> kNames<NormBackward>[] = {
    {NormBackward::kExact, "exact"},
    {NormBackward::kCenterScale, "center_scale"},
    {NormBackward::kProjected, "projected"},
    {NormBackward::kIdentity, "identity"}};
template <>
inline constexpr Named<AttentionKind> kNames<AttentionKind>[] = {
    {AttentionKind::kSoftmax, "softmax"},
    {AttentionKind::kNone, "none"},
    {AttentionKind::kSigmoid, "sigmoid"}};
template <>
inline constexpr Named<Activation> kNames<Activation>[] = {{Activation::kRelu, "relu"},
                                                           {Activation::kGelu, "gelu"},
                                                           {Activation::kGeluTanh, "gelu_tanh"},
                                                           {Activation::kSilu, "silu"},
                                                           {Activation::kSwiglu, "swiglu"}};
template <>
inline constexpr Named<Positions> kNames<Positions>[] = {{Positions::kLearned, "learned"},
                                                         {Positions::kNone, "none"},
                                                         {Positions::kSinusoidal, "sinusoidal"},
                                                         {Positions::kRotary, "rotary"}};
template <>
inline constexpr Named<InitKind> kNames<InitKind>[] = {{InitKind::kPytorch, "pytorch"},
                                                       {InitKind::kPytorchMha, "pytorch_mha"},
                                                       {InitKind::kXavier, "xavier"},
                                                       {InitKind::kGpt2, "gpt2"}};
template <>
inline constexpr Named<InitStreams> kNames<InitStreams>[] = {
    {InitStreams::kByName, "by_name"}, {InitStreams::kSequential, "sequential"}};
template <>
inline constexpr Named<OptimizerKind> kNames<OptimizerKind>[] = {
    {OptimizerKind::kAdamW, "adamw"}, {OptimizerKind::kAdam, "adam"}, {OptimizerKind::kSgd, "sgd"}};
template <>
inline constexpr Named<ScheduleKind> kNames<ScheduleKind>[] = {
    {ScheduleKind::kConstant, "constant"},
    {ScheduleKind::kLinear, "linear"},
    {ScheduleKind::kCosine, "cosine"},
    {ScheduleKind::kOneCycle, "one_cycle"},
    {ScheduleKind::kInverseSqrt, "inverse_sqrt"}};
template <>
inline constexpr Named<WeightDecayOn> kNames<WeightDecayOn>[] = {
    {WeightDecayOn::kAll, "all"}, {WeightDecayOn::kMatrices, "matrices"}};
template <>
inline constexpr Named<LearningRule> kNames<LearningRule>[] = {
    {LearningRule::kBackprop, "backprop"},
    {LearningRule::kFeedbackAlignment, "feedback_alignment"},
    {LearningRule::kDirectFeedbackAlignment, "direct_feedback_alignment"}};
template <>
inline constexpr Named<TrainerKind> kNames<TrainerKind>[] = {{TrainerKind::kTorch, "torch"},
                                                             {TrainerKind::kNative, "native"}};
template <>
inline constexpr Named<LossPositions> kNames<LossPositions>[] = {{LossPositions::kAll, "all"},
                                                                 {LossPositions::kLast, "last"}};
template <>
inline constexpr Named<Record> kNames<Record>[] = {{Record::kGradientByBlock, "gradient_by_block"},
                                                   {Record::kRuleAlignment, "rule_alignment"}};
template <>
inline constexpr Named<Device> kNames<Device>[] = {{Device::kCpu, "cpu"}, {Device::kCuda, "cuda"}};
template <>
inline constexpr Named<Precision> kNames<Precision>[] = {{Precision::kFloat32, "float32"},
                                                         {Precision::kFloat64, "float64"},
                                                         {Precision::kTf32, "tf32"},
                                                         {Precision::kBfloat16, "bfloat16"}};
template <>
inline constexpr Named<Outcome> kNames<Outcome>[] = {
    {Outcome::kTraining, "training"}, {Outcome::kDone, "done"}, {Outcome::kDiverged, "diverged"}};

// Returns the value's name; empty if `value` isn't one of the enum's.
template <typename Enum>
constexpr absl::string_view NameOf(Enum value) {
  for (const Named<Enum>& entry : kNames<Enum>) {
    if (entry.value == value) return entry.name;
  }
  return {};
}

template <typename Enum>
constexpr std::optional<Enum> FindByName(absl::string_view name) {
  for (const Named<Enum>& entry : kNames<Enum>) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

// Returns "layer, rms", for an error that lists the allowed values.
template <typename Enum>
std::string AllNames() {
  std::string names;
  for (const Named<Enum>& entry : kNames<Enum>) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", entry.name);
  }
  return names;
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_NAMES_H_
