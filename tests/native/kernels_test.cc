// Compares every kernel of every target of this machine with plain loops in double. Memory that a
// kernel may read but not use is NaN, and memory that it must not write holds a sentinel. Each
// buffer is only as long as kernels.h says, so that AddressSanitizer detects accesses beyond it.
#include "server/engine/native/kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "server/engine/names.h"
#include "tests/native/kernel_reference.h"

namespace ablate::engine::native {
namespace {

using reference::Doubles;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSentinel = 54321.5f;
constexpr double kNotSaid = 1e300;  // an expected number that the contract leaves open
constexpr double kTolerance = 3e-6;

struct Size {
  int features;
  int columns;
};
constexpr Size kSizes[] = {{1, 16}, {2, 32}, {3, 16}, {7, 48}, {24, 80}, {65, 16}, {130, 112}};
constexpr int kLengths[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 50, 64, 70};
constexpr int kWidths[] = {1, 5, 16, 24, 33};

// Rows of `columns` floats, `stride` apart, with a gap between them.
struct Matrix {
  // Rows are whole if their stride is a multiple of kColumns; otherwise kColumns floats follow the
  // last row.
  Matrix(int of_rows, int of_columns, ptrdiff_t apart, float between = kSentinel)
      : rows(of_rows), columns(of_columns), stride(apart), gap(between) {
    const ptrdiff_t behind = stride % kColumns == 0    ? stride - columns
                             : columns % kColumns == 0 ? 0
                                                       : kColumns;
    floats.assign(static_cast<size_t>(std::max(rows - 1, 0) * stride + columns + behind), gap);
  }
  Matrix(int of_rows, int of_columns) : Matrix(of_rows, of_columns, of_columns) {}

  float* data() { return floats.data(); }
  float& at(int r, int c) { return floats[static_cast<size_t>(r * stride + c)]; }

  int rows;
  int columns;
  ptrdiff_t stride;
  float gap;
  std::vector<float> floats;
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  int Between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool Coin() { return Between(0, 1) == 1; }
  float Normal(float deviation = 1) {
    return std::normal_distribution<float>(0, deviation)(engine_);
  }
  // Fills the rows; the gap is unchanged.
  Matrix Fill(Matrix matrix, float deviation = 1) {
    for (int r = 0; r < matrix.rows; ++r) {
      for (int c = 0; c < matrix.columns; ++c) matrix.at(r, c) = Normal(deviation);
    }
    return matrix;
  }
  Matrix Rows(int rows, int columns) { return Fill(Matrix(rows, columns)); }
  // Returns exactly n floats.
  std::vector<float> Floats(int64_t n, float deviation = 1) {
    std::vector<float> floats(static_cast<size_t>(n));
    for (float& value : floats) value = Normal(deviation);
    return floats;
  }
  // Returns dropout factors: 0 or 1/(1 − p).
  std::vector<float> Mask(int64_t n) {
    std::vector<float> mask(static_cast<size_t>(n));
    for (float& value : mask) value = Between(0, 3) == 0 ? 0.0f : 4.0f / 3;
    return mask;
  }

 private:
  std::mt19937_64 engine_;
};

double NormOf(const Doubles& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

// Returns rows of `columns` padded to `stride` with `with`.
Doubles Padded(const Doubles& x, int columns, int stride, double with) {
  Doubles padded;
  for (size_t i = 0; i < x.size(); ++i) {
    padded.push_back(x[i]);
    const auto at = static_cast<int>(i) % columns;
    if (at == columns - 1) padded.insert(padded.end(), static_cast<size_t>(stride - columns), with);
  }
  return padded;
}

// One target's kernels and all of their outputs.
struct Trial {
  const Kernels& kernels;
  std::vector<float> written = {};
};

// Compares with an error relative to `scale`, or else to the norm of `expected`. Gaps must keep
// their sentinel.
void ExpectClose(Trial& run, const char* what, Matrix& got, const Doubles& expected,
                 double scale = -1, double tolerance = kTolerance) {
  ASSERT_EQ(expected.size(), static_cast<size_t>(got.rows) * static_cast<size_t>(got.columns));
  run.written.insert(run.written.end(), got.floats.begin(), got.floats.end());
  Doubles errors, said;
  for (int r = 0; r < got.rows; ++r) {
    for (int c = 0; c < got.columns; ++c) {
      const double wanted = expected[static_cast<size_t>(r) * static_cast<size_t>(got.columns) +
                                     static_cast<size_t>(c)];
      if (wanted == kNotSaid) continue;
      errors.push_back(got.at(r, c) - wanted);
      said.push_back(wanted);
    }
  }
  EXPECT_LE(NormOf(errors), tolerance * (scale < 0 ? NormOf(said) : scale))
      << what << ", expected norm " << NormOf(said);
  int overwritten = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(got.floats.size()); ++i) {
    const bool inside = i % got.stride < got.columns && i / got.stride < got.rows;
    if (!inside && got.floats[static_cast<size_t>(i)] != got.gap) ++overwritten;
  }
  EXPECT_EQ(overwritten, 0) << what << " outside of its columns";
}

void ExpectClose(Trial& run, const char* what, const std::vector<float>& got,
                 const Doubles& expected, double scale = -1, double tolerance = kTolerance) {
  Matrix matrix(1, static_cast<int>(got.size()));
  matrix.floats = got;
  ExpectClose(run, what, matrix, expected, scale, tolerance);
}

void CheckGemm(Trial& run) {
  Random random(1);
  for (int i = 0; i < 80; ++i) {
    const bool large = i == 0, turned = random.Coin();
    Gemm g;
    g.rows = large ? 130 : random.Between(1, 40);
    g.columns = large ? 150 : random.Between(1, 90);
    g.depth = large ? 300 : random.Between(0, 40);
    const int a_rows = turned ? g.depth : g.rows, a_columns = turned ? g.rows : g.depth;
    const int a_stride = a_columns + random.Between(0, 3);
    const std::vector<float> a = random.Floats(int64_t{a_rows} * a_stride);
    Matrix b = random.Fill(Matrix(g.depth, g.columns, g.columns + random.Between(0, 20), kNan));
    Matrix c = random.Fill(Matrix(g.rows, g.columns, g.columns + random.Between(0, 20)));
    const std::vector<float> bias = random.Floats(g.rows);
    g.a = a.data();
    g.a_row = turned ? 1 : a_stride;
    g.a_k = turned ? a_stride : 1;
    g.b = b.data();
    g.b_row = b.stride;
    g.c = c.data();
    g.c_row = c.stride;
    g.bias = random.Coin() ? bias.data() : nullptr;
    g.accumulate = random.Coin();
    const Doubles expected = reference::Multiplied(g);
    run.kernels.gemm(g);
    SCOPED_TRACE(testing::Message() << g.rows << "×" << g.depth << "×" << g.columns);
    ExpectClose(run, "product", c, expected);
  }
}

void CheckTranspose(Trial& run) {
  Random random(2);
  for (int i = 0; i < 80; ++i) {
    const int rows = random.Between(1, 40), columns = random.Between(1, 40);
    const int stride = columns + random.Between(0, 5);
    const std::vector<float> from = random.Floats((rows - 1) * stride + columns);
    Matrix to(columns, rows, rows + random.Between(0, 5));
    to.floats.resize(static_cast<size_t>((columns - 1) * to.stride + rows));
    to.floats.shrink_to_fit();
    Doubles expected;
    for (int c = 0; c < columns; ++c) {
      for (int r = 0; r < rows; ++r) {
        expected.push_back(from[static_cast<size_t>(r * stride + c)]);
      }
    }
    run.kernels.transpose(from.data(), stride, rows, columns, to.data(), to.stride);
    ExpectClose(run, "transposed", to, expected, 0);
  }
}

void CheckRowSums(Trial& run) {
  Random random(3);
  for (const auto [rows, columns] : kSizes) {
    Matrix x = random.Fill(Matrix(rows, columns, columns + random.Between(0, 5), kNan));
    std::vector<float> to = random.Floats(rows);
    Doubles expected(to.begin(), to.end());
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) expected[static_cast<size_t>(r)] += x.at(r, c);
    }
    run.kernels.add_row_sums(x.data(), x.stride, rows, columns, to.data());
    ExpectClose(run, "sums of rows", to, expected);
  }
}

struct NormFormula {
  NormKind kind;
  NormDeviation deviation;
};
constexpr NormFormula kNormFormulas[] = {
    {NormKind::kLayer, NormDeviation::kPopulation},
    {NormKind::kLayer, NormDeviation::kUnbiasedEpsOutside},
    {NormKind::kRms, NormDeviation::kPopulation},
    {NormKind::kL2, NormDeviation::kPopulation},
};
constexpr NormBackward kModes[] = {NormBackward::kExact, NormBackward::kCenterScale,
                                   NormBackward::kProjected, NormBackward::kIdentity};

void CheckNorm(Trial& run) {
  Random random(4);
  for (const auto [features, columns] : kSizes) {
    for (const auto [kind, deviation] : kNormFormulas) {
      // With one or two features, a gradient is the small remainder due to eps.
      if (deviation == NormDeviation::kUnbiasedEpsOutside && features < 2) continue;
      const float eps = features < 3 || random.Coin() ? 0.5f : 1e-5f;
      SCOPED_TRACE(testing::Message() << features << "×" << columns << ", kind "
                                      << static_cast<int>(kind) << ", eps " << eps);
      for (const NormBackward mode : kModes) {
        Matrix x = random.Rows(features, columns), x_hat(features, columns), y(features, columns);
        for (int f = 0; f < features && features > 8 && eps == 0.5f; ++f) x.at(f, 0) = 0;
        const std::vector<float> gain = random.Floats(features), shift = random.Floats(features);
        Matrix rstd(1, columns), along_scale(1, columns);
        const bool in_place = random.Coin(), scaled = random.Coin(), shifted = random.Coin();
        const NormForward forward = {{features, columns},
                                     kind,
                                     deviation,
                                     eps,
                                     x.data(),
                                     scaled ? gain.data() : nullptr,
                                     features % 2 == 1 ? 1.0f : 0.0f,
                                     shifted ? shift.data() : nullptr,
                                     x_hat.data(),
                                     in_place ? x.data() : y.data(),
                                     rstd.data(),
                                     along_scale.data()};
        const reference::Norm expected = reference::Normalised(forward);
        Matrix dy = random.Rows(features, columns), dx = random.Rows(features, columns);
        const Doubles derivative =
            features < 8 ? reference::DerivativeOf(forward, dy.data()) : Doubles();
        run.kernels.norm_forward(forward);
        ExpectClose(run, "x_hat", x_hat, expected.x_hat);
        ExpectClose(run, "y", in_place ? x : y, expected.y);
        ExpectClose(run, "rstd", rstd, expected.rstd);
        ExpectClose(run, "along_scale", along_scale, expected.along_scale);

        std::vector<float> dgain = random.Floats(features), dshift = random.Floats(features);
        const bool accumulate = random.Coin(), back_in_place = !accumulate && random.Coin();
        const NormBack back = {{features, columns},
                               kind,
                               mode,
                               dy.data(),
                               x_hat.data(),
                               rstd.data(),
                               along_scale.data(),
                               forward.gain,
                               forward.base,
                               scaled ? dgain.data() : nullptr,
                               shifted ? dshift.data() : nullptr,
                               back_in_place ? dy.data() : dx.data(),
                               accumulate};
        const reference::NormGradients gradients = reference::BackThrough(back);
        run.kernels.norm_back(back);
        ExpectClose(run, "dx", back_in_place ? dy : dx, gradients.dx);
        if (scaled) ExpectClose(run, "dgain", dgain, gradients.dgain);
        if (shifted) ExpectClose(run, "dshift", dshift, gradients.dshift);
        if (mode == NormBackward::kExact && !accumulate && !derivative.empty()) {
          ExpectClose(run, "derivative", back_in_place ? dy : dx, derivative, -1, 2e-5);
        }
      }
    }
  }
}

void CheckPointwiseNorm(Trial& run) {
  Random random(14);
  for (const auto [features, columns] : kSizes) {
    for (const NormKind kind : {NormKind::kDyt, NormKind::kDerf}) {
      for (const float alpha : {0.0f, 0.01f, 0.8f, -9.0f}) {
        SCOPED_TRACE(testing::Message() << features << "×" << columns << ", alpha " << alpha);
        Matrix x = random.Rows(features, columns), y(features, columns);
        Matrix kept(features, columns), f(features, columns), slope(features, columns);
        const std::vector<float> gain = random.Floats(features), shift = random.Floats(features);
        const bool in_place = random.Coin(), scaled = random.Coin(), shifted = random.Coin();
        PointwiseNormForward forward = {{features, columns}, kind, alpha};
        forward.offset = kind == NormKind::kDerf ? 0.3f : 0.0f;
        forward.x = x.data();
        forward.gain = scaled ? gain.data() : nullptr;
        forward.base = random.Coin() ? 1.0f : 0.0f;
        forward.shift = shifted ? shift.data() : nullptr;
        forward.kept_x = kept.data();
        forward.f = f.data();
        forward.slope = slope.data();
        forward.y = in_place ? x.data() : y.data();
        const reference::Pointwise expected = reference::Normalised(forward);
        const std::vector<float> before = x.floats;
        run.kernels.pointwise_norm_forward(forward);
        EXPECT_EQ(kept.floats, before);
        ExpectClose(run, "f", f, expected.f);
        ExpectClose(run, "slope", slope, expected.slope, std::sqrt(features * columns));
        ExpectClose(run, "y", in_place ? x : y, expected.y);

        Matrix dy = random.Rows(features, columns), dx = random.Rows(features, columns);
        std::vector<float> dgain = random.Floats(features), dshift = random.Floats(features);
        float dalpha = 2, doffset = -1;
        PointwiseNormBack back = {{features, columns}, alpha, dy.data(), kept.data(), f.data()};
        back.slope = slope.data();
        back.gain = forward.gain;
        back.base = forward.base;
        back.dgain = scaled ? dgain.data() : nullptr;
        back.dshift = shifted ? dshift.data() : nullptr;
        back.dalpha = &dalpha;
        back.doffset = &doffset;
        back.accumulate = random.Coin();
        const bool back_in_place = !back.accumulate && random.Coin();
        back.dx = back_in_place ? dy.data() : dx.data();
        const reference::PointwiseGradients gradients = reference::BackThrough(back);
        run.kernels.pointwise_norm_back(back);
        ExpectClose(run, "dx", back_in_place ? dy : dx, gradients.dx);
        if (scaled) ExpectClose(run, "dgain", dgain, gradients.dgain);
        if (shifted) ExpectClose(run, "dshift", dshift, gradients.dshift);
        const double summands = features * columns;
        ExpectClose(run, "dalpha", {dalpha}, {gradients.dalpha}, std::sqrt(summands));
        ExpectClose(run, "doffset", {doffset}, {gradients.doffset}, std::sqrt(summands));
      }
    }
  }
}

// Near 0 the results keep their digits.
void CheckSmallPointwiseNorm(Trial& run) {
  for (const NormKind kind : {NormKind::kDyt, NormKind::kDerf}) {
    Matrix x(1, 16), kept(1, 16), f(1, 16), slope(1, 16), y(1, 16);
    for (int c = 0; c < 16; ++c) x.at(0, c) = std::ldexp(1.1f, -c);
    PointwiseNormForward forward = {{1, 16}, kind, 1};
    forward.x = x.data();
    forward.kept_x = kept.data();
    forward.f = f.data();
    forward.slope = slope.data();
    forward.y = y.data();
    const reference::Pointwise expected = reference::Normalised(forward);
    run.kernels.pointwise_norm_forward(forward);
    for (size_t c = 0; c < 16; ++c) {
      EXPECT_NEAR(f.floats[c] / expected.f[c], 1, 4e-7) << "x " << x.floats[c];
    }
  }
}

void CheckBatchNorm(Trial& run) {
  Random random(5);
  for (const auto [features, columns] : kSizes) {
    for (const NormBackward mode : kModes) {
      const int count = random.Between(3, columns);
      std::vector<float> real(static_cast<size_t>(columns), 0.0f);
      std::fill_n(real.begin(), count, 1.0f);
      if (random.Coin()) std::reverse(real.begin(), real.end());
      Matrix x = random.Rows(features, columns), x_hat(features, columns), y(features, columns);
      const std::vector<float> gain = random.Floats(features), shift = random.Floats(features);
      std::vector<float> mean(gain.size()), variance(gain.size()), rstd(gain.size());
      const bool in_place = random.Coin(), scaled = random.Coin(), shifted = random.Coin();
      const float real_columns = static_cast<float>(count);
      const BatchNormForward forward = {{features, columns},
                                        1e-5f,
                                        real.data(),
                                        real_columns,
                                        x.data(),
                                        scaled ? gain.data() : nullptr,
                                        features % 2 == 1 ? 1.0f : 0.0f,
                                        shifted ? shift.data() : nullptr,
                                        x_hat.data(),
                                        in_place ? x.data() : y.data(),
                                        mean.data(),
                                        variance.data(),
                                        rstd.data()};
      const reference::BatchNorm expected = reference::Normalised(forward);
      run.kernels.batch_norm_forward(forward);
      ExpectClose(run, "x_hat", x_hat, expected.x_hat);
      ExpectClose(run, "y", in_place ? x : y, expected.y);
      ExpectClose(run, "mean", mean, expected.mean, std::sqrt(features));
      ExpectClose(run, "variance", variance, expected.variance);
      ExpectClose(run, "rstd", rstd, expected.rstd);

      Matrix dy = random.Rows(features, columns), dx = random.Rows(features, columns);
      std::vector<float> dgain = random.Floats(features), dshift = random.Floats(features);
      const BatchNormBack back = {{features, columns},
                                  mode,
                                  real.data(),
                                  real_columns,
                                  dy.data(),
                                  x_hat.data(),
                                  rstd.data(),
                                  forward.gain,
                                  forward.base,
                                  scaled ? dgain.data() : nullptr,
                                  shifted ? dshift.data() : nullptr,
                                  dx.data(),
                                  random.Coin()};
      const reference::NormGradients gradients = reference::BackThrough(back);
      run.kernels.batch_norm_back(back);
      ExpectClose(run, "dx", dx, gradients.dx);
      if (scaled) ExpectClose(run, "dgain", dgain, gradients.dgain);
      if (shifted) ExpectClose(run, "dshift", dshift, gradients.dshift);

      Matrix again = random.Rows(features, columns), standard(features, columns);
      Doubles by_row;
      for (int f = 0; f < features; ++f) {
        const auto at = static_cast<size_t>(f);
        for (int c = 0; c < columns; ++c) {
          const double centred = static_cast<double>(again.at(f, c)) - mean[at];
          by_row.push_back(centred * rstd[at] * (scaled ? forward.base + gain[at] : 1.0) +
                           (shifted ? shift[at] : 0.0));
        }
      }
      run.kernels.standardise_rows({{features, columns},
                                    again.data(),
                                    mean.data(),
                                    rstd.data(),
                                    forward.gain,
                                    forward.base,
                                    forward.shift,
                                    in_place ? again.data() : standard.data()});
      ExpectClose(run, "standardised", in_place ? again : standard, by_row);
    }
  }
}

// One head of one sequence that begins anywhere in a wider matrix.
struct AttentionCase {
  AttentionCase(Random& random, int length, int features, bool causal, AttentionKind kind,
                bool drops)
      : padded(RoundUp(length)),
        stride(length + random.Between(0, 40)),
        // If few queries see one key each, gradients consist of rounding errors.
        q(random.Fill(Matrix(features, length, stride, kNan), length < 15 ? 1 : 3)),
        k(random.Fill(Matrix(features, length, stride, kNan))),
        v(random.Fill(Matrix(features, length, stride, kNan))),
        weights(padded, padded),
        dropped(padded, padded),
        context(features, length, stride),
        mask(random.Mask(int64_t{length} * padded)) {
    a = {{kind, length, features, 1 / std::sqrt(static_cast<float>(features)), random.Normal(),
          stride},
         causal,
         q.data(),
         k.data(),
         v.data(),
         weights.data(),
         drops ? mask.data() : nullptr,
         drops ? dropped.data() : nullptr,
         context.data()};
  }

  int padded;
  int stride;
  Matrix q, k, v, weights, dropped, context;
  std::vector<float> mask;
  Attention a;
};

template <typename Use>
void ForEachAttention(Random& random, const Use& use) {
  for (const int length : kLengths) {
    for (int option = 0; option < 8; ++option) {
      const bool causal = option % 2 == 1, drops = option / 2 % 2 == 1;
      const int features = random.Between(1, 36);
      AttentionCase attention(random, length, features, causal,
                              option < 4 ? AttentionKind::kSoftmax : AttentionKind::kSigmoid,
                              drops);
      SCOPED_TRACE(testing::Message()
                   << "length " << length << ", features " << features << ", option " << option);
      use(attention);
    }
  }
}

void CheckAttention(Trial& run) {
  Random random(6);
  ForEachAttention(random, [&](AttentionCase& is) {
    const reference::Attended expected = reference::Attend(is.a);
    run.kernels.attention(is.a);
    const auto of_lookers = [&is](const Doubles& weights) {
      Doubles padded = Padded(weights, is.a.length, is.padded, kNotSaid);
      for (int key = 0; is.a.causal && key < is.a.length; ++key) {
        std::fill_n(padded.begin() + key * is.padded, key, kNotSaid);
      }
      // Rows after the last key.
      padded.resize(static_cast<size_t>(is.padded) * static_cast<size_t>(is.padded), kNotSaid);
      return padded;
    };
    ExpectClose(run, "weights", is.weights, of_lookers(expected.weights));
    if (is.a.mask != nullptr) ExpectClose(run, "dropped", is.dropped, of_lookers(expected.dropped));
    ExpectClose(run, "context", is.context, expected.context);

    const int features = is.a.features, length = is.a.length;
    Matrix dcontext = random.Fill(Matrix(features, length, is.stride, kNan));
    Matrix dq(features, length, is.stride), dk = dq, dv = dq;
    std::vector<float> scratch(static_cast<size_t>(2 * is.padded * is.padded), kNan);
    const AttentionBack back = {is.a,      dcontext.data(), dq.data(),
                                dk.data(), dv.data(),       scratch.data()};
    const reference::AttentionGradients gradients = reference::BackThrough(back);
    run.kernels.attention_back(back);
    ExpectClose(run, "dq", dq, gradients.dq);
    ExpectClose(run, "dk", dk, gradients.dk);
    ExpectClose(run, "dv", dv, gradients.dv);
  });
}

// One head of a prefix-shared batch whose columns begin anywhere in a wider matrix. Lanes share
// beginnings if the model doesn't look ahead.
struct PrefixBatchCase {
  PrefixBatchCase(Random& random, int length, int features, bool causal, AttentionKind kind) {
    std::vector<int> common(kColumns);  // number of positions shared with the previous lane
    for (size_t l = 1; l < kColumns && causal; ++l) common[l] = random.Between(0, length);
    int column = random.Between(0, 20);
    before = column;
    for (int t = 0; t < length; ++t) {
      first.push_back(column);
      lane_of_column.resize(lane_of_column.size() + kColumns);
      for (size_t l = 0; l < kColumns; ++l) {
        if (l == 0 || common[l] <= t) {
          lane_of_column[lane_of_column.size() - kColumns +
                         static_cast<size_t>(column - first.back())] = static_cast<int32_t>(l);
          ++column;
        }
        column_of_lane.push_back(column - 1 - first.back());
      }
      counts.push_back(column - first.back());
    }
    const int stride = column + random.Between(0, 40);
    for (Matrix* matrix : {&q, &k, &v}) {
      *matrix = random.Fill(Matrix(features, column, stride, kNan), 2);
      matrix->floats.resize(matrix->floats.size() + kColumns, kNan);
    }
    context = Matrix(features, column, stride);
    scratch.assign(static_cast<size_t>(((2 * length + 1) * features + length) * kColumns), kNan);
    a = {{kind, length, features, 1.5f / static_cast<float>(features), random.Normal(), stride},
         causal,
         q.data(),
         k.data(),
         v.data(),
         first.data(),
         counts.data(),
         column_of_lane.data(),
         lane_of_column.data(),
         scratch.data(),
         context.data()};
  }

  int ColumnOf(int l, int t) const {
    return first[static_cast<size_t>(t)] + column_of_lane[static_cast<size_t>(t * kColumns + l)];
  }

  int before = 0;  // columns before those of the batch
  std::vector<int32_t> first, counts, column_of_lane, lane_of_column;
  Matrix q{0, 0}, k{0, 0}, v{0, 0}, context{0, 0};
  std::vector<float> scratch;
  PrefixBatchAttention a;
};

// The sequence of one lane alone.
struct LaneAlone {
  LaneAlone(PrefixBatchCase& is, int l)
      : q(is.a.features, is.a.length, RoundUp(is.a.length), 0.0f), k(q), v(q), context(q) {
    for (int f = 0; f < is.a.features; ++f) {
      for (int t = 0; t < is.a.length; ++t) {
        q.at(f, t) = is.q.at(f, is.ColumnOf(l, t));
        k.at(f, t) = is.k.at(f, is.ColumnOf(l, t));
        v.at(f, t) = is.v.at(f, is.ColumnOf(l, t));
      }
    }
    weights.resize(static_cast<size_t>(q.stride * q.stride));
    a = {is.a,           is.a.causal, q.data(), k.data(),      v.data(),
         weights.data(), nullptr,     nullptr,  context.data()};
    a.stride = q.stride;
  }

  Matrix q, k, v, context;
  std::vector<float> weights;
  Attention a;
};

template <typename Use>
void ForEachPrefixBatch(Random& random, const Use& use) {
  for (const int length : {1, 2, 3, 4, 7, 8, 15, 16, 23}) {
    for (int option = 0; option < 4; ++option) {
      const int features = random.Between(1, 20);
      PrefixBatchCase batch(random, length, features, option % 2 == 1,
                            option < 2 ? AttentionKind::kSoftmax : AttentionKind::kSigmoid);
      SCOPED_TRACE(testing::Message()
                   << "length " << length << ", features " << features << ", option " << option);
      use(batch);
    }
  }
}

void CheckPrefixBatchAttention(Trial& run) {
  Random random(16);
  ForEachPrefixBatch(random, [&](PrefixBatchCase& is) {
    Doubles expected(static_cast<size_t>(is.context.rows) * static_cast<size_t>(is.context.columns),
                     kNotSaid);
    for (int l = 0; l < kColumns; ++l) {
      const Doubles context = reference::Attend(LaneAlone(is, l).a).context;
      for (int f = 0; f < is.a.features; ++f) {
        for (int t = 0; t < is.a.length; ++t) {
          expected[static_cast<size_t>(f * is.context.columns + is.ColumnOf(l, t))] =
              context[static_cast<size_t>(f * is.a.length + t)];
        }
      }
    }
    run.kernels.prefix_batch_attention(is.a);
    ExpectClose(run, "context", is.context, expected);
    for (int f = 0; f < is.context.rows; ++f) {
      for (int c = 0; c < is.before; ++c) ASSERT_EQ(is.context.at(f, c), kSentinel);
    }
  });
}

void CheckAbsorbedAttention(Trial& run) {
  Random random(7);
  for (const int width : kWidths) {
    for (const int length : kLengths) {
      const int heads = random.Between(1, 4), padded = RoundUp(width), tokens = 9;
      SCOPED_TRACE(testing::Message() << "width " << width << ", length " << length);
      Matrix table = random.Fill(Matrix(tokens, width, width, /*gap=*/1e3f));
      std::vector<const float*> rows;
      for (int u = 0; u < length; ++u) {
        rows.push_back(&table.at(u == 0 ? tokens - 1 : random.Between(0, tokens - 1), 0));
      }
      const auto by_head = [&] { return random.Fill(Matrix(heads, width, padded, 0.0f)); };
      Matrix queries = by_head(), dseen = by_head(), row_queries = by_head(), row_dseen = by_head();
      const std::vector<float> offsets = random.Floats(heads), dsums = random.Floats(heads);
      const std::vector<float> mask = random.Mask(int64_t{heads} * RoundUp(length));
      Matrix weights(heads, RoundUp(length)), seen(heads, padded), dqueries(heads, padded);
      std::vector<float> sums(offsets.size()), doffsets(offsets.size());
      Matrix drows = random.Fill(Matrix(length, width, padded));
      AbsorbedAttention a;
      a.kind = random.Coin() ? AttentionKind::kSoftmax : AttentionKind::kSigmoid;
      a.length = length;
      a.width = width;
      a.heads = heads;
      a.scale = 0.5f;
      a.rows = rows.data();
      a.queries = queries.data();
      a.offsets = offsets.data();
      a.mask = random.Coin() ? mask.data() : nullptr;
      a.weights = weights.data();
      a.seen = seen.data();
      a.sums = sums.data();
      const AbsorbedAttentionBack back = {a,
                                          dseen.data(),
                                          dsums.data(),
                                          dqueries.data(),
                                          doffsets.data(),
                                          row_queries.data(),
                                          row_dseen.data(),
                                          drows.data()};
      const reference::AbsorbedAttended expected = reference::Attend(a);
      const reference::AbsorbedAttentionGradients gradients = reference::BackThrough(back);
      run.kernels.absorbed_attention(a);
      run.kernels.absorbed_attention_back(back);
      ExpectClose(run, "weights", weights,
                  Padded(expected.weights, length, RoundUp(length), kNotSaid));
      ExpectClose(run, "seen", seen, Padded(expected.seen, width, padded, kNotSaid));
      ExpectClose(run, "sums", sums, expected.sums);
      ExpectClose(run, "dqueries", dqueries, Padded(gradients.dqueries, width, padded, kNotSaid));
      ExpectClose(run, "doffsets", doffsets, gradients.doffsets, NormOf(gradients.dscores));
      ExpectClose(run, "drows", drows, gradients.drows);
    }
  }
}

void CheckActivate(Trial& run) {
  Random random(8);
  const std::vector<float> special = {0, -0.0f, 20, -20, 90, -90, 1e-6f, -1e-6f, 5, -5, 9, -9};
  for (const auto& named : kNames<Activation>) {
    const Activation activation = named.value;
    for (const auto [rows, columns] : kSizes) {
      SCOPED_TRACE(testing::Message() << "activation " << named.name);
      const bool gated = IsGated(activation), in_place = random.Coin();
      Matrix x = random.Fill(Matrix(gated ? 2 * rows : rows, columns), 3);
      std::copy(special.begin(), special.end(), x.floats.begin());
      Matrix y(rows, columns), y_alone(rows, columns), slope(x.rows, columns);
      const size_t n = y.floats.size();
      Doubles values(n), slopes(x.floats.size());
      for (size_t i = 0; i < n; ++i) {
        const double through = gated ? x.floats[n + i] : 1;
        values[i] = reference::ActivationOf(activation, x.floats[i]) * through;
        slopes[i] = reference::SlopeOf(activation, x.floats[i]) * through;
        if (gated) slopes[n + i] = reference::ActivationOf(activation, x.floats[i]);
      }
      run.kernels.activate({activation, rows, columns, x.data(), y_alone.data(), nullptr});
      Matrix& slope_at = in_place ? x : slope;
      run.kernels.activate({activation, rows, columns, x.data(), y.data(), slope_at.data()});
      ExpectClose(run, "value", y, values);
      ExpectClose(run, "value without slope", y_alone, values);
      ExpectClose(run, "slope", slope_at, slopes);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(y.floats[i], values[i], 1e-6 * std::max(1.0, std::abs(values[i])));
        // 1 − (1 + tanh y)/2 is inaccurate where it is close to 0.
        EXPECT_NEAR(slope_at.floats[i], slopes[i], 3e-6 * std::max(1.0, std::abs(slopes[i])));
      }
    }
  }
}

void CheckLosses(Trial& run) {
  Random random(9);
  for (const int vocabulary : {2, 3, 13, 64, 70}) {
    for (const float smoothing : {0.0f, 0.1f, 0.9f}) {
      const float z_loss = smoothing == 0.1f ? 0.01f : 0.0f;
      for (const float deviation : {1.0f, 30.0f}) {
        SCOPED_TRACE(testing::Message() << vocabulary << " tokens, smoothing " << smoothing);
        const int columns = kColumns * random.Between(1, 4);
        Matrix logits = random.Fill(Matrix(vocabulary, columns), deviation);
        // Multiples of one half, so that the highest logits tie.
        for (float& logit : logits.floats) logit = std::round(logit * 2) / 2;
        std::vector<int32_t> targets(static_cast<size_t>(columns));
        for (int32_t& target : targets) target = random.Between(-1, vocabulary - 1);
        std::vector<float> losses(targets.size()), log_sum(targets.size());
        std::vector<int32_t> best(targets.size());
        CrossEntropy smooth = {vocabulary, columns, logits.data(), targets.data()};
        smooth.smoothing = smoothing;
        smooth.weight = 1.0f / 37;
        smooth.z_loss = z_loss;
        smooth.losses = losses.data();
        const reference::Losses expected = reference::LossesOf(smooth);
        run.kernels.summarise_logits(
            {vocabulary, columns, logits.data(), log_sum.data(), best.data()});
        ExpectClose(run, "log_sum", log_sum, expected.log_sum);
        EXPECT_EQ(best, expected.best);
        run.kernels.cross_entropy(smooth);
        ExpectClose(run, "losses", losses, expected.losses);
        ExpectClose(run, "gradient", logits, expected.gradient);
      }
    }
  }
}

void CheckElementwise(Trial& run) {
  Random random(10);
  for (const int n : {16, 48, 160}) {
    const std::vector<float> x = random.Floats(n), y = random.Floats(n);
    std::vector<float> product = y, sum = y, scaled(y.size(), kNan);
    Doubles products, sums, scales;
    for (size_t i = 0; i < y.size(); ++i) {
      products.push_back(static_cast<double>(x[i]) * y[i]);
      sums.push_back(0.75 * x[i] - 1.5 * y[i]);
      scales.push_back(0.75 * x[i]);
    }
    run.kernels.multiply(x.data(), product.data(), n);
    run.kernels.combine(0.75f, x.data(), -1.5f, sum.data(), n);
    run.kernels.combine(0.75f, x.data(), 0, scaled.data(), n);
    std::vector<float> capped = x;
    Doubles caps, slopes;
    for (size_t i = 0; i < x.size(); ++i) {
      caps.push_back(1.25 * std::tanh(x[i] / 1.25));
      slopes.push_back(y[i] / std::pow(std::cosh(x[i] / 1.25), 2));
    }
    run.kernels.cap(1.25f, capped.data(), n);
    ExpectClose(run, "capped", capped, caps);
    run.kernels.cap_back(1.25f, y.data(), capped.data(), n);
    ExpectClose(run, "back through the cap", capped, slopes);
    ExpectClose(run, "product", product, products);
    ExpectClose(run, "sum", sum, sums);
    ExpectClose(run, "scaled", scaled, scales);
  }
  for (const auto [half, columns] : kSizes) {
    Matrix x = random.Fill(Matrix(2 * half, columns, columns + random.Between(0, 9)));
    Matrix cosine(half, columns), sine(half, columns);
    Doubles turned(static_cast<size_t>(2 * half * columns)), before(turned.size());
    for (int r = 0; r < half; ++r) {
      for (int c = 0; c < columns; ++c) {
        const auto low = static_cast<size_t>(r * columns + c);
        const size_t high = low + static_cast<size_t>(half * columns);
        const double angle = random.Normal(3), a = x.at(r, c), b = x.at(r + half, c);
        cosine.at(r, c) = static_cast<float>(std::cos(angle));
        sine.at(r, c) = static_cast<float>(std::sin(angle));
        turned[low] = a * std::cos(angle) - b * std::sin(angle);
        turned[high] = a * std::sin(angle) + b * std::cos(angle);
        before[low] = a;
        before[high] = b;
      }
    }
    run.kernels.rotate(x.data(), x.stride, half, columns, cosine.data(), sine.data(), false);
    ExpectClose(run, "turned", x, turned);
    run.kernels.rotate(x.data(), x.stride, half, columns, cosine.data(), sine.data(), true);
    ExpectClose(run, "turned back", x, before);
  }
}

void CheckSteps(Trial& run) {
  Random random(11);
  for (const int n : {1, 2, 15, 16, 17, 31, 33, 100, 257}) {
    const std::vector<float> gradients = random.Floats(n);
    for (const int64_t step : {1, 2, 1000}) {
      std::vector<float> values = random.Floats(n), first = random.Floats(n, 0.1f);
      std::vector<float> second = random.Floats(n, 0.1f);
      for (float& square : second) square = std::abs(square);
      // A large learning rate, so that an error of the step shows in the result.
      const bool decoupled = random.Coin();
      const AdamStep adam = {
          n,   values.data(),       gradients.data(),     first.data(), second.data(), 0.3f,
          0.2, decoupled ? 0 : 0.1, decoupled ? 0.98 : 1, 0.9,          0.99,          1e-3,
          step};
      const reference::Stepped expected = reference::StepOf(adam);
      run.kernels.adam(adam);
      ExpectClose(run, "adam's values", values, expected.values);
      ExpectClose(run, "adam's first moments", first, expected.first);
      ExpectClose(run, "adam's second moments", second, expected.second);
    }
    std::vector<float> values = random.Floats(n), momenta = random.Floats(n);
    const SgdStep sgd = {n,    values.data(), gradients.data(), momenta.data(), 0.3f, 0.4f,
                         0.1f, 0.9f};
    const reference::Stepped expected = reference::StepOf(sgd);
    run.kernels.sgd(sgd);
    ExpectClose(run, "sgd's values", values, expected.values);
    ExpectClose(run, "sgd's momenta", momenta, expected.first);

    values = random.Floats(n);
    values.front() = momenta.front() = 0;  // and a gradient of 0, which has no sign
    std::vector<float> unmoved = gradients;
    unmoved.front() = 0;
    const LionStep lion = {n,   values.data(), unmoved.data(), momenta.data(), 0.3f, 0.4, 0.98,
                           0.9, 0.99};
    const reference::Stepped by_lion = reference::StepOf(lion);
    run.kernels.lion(lion);
    ExpectClose(run, "lion's values", values, by_lion.values);
    ExpectClose(run, "lion's momenta", momenta, by_lion.first);

    std::vector<float> y = random.Floats(n);
    Doubles moved;
    double squares = 0;
    std::vector<float> large = random.Floats(n, 1e25f);
    for (size_t i = 0; i < y.size(); ++i) {
      moved.push_back(y[i] + 0.3 * (static_cast<double>(gradients[i]) - y[i]));
      squares += static_cast<double>(large[i]) * large[i];
    }
    run.kernels.lerp(gradients.data(), 0.3f, y.data(), n);
    ExpectClose(run, "lerp", y, moved);
    Doubles sums;
    for (size_t i = 0; i < y.size(); ++i) {
      sums.push_back(static_cast<double>(y[i]) + gradients[i]);
    }
    run.kernels.add(gradients.data(), y.data(), n);
    ExpectClose(run, "added", y, sums);
    const double norm = run.kernels.squared_norm(large.data(), n);
    EXPECT_NEAR(norm, squares, 1e-13 * squares);
    run.written.resize(run.written.size() + 2);
    std::memcpy(&*run.written.end() - 2, &norm, sizeof(norm));
  }
}

template <typename Check>
void OnEveryTarget(const Check& check) {
  for (const Kernels* kernels : AllKernels()) {
    SCOPED_TRACE(kernels->target);
    Trial run = {*kernels};
    check(run);
  }
}

TEST(KernelsTest, MultiplyMatrices) { OnEveryTarget(CheckGemm); }
TEST(KernelsTest, Transpose) { OnEveryTarget(CheckTranspose); }
TEST(KernelsTest, SumRows) { OnEveryTarget(CheckRowSums); }
TEST(KernelsTest, NormaliseColumns) { OnEveryTarget(CheckNorm); }
TEST(KernelsTest, ApplyPointwiseNorms) { OnEveryTarget(CheckPointwiseNorm); }
TEST(KernelsTest, KeepTheDigitsOfSmallPointwiseNorms) { OnEveryTarget(CheckSmallPointwiseNorm); }
TEST(KernelsTest, NormaliseBatches) { OnEveryTarget(CheckBatchNorm); }
TEST(KernelsTest, Attend) { OnEveryTarget(CheckAttention); }
TEST(KernelsTest, AttendWithOneAbsorbedQuery) { OnEveryTarget(CheckAbsorbedAttention); }
TEST(KernelsTest, AttendInPrefixBatches) { OnEveryTarget(CheckPrefixBatchAttention); }
TEST(KernelsTest, Activate) { OnEveryTarget(CheckActivate); }
TEST(KernelsTest, GiveLossesAndTheirGradients) { OnEveryTarget(CheckLosses); }
TEST(KernelsTest, WorkElementByElement) { OnEveryTarget(CheckElementwise); }
TEST(KernelsTest, Step) { OnEveryTarget(CheckSteps); }

TEST(KernelsTest, HaveTheSameBitsOnEveryFusedTarget) {
  for (const auto check :
       {CheckGemm, CheckTranspose, CheckRowSums, CheckNorm, CheckPointwiseNorm, CheckBatchNorm,
        CheckAttention, CheckPrefixBatchAttention, CheckAbsorbedAttention, CheckActivate,
        CheckLosses, CheckElementwise, CheckSteps}) {
    std::vector<float> first;
    OnEveryTarget([&](Trial& run) {
      if (!run.kernels.fused) return;
      check(run);
      if (first.empty()) first = run.written;
      ASSERT_EQ(run.written.size(), first.size());
      EXPECT_EQ(std::memcmp(run.written.data(), first.data(), first.size() * sizeof(float)), 0);
    });
  }
}

// A matrix product, of which each column is also computed alone.
struct ColumnCase {
  int rows, depth, columns;
  bool turned;  // rows of A aren't consecutive
};

void CheckColumns(Trial& run, const ColumnCase& is) {
  SCOPED_TRACE(testing::Message() << is.rows << "×" << is.depth << "×" << is.columns);
  Random random(12);
  const std::vector<float> a = random.Floats(int64_t{is.rows} * is.depth),
                           bias = random.Floats(is.rows);
  Matrix b = random.Rows(is.depth, is.columns), c = random.Rows(is.rows, is.columns), before = c;
  Gemm g = {is.rows, is.columns, is.depth};
  g.a = a.data();
  g.a_row = is.turned ? 1 : is.depth;
  g.a_k = is.turned ? is.rows : 1;
  g.b = b.data();
  g.b_row = b.stride;
  g.c = c.data();
  g.c_row = c.stride;
  g.bias = bias.data();
  g.accumulate = true;
  run.kernels.gemm(g);
  g.columns = 1;
  for (const int column : {0, 15, 16, 63, 64, is.columns - 1}) {
    Matrix of_b(is.depth, 1), alone(is.rows, 1);
    for (int k = 0; k < is.depth; ++k) of_b.at(k, 0) = b.at(k, column);
    for (int r = 0; r < is.rows; ++r) alone.at(r, 0) = before.at(r, column);
    g.b = of_b.data();
    g.b_row = of_b.stride;
    g.c = alone.data();
    g.c_row = alone.stride;
    run.kernels.gemm(g);
    for (int r = 0; r < is.rows; ++r) ASSERT_EQ(alone.at(r, 0), c.at(r, column)) << column;
  }
}

TEST(KernelsTest, GiveAColumnTheSameBitsWhereverItLies) {
  OnEveryTarget([](Trial& run) {
    CheckColumns(run, {23, 40, 100, false});
    CheckColumns(run, {23, 40, 100, true});
    // In blocks of rows, depth and columns, the last ones smaller.
    CheckColumns(run, {101, 1100, 496, false});
    CheckColumns(run, {203, 700, 256, true});
    CheckColumns(run, {300, 1027, 112, true});
  });
}

TEST(KernelsTest, GiveASequenceInAPrefixBatchTheBitsThatItHasAlone) {
  OnEveryTarget([](Trial& run) {
    Random random(17);
    ForEachPrefixBatch(random, [&](PrefixBatchCase& is) {
      run.kernels.prefix_batch_attention(is.a);
      for (int l = 0; l < kColumns; ++l) {
        LaneAlone alone(is, l);
        run.kernels.attention(alone.a);
        for (int f = 0; f < is.a.features; ++f) {
          for (int t = 0; t < is.a.length; ++t) {
            ASSERT_EQ(is.context.at(f, is.ColumnOf(l, t)), alone.context.at(f, t));
          }
        }
      }
    });
  });
}

TEST(KernelsTest, WriteWeightsOf0WhereANeighbourLooksAndAQueryDoesNot) {
  OnEveryTarget([](Trial& run) {
    Random random(13);
    ForEachAttention(random, [&](AttentionCase& is) {
      run.kernels.attention(is.a);
      int weights = 0;
      for (int key = 0; key < is.a.length; ++key) {
        for (int query = 0; query < is.padded; ++query) {
          const bool looks = query < is.a.length && (!is.a.causal || key <= query);
          const bool written = !is.a.causal || key < (query / kColumns + 1) * kColumns;
          weights += written && !looks && is.weights.at(key, query) != 0;
        }
      }
      EXPECT_EQ(weights, 0);
    });
  });
}

TEST(KernelsTest, ActivateAsTheirLimitsFarFrom0) {
  OnEveryTarget([](Trial& run) {
    for (const auto& [activation, name] : kNames<Activation>) {
      // A gated one has another half, and a square no such limits.
      if (IsGated(activation) || activation == Activation::kRelu2) continue;
      SCOPED_TRACE(testing::Message() << "activation " << name);
      std::vector<float> x = {20, 90, 1e4f, -20, -90, -1e4f, kNan, kInfinity};
      x.resize(kColumns);
      std::vector<float> y(x.size()), slope(x.size());
      run.kernels.activate({activation, 1, kColumns, x.data(), y.data(), slope.data()});
      for (const size_t i : {0, 1, 2, 3, 4, 5}) {
        EXPECT_NEAR(y[i], std::max(x[i], 0.0f), 1e-7 * std::abs(x[i]));
        EXPECT_NEAR(slope[i], x[i] > 0 ? 1 : 0, 1e-7);
      }
      EXPECT_TRUE(std::isnan(y[6]));
      EXPECT_EQ(y[7], kInfinity);
    }
  });
}

TEST(KernelsTest, GiveNoFiniteLossOfNanOrInfinity) {
  OnEveryTarget([](Trial& run) {
    for (const float bad : {kNan, kInfinity}) {
      Random random(14);
      const int vocabulary = 13, columns = 32;
      Matrix logits = random.Rows(vocabulary, columns);
      const std::vector<int32_t> targets(columns, 3);
      std::vector<int32_t> best(columns);
      for (int c = 0; c < columns; ++c) {
        if (c != 5) logits.at(c % vocabulary, c) = bad;
      }
      std::vector<float> log_sum(columns), losses(columns);
      run.kernels.summarise_logits(
          {vocabulary, columns, logits.data(), log_sum.data(), best.data()});
      run.kernels.cross_entropy(
          {vocabulary, columns, logits.data(), targets.data(), 0.1f, 1, 0, losses.data()});
      for (size_t c = 0; c < columns; ++c) {
        EXPECT_EQ(std::isnan(log_sum[c]), c != 5);
        EXPECT_EQ(std::isnan(losses[c]), c != 5);
      }
    }
  });
}

TEST(KernelsTest, LeadNanFromAQueryToItsContextAlone) {
  OnEveryTarget([](Trial& run) {
    Random random(15);
    ForEachAttention(random, [&](AttentionCase& is) {
      const int bad = is.a.length / 2;
      is.q.at(is.a.features / 2, bad) = kNan;
      run.kernels.attention(is.a);
      for (int f = 0; f < is.a.features; ++f) {
        for (int query = 0; query < is.a.length; ++query) {
          ASSERT_EQ(std::isnan(is.context.at(f, query)), query == bad);
        }
      }
    });
  });
}

// A softmax of scores that are all −∞ is NaN.
TEST(KernelsTest, SoftmaxNoScoresThatAreAllInfinite) {
  OnEveryTarget([](Trial& run) {
    for (const float infinite : {kInfinity, -kInfinity}) {
      SCOPED_TRACE(infinite);
      Random random(16);
      AttentionCase is(random, 20, 4, true, AttentionKind::kSoftmax, false);
      for (int key = 0; key < 20; ++key) is.k.at(0, key) = 1;
      is.q.at(0, 17) = infinite;
      run.kernels.attention(is.a);
      EXPECT_FALSE(std::isfinite(is.context.at(0, 17)));

      std::vector<float> row(kColumns, 1.0f), query(kColumns), weights(kColumns), seen(kColumns);
      query[0] = infinite;
      const std::vector<const float*> rows(3, row.data());
      float offset = 0, sum = 0;
      run.kernels.absorbed_attention({AttentionKind::kSoftmax, 3, kColumns, 1, 1, rows.data(),
                                      query.data(), &offset, nullptr, weights.data(), seen.data(),
                                      &sum});
      EXPECT_FALSE(std::isfinite(seen[0]));
    }
  });
}

// Other threads may read the inputs at the same time.
TEST(KernelsTest, WriteNothingThatTheyAreGivenToRead) {
  const auto step_by_protected = [](const Kernels& kernels) {
    void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const float* const zeros = static_cast<const float*>(page);
    std::vector<float> values(17), first(17), second(17);
    kernels.lerp(zeros, 0.5f, values.data(), 17);
    kernels.adam(
        {17, values.data(), zeros, first.data(), second.data(), 1, 0.1, 0, 1, 0.9, 0.9, 1e-8, 1});
    kernels.sgd({17, values.data(), zeros, first.data(), 1, 0.1f, 0, 0.9f});
    kernels.lion({17, values.data(), zeros, first.data(), 1, 0.1, 1, 0.9, 0.99});
    std::exit(0);
  };
  OnEveryTarget([&](Trial& run) {
    EXPECT_EXIT(step_by_protected(run.kernels), testing::ExitedWithCode(0), "");
  });
}

}  // namespace
}  // namespace ablate::engine::native
