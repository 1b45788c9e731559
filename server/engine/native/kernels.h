// Declares the inner loops of native passes. They are compiled for several instruction sets, and
// one is selected at run time. An activation is a matrix [features][columns]: a column is a token,
// and a vector holds sixteen adjacent columns. Weights are [out, in]. Plain C++; all functions are
// thread-safe.
//
// Matrices are read and written in whole vectors, so that the number of columns is a multiple of
// kColumns, or kColumns floats after the last row may be read. The bits of a column depend neither
// on the vector width nor on other columns, given the same `fused`.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_KERNELS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/engine/config.h"

namespace ablate::engine::native {

inline constexpr int kColumns = 16;

constexpr int RoundUp(int n) { return (n + kColumns - 1) / kColumns * kColumns; }

// C ← start + A·B, where A(i, k) is a[i·a_row + k·a_k]. Each element sums over k in ascending
// order.
struct Gemm {
  int rows = 0;     // of A and C
  int columns = 0;  // of B and C; other columns of C are unchanged
  int depth = 0;    // columns of A, rows of B
  const float* a = nullptr;
  ptrdiff_t a_row = 0;
  ptrdiff_t a_k = 1;
  const float* b = nullptr;
  ptrdiff_t b_row = 0;
  float* c = nullptr;
  ptrdiff_t c_row = 0;
  const float* bias = nullptr;  // [rows]; null: none
  bool accumulate = false;      // false: C isn't part of the start
};

// The size of a matrix [features][columns].
struct NormSize {
  int features = 0;
  ptrdiff_t columns = 0;
};

// A norm over the features of each column.
struct NormForward {
  NormSize size;
  NormKind kind = NormKind::kLayer;  // not kBatch
  NormDeviation deviation = NormDeviation::kPopulation;
  float eps = 0;
  const float* x = nullptr;
  const float* gain = nullptr;   // [features]; null: 1
  float base = 0;                // added to each gain
  const float* shift = nullptr;  // [features]; null: 0
  float* x_hat = nullptr;        // (x − mean)/σ
  float* y = nullptr;            // may alias x
  float* rstd = nullptr;         // [columns], 1/σ
  // [columns]: x̂·along_scale·Σ g·x̂ is the component of a gradient g along x̂.
  float* along_scale = nullptr;
};

// A norm that is a function of each feature alone: y = f(alpha·x + offset)·gain + shift, where f is
// tanh, or erf with kDerf.
struct PointwiseNormForward {
  NormSize size;
  NormKind kind = NormKind::kDyt;  // or kDerf
  float alpha = 0;
  float offset = 0;
  const float* x = nullptr;
  const float* gain = nullptr;  // [features]; null: 1
  float base = 0;               // added to each gain
  const float* shift = nullptr;
  float* kept_x = nullptr;  // [features][columns]
  float* f = nullptr;       // [features][columns]
  float* slope = nullptr;   // [features][columns], f′
  float* y = nullptr;       // may alias x
};

// The backward pass of PointwiseNormForward, given the gradient dy of y.
struct PointwiseNormBack {
  NormSize size;
  float alpha = 0;
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* f = nullptr;
  const float* slope = nullptr;
  const float* gain = nullptr;
  float base = 0;
  float* dgain = nullptr;    // [features], added to; null: none
  float* dshift = nullptr;   // [features], added to; null: none
  float* dalpha = nullptr;   // added to; null: none
  float* doffset = nullptr;  // added to; null: none
  float* dx = nullptr;       // may alias dy unless accumulate
  bool accumulate = false;   // adds to dx
};

// The backward pass of NormForward, given the gradient dy of y.
struct NormBack {
  NormSize size;
  NormKind kind = NormKind::kLayer;
  NormBackward backward = NormBackward::kExact;
  const float* dy = nullptr;
  const float* x_hat = nullptr;
  const float* rstd = nullptr;
  const float* along_scale = nullptr;
  const float* gain = nullptr;
  float base = 0;
  float* dgain = nullptr;   // [features], added to; null: none
  float* dshift = nullptr;  // [features], added to; null: none
  float* dx = nullptr;      // may alias dy unless accumulate
  bool accumulate = false;  // adds to dx
};

// BatchNorm: by feature, over the columns where `real` [columns] is 1 instead of 0.
struct BatchNormForward {
  NormSize size;
  float eps = 0;
  const float* real = nullptr;
  float count = 0;  // number of real columns
  const float* x = nullptr;
  const float* gain = nullptr;
  float base = 0;
  const float* shift = nullptr;
  float* x_hat = nullptr;
  float* y = nullptr;         // may alias x
  float* mean = nullptr;      // [features]
  float* variance = nullptr;  // [features], population
  float* rstd = nullptr;      // [features]
};

// The backward pass of BatchNormForward.
struct BatchNormBack {
  NormSize size;
  NormBackward backward = NormBackward::kExact;
  const float* real = nullptr;
  float count = 0;
  const float* dy = nullptr;
  const float* x_hat = nullptr;
  const float* rstd = nullptr;
  const float* gain = nullptr;
  float base = 0;
  float* dgain = nullptr;
  float* dshift = nullptr;
  float* dx = nullptr;
  bool accumulate = false;
};

// y = (x − mean)·rstd·(base + gain) + shift, by feature.
struct StandardiseRows {
  NormSize size;
  const float* x = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  const float* gain = nullptr;
  float base = 0;
  const float* shift = nullptr;
  float* y = nullptr;  // may alias x
};

// Parameters of one head's self-attention.
struct AttentionHead {
  AttentionKind kind = AttentionKind::kSoftmax;
  int length = 0;        // positions
  int features = 0;      // of the head
  float scale = 1;       // factor of attention scores
  float bias = 0;        // added to scaled attention scores; kSigmoid only
  ptrdiff_t stride = 0;  // floats from one feature's row to the next
};

// Self-attention of one head over one sequence. q, k, v and the outputs have one row per feature
// and one column per position.
struct Attention : AttentionHead {
  bool causal = true;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  // RoundUp(length)² floats: one row per key, one column per query. A vector of queries is written
  // if any of them sees the key; the others get 0.
  float* weights = nullptr;
  const float* mask = nullptr;  // dropout factors, laid out like the weights; null: none
  float* dropped = nullptr;     // weights·mask; used if there is a mask
  float* context = nullptr;
};

// The backward pass of Attention, given the gradient of the context.
struct AttentionBack {
  Attention forward;
  const float* dcontext = nullptr;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  float* scratch = nullptr;  // 2·RoundUp(length)² floats
};

// Self-attention of one head over a prefix-shared batch: kColumns sequences of one length, one SIMD
// lane each, without gradients. `first` … `lane_of_column` are those of a PrefixBatch. Lanes of one
// column must agree in everything that their queries see there. Up to kColumns floats after the
// last row of q, k and v may be read, because a position's columns begin anywhere.
struct PrefixBatchAttention : AttentionHead {
  bool causal = true;
  const float* q = nullptr;  // rows of features, as in Attention, from column 0 on
  const float* k = nullptr;
  const float* v = nullptr;
  const int32_t* first = nullptr;
  const int32_t* counts = nullptr;
  const int32_t* column_of_lane = nullptr;
  const int32_t* lane_of_column = nullptr;
  float* scratch = nullptr;  // (2·length + 1)·features·kColumns + length·kColumns floats
  float* context = nullptr;
};

// Self-attention of one head at the last positions of kColumns sequences of one length, one SIMD
// lane each: one query per sequence sees all of its positions.
struct LaneAttention : AttentionHead {
  const float* q = nullptr;     // rows of features
  const float* keys = nullptr;  // [length][features][kColumns]
  const float* values = nullptr;
  float* weights = nullptr;  // [length][kColumns], written
  float* context = nullptr;  // rows like those of q; may alias q
};

// Absorbed attention: one query per head attends to the rows of one sequence, with the linears of
// keys and values absorbed into the query and the output. A query p (`width` features, W_kᵀq)
// attends to the rows x themselves: score(u) = scale·(p·x_u) + offset, and the result is Σ_u
// w_u·x_u.
struct AbsorbedAttention {
  AttentionKind kind = AttentionKind::kSoftmax;
  int length = 0;
  int width = 0;
  int heads = 0;
  float scale = 1;
  // [length] pointers to rows of [width]; the floats after a row up to RoundUp(width) must be
  // finite.
  const float* const* rows = nullptr;
  const float* queries = nullptr;  // [heads][RoundUp(width)]
  const float* offsets = nullptr;  // [heads], added to scaled attention scores
  const float* mask = nullptr;     // [heads][RoundUp(length)]; null: none
  float* weights = nullptr;        // [heads][RoundUp(length)]
  float* seen = nullptr;           // [heads][RoundUp(width)]
  float* sums = nullptr;           // [heads], Σ_u w_u
};

// The backward pass of AbsorbedAttention.
struct AbsorbedAttentionBack {
  AbsorbedAttention forward;
  const float* dseen = nullptr;  // [heads][RoundUp(width)]
  const float* dsums = nullptr;  // [heads]
  float* dqueries = nullptr;     // [heads][RoundUp(width)]
  float* doffsets = nullptr;     // [heads]
  // Both are used in the gradients of rows: the queries and dseen above, or, with feedback
  // alignment, the same through the feedback matrices.
  const float* row_queries = nullptr;  // [heads][RoundUp(width)]
  const float* row_dseen = nullptr;    // [heads][RoundUp(width)]
  float* drows = nullptr;              // [length][RoundUp(width)], adds to it
};

// An activation's value, and its derivative, which multiplies gradients on the backward pass. For
// a gated activation `x` has the gates' rows, then as many rows of gated values, and so has
// `slope`; `y` has half as many.
struct Activate {
  Activation activation = Activation::kRelu;
  int rows = 0;  // of y
  ptrdiff_t columns = 0;
  const float* x = nullptr;
  float* y = nullptr;
  float* slope = nullptr;  // null: not computed; may alias x
};

// Cross entropy of columns of logits [vocabulary][columns].
struct CrossEntropy {
  int vocabulary = 0;
  ptrdiff_t columns = 0;
  float* logits = nullptr;           // overwritten by their gradient
  const int32_t* targets = nullptr;  // [columns]; below 0: not counted, gradient 0
  float smoothing = 0;
  float weight = 1;         // of a column in the gradient
  float z_loss = 0;         // factor of (log Σ exp)², which is added to the loss
  float* losses = nullptr;  // [columns], unweighted; 0 without a target
};

// Computes, for columns of logits, log Σ exp, which minus a token's logit is its loss, and the
// token with the highest logit, the first one of a tie.
struct LogitSummary {
  int vocabulary = 0;
  ptrdiff_t columns = 0;
  const float* logits = nullptr;
  float* log_sum = nullptr;  // [columns]
  int32_t* best = nullptr;   // [columns]
};

// Updates n parameters θ. `clip` multiplies the gradient. `decay` is the weight decay that is added
// to it; `shrink` multiplies the parameters, as decoupled weight decay does.
struct AdamStep {
  int64_t n = 0;
  float* values = nullptr;
  const float* gradients = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  float clip = 1;
  double learning_rate = 0;
  double decay = 0;
  double shrink = 1;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  int64_t step = 1;  // 1 for the first update
};

// As AdamStep, for SGD with momentum.
struct SgdStep {
  int64_t n = 0;
  float* values = nullptr;
  const float* gradients = nullptr;
  float* momenta = nullptr;
  float clip = 1;
  float learning_rate = 0;
  float decay = 0;
  float momentum = 0;
};

// As AdamStep, for Lion.
struct LionStep {
  int64_t n = 0;
  float* values = nullptr;
  const float* gradients = nullptr;
  float* momenta = nullptr;
  float clip = 1;
  double learning_rate = 0;
  double shrink = 1;
  double beta1 = 0;
  double beta2 = 0;
};

// The kernels compiled for one instruction set.
struct Kernels {
  const char* target = "";  // "AVX3"
  // True if multiply-add rounds once. Such targets have equal bits; each other target has its own.
  bool fused = false;

  void (*gemm)(const Gemm&);
  // to[c·to_row + r] = from[r·from_row + c].
  void (*transpose)(const float* from, ptrdiff_t from_row, int rows, int columns, float* to,
                    ptrdiff_t to_row);
  // to[r] += Σ_c x[r·row + c].
  void (*add_row_sums)(const float* x, ptrdiff_t row, int rows, int columns, float* to);
  void (*norm_forward)(const NormForward&);
  void (*norm_back)(const NormBack&);
  void (*pointwise_norm_forward)(const PointwiseNormForward&);
  void (*pointwise_norm_back)(const PointwiseNormBack&);
  void (*batch_norm_forward)(const BatchNormForward&);
  void (*batch_norm_back)(const BatchNormBack&);
  void (*standardise_rows)(const StandardiseRows&);
  void (*attention)(const Attention&);
  void (*attention_back)(const AttentionBack&);
  void (*prefix_batch_attention)(const PrefixBatchAttention&);
  void (*lane_attention)(const LaneAttention&);
  void (*absorbed_attention)(const AbsorbedAttention&);
  void (*absorbed_attention_back)(const AbsorbedAttentionBack&);
  void (*activate)(const Activate&);
  void (*cross_entropy)(const CrossEntropy&);
  void (*summarise_logits)(const LogitSummary&);
  // y ← y·x, and y ← a·x + b·y, which doesn't read y if b is 0; n is a multiple of kColumns.
  void (*multiply)(const float* x, float* y, int64_t n);
  void (*combine)(float a, const float* x, float b, float* y, int64_t n);
  // x ← c·tanh(x/c); and back: y, the result, ← dy·(1 − (y/c)²), the gradient of x. n is a multiple
  // of kColumns.
  void (*cap)(float c, float* x, int64_t n);
  void (*cap_back)(float c, const float* dy, float* y, int64_t n);
  // y ← y + x, any n.
  void (*add)(const float* x, float* y, int64_t n);
  // Rotates pairs (x, y) of rows r and r + half of [2·half][columns]. cosine and sine are
  // [half][columns]; `back` rotates the other way.
  void (*rotate)(float* x, ptrdiff_t row, int half, ptrdiff_t columns, const float* cosine,
                 const float* sine, bool back);
  // y ← y + a·(x − y), any n.
  void (*lerp)(const float* x, float a, float* y, int64_t n);
  void (*adam)(const AdamStep&);
  void (*sgd)(const SgdStep&);
  void (*lion)(const LionStep&);
  // Σ x², in double.
  double (*squared_norm)(const float* x, int64_t n);
};

// Returns the kernels for this machine's best instruction set that the environment variable
// ATEN_CPU_CAPABILITY (default, avx2, avx512) allows at the first call.
const Kernels& BestKernels();

// Returns the kernels for each instruction set that this machine has and ATEN_CPU_CAPABILITY
// allows, best first.
std::vector<const Kernels*> AllKernels();

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_KERNELS_H_
