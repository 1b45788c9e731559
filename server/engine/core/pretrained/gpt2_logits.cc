// Computes GPT-2's logits in float64 by plain loops over the tensors of its files.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/engine/core/pretrained/float_values.h"
#include "server/engine/core/pretrained/gpt2_source.h"
#include "server/engine/flush_subnormals.h"
#include "server/engine/gpt2.h"

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

// Reads tensors by their names in GPT-2; remembers the first problem, and then returns zeros.
class Gpt2Values {
 public:
  explicit Gpt2Values(const Gpt2Files& files) : files_(files) {}

  bool Has(const std::string& name) const { return files_.tensors.contains(name); }

  std::vector<float> Read(const std::string& name) {
    const Gpt2Tensor& tensor = files_.tensors.at(name);
    int64_t size = 1;
    for (const int64_t extent : tensor.view.shape) size *= extent;
    std::vector<float> floats(static_cast<size_t>(size));
    const absl::Status copied = CopyFloats(tensor.file, tensor.view, absl::MakeSpan(floats));
    if (status_.ok()) status_ = copied;
    return floats;
  }

  const absl::Status& status() const { return status_; }

 private:
  const Gpt2Files& files_;
  absl::Status status_;
};

// Adds x W to y, where W [in, out]. Columns are processed in blocks of `kBlock`, so that the
// accumulators stay in registers or the nearest cache.
void AddProduct(const Matrix& x, const std::vector<float>& weight, Matrix* y) {
  constexpr size_t kBlock = 64;
  const size_t in = x.columns, out = y->columns;
  for (size_t begin = 0; begin < out; begin += kBlock) {
    const size_t count = std::min(kBlock, out - begin);
    for (size_t i = 0; i < in; ++i) {
      double block[kBlock] = {};
      std::copy_n(&weight[i * out + begin], count, block);
      for (size_t t = 0; t < x.rows; ++t) {
        const double factor = x.row(t)[i];
        double* to = y->row(t) + begin;
        if (count == kBlock) {
          for (size_t j = 0; j < kBlock; ++j) to[j] += factor * block[j];
        } else {
          for (size_t j = 0; j < count; ++j) to[j] += factor * block[j];
        }
      }
    }
  }
}

// Returns x W + b of a Conv1D.
Matrix Conv1d(Gpt2Values& values, const std::string& name, const Matrix& x) {
  const std::vector<float> bias = values.Read(name + ".bias");
  Matrix y = ZeroMatrix(x.rows, bias.size());
  for (size_t t = 0; t < x.rows; ++t) std::copy(bias.begin(), bias.end(), y.row(t));
  AddProduct(x, values.Read(name + ".weight"), &y);
  return y;
}

// Returns LayerNorm or RMSNorm of each row; x itself if the model lacks the norm.
Matrix Gpt2Norm(Gpt2Values& values, const std::string& name, const NormConfig& norm, Matrix x) {
  if (!values.Has(name + ".weight")) return x;
  const std::vector<float> weight = values.Read(name + ".weight");
  std::vector<float> bias(weight.size());
  if (values.Has(name + ".bias")) bias = values.Read(name + ".bias");
  const auto width = static_cast<double>(x.columns);
  for (size_t t = 0; t < x.rows; ++t) {
    double* row = x.row(t);
    double mean = 0, square = 0;
    if (norm.kind == NormKind::kLayer) {
      for (size_t j = 0; j < x.columns; ++j) mean += row[j] / width;
    }
    for (size_t j = 0; j < x.columns; ++j) square += (row[j] - mean) * (row[j] - mean) / width;
    const double factor = 1 / std::sqrt(square + norm.eps);
    for (size_t j = 0; j < x.columns; ++j) row[j] = (row[j] - mean) * factor * weight[j] + bias[j];
  }
  return x;
}

// Returns causal attention of every head, concatenated; qkv [T, 3d] has queries, keys, values.
Matrix CausalAttention(const Matrix& qkv, size_t heads) {
  const size_t width = qkv.columns / 3, size = width / heads;
  Matrix mixed = ZeroMatrix(qkv.rows, width);
  std::vector<double> weights(qkv.rows);
  for (size_t head = 0; head < heads; ++head) {
    for (size_t t = 0; t < qkv.rows; ++t) {
      const double* query = qkv.row(t) + head * size;
      double largest = -HUGE_VAL, sum = 0;
      for (size_t s = 0; s <= t; ++s) {
        const double* key = qkv.row(s) + width + head * size;
        weights[s] = 0;
        for (size_t j = 0; j < size; ++j) weights[s] += query[j] * key[j];
        weights[s] /= std::sqrt(static_cast<double>(size));
        largest = std::max(largest, weights[s]);
      }
      for (size_t s = 0; s <= t; ++s) sum += weights[s] = std::exp(weights[s] - largest);
      double* to = mixed.row(t) + head * size;
      for (size_t s = 0; s <= t; ++s) {
        const double* value = qkv.row(s) + 2 * width + head * size;
        for (size_t j = 0; j < size; ++j) to[j] += weights[s] / sum * value[j];
      }
    }
  }
  return mixed;
}

double Activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kRelu2:
    case Activation::kSwiglu:
    case Activation::kGeglu:
    case Activation::kReglu:
      break;
  }
  return 0;  // GPT-2 has none of these
}

void AddTo(Matrix* x, const Matrix& update) {
  for (size_t i = 0; i < x->values.size(); ++i) x->values[i] += update.values[i];
}

// Returns the sum of token and position embeddings.
Matrix Embedded(Gpt2Values& values, absl::Span<const int64_t> tokens, size_t width,
                const std::vector<float>& token_embedding) {
  const std::vector<float> position_embedding = values.Read("wpe.weight");
  Matrix x = ZeroMatrix(tokens.size(), width);
  for (size_t t = 0; t < x.rows; ++t) {
    const auto token = static_cast<size_t>(tokens[t]);
    for (size_t j = 0; j < width; ++j) {
      x.row(t)[j] = static_cast<double>(token_embedding[token * width + j]) +
                    static_cast<double>(position_embedding[t * width + j]);
    }
  }
  return x;
}

// Adds a block's updates to x.
void Gpt2Block(Gpt2Values& values, const std::string& name, const ModelConfig& model, Matrix* x) {
  const Matrix qkv =
      Conv1d(values, name + "attn.c_attn", Gpt2Norm(values, name + "ln_1", model.norm, *x));
  const Matrix mixed = CausalAttention(qkv, static_cast<size_t>(model.heads));
  AddTo(x, Conv1d(values, name + "attn.c_proj", mixed));
  Matrix hidden =
      Conv1d(values, name + "mlp.c_fc", Gpt2Norm(values, name + "ln_2", model.norm, *x));
  for (double& value : hidden.values) value = Activated(model.activation, value);
  AddTo(x, Conv1d(values, name + "mlp.c_proj", hidden));
}

// Returns x Hᵀ of a head H [V, d].
std::vector<double> HeadProduct(const Matrix& x, const std::vector<float>& head) {
  const size_t vocabulary = head.size() / x.columns;
  std::vector<double> logits(x.rows * vocabulary);
  for (size_t token = 0; token < vocabulary; ++token) {
    const float* weight = &head[token * x.columns];
    for (size_t t = 0; t < x.rows; ++t) {
      double sum = 0;
      for (size_t j = 0; j < x.columns; ++j) sum += x.row(t)[j] * static_cast<double>(weight[j]);
      logits[t * vocabulary + token] = sum;
    }
  }
  return logits;
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

absl::StatusOr<std::vector<double>> Gpt2Logits(absl::Span<const FileView> files,
                                               const Gpt2Overrides& overrides,
                                               absl::Span<const int64_t> tokens,
                                               Gpt2Positions positions) {
  const FlushSubnormals flush;  // as the engine's passes
  ASSIGN_OR_RETURN(const Gpt2Source source, ReadGpt2Source(files, overrides));
  const ModelConfig& model = source.model;
  RETURN_IF_ERROR(CheckTokens(model, tokens));
  Gpt2Values values(source.files);
  const auto width = static_cast<size_t>(model.width);
  std::vector<float> head = values.Read("wte.weight");
  Matrix x = Embedded(values, tokens, width, head);
  for (int block = 0; block < model.layers; ++block) {
    Gpt2Block(values, absl::StrCat("h.", block, "."), model, &x);
  }
  if (positions == Gpt2Positions::kLast) {
    Matrix last = ZeroMatrix(1, width);
    std::copy_n(x.row(x.rows - 1), width, last.row(0));
    x = std::move(last);
  }
  x = Gpt2Norm(values, "ln_f", model.norm, std::move(x));
  if (!model.tied_head) head = values.Read("lm_head.weight");
  std::vector<double> logits = HeadProduct(x, head);
  if (!values.status().ok()) return values.status();
  return logits;
}

}  // namespace ablate::engine
