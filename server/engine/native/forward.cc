#include "server/engine/native/forward.h"

#include <algorithm>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/core/supports.h"
#include "server/engine/native/reader.h"

namespace ablate::engine::native {
namespace {

absl::Status CheckSize(const char* what, size_t size, int64_t expected) {
  if (static_cast<int64_t>(size) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": there are ", size, ", but the model has ", expected));
}

ModelConfig WithoutDropout(ModelConfig config) {
  config.dropout = 0;
  return config;
}

}  // namespace

NativeForward::NativeForward(const RunConfig& config, Signal signal, const Kernels& kernels)
    : config_(WithoutDropout(config.model)),
      rule_(signal == Signal::kExact ? LearningRule::kBackprop : config.training.rule),
      norm_backward_(signal == Signal::kExact ? NormBackward::kExact : config.model.norm.backward),
      layout_(MakeLayout(config.model, config.training.rule)),
      kernels_(kernels),
      values_(layout_.size),
      buffers_(layout_.buffer_size),
      model_(BindModel(config_, rule_, layout_, {values_.data(), nullptr, buffers_.data()})) {}

NativeForward::Differentiation::Differentiation(const NativeForward& of)
    : gradient(of.layout_.size),
      buffers(of.layout_.buffer_size),
      model(BindModel(of.config_, of.rule_, of.layout_,
                      {of.values_.data(), gradient.data(), buffers.data()})),
      setting{true, of.norm_backward_, 0, 0},
      pass(of.config_, setting, of.rule_, of.kernels_) {}

absl::StatusOr<std::unique_ptr<NativeForward>> NativeForward::Make(const RunConfig& config,
                                                                   const FlatPoint& point,
                                                                   Signal signal,
                                                                   const Kernels& kernels) {
  const std::string why = WhyNoNativePass(config);
  if (!why.empty()) return absl::InvalidArgumentError(why);
  try {
    std::unique_ptr<NativeForward> made(new NativeForward(config, signal, kernels));
    RETURN_IF_ERROR(made->Move(point));
    return made;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

absl::Status NativeForward::Move(const FlatPoint& point) {
  absl::Status sizes = CheckSize("parameters", point.values.size(), layout_.size);
  sizes.Update(CheckSize("buffers", point.buffers.size(), layout_.buffer_size));
  if (!sizes.ok()) return sizes;
  std::copy(point.values.begin(), point.values.end(), values_.data());
  std::copy(point.buffers.begin(), point.buffers.end(), buffers_.data());
  return absl::OkStatus();
}

absl::StatusOr<LossSums> NativeForward::Score(const TokenBatch& batch) {
  try {
    if (!score_.has_value()) score_.emplace(config_, scoring_, rule_, kernels_);
    return score_->Score(model_, batch);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

absl::StatusOr<double> NativeForward::Differentiate(const TokenBatch& batch,
                                                    absl::Span<float> gradient) {
  const absl::Status size = CheckSize("gradient", gradient.size(), layout_.size);
  if (!size.ok()) return size;
  try {
    if (!differentiation_.has_value()) differentiation_.emplace(*this);
    Differentiation& with = *differentiation_;
    std::copy_n(buffers_.data(), layout_.buffer_size, with.buffers.data());
    std::fill_n(with.gradient.data(), layout_.size, 0.0f);
    const double loss = with.pass.AddGradient(with.model, batch);
    std::copy_n(with.gradient.data(), layout_.size, gradient.begin());
    return loss;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

std::unique_ptr<SequenceReader> NativeForward::Read(int sequences) const {
  return MakeReader(config_, model_, sequences, kernels_);
}

}  // namespace ablate::engine::native
