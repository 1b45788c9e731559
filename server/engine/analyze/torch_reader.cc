#include "server/engine/analyze/torch_reader.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "server/engine/core/layout.h"
#include "server/engine/torch/model/transformer.h"

namespace ablate::engine {
namespace {

at::Tensor TensorOf(absl::Span<const uint32_t> numbers, at::Device device) {
  const at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, at::kLong);
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor.to(device);
}

void CopyLogits(const at::Tensor& logits, absl::Span<double> to) {
  const at::Tensor exact = logits.to(at::kCPU).to(at::kDouble).contiguous();
  std::copy_n(exact.const_data_ptr<double>(), exact.numel(), to.begin());
}

class CausalReader : public SequenceReader {
 public:
  CausalReader(const ModelConfig& config, const ModelParameters& parameters, int sequences)
      : decoder_(config, parameters, sequences), device_(parameters.token_embedding.device()) {}

  void Next(absl::Span<const uint32_t> tokens, absl::Span<double> logits) override {
    CopyLogits(decoder_.Next(TensorOf(tokens, device_)), logits);
  }

  void Keep(absl::Span<const uint32_t> sequences) override {
    decoder_.Keep(TensorOf(sequences, device_));
  }

 private:
  Decoder decoder_;
  const at::Device device_;
};

// Reads sequences with a model that looks ahead: every token changes all positions, so the whole
// prefix is read again.
class PrefixReader : public SequenceReader {
 public:
  PrefixReader(const ModelConfig& config, const ModelParameters& parameters, int sequences)
      : config_(config),
        parameters_(parameters),
        tokens_(at::empty({sequences, 0}, parameters.token_embedding.options().dtype(at::kLong))) {
    config_.loss = LossPositions::kLast;
  }

  void Next(absl::Span<const uint32_t> tokens, absl::Span<double> logits) override {
    const at::NoGradGuard no_grad;
    tokens_ = at::cat({tokens_, TensorOf(tokens, tokens_.device()).unsqueeze(1)}, 1);  // [B, T]
    BatchTensors batch;
    batch.rows = tokens_.size(0);
    batch.length = tokens_.size(1);
    batch.tokens = tokens_.flatten();                                 // [B·T]
    CopyLogits(Logits(config_, parameters_, batch, Pass()), logits);  // [B, V]
  }

  void Keep(absl::Span<const uint32_t> sequences) override {
    tokens_ = tokens_.index_select(0, TensorOf(sequences, tokens_.device()));
  }

 private:
  ModelConfig config_;
  const ModelParameters& parameters_;
  at::Tensor tokens_;  // [B, T]
};

}  // namespace

std::unique_ptr<SequenceReader> MakeTorchReader(const ModelConfig& config,
                                                const ModelParameters& parameters, int sequences) {
  if (!LooksAhead(config)) {
    return std::make_unique<CausalReader>(config, parameters, sequences);
  }
  return std::make_unique<PrefixReader>(config, parameters, sequences);
}

}  // namespace ablate::engine
