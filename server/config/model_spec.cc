#include "server/config/model_spec.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "server/config/fields.h"
#include "server/engine/names.h"

namespace ablate::spec {
namespace {

// Returns the spec's value with the name of the engine's.
template <typename SpecEnum, typename Enum>
typename SpecEnum::Value ValueOf(Enum value) {
  const google::protobuf::EnumValueDescriptor* found =
      SpecEnum::Value_descriptor()->FindValueByName(std::string(engine::NameOf(value)));
  return static_cast<typename SpecEnum::Value>(found == nullptr ? 0 : found->number());
}

// Clears fields without effect and sets absent ones to their defaults.
v1::ModelSpec Filled(v1::ModelSpec model) {
  v1::BaseSpec base;
  base.mutable_task()->mutable_text();
  *base.mutable_model() = std::move(model);
  FillFields(&base);
  return base.model();
}

void SetNorm(const engine::NormConfig& from, v1::NormSpec* norm) {
  // Names every member, so that a new one doesn't compile until it is placed here.
  const auto& [kind, deviation, placement, attention, feed_forward, final_norm, eps, gain, bias,
               backward] = from;
  norm->set_kind(ValueOf<v1::NormKind>(kind));
  norm->set_deviation(ValueOf<v1::NormDeviation>(deviation));
  norm->set_placement(ValueOf<v1::NormPlacement>(placement));
  norm->set_attention(attention);
  norm->set_feed_forward(feed_forward);
  norm->set_final(final_norm);
  norm->set_eps(eps);
  norm->set_gain(gain);
  norm->set_bias(bias);
  norm->set_backward(ValueOf<v1::NormBackward>(backward));
}

void SetAttention(const engine::AttentionConfig& from, v1::AttentionSpec* attention) {
  const auto& [kind, causal, score_bias] = from;
  attention->set_kind(ValueOf<v1::AttentionKind>(kind));
  attention->set_causal(causal);
  attention->set_score_bias(score_bias);
}

void SetInit(const engine::InitConfig& from, v1::InitSpec* init) {
  const auto& [kind, streams] = from;
  init->set_kind(ValueOf<v1::InitKind>(kind));
  init->set_streams(ValueOf<v1::InitStreams>(streams));
}

}  // namespace

v1::ModelSpec ToModelSpec(const engine::ModelConfig& model) {
  const auto& [vocabulary, layers, width, heads, context, positions, bias, residual, residual_scale,
               dropout, tied_head, head_bias, attention, activation, hidden, norm, init, loss] =
      model;
  v1::ModelSpec spec;
  spec.set_layers(static_cast<uint32_t>(layers));
  spec.set_width(static_cast<uint32_t>(width));
  spec.set_heads(static_cast<uint32_t>(heads));
  spec.set_context(static_cast<uint32_t>(context));
  spec.set_positions(ValueOf<v1::Positions>(positions));
  spec.set_bias(bias);
  spec.set_residual(residual);
  spec.set_residual_scale(residual_scale);
  spec.set_dropout(dropout);
  spec.set_tied_head(tied_head);
  spec.set_head_bias(head_bias);
  SetAttention(attention, spec.mutable_attention());
  spec.mutable_feed_forward()->set_hidden(static_cast<uint32_t>(hidden));
  spec.mutable_feed_forward()->set_activation(ValueOf<v1::Activation>(activation));
  SetNorm(norm, spec.mutable_norm());
  SetInit(init, spec.mutable_init());
  return Filled(std::move(spec));
}

absl::StatusOr<v1::ModelSpec> ReadStoredModel(const std::string& bytes) {
  v1::ModelSpec model;
  if (!model.ParseFromString(bytes)) {
    return absl::DataLossError("the stored description of the model can't be read");
  }
  return Filled(std::move(model));
}

}  // namespace ablate::spec
