// Computes a pretrained model's logits in float64 by plain loops over its parameters.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/core/layout.h"
#include "server/engine/flush_subnormals.h"
#include "server/engine/pretrained.h"

namespace ablate::engine {
namespace {

// A matrix [rows, columns], row-major.
struct Matrix {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<double> values;

  double* row(size_t i) { return values.data() + i * columns; }
  const double* row(size_t i) const { return values.data() + i * columns; }
};

Matrix ZeroMatrix(size_t rows, size_t columns) {
  return {rows, columns, std::vector<double>(rows * columns)};
}

// The parameters of a model by their names; those that it lacks are empty.
class Values {
 public:
  explicit Values(const ImportedModel& imported) {
    for (const ParameterInfo& parameter : MakeLayout(imported.model).parameters) {
      by_name_[parameter.name] =
          absl::MakeSpan(imported.parameters)
              .subspan(static_cast<size_t>(parameter.offset), static_cast<size_t>(parameter.size));
    }
  }

  absl::Span<const float> Of(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? absl::Span<const float>() : found->second;
  }

 private:
  std::map<std::string, absl::Span<const float>> by_name_;
};

// Returns Σ a·b of `size` elements. Sums of every eighth element are independent of each other, so
// that the compiler computes them together.
double Dot(const double* a, const float* b, size_t size) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += a[i + j] * static_cast<double>(b[i + j]);
  }
  for (; i < size; ++i) sums[0] += a[i] * static_cast<double>(b[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// Returns x Wᵀ + b for W [out, in]; b may be empty.
Matrix Product(const Matrix& x, absl::Span<const float> weight, absl::Span<const float> bias) {
  Matrix y = ZeroMatrix(x.rows, weight.size() / x.columns);
  for (size_t out = 0; out < y.columns; ++out) {
    const double shift = bias.empty() ? 0 : static_cast<double>(bias[out]);
    for (size_t t = 0; t < x.rows; ++t) {
      y.row(t)[out] = shift + Dot(x.row(t), &weight[out * x.columns], x.columns);
    }
  }
  return y;
}

Matrix Linear(const Values& values, const std::string& name, const Matrix& x) {
  return Product(x, values.Of(name + ".weight"), values.Of(name + ".bias"));
}

// Normalises `size` numbers by LayerNorm or RMSNorm; the bias may be empty.
void Normalise(bool centres, double eps, absl::Span<const float> gain, absl::Span<const float> bias,
               double* x) {
  const auto size = static_cast<double>(gain.size());
  double mean = 0, square = 0;
  for (size_t j = 0; centres && j < gain.size(); ++j) mean += x[j] / size;
  for (size_t j = 0; j < gain.size(); ++j) square += (x[j] - mean) * (x[j] - mean) / size;
  const double factor = 1 / std::sqrt(square + eps);
  for (size_t j = 0; j < gain.size(); ++j) {
    x[j] = (x[j] - mean) * factor * static_cast<double>(gain[j]);
    if (!bias.empty()) x[j] += static_cast<double>(bias[j]);
  }
}

// Returns the norm of each row; x itself if the model lacks it.
Matrix Normed(const Values& values, const std::string& name, const NormConfig& norm, Matrix x) {
  const absl::Span<const float> gain = values.Of(name + ".weight");
  for (size_t t = 0; !gain.empty() && t < x.rows; ++t) {
    Normalise(norm.kind == NormKind::kLayer, norm.eps, gain, values.Of(name + ".bias"), x.row(t));
  }
  return x;
}

// Rotates features j and j + r/2 of a head at position t, for j < r/2.
void Rotate(const ModelConfig& model, size_t t, double* head) {
  const auto half = static_cast<size_t>(RotatedFeatures(model) / 2);
  for (size_t j = 0; j < half; ++j) {
    const double angle =
        static_cast<double>(t) *
        std::pow(model.rotary.theta, -static_cast<double>(j) / static_cast<double>(half));
    const double low = head[j], high = head[j + half];
    head[j] = low * std::cos(angle) - high * std::sin(angle);
    head[j + half] = high * std::cos(angle) + low * std::sin(angle);
  }
}

// Normalises and rotates the heads of queries and keys, [T, (H + K)·e].
void TurnHeads(const Values& values, const std::string& name, const ModelConfig& model,
               Matrix* qkv) {
  const auto size = static_cast<size_t>(HeadSize(model)), heads = static_cast<size_t>(model.heads);
  const absl::Span<const float> query_gain = values.Of(name + "query_norm.weight"),
                                key_gain = values.Of(name + "key_norm.weight");
  for (size_t t = 0; t < qkv->rows; ++t) {
    for (size_t head = 0; head < heads + static_cast<size_t>(KvHeads(model)); ++head) {
      double* const x = qkv->row(t) + head * size;
      if (!query_gain.empty()) {
        Normalise(false, model.norm.eps, head < heads ? query_gain : key_gain, {}, x);
      }
      if (model.positions == Positions::kRotary) Rotate(model, t, x);
    }
  }
}

// Returns causal attention of every head, concatenated, [T, H·e]; qkv [T, (H + 2K)·e] has queries,
// keys, values.
Matrix CausalAttention(const Matrix& qkv, const ModelConfig& model) {
  const auto size = static_cast<size_t>(HeadSize(model)), heads = static_cast<size_t>(model.heads);
  const auto kv_heads = static_cast<size_t>(KvHeads(model));
  Matrix mixed = ZeroMatrix(qkv.rows, heads * size);
  std::vector<double> weights(qkv.rows);
  for (size_t head = 0; head < heads; ++head) {
    const size_t keys = (heads + head * kv_heads / heads) * size, values = keys + kv_heads * size;
    for (size_t t = 0; t < qkv.rows; ++t) {
      const double* query = qkv.row(t) + head * size;
      double largest = -HUGE_VAL, sum = 0;
      for (size_t s = 0; s <= t; ++s) {
        const double* key = qkv.row(s) + keys;
        weights[s] = 0;
        for (size_t j = 0; j < size; ++j) weights[s] += query[j] * key[j];
        weights[s] /= std::sqrt(static_cast<double>(size));
        largest = std::max(largest, weights[s]);
      }
      for (size_t s = 0; s <= t; ++s) sum += weights[s] = std::exp(weights[s] - largest);
      double* to = mixed.row(t) + head * size;
      for (size_t s = 0; s <= t; ++s) {
        const double* value = qkv.row(s) + values;
        for (size_t j = 0; j < size; ++j) to[j] += weights[s] / sum * value[j];
      }
    }
  }
  return mixed;
}

double Activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
    case Activation::kReglu:
      return std::max(x, 0.0);
    case Activation::kGelu:
    case Activation::kGeglu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
    case Activation::kSwiglu:
      return x / (1 + std::exp(-x));
    case Activation::kRelu2:
      break;
  }
  return 0;  // no family has it
}

void AddTo(Matrix* x, const Matrix& update) {
  for (size_t i = 0; i < x->values.size(); ++i) x->values[i] += update.values[i];
}

// Returns the sum of token and learned position embeddings.
Matrix Embedded(const Values& values, absl::Span<const int64_t> tokens, size_t width) {
  const absl::Span<const float> token_embedding = values.Of("token_embedding.weight"),
                                position_embedding = values.Of("position_embedding.weight");
  Matrix x = ZeroMatrix(tokens.size(), width);
  for (size_t t = 0; t < x.rows; ++t) {
    const auto token = static_cast<size_t>(tokens[t]);
    for (size_t j = 0; j < width; ++j) {
      x.row(t)[j] = static_cast<double>(token_embedding[token * width + j]);
      if (!position_embedding.empty()) {
        x.row(t)[j] += static_cast<double>(position_embedding[t * width + j]);
      }
    }
  }
  return x;
}

Matrix FeedForward(const Values& values, const std::string& name, const ModelConfig& model,
                   const Matrix& x) {
  Matrix up = Linear(values, name + "up", x);
  const auto hidden = static_cast<size_t>(model.hidden);
  Matrix active = ZeroMatrix(x.rows, hidden);
  for (size_t t = 0; t < x.rows; ++t) {
    for (size_t j = 0; j < hidden; ++j) {
      const double gated = IsGated(model.activation) ? up.row(t)[hidden + j] : 1;
      active.row(t)[j] = Activated(model.activation, up.row(t)[j]) * gated;
    }
  }
  return Linear(values, name + "down", active);
}

// Adds a block's updates to x.
void AddBlock(const Values& values, const std::string& name, const ModelConfig& model, Matrix* x) {
  const Matrix before = *x;
  const std::string attention = name + "attention.", feed_forward = name + "feed_forward.";
  Matrix qkv =
      Linear(values, attention + "qkv", Normed(values, attention + "norm", model.norm, *x));
  TurnHeads(values, attention, model, &qkv);
  AddTo(x, Linear(values, attention + "projection", CausalAttention(qkv, model)));
  const Matrix& in = model.parallel ? before : *x;
  AddTo(x, FeedForward(values, feed_forward, model,
                       Normed(values, feed_forward + "norm", model.norm, in)));
}

absl::Status CheckTokens(const ModelConfig& model, absl::Span<const int64_t> tokens) {
  if (tokens.empty() || tokens.size() > static_cast<size_t>(model.context)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokens: there are ", tokens.size(), "; expected 1 to ", model.context, "."));
  }
  for (const int64_t token : tokens) {
    if (token >= 0 && token < model.vocabulary) continue;
    return absl::InvalidArgumentError(absl::StrCat("tokens: ", token,
                                                   " is outside the vocabulary; expected 0 to ",
                                                   model.vocabulary - 1, "."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<double>> PlainLogits(const ImportedModel& imported,
                                                absl::Span<const int64_t> tokens,
                                                LogitPositions positions) {
  const FlushSubnormals flush;  // as the engine's passes
  const ModelConfig& model = imported.model;
  RETURN_IF_ERROR(CheckTokens(model, tokens));
  const Values values(imported);
  const auto width = static_cast<size_t>(model.width);
  Matrix x = Embedded(values, tokens, width);
  for (int block = 0; block < model.layers; ++block) {
    AddBlock(values, absl::StrCat("block.", block, "."), model, &x);
  }
  if (positions == LogitPositions::kLast) {
    Matrix last = ZeroMatrix(1, width);
    std::copy_n(x.row(x.rows - 1), width, last.row(0));
    x = std::move(last);
  }
  x = Normed(values, "final_norm", model.norm, std::move(x));
  const char* const head = model.tied_head ? "token_embedding.weight" : "head.weight";
  return Product(x, values.Of(head), {}).values;
}

}  // namespace ablate::engine
