// Computes the model family's evaluation in plain ATen operations, row by row, independent of
// engine/torch/model. Analyses of drawn settings are compared with it, by values and by autograd.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_MODEL_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_MODEL_H_

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/analyze/plain_norm.h"
#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {

// A model with parameters `values` [P] and buffers; it reads one row at a time.
class PlainModel {
 public:
  PlainModel(const RunConfig& config, const at::Tensor& values, const at::Tensor& buffers)
      : model_(config.model), options_(values.options().requires_grad(false)) {
    const ParameterLayout layout = MakeLayout(config.model, config.training.rule);
    for (const ParameterInfo& parameter : layout.parameters) {
      parameters_[parameter.name] =
          values.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
    }
    for (const BufferInfo& buffer : layout.buffers) {
      buffers_[buffer.name] = buffers.narrow(0, buffer.offset, buffer.size);
    }
  }

  // Changes the activation of a place, [T, d]: embedding, block.{i}, block.{i}.attention,
  // block.{i}.feed_forward (its sublayer's output), block.{i}.attention.heads, or
  // block.{i}.attention.qkv, which is [T, 3d].
  using Change = std::function<at::Tensor(const std::string& place, const at::Tensor& x)>;

  // Returns position and target of each prediction of a row that counts.
  std::vector<std::pair<int64_t, int64_t>> TargetsOf(const TokenBatch& batch, int64_t row) const {
    const int64_t length = batch.lengths[static_cast<size_t>(row)];
    const bool last = model_.loss == LossPositions::kLast;
    std::vector<std::pair<int64_t, int64_t>> targets;
    for (int64_t position = last ? length - 1 : 0; position < length; ++position) {
      const int64_t at = last ? row : row * batch.length + position;
      const int64_t target = batch.targets[static_cast<size_t>(at)];
      if (target != TokenBatch::kIgnored) targets.emplace_back(position, target);
    }
    return targets;
  }

  // The loss summed over a batch's targets, and the number of correct predictions.
  struct Evaluation {
    at::Tensor loss;
    double correct = 0;
  };
  Evaluation Evaluate(const TokenBatch& batch, const Change& change = nullptr) const {
    Evaluation sum = {at::zeros({}, options_)};
    for (int64_t row = 0; row < batch.rows; ++row) {
      const at::Tensor logits = Logits(batch.Rows(row, 1).inputs, change);
      const at::Tensor losses = logits.logsumexp(-1).unsqueeze(1) - logits;  // [T, V]
      for (const auto& [position, target] : TargetsOf(batch, row)) {
        sum.loss = sum.loss + losses[position][target];
        sum.correct += logits[position].argmax().item<int64_t>() == target ? 1 : 0;
      }
    }
    return sum;
  }

  // Returns the logits of a row, [T, V].
  at::Tensor Logits(const std::vector<int64_t>& tokens, const Change& change = nullptr) const {
    const at::Tensor x = Streams(tokens, change).back();
    return LogitsOf(x, x);
  }

  // Returns the embedding and the output of each block, [T, d].
  std::vector<at::Tensor> Streams(const std::vector<int64_t>& tokens,
                                  const Change& change = nullptr) const {
    const auto at = [&](const std::string& place, const at::Tensor& activation) {
      return change ? change(place, activation) : activation;
    };
    at::Tensor x = Parameter("token_embedding.weight").index_select(0, at::tensor(tokens));
    const int64_t length = x.size(0);
    if (model_.positions == Positions::kLearned) {
      x = x + Parameter("position_embedding.weight").narrow(0, 0, length);
    } else if (model_.positions == Positions::kSinusoidal) {
      x = x + Sinusoids(length);
    }
    x = at("embedding", x);
    std::vector<at::Tensor> streams = {x};
    for (int i = 0; i < model_.layers; ++i) {
      const std::string block = absl::StrCat("block.", i, ".");
      if (Attends(model_)) {
        x = Sublayer(x, block + "attention.", HasAttentionNorm(model_), [&](const at::Tensor& in) {
          const at::Tensor qkv = at(block + "attention.qkv", Linear(in, block + "attention.qkv"));
          const at::Tensor heads = at(block + "attention.heads", Heads(qkv));
          return at(block + "attention", Linear(heads, block + "attention.projection"));
        });
      }
      x = Sublayer(x, block + "feed_forward.", HasFeedForwardNorm(model_),
                   [&](const at::Tensor& in) {
                     return at(block + "feed_forward", FeedForward(in, block + "feed_forward."));
                   });
      x = at(absl::StrCat("block.", i), x);
      streams.push_back(x);
    }
    return streams;
  }

  // Returns the logits [T, V] of a stream x [T, d], whose final norm divides by the deviation of
  // `scale` [T, d].
  at::Tensor LogitsOf(at::Tensor x, const at::Tensor& scale) const {
    if (model_.norm.final) x = Norm(x, "final_norm", scale);
    const at::Tensor head = Parameter(model_.tied_head ? "token_embedding.weight" : "head.weight");
    return WithBias(x.mm(head.t()), "head.bias");
  }

 private:
  template <typename Function>
  at::Tensor Sublayer(const at::Tensor& x, const std::string& name, bool has_norm,
                      const Function& function) const {
    const NormPlacement placement = has_norm ? model_.norm.placement : NormPlacement::kNone;
    const bool before = placement == NormPlacement::kPre || placement == NormPlacement::kSandwich;
    at::Tensor update = function(before ? Norm(x, name + "norm") : x);
    if (placement == NormPlacement::kSandwich) update = Norm(update, name + "post_norm");
    const at::Tensor sum = model_.residual ? x + model_.residual_scale * update : update;
    return placement == NormPlacement::kPost ? Norm(sum, name + "norm") : sum;
  }

  // Returns the outputs of all heads, [T, d].
  at::Tensor Heads(const at::Tensor& qkv) const {
    const int64_t length = qkv.size(0), d = model_.width, size = d / model_.heads;
    std::vector<at::Tensor> heads;
    for (int64_t head = 0; head < model_.heads; ++head) {
      const auto part = [&](int64_t which) { return qkv.narrow(1, which * d + head * size, size); };
      at::Tensor scores =
          Turned(part(0)).mm(Turned(part(1)).t()) / std::sqrt(static_cast<double>(size));
      if (model_.attention.kind == AttentionKind::kSigmoid) {
        scores = scores + model_.attention.score_bias;
      }
      if (model_.attention.causal) {
        const at::Tensor later = at::ones({length, length}, at::kBool).triu(1);
        scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
      }
      const bool softmax = model_.attention.kind == AttentionKind::kSoftmax;
      heads.push_back((softmax ? scores.softmax(-1) : scores.sigmoid()).mm(part(2)));
    }
    return at::cat(heads, 1);
  }

  at::Tensor FeedForward(const at::Tensor& x, const std::string& name) const {
    return Linear(Activated(Linear(x, name + "up")), name + "down");
  }

  at::Tensor Activated(const at::Tensor& x) const {
    switch (model_.activation) {
      case Activation::kRelu:
        return x.clamp_min(0);
      case Activation::kGelu:
        return x * 0.5 * (1 + (x / std::sqrt(2.0)).erf());
      case Activation::kGeluTanh:
        return x * 0.5 * (1 + ((x + 0.044715 * x.pow(3)) * std::sqrt(8 / (4 * M_PI))).tanh());
      case Activation::kSilu:
        return x * x.sigmoid();
      case Activation::kRelu2:
        return x.clamp_min(0).pow(2);
      case Activation::kSwiglu:
      case Activation::kGeglu:
      case Activation::kReglu:
        break;
    }
    const std::vector<at::Tensor> halves = x.chunk(2, -1);
    const at::Tensor& gate = halves[0];
    if (model_.activation == Activation::kSwiglu) return gate * gate.sigmoid() * halves[1];
    if (model_.activation == Activation::kReglu) return gate.clamp_min(0) * halves[1];
    return gate * 0.5 * (1 + (gate / std::sqrt(2.0)).erf()) * halves[1];
  }

  at::Tensor Norm(const at::Tensor& x, const std::string& name) const { return Norm(x, name, x); }

  // Divides by the deviation of `scale` instead of that of x, except in a BatchNorm.
  at::Tensor Norm(const at::Tensor& x, const std::string& name, const at::Tensor& scale) const {
    const NormConfig& norm = model_.norm;
    at::Tensor x_hat = norm.kind == NormKind::kBatch
                           ? (x - Buffer(name + ".running_mean")) /
                                 (Buffer(name + ".running_variance") + norm.eps).sqrt()
                           : PlainNorm(x, norm, scale);
    if (norm.gain) x_hat = x_hat * Parameter(name + ".weight");
    return WithBias(x_hat, name + ".bias");
  }

  at::Tensor Linear(const at::Tensor& x, const std::string& name) const {
    return WithBias(x.mm(Parameter(name + ".weight").t()), name + ".bias");
  }

  at::Tensor WithBias(const at::Tensor& x, const std::string& name) const {
    return parameters_.count(name) > 0 ? x + Parameter(name) : x;
  }

  const at::Tensor& Parameter(const std::string& name) const { return parameters_.at(name); }
  const at::Tensor& Buffer(const std::string& name) const { return buffers_.at(name); }

  at::Tensor Sinusoids(int64_t length) const {
    at::Tensor table = at::empty({length, model_.width}, at::kDouble);
    for (int64_t p = 0; p < length; ++p) {
      for (int64_t j = 0; j < model_.width; ++j) {
        const double angle =
            static_cast<double>(p) / std::pow(1e4, static_cast<double>(j - j % 2) / model_.width);
        table[p][j] = j % 2 == 0 ? std::sin(angle) : std::cos(angle);
      }
    }
    return table.to(options_);
  }

  // Returns queries or keys [T, d/H] of one head, rotated if positions are rotary.
  at::Tensor Turned(const at::Tensor& x) const {
    if (model_.positions != Positions::kRotary) return x;
    const int64_t half = x.size(1) / 2;
    at::Tensor angle = at::empty({x.size(0), half}, at::kDouble);
    for (int64_t p = 0; p < x.size(0); ++p) {
      for (int64_t j = 0; j < half; ++j) {
        angle[p][j] = static_cast<double>(p) *
                      std::pow(1e4, -static_cast<double>(j) / static_cast<double>(half));
      }
    }
    const at::Tensor cosine = angle.cos().to(x.scalar_type());
    const at::Tensor sine = angle.sin().to(x.scalar_type());
    const at::Tensor a = x.narrow(1, 0, half), b = x.narrow(1, half, half);
    return at::cat({a * cosine - b * sine, b * cosine + a * sine}, 1);
  }

  const ModelConfig model_;
  const at::TensorOptions options_;
  std::map<std::string, at::Tensor> parameters_;  // by name
  std::map<std::string, at::Tensor> buffers_;
};

// Returns the mean loss over the targets of an analysis, at other parameters [P] in float64.
inline at::Tensor PlainMeanLoss(const AnalysisContext& analysis, const SubjectModel& subject,
                                const at::Tensor& values) {
  const at::Tensor buffers =
      subject.buffers.defined() ? subject.buffers.to(at::kDouble) : subject.buffers;
  const PlainModel plain(subject.config, values, buffers);
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const TokenBatch& batch : analysis.batches) sum = sum + plain.Evaluate(batch).loss;
  return sum / TargetsIn(analysis.batches);
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_MODEL_H_
