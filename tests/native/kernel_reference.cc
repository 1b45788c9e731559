#include "tests/native/kernel_reference.h"

#include <cmath>

namespace ablate::engine::native::reference {
namespace {

size_t At(ptrdiff_t row, ptrdiff_t columns, ptrdiff_t column) {
  return static_cast<size_t>(row * columns + column);
}

Doubles Zeros(ptrdiff_t n) { return Doubles(static_cast<size_t>(n)); }

struct Standardised {
  Doubles x_hat;
  double rstd = 0;
  double along_scale = 0;
};

Standardised Standardise(const Doubles& x, NormKind kind, NormDeviation deviation, double eps) {
  const double n = static_cast<double>(x.size());
  double mean = 0, squares = 0;
  if (kind == NormKind::kLayer) {
    for (const double value : x) mean += value / n;
  }
  for (const double value : x) squares += (value - mean) * (value - mean);
  Standardised to;
  if (kind == NormKind::kL2) {
    to.rstd = 1 / std::sqrt(squares + eps);
    to.along_scale = 1;
  } else if (deviation == NormDeviation::kPopulation) {
    to.rstd = 1 / std::sqrt(squares / n + eps);
    to.along_scale = 1 / n;
  } else {
    const double sigma = std::sqrt(squares / (n - 1));
    to.rstd = 1 / (sigma + eps);
    to.along_scale = sigma > 0 ? 1 / ((n - 1) * sigma * to.rstd) : 0;
  }
  for (const double value : x) to.x_hat.push_back((value - mean) * to.rstd);
  return to;
}

double Scaled(double x_hat, const float* gain, double base, const float* shift, int feature) {
  return x_hat * (gain != nullptr ? base + gain[feature] : 1.0) +
         (shift != nullptr ? shift[feature] : 0.0);
}

Doubles ColumnOf(const NormForward& n, int column) {
  Doubles x;
  for (int f = 0; f < n.size.features; ++f) x.push_back(n.x[f * n.size.columns + column]);
  return x;
}

// Returns the gradient of x from that of x̂, whose mean is `level` and whose component along x̂ is
// x̂·along.
double BackThroughXHat(NormBackward mode, double g, double x_hat, double level, double along,
                       double rstd) {
  switch (mode) {
    case NormBackward::kExact:
      return (g - level - x_hat * along) * rstd;
    case NormBackward::kCenterScale:
      return (g - level) * rstd;
    case NormBackward::kProjected:
      return g - level - x_hat * along;
    case NormBackward::kIdentity:
      return g;
  }
  return NAN;
}

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }

// Returns the weights of one query's attention scores.
Doubles WeightsOf(AttentionKind kind, const Doubles& scores) {
  Doubles weights;
  double highest = -INFINITY, sum = 0;
  for (const double score : scores) highest = std::max(highest, score);
  for (const double score : scores) sum += std::exp(score - highest);
  for (const double score : scores) {
    weights.push_back(kind == AttentionKind::kSoftmax ? std::exp(score - highest) / sum
                                                      : SigmoidOf(score));
  }
  return weights;
}

// Returns the gradients of one query's attention scores from those of its weights.
Doubles ScoreGradients(AttentionKind kind, const Doubles& w, const Doubles& dw) {
  double mean = 0;
  for (size_t u = 0; u < w.size(); ++u) mean += w[u] * dw[u];
  Doubles d;
  for (size_t u = 0; u < w.size(); ++u) {
    d.push_back(kind == AttentionKind::kSoftmax ? w[u] * (dw[u] - mean)
                                                : w[u] * (1 - w[u]) * dw[u]);
  }
  return d;
}

double DotOf(const float* x, const float* y, ptrdiff_t stride, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += static_cast<double>(x[i * stride]) * y[i * stride];
  return sum;
}

}  // namespace

Doubles Multiplied(const Gemm& g) {
  Doubles c;
  for (int i = 0; i < g.rows; ++i) {
    for (int j = 0; j < g.columns; ++j) {
      double sum = g.bias != nullptr ? g.bias[i] : 0.0;
      if (g.accumulate) sum += g.c[i * g.c_row + j];
      for (int k = 0; k < g.depth; ++k) {
        sum += static_cast<double>(g.a[i * g.a_row + k * g.a_k]) * g.b[k * g.b_row + j];
      }
      c.push_back(sum);
    }
  }
  return c;
}

Norm Normalised(const NormForward& n) {
  const int features = n.size.features, columns = n.size.columns;
  Norm to = {Zeros(features * columns), Zeros(features * columns), {}, {}};
  for (int c = 0; c < columns; ++c) {
    const Standardised is = Standardise(ColumnOf(n, c), n.kind, n.deviation, n.eps);
    to.rstd.push_back(is.rstd);
    to.along_scale.push_back(is.along_scale);
    for (int f = 0; f < features; ++f) {
      const double x_hat = is.x_hat[static_cast<size_t>(f)];
      to.x_hat[At(f, columns, c)] = x_hat;
      to.y[At(f, columns, c)] = Scaled(x_hat, n.gain, n.base, n.shift, f);
    }
  }
  return to;
}

NormGradients BackThrough(const NormBack& n) {
  const int features = n.size.features, columns = n.size.columns;
  NormGradients to = {Zeros(features * columns), Zeros(features), Zeros(features)};
  for (int f = 0; f < features; ++f) {
    const auto at = static_cast<size_t>(f);
    if (n.dgain != nullptr) to.dgain[at] = n.dgain[f];
    if (n.dshift != nullptr) to.dshift[at] = n.dshift[f];
  }
  for (int c = 0; c < columns; ++c) {
    double level = 0, along = 0;
    for (int f = 0; f < features; ++f) {
      const double dy = n.dy[f * columns + c], x_hat = n.x_hat[f * columns + c];
      to.dgain[static_cast<size_t>(f)] += dy * x_hat;
      to.dshift[static_cast<size_t>(f)] += dy;
      const double g = Scaled(dy, n.gain, n.base, nullptr, f);
      level += n.kind == NormKind::kLayer ? g / features : 0;
      along += g * x_hat * n.along_scale[c];
    }
    for (int f = 0; f < features; ++f) {
      const double g = Scaled(n.dy[f * columns + c], n.gain, n.base, nullptr, f);
      to.dx[At(f, columns, c)] =
          BackThroughXHat(n.backward, g, n.x_hat[f * columns + c], level, along, n.rstd[c]) +
          (n.accumulate ? n.dx[f * columns + c] : 0.0);
    }
  }
  return to;
}

Pointwise Normalised(const PointwiseNormForward& n) {
  const int features = n.size.features, columns = n.size.columns;
  Pointwise to;
  for (int f = 0; f < features; ++f) {
    for (int c = 0; c < columns; ++c) {
      const double z = static_cast<double>(n.alpha) * n.x[f * columns + c] + n.offset;
      const bool erf = n.kind == NormKind::kDerf;
      const double value = erf ? std::erf(z) : std::tanh(z);
      to.f.push_back(value);
      to.slope.push_back(erf ? 2 / std::sqrt(M_PI) * std::exp(-z * z)
                             : 1 / (std::cosh(z) * std::cosh(z)));
      to.y.push_back(Scaled(value, n.gain, n.base, n.shift, f));
    }
  }
  return to;
}

PointwiseGradients BackThrough(const PointwiseNormBack& n) {
  const int features = n.size.features, columns = n.size.columns;
  PointwiseGradients to = {{}, Zeros(features), Zeros(features), *n.dalpha, *n.doffset};
  for (int f = 0; f < features; ++f) {
    const auto at = static_cast<size_t>(f);
    if (n.dgain != nullptr) to.dgain[at] = n.dgain[f];
    if (n.dshift != nullptr) to.dshift[at] = n.dshift[f];
    for (int c = 0; c < columns; ++c) {
      const int i = f * columns + c;
      to.dgain[at] += static_cast<double>(n.dy[i]) * n.f[i];
      to.dshift[at] += n.dy[i];
      const double dz = Scaled(n.dy[i], n.gain, n.base, nullptr, f) * n.slope[i];
      to.dalpha += dz * n.x[i];
      to.doffset += dz;
      to.dx.push_back(n.alpha * dz + (n.accumulate ? n.dx[i] : 0.0));
    }
  }
  return to;
}

Doubles DerivativeOf(const NormForward& n, const float* dy) {
  const int features = n.size.features, columns = n.size.columns;
  constexpr double kStep = 1e-5;
  Doubles to = Zeros(features * columns);
  for (int c = 0; c < columns; ++c) {
    for (int moved = 0; moved < features; ++moved) {
      for (const double step : {kStep, -kStep}) {
        Doubles x = ColumnOf(n, c);
        x[static_cast<size_t>(moved)] += step;
        const Standardised is = Standardise(x, n.kind, n.deviation, n.eps);
        for (int f = 0; f < features; ++f) {
          const double y = Scaled(is.x_hat[static_cast<size_t>(f)], n.gain, n.base, n.shift, f);
          to[At(moved, columns, c)] += dy[f * columns + c] * y / (2 * step);
        }
      }
    }
  }
  return to;
}

BatchNorm Normalised(const BatchNormForward& n) {
  BatchNorm to;
  for (int f = 0; f < n.size.features; ++f) {
    const float* const x = n.x + f * n.size.columns;
    double mean = 0, variance = 0;
    for (int c = 0; c < n.size.columns; ++c) mean += n.real[c] == 1 ? x[c] / n.count : 0.0;
    for (int c = 0; c < n.size.columns; ++c) {
      variance += n.real[c] == 1 ? (x[c] - mean) * (x[c] - mean) / n.count : 0;
    }
    const double rstd = 1 / std::sqrt(variance + n.eps);
    to.mean.push_back(mean);
    to.variance.push_back(variance);
    to.rstd.push_back(rstd);
    for (int c = 0; c < n.size.columns; ++c) {
      to.x_hat.push_back((x[c] - mean) * rstd);
      to.y.push_back(Scaled(to.x_hat.back(), n.gain, n.base, n.shift, f));
    }
  }
  return to;
}

NormGradients BackThrough(const BatchNormBack& n) {
  NormGradients to;
  for (int f = 0; f < n.size.features; ++f) {
    const ptrdiff_t row = f * n.size.columns;
    const double gain = n.gain != nullptr ? n.base + n.gain[f] : 1.0;
    double level = 0, along = 0;
    for (int c = 0; c < n.size.columns; ++c) {
      if (n.real[c] == 0) continue;
      level += n.dy[row + c];
      along += static_cast<double>(n.dy[row + c]) * n.x_hat[row + c];
    }
    to.dgain.push_back(along + (n.dgain != nullptr ? n.dgain[f] : 0.0));
    to.dshift.push_back(level + (n.dshift != nullptr ? n.dshift[f] : 0.0));
    for (int c = 0; c < n.size.columns; ++c) {
      const double dx = BackThroughXHat(n.backward, n.dy[row + c] * gain, n.x_hat[row + c],
                                        level * gain / n.count, along * gain / n.count, n.rstd[f]);
      to.dx.push_back((n.real[c] == 1 ? dx : 0) + (n.accumulate ? n.dx[row + c] : 0.0));
    }
  }
  return to;
}

Attended Attend(const Attention& a) {
  const int length = a.length, padded = RoundUp(length);
  Attended to = {Zeros(length * length), Zeros(length * length), Zeros(a.features * length)};
  for (int query = 0; query < length; ++query) {
    const int keys = a.causal ? query + 1 : length;
    Doubles scores;
    for (int key = 0; key < keys; ++key) {
      scores.push_back(a.scale * DotOf(a.q + query, a.k + key, a.stride, a.features) + a.bias);
    }
    const Doubles weights = WeightsOf(a.kind, scores);
    for (int key = 0; key < keys; ++key) {
      const double weight = weights[static_cast<size_t>(key)];
      const double kept = a.mask != nullptr ? weight * a.mask[key * padded + query] : weight;
      to.weights[At(key, length, query)] = weight;
      to.dropped[At(key, length, query)] = kept;
      for (int f = 0; f < a.features; ++f) {
        to.context[At(f, length, query)] += kept * a.v[f * a.stride + key];
      }
    }
  }
  return to;
}

AttentionGradients BackThrough(const AttentionBack& b) {
  const Attention& a = b.forward;
  const int length = a.length, padded = RoundUp(length);
  const Attended is = Attend(a);
  const Doubles zeros = Zeros(a.features * length);
  AttentionGradients to = {zeros, zeros, zeros};
  for (int query = 0; query < length; ++query) {
    const int keys = a.causal ? query + 1 : length;
    Doubles weights, dweights;
    for (int key = 0; key < keys; ++key) {
      const double mask = a.mask != nullptr ? a.mask[key * padded + query] : 1.0;
      weights.push_back(is.weights[At(key, length, query)]);
      dweights.push_back(DotOf(a.v + key, b.dcontext + query, a.stride, a.features) * mask);
    }
    const Doubles dscores = ScoreGradients(a.kind, weights, dweights);
    for (int key = 0; key < keys; ++key) {
      const double dproduct = dscores[static_cast<size_t>(key)] * a.scale;
      for (int f = 0; f < a.features; ++f) {
        const ptrdiff_t row = f * a.stride;
        to.dq[At(f, length, query)] += dproduct * a.k[row + key];
        to.dk[At(f, length, key)] += dproduct * a.q[row + query];
        to.dv[At(f, length, key)] += is.dropped[At(key, length, query)] * b.dcontext[row + query];
      }
    }
  }
  return to;
}

AbsorbedAttended Attend(const AbsorbedAttention& a) {
  const int width = RoundUp(a.width);
  AbsorbedAttended to = {{}, Zeros(a.heads * a.width), Zeros(a.heads)};
  for (int h = 0; h < a.heads; ++h) {
    Doubles scores;
    for (int u = 0; u < a.length; ++u) {
      scores.push_back(a.scale * DotOf(a.rows[u], a.queries + h * width, 1, a.width) +
                       a.offsets[h]);
    }
    const Doubles weights = WeightsOf(a.kind, scores);
    to.weights.insert(to.weights.end(), weights.begin(), weights.end());
    for (int u = 0; u < a.length; ++u) {
      const double mask = a.mask != nullptr ? a.mask[h * RoundUp(a.length) + u] : 1.0;
      const double kept = weights[static_cast<size_t>(u)] * mask;
      to.sums[static_cast<size_t>(h)] += kept;
      for (int f = 0; f < a.width; ++f) to.seen[At(h, a.width, f)] += kept * a.rows[u][f];
    }
  }
  return to;
}

AbsorbedAttentionGradients BackThrough(const AbsorbedAttentionBack& b) {
  const AbsorbedAttention& a = b.forward;
  const int width = RoundUp(a.width);
  const AbsorbedAttended is = Attend(a);
  AbsorbedAttentionGradients to = {
      Zeros(a.heads * a.width), Zeros(a.heads), {}, Zeros(a.length * a.width)};
  for (int u = 0; u < a.length; ++u) {
    for (int f = 0; f < a.width; ++f) to.drows[At(u, a.width, f)] = b.drows[u * width + f];
  }
  for (int h = 0; h < a.heads; ++h) {
    Doubles weights, masks, dweights;
    for (int u = 0; u < a.length; ++u) {
      weights.push_back(is.weights[At(h, a.length, u)]);
      masks.push_back(a.mask != nullptr ? a.mask[h * RoundUp(a.length) + u] : 1.0);
      const double dkept = DotOf(a.rows[u], b.dseen + h * width, 1, a.width) + b.dsums[h];
      dweights.push_back(dkept * masks.back());
    }
    const Doubles dscores = ScoreGradients(a.kind, weights, dweights);
    to.dscores.insert(to.dscores.end(), dscores.begin(), dscores.end());
    for (int u = 0; u < a.length; ++u) {
      const auto at = static_cast<size_t>(u);
      to.doffsets[static_cast<size_t>(h)] += dscores[at];
      for (int f = 0; f < a.width; ++f) {
        to.dqueries[At(h, a.width, f)] += dscores[at] * a.scale * a.rows[u][f];
        to.drows[At(u, a.width, f)] += dscores[at] * a.scale * b.row_queries[h * width + f] +
                                       weights[at] * masks[at] * b.row_dseen[h * width + f];
      }
    }
  }
  return to;
}

double ActivationOf(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGelu:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x * SigmoidOf(x);
    case Activation::kRelu2:
      return std::max(x, 0.0) * std::max(x, 0.0);
    case Activation::kSwiglu:
      return ActivationOf(Activation::kSilu, x);
    case Activation::kGeglu:
      return ActivationOf(Activation::kGelu, x);
    case Activation::kReglu:
      return ActivationOf(Activation::kRelu, x);
  }
  return NAN;
}

double SlopeOf(Activation activation, double x) {
  const bool is_relu = activation == Activation::kRelu || activation == Activation::kReglu;
  if (is_relu && x == 0) return 0;
  constexpr double kStep = 1e-6;
  return (ActivationOf(activation, x + kStep) - ActivationOf(activation, x - kStep)) / (2 * kStep);
}

Losses LossesOf(const CrossEntropy& l) {
  Losses to = {{}, Zeros(l.vocabulary * l.columns), {}, {}};
  for (int c = 0; c < l.columns; ++c) {
    int32_t best = 0;
    double sum = 0, total = 0;
    const auto logit = [&](int v) { return static_cast<double>(l.logits[v * l.columns + c]); };
    for (int v = 1; v < l.vocabulary; ++v) best = logit(v) > logit(best) ? v : best;
    for (int v = 0; v < l.vocabulary; ++v) sum += std::exp(logit(v) - logit(best));
    for (int v = 0; v < l.vocabulary; ++v) total += logit(v);
    const double log_sum = logit(best) + std::log(sum), smoothing = l.smoothing;
    const int32_t target = l.targets[c];
    to.best.push_back(best);
    to.log_sum.push_back(log_sum);
    to.losses.push_back(target < 0 ? 0
                                   : (1 - smoothing) * (log_sum - logit(target)) +
                                         smoothing * (log_sum - total / l.vocabulary) +
                                         l.z_loss * log_sum * log_sum);
    for (int v = 0; v < l.vocabulary && target >= 0; ++v) {
      const double wanted = (v == target ? 1 - smoothing : 0) + smoothing / l.vocabulary;
      const double grown = std::exp(logit(v) - log_sum) * (1 + 2.0 * l.z_loss * log_sum);
      to.gradient[At(v, l.columns, c)] = l.weight * (grown - wanted);
    }
  }
  return to;
}

// As in PyTorch's documentation of Adam and AdamW.
Stepped StepOf(const AdamStep& s) {
  Stepped to;
  const double steps = static_cast<double>(s.step);
  for (int64_t i = 0; i < s.n; ++i) {
    const double g = static_cast<double>(s.gradients[i]) * s.clip + s.decay * s.values[i];
    const double value = s.shrink * s.values[i];
    const double first = s.beta1 * s.first[i] + (1 - s.beta1) * g;
    const double second = s.beta2 * s.second[i] + (1 - s.beta2) * g * g;
    const double mean = first / (1 - std::pow(s.beta1, steps));
    const double square = second / (1 - std::pow(s.beta2, steps));
    to.values.push_back(value - s.learning_rate * mean / (std::sqrt(square) + s.eps));
    to.first.push_back(first);
    to.second.push_back(second);
  }
  return to;
}

Stepped StepOf(const SgdStep& s) {
  Stepped to;
  for (int64_t i = 0; i < s.n; ++i) {
    const double g =
        static_cast<double>(s.gradients[i]) * s.clip + static_cast<double>(s.decay) * s.values[i];
    to.first.push_back(static_cast<double>(s.momentum) * s.momenta[i] + g);
    to.values.push_back(s.values[i] - s.learning_rate * to.first.back());
  }
  return to;
}

// As in algorithm 2 of Chen et al., 2023.
Stepped StepOf(const LionStep& s) {
  Stepped to;
  for (int64_t i = 0; i < s.n; ++i) {
    const double g = static_cast<double>(s.gradients[i]) * s.clip;
    const double mixed = s.beta1 * s.momenta[i] + (1 - s.beta1) * g;
    const double sign = (mixed > 0 ? 1 : 0) - (mixed < 0 ? 1 : 0);
    to.values.push_back(s.shrink * s.values[i] - s.learning_rate * sign);
    to.first.push_back(s.beta2 * s.momenta[i] + (1 - s.beta2) * g);
  }
  return to;
}

}  // namespace ablate::engine::native::reference
