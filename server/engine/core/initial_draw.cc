#include "server/engine/core/initial_draw.h"

#include <cmath>

namespace ablate::engine {
namespace {

// Computes the bound operation by operation as torch.nn.init does, to get the same rounding.
double KaimingBound(double fan_in) {
  const double gain = std::sqrt(2.0 / (1 + std::pow(std::sqrt(5.0), 2)));
  return std::sqrt(3.0) * (gain / std::sqrt(fan_in));
}

double XavierBound(double fan_in, double fan_out) {
  return std::sqrt(3.0) * std::sqrt(2.0 / (fan_in + fan_out));
}

InitialDraw WeightDraw(const ParameterInfo& parameter, InitKind kind) {
  const double in = static_cast<double>(parameter.fan_in);
  const double out = static_cast<double>(parameter.fan_out);
  const InitialDraw kaiming = {Distribution::kUniform, KaimingBound(in)};
  const InitialDraw xavier = {Distribution::kUniform, XavierBound(in, out)};
  switch (kind) {
    case InitKind::kPytorch:
      return kaiming;
    case InitKind::kPytorchMha:
      return parameter.module == Module::kQkv ? xavier : kaiming;
    case InitKind::kXavier:
      return xavier;
    case InitKind::kGpt2:
      return {Distribution::kNormal, 0.02};
  }
  return {};
}

InitialDraw BiasDraw(const ParameterInfo& parameter, InitKind kind) {
  if (parameter.fan_in == 0) return {};  // belongs to a norm
  const InitialDraw uniform = {Distribution::kUniform,
                               1 / std::sqrt(static_cast<double>(parameter.fan_in))};
  switch (kind) {
    case InitKind::kPytorch:
      return uniform;
    case InitKind::kPytorchMha:
      if (parameter.module == Module::kQkv) return {};
      return {uniform.distribution, uniform.scale, parameter.module == Module::kProjection};
    case InitKind::kXavier:
    case InitKind::kGpt2:
      return {};
  }
  return {};
}

// Changes a draw as µP does: weights of blocks shrink with 1/√fan_in, and biases keep the scale
// that they have at the base width.
void ApplyWidth(const ParameterInfo& parameter, const ModelConfig& model, InitialDraw* draw) {
  const double root = std::sqrt(WidthRatio(model));
  const bool shrinks = draw->distribution == Distribution::kUniform;  // with the fans
  const bool should = parameter.role == ParameterRole::kWeight;
  if (shrinks && !should) draw->scale *= root;
  if (!shrinks && should) draw->scale /= root;
}

// Returns the draw of the head's weight, which with µP is that of the base width.
InitialDraw HeadDraw(ParameterInfo head, const ModelConfig& model) {
  if (model.base_width > 0) head.fan_in = model.base_width;
  return WeightDraw(head, model.init.kind);
}

// Returns true for the linears that end a sublayer.
bool IsOutput(const ParameterInfo& parameter) {
  return parameter.module == Module::kProjection || parameter.module == Module::kDown;
}

// Changes the draw of a block's linear as the kind of outputs says.
void ApplyOutputs(const ParameterInfo& parameter, const ModelConfig& model, InitialDraw* draw) {
  if (parameter.block < 0) return;
  const bool is_weight = parameter.role == ParameterRole::kWeight;
  switch (model.init.outputs) {
    case InitOutputs::kDrawn:
      return;
    case InitOutputs::kZero:
      if (IsOutput(parameter)) draw->then_zeroed = true;
      return;
    case InitOutputs::kDepthScaled:
      if (is_weight && IsOutput(parameter)) draw->factor = 1 / std::sqrt(2.0 * model.layers);
      return;
    case InitOutputs::kDeepnorm:
      break;
  }
  if (!is_weight) return;
  draw->factor = std::pow(8.0 * model.layers, -0.25);
  // Values alone have the factor, not queries and keys.
  if (parameter.module == Module::kQkv) draw->first_row = QueryWidth(model) + KvWidth(model);
}

}  // namespace

InitialDraw DrawOf(const ParameterInfo& parameter, const ModelConfig& model) {
  const InitKind kind = model.init.kind;
  InitialDraw draw;
  switch (parameter.role) {
    case ParameterRole::kGain:
    case ParameterRole::kAlpha:
    case ParameterRole::kOffset:
      return {Distribution::kConstant, parameter.start};
    case ParameterRole::kBias:
      draw = BiasDraw(parameter, kind);
      break;
    case ParameterRole::kEmbedding:
    case ParameterRole::kPosition:
      return {Distribution::kNormal, kind == InitKind::kGpt2 ? 0.02 : 1.0};
    case ParameterRole::kHead:
      return HeadDraw(parameter, model);
    case ParameterRole::kWeight:
      draw = WeightDraw(parameter, kind);
      break;
  }
  ApplyWidth(parameter, model, &draw);
  ApplyOutputs(parameter, model, &draw);
  return draw;
}

double VarianceOf(const InitialDraw& draw) {
  if (draw.then_zeroed) return 0;
  switch (draw.distribution) {
    case Distribution::kConstant:
      break;
    case Distribution::kNormal:
      return draw.scale * draw.scale;
    case Distribution::kUniform:
      return draw.scale * draw.scale / 3;
  }
  return 0;
}

}  // namespace ablate::engine
