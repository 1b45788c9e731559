#include "server/engine/native/layers.h"

#include <algorithm>
#include <cmath>

namespace ablate::engine::native {
namespace {

// Features transposed together: their columns fit in the L1 cache together with a tile.
constexpr int kPanel = 64;

// Momentum of running statistics, as in torch.nn.BatchNorm1d.
constexpr float kMomentum = 0.1f;

// Returns what is added to each gain.
float BaseOf(const NormConfig& config) { return config.gain_form == GainForm::kOnePlus ? 1 : 0; }

}  // namespace

bool NormsInput(const NormConfig& config) {
  return config.placement == NormPlacement::kPre || config.placement == NormPlacement::kSandwich;
}

SublayerNorms AttentionNorms(const ModelConfig& config, const Block& block) {
  return {HasAttentionNorm(config), block.attention_norm, block.attention_post_norm,
          block.attention_factor};
}

SublayerNorms FeedForwardNorms(const ModelConfig& config, const Block& block) {
  return {HasFeedForwardNorm(config), block.feed_forward_norm, block.feed_forward_post_norm,
          block.feed_forward_factor};
}

void FillMask(const DropoutStream& stream, const MaskLines& lines, float* mask) {
  for (int l = 0; l < lines.lines; ++l) {
    stream.FillLine(static_cast<uint64_t>(lines.first[l]), lines.length, mask + l * lines.line,
                    lines.stride);
  }
}

void Layers::Apply(const Linear& linear, const float* x, int columns, float* y, bool add) const {
  Gemm g;
  g.rows = linear.out;
  g.columns = columns;
  g.depth = linear.in;
  g.a = linear.weight;
  g.a_row = linear.in;
  g.b = x;
  g.b_row = columns;
  g.c = y;
  g.c_row = columns;
  g.bias = linear.bias;
  g.accumulate = add;
  kernels_.gemm(g);
}

void Layers::Back(const Linear& linear, const float* dy, int columns, float* dx, bool add) const {
  Gemm g;
  g.rows = linear.in;
  g.columns = columns;
  g.depth = linear.out;
  g.a = linear.back;
  g.a_row = 1;
  g.a_k = linear.in;
  g.b = dy;
  g.b_row = columns;
  g.c = dx;
  g.c_row = columns;
  g.accumulate = add;
  kernels_.gemm(g);
}

void Layers::AddGradients(const Linear& linear, const float* x, const float* dy, int columns) {
  float* const panel = transposed_.Reserve(int64_t{kPanel} * columns);
  for (int first = 0; first < linear.in; first += kPanel) {
    const int features = std::min(kPanel, linear.in - first), row = RoundUp(features);
    kernels_.transpose(x + int64_t{first} * columns, columns, features, columns, panel, row);
    Gemm g;
    g.rows = linear.out;
    g.columns = features;
    g.depth = columns;
    g.a = dy;
    g.a_row = columns;
    g.b = panel;
    g.b_row = row;
    g.c = linear.dweight + first;
    g.c_row = linear.in;
    g.accumulate = true;
    kernels_.gemm(g);
  }
  if (linear.dbias != nullptr) {
    kernels_.add_row_sums(dy, columns, linear.out, columns, linear.dbias);
  }
}

void Layers::Normalise(const Norm& norm, const float* x, const ColumnGroup& group, float* y,
                       NormMemory& memory) const {
  const NormConfig& config = config_.norm;
  const NormSize size = {config_.width, group.count};
  const int64_t elements = int64_t{config_.width} * group.count;
  if (IsPointwise(config.kind)) {
    kernels_.pointwise_norm_forward(
        {size, config.kind, *norm.alpha, norm.offset == nullptr ? 0.0f : *norm.offset, x, norm.gain,
         BaseOf(config), norm.shift, memory.x.Reserve(elements), memory.x_hat.Reserve(elements),
         memory.slope.Reserve(elements), y});
    return;
  }
  const float eps = static_cast<float>(config.eps), base = BaseOf(config);
  float* const rstd = memory.rstd.Reserve(std::max(config_.width, group.count));
  if (config.kind != NormKind::kBatch) {
    kernels_.norm_forward({size, config.kind, config.deviation, eps, x, norm.gain, base, norm.shift,
                           memory.x_hat.Reserve(elements), y, rstd,
                           memory.along_scale.Reserve(group.count)});
    return;
  }
  if (!pass_.training) {
    for (int f = 0; f < config_.width; ++f) {
      rstd[f] = 1 / std::sqrt(norm.running_variance[f] + eps);
    }
    kernels_.standardise_rows({size, x, norm.running_mean, rstd, norm.gain, base, norm.shift, y});
    return;
  }
  // Reuses this memory for the batch's mean and variance.
  float* const moments = memory.along_scale.Reserve(2 * int64_t{config_.width});
  float* const variance = moments + config_.width;
  kernels_.batch_norm_forward({size, eps, group.real, group.tokens, x, norm.gain, base, norm.shift,
                               memory.x_hat.Reserve(elements), y, moments, variance, rstd});
  const float unbiased = group.tokens / (group.tokens - 1);
  for (int f = 0; f < config_.width; ++f) {
    norm.running_mean[f] += kMomentum * (moments[f] - norm.running_mean[f]);
    norm.running_variance[f] += kMomentum * (variance[f] * unbiased - norm.running_variance[f]);
  }
}

void Layers::NormaliseBack(const Norm& norm, const NormMemory& memory, const float* dy,
                           const ColumnGroup& group, float* dx, bool add) const {
  const NormSize size = {config_.width, group.count};
  const float base = BaseOf(config_.norm);
  if (IsPointwise(config_.norm.kind)) {
    kernels_.pointwise_norm_back({size, *norm.alpha, dy, memory.x.data(), memory.x_hat.data(),
                                  memory.slope.data(), norm.gain, base, norm.dgain, norm.dshift,
                                  norm.dalpha, norm.doffset, dx, add});
    return;
  }
  if (config_.norm.kind == NormKind::kBatch) {
    kernels_.batch_norm_back({size, pass_.norm_backward, group.real, group.tokens, dy,
                              memory.x_hat.data(), memory.rstd.data(), norm.gain, base, norm.dgain,
                              norm.dshift, dx, add});
    return;
  }
  kernels_.norm_back({size, config_.norm.kind, pass_.norm_backward, dy, memory.x_hat.data(),
                      memory.rstd.data(), memory.along_scale.data(), norm.gain, base, norm.dgain,
                      norm.dshift, dx, add});
}

bool Layers::Is(const SublayerNorms& norms, NormPlacement placement) const {
  return norms.present && config_.norm.placement == placement;
}

bool Layers::Inside(const SublayerNorms& norms) const {
  return norms.present && NormsInput(config_.norm);
}

bool Layers::AddsPlainly(const SublayerNorms& norms) const {
  return config_.residual && config_.residual_scale == 1 && !drops() &&
         !Is(norms, NormPlacement::kSandwich) && norms.factor.gain == nullptr;
}

void Layers::Scale(const UpdateFactor& factor, int columns, Floats& kept, float* update) const {
  if (factor.gain == nullptr) return;
  const bool by_feature = config_.update_gain == UpdateGain::kFeature;
  std::copy_n(update, int64_t{config_.width} * columns,
              kept.Reserve(int64_t{config_.width} * columns));
  for (int f = 0; f < config_.width; ++f) {
    float* const row = update + int64_t{f} * columns;
    kernels_.combine(factor.gain[by_feature ? f : 0], row, 0, row, columns);
  }
}

void Layers::ScaleBack(const UpdateFactor& factor, int columns, const Floats& kept,
                       float* d) const {
  if (factor.gain == nullptr) return;
  const bool by_feature = config_.update_gain == UpdateGain::kFeature;
  float* const product = product_.Reserve(columns);
  for (int f = 0; f < config_.width; ++f) {
    float* const row = d + int64_t{f} * columns;
    std::copy_n(kept.data() + int64_t{f} * columns, columns, product);
    kernels_.multiply(row, product, columns);
    kernels_.add_row_sums(product, columns, 1, columns, factor.dgain + (by_feature ? f : 0));
    kernels_.combine(factor.gain[by_feature ? f : 0], row, 0, row, columns);
  }
}

void Layers::Begin(const SublayerNorms& norms, const float* stream, const ColumnGroup& group,
                   SublayerMemory& memory) const {
  const int64_t elements = int64_t{config_.width} * group.count;
  float* const in = memory.in.Reserve(elements);
  if (Inside(norms)) {
    Normalise(norms.norm, stream, group, in, memory.norm);
  } else {
    std::copy_n(stream, elements, in);
  }
}

void Layers::End(const SublayerNorms& norms, const Linear& last, const float* x,
                 BlockHookPoint hook_point, const ColumnGroup& group, SublayerMemory& memory,
                 float* stream) {
  const int64_t elements = int64_t{config_.width} * group.count;
  if (AddsPlainly(norms)) {
    Apply(last, x, group.count, stream, /*add=*/true);
  } else {
    float* const update = update_.Reserve(elements);
    Apply(last, x, group.count, update);
    Drop(hook_point, group, memory.mask, update);
    if (Is(norms, NormPlacement::kSandwich)) {
      Normalise(norms.post_norm, update, group, update, memory.post_norm);
    }
    Scale(norms.factor, group.count, memory.update, update);
    const auto scale = static_cast<float>(config_.residual ? config_.residual_scale : 1);
    kernels_.combine(scale, update, config_.residual ? 1.0f : 0.0f, stream, elements);
  }
  if (Is(norms, NormPlacement::kPost)) {
    Normalise(norms.norm, stream, group, stream, memory.norm);
  }
}

const float* Layers::EndBack(const SublayerNorms& norms, const ColumnGroup& group,
                             const SublayerMemory& memory, float* d, float* room) const {
  const int64_t elements = int64_t{config_.width} * group.count;
  if (Is(norms, NormPlacement::kPost)) {
    NormaliseBack(norms.norm, memory.norm, d, group, d, /*add=*/false);
  }
  if (AddsPlainly(norms)) return d;
  const auto scale = static_cast<float>(config_.residual ? config_.residual_scale : 1);
  kernels_.combine(scale, d, 0, room, elements);
  ScaleBack(norms.factor, group.count, memory.update, room);
  if (Is(norms, NormPlacement::kSandwich)) {
    NormaliseBack(norms.post_norm, memory.post_norm, room, group, room, /*add=*/false);
  }
  if (drops()) kernels_.multiply(memory.mask.data(), room, elements);
  return room;
}

void Layers::BeginBack(const SublayerNorms& norms, const ColumnGroup& group,
                       const SublayerMemory& memory, float* dx, float* d) const {
  if (Inside(norms)) {
    NormaliseBack(norms.norm, memory.norm, dx, group, d, config_.residual);
    return;
  }
  kernels_.combine(1, dx, config_.residual ? 1.0f : 0.0f, d, int64_t{config_.width} * group.count);
}

void Layers::FeedForward(const Block& block, int index, const ColumnGroup& group,
                         FeedForwardMemory& memory, float* stream) {
  Begin(FeedForwardNorms(config_, block), stream, group, memory.sublayer);
  ApplyFeedForward(block, index, group, memory, stream);
}

void Layers::ApplyFeedForward(const Block& block, int index, const ColumnGroup& group,
                              FeedForwardMemory& memory, float* stream) {
  float* const up = memory.slope.Reserve(int64_t{block.up.out} * group.count);
  float* const hidden = memory.hidden.Reserve(int64_t{config_.hidden} * group.count);
  Apply(block.up, memory.sublayer.in.data(), group.count, up);
  kernels_.activate(
      {config_.activation, config_.hidden, group.count, up, hidden, pass_.training ? up : nullptr});
  End(FeedForwardNorms(config_, block), block.down, hidden, {HookPoint::kFeedForwardOutput, index},
      group, memory.sublayer, stream);
}

void Layers::FeedForwardBack(const Block& block, const ColumnGroup& group,
                             FeedForwardMemory& memory, float* d) {
  float* const dx = FeedForwardInputBack(block, group, memory, d);
  BeginBack(FeedForwardNorms(config_, block), group, memory.sublayer, dx, d);
}

float* Layers::FeedForwardInputBack(const Block& block, const ColumnGroup& group,
                                    FeedForwardMemory& memory, float* d) {
  const int64_t hidden = int64_t{config_.hidden} * group.count;
  float* const room = room_.Reserve(int64_t{config_.width} * group.count);
  const float* const dupdate =
      EndBack(FeedForwardNorms(config_, block), group, memory.sublayer, d, room);
  AddGradients(block.down, memory.hidden.data(), dupdate, group.count);
  float* const dup = dup_.Reserve(int64_t{block.up.out} * group.count);
  Back(block.down, dupdate, group.count, dup);
  if (IsGated(config_.activation)) {
    std::copy_n(dup, hidden, dup + hidden);
    kernels_.multiply(memory.slope.data() + hidden, dup + hidden, hidden);
  }
  kernels_.multiply(memory.slope.data(), dup, hidden);
  AddGradients(block.up, memory.sublayer.in.data(), dup, group.count);
  Back(block.up, dup, group.count, room);
  return room;
}

void Layers::Drop(BlockHookPoint hook_point, const ColumnGroup& group, Floats& mask,
                  float* x) const {
  if (!drops()) return;
  const int64_t elements = int64_t{config_.width} * group.count;
  float* const to = mask.Reserve(elements);
  FillMask(MasksOf(hook_point), {group.element, group.count, config_.width, 1, group.count}, to);
  kernels_.multiply(to, x, elements);
}

}  // namespace ablate::engine::native
