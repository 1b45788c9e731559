// The loops that a native step is made of, compiled for several instruction sets and chosen when
// the program runs. An activation is a matrix [features][columns]: a column is a token, and sixteen
// columns lie side by side in a vector. Weights stay [out, in]. Plain C++; all are thread-safe.
//
// Matrices of floats are read and written in whole vectors: their columns are a multiple of
// kColumns, or kColumns floats behind their last row may be read. Their bits depend neither on the
// width of a vector nor on other columns, given one of `fused`.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_KERNELS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/engine/config.h"

namespace ablate::engine::native {

inline constexpr int kColumns = 16;

constexpr int RoundUp(int n) { return (n + kColumns - 1) / kColumns * kColumns; }

// C ← start + A·B, each element a sum over k in ascending order, where A(i, k) is a[i·a_row +
// k·a_k].
struct Gemm {
  int rows = 0;     // of A and C
  int columns = 0;  // of B and C; so many of C are written, all others left as they are
  int depth = 0;    // columns of A, rows of B
  const float* a = nullptr;
  ptrdiff_t a_row = 0;
  ptrdiff_t a_k = 1;
  const float* b = nullptr;
  ptrdiff_t b_row = 0;
  float* c = nullptr;
  ptrdiff_t c_row = 0;
  const float* bias = nullptr;  // [rows]; null: none
  bool accumulate = false;      // false: without C
};

// One norm over [features][columns], by column.
struct NormSize {
  int features = 0;
  ptrdiff_t columns = 0;
};

struct NormForward {
  NormSize size;
  NormKind kind = NormKind::kLayer;  // not kBatch
  NormDeviation deviation = NormDeviation::kPopulation;
  float eps = 0;
  const float* x = nullptr;
  const float* gain = nullptr;   // [features]; null: 1
  const float* shift = nullptr;  // [features]; null: 0
  float* z = nullptr;            // standardised
  float* y = nullptr;            // may be x
  float* inverse = nullptr;      // [columns], 1/σ
  float* share = nullptr;        // [columns]: z·share·Σ gz is the part of a gradient g along z
};

struct NormBack {
  NormSize size;
  NormKind kind = NormKind::kLayer;
  NormBackward backward = NormBackward::kExact;
  const float* dy = nullptr;
  const float* z = nullptr;
  const float* inverse = nullptr;
  const float* share = nullptr;
  const float* gain = nullptr;
  float* dgain = nullptr;   // [features], added to; null: none
  float* dshift = nullptr;  // [features], added to; null: none
  float* dx = nullptr;      // may be dy unless it is added to
  bool accumulate = false;  // dx is added to
};

// BatchNorm: by feature, over the columns where `real` [columns] is 1 and not 0.
struct BatchNormForward {
  NormSize size;
  float eps = 0;
  const float* real = nullptr;
  float count = 0;  // real columns
  const float* x = nullptr;
  const float* gain = nullptr;
  const float* shift = nullptr;
  float* z = nullptr;
  float* y = nullptr;         // may be x
  float* mean = nullptr;      // [features]
  float* variance = nullptr;  // [features], population
  float* inverse = nullptr;   // [features]
};

struct BatchNormBack {
  NormSize size;
  NormBackward backward = NormBackward::kExact;
  const float* real = nullptr;
  float count = 0;
  const float* dy = nullptr;
  const float* z = nullptr;
  const float* inverse = nullptr;
  const float* gain = nullptr;
  float* dgain = nullptr;
  float* dshift = nullptr;
  float* dx = nullptr;
  bool accumulate = false;
};

// y = (x − mean)·inverse·gain + shift, by feature.
struct StandardiseRows {
  NormSize size;
  const float* x = nullptr;
  const float* mean = nullptr;
  const float* inverse = nullptr;
  const float* gain = nullptr;
  const float* shift = nullptr;
  float* y = nullptr;  // may be x
};

// What all self-attention of one head has in common.
struct AttentionHead {
  AttentionKind kind = AttentionKind::kSoftmax;
  int length = 0;        // positions
  int features = 0;      // of the head
  float scale = 1;       // of scores
  float bias = 0;        // added to scaled scores; kSigmoid only
  ptrdiff_t stride = 0;  // floats between two rows of what has a row a feature
};

// Self-attention of one head over one sequence. q, k, v and what is written have a row a feature
// and a column a position.
struct Attention : AttentionHead {
  bool causal = true;
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  // RoundUp(length)² floats, a row a key, a column a query: written where any query of a vector of
  // them looks, and 0 there for those that do not.
  float* weights = nullptr;
  const float* mask = nullptr;  // of dropout, laid out as the weights; null: none
  float* dropped = nullptr;     // weights·mask; where there is a mask
  float* context = nullptr;
};

struct AttentionBack {
  Attention forward;
  const float* dcontext = nullptr;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  float* scratch = nullptr;  // 2·RoundUp(length)² floats
};

// Self-attention of one head over kColumns sequences of one length, a lane each, without gradients.
// Position t has columns first[t], …, first[t] + nodes[t] − 1: lane l's is first[t] +
// node[t·kColumns + l], and lane[t·kColumns + n] is the first lane of node n. Lanes of one node
// must agree in all that their queries there look at. kColumns floats behind the last row of q, k
// and v may be read, for a position's columns begin anywhere.
struct StripAttention : AttentionHead {
  bool causal = true;
  const float* q = nullptr;  // rows of features, as Attention's, from column 0 on
  const float* k = nullptr;
  const float* v = nullptr;
  const int32_t* first = nullptr;
  const int32_t* nodes = nullptr;
  const int32_t* node = nullptr;
  const int32_t* lane = nullptr;
  float* scratch = nullptr;  // (2·length + 1)·features·kColumns + length·kColumns floats
  float* context = nullptr;
};

// Self-attention of one head at the last positions of kColumns sequences of one length, a lane
// each: one query of each looks at all of its positions.
struct LaneAttention : AttentionHead {
  const float* q = nullptr;     // rows of features
  const float* keys = nullptr;  // [length][features][kColumns]
  const float* values = nullptr;
  float* weights = nullptr;  // [length][kColumns], written
  float* context = nullptr;  // rows as those of q, and may be q
};

// Attention of one query of each head to the rows of one sequence, with the keys' and values'
// linears absorbed into the query and into what comes out: a query p (of `width` features, W_kᵀq)
// looks at the rows x themselves, score(u) = scale·(p·x_u) + offset, and what it sees is Σ_u
// w_u·x_u.
struct QueryAttention {
  AttentionKind kind = AttentionKind::kSoftmax;
  int length = 0;
  int width = 0;
  int heads = 0;
  float scale = 1;
  // [length] of [width]; what lies behind a row up to RoundUp(width) must be numbers.
  const float* const* rows = nullptr;
  const float* queries = nullptr;  // [heads][RoundUp(width)]
  const float* offsets = nullptr;  // [heads], added to scaled scores
  const float* mask = nullptr;     // [heads][RoundUp(length)]; null: none
  float* weights = nullptr;        // [heads][RoundUp(length)]
  float* seen = nullptr;           // [heads][RoundUp(width)]
  float* sums = nullptr;           // [heads], Σ_u w_u
};

struct QueryAttentionBack {
  QueryAttention forward;
  const float* dseen = nullptr;  // [heads][RoundUp(width)]
  const float* dsums = nullptr;  // [heads]
  float* dqueries = nullptr;     // [heads][RoundUp(width)]
  float* doffsets = nullptr;     // [heads]
  // What the gradient of a row is formed with: those of the forward pass, or feedback's.
  const float* row_queries = nullptr;  // [heads][RoundUp(width)]
  const float* row_dseen = nullptr;    // [heads][RoundUp(width)]
  float* drows = nullptr;              // [length][RoundUp(width)], added to
};

// An activation's value, and what a gradient is multiplied by on its way back. For kSwiglu `x` has
// the gates' rows and then as many of what they let through, and so has `slope`; `y` has half.
struct Activate {
  Activation activation = Activation::kRelu;
  int rows = 0;  // of y
  ptrdiff_t columns = 0;
  const float* x = nullptr;
  float* y = nullptr;
  float* slope = nullptr;  // null: not asked for; may be x
};

// Cross entropy of columns of scores [vocabulary][columns].
struct CrossEntropy {
  int vocabulary = 0;
  ptrdiff_t columns = 0;
  float* scores = nullptr;           // become their gradient
  const int32_t* targets = nullptr;  // [columns]; below 0: counts nowhere, its gradient is 0
  float smoothing = 0;
  float weight = 1;         // of a column in the gradient
  float* losses = nullptr;  // [columns], unweighted; 0 where there is no target
};

// Of columns of scores: log Σ exp, from which a score is subtracted for the loss of a token, and
// the token with the highest score, the first of equals.
struct ScoreSummary {
  int vocabulary = 0;
  ptrdiff_t columns = 0;
  const float* scores = nullptr;
  float* log_sum = nullptr;  // [columns]
  int32_t* best = nullptr;   // [columns]
};

// θ by its gradient, n elements. `clip` multiplies the gradient, `decay` is the weight decay.
struct AdamStep {
  int64_t n = 0;
  float* values = nullptr;
  const float* gradients = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  float clip = 1;
  bool decoupled = true;  // AdamW
  double learning_rate = 0;
  double decay = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  int64_t step = 1;  // of the first update
};

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

struct Kernels {
  const char* target = "";  // "AVX3"
  // Whether a product and a sum are rounded once: such targets give the same bits, others their
  // own.
  bool fused = false;

  void (*gemm)(const Gemm&);
  // to[c·to_row + r] = from[r·from_row + c].
  void (*transpose)(const float* from, ptrdiff_t from_row, int rows, int columns, float* to,
                    ptrdiff_t to_row);
  // to[r] += Σ_c x[r·row + c].
  void (*add_row_sums)(const float* x, ptrdiff_t row, int rows, int columns, float* to);
  void (*norm_forward)(const NormForward&);
  void (*norm_back)(const NormBack&);
  void (*batch_norm_forward)(const BatchNormForward&);
  void (*batch_norm_back)(const BatchNormBack&);
  void (*standardise_rows)(const StandardiseRows&);
  void (*attention)(const Attention&);
  void (*attention_back)(const AttentionBack&);
  void (*strip_attention)(const StripAttention&);
  void (*lane_attention)(const LaneAttention&);
  void (*query_attention)(const QueryAttention&);
  void (*query_attention_back)(const QueryAttentionBack&);
  void (*activate)(const Activate&);
  void (*cross_entropy)(const CrossEntropy&);
  void (*summarise_scores)(const ScoreSummary&);
  // y ← y·x and y ← a·x + b·y, which does not read y where b is 0, of n elements, a multiple of
  // kColumns.
  void (*multiply)(const float* x, float* y, int64_t n);
  void (*combine)(float a, const float* x, float b, float* y, int64_t n);
  // y ← y + x, any n.
  void (*add)(const float* x, float* y, int64_t n);
  // Turns pairs (x, y) of rows r and r + half of [2·half][columns]: cosine and sine are
  // [half][columns]; `back` turns the other way.
  void (*rotate)(float* x, ptrdiff_t row, int half, ptrdiff_t columns, const float* cosine,
                 const float* sine, bool back);
  // y ← y + a·(x − y), any n.
  void (*lerp)(const float* x, float a, float* y, int64_t n);
  void (*adam)(const AdamStep&);
  void (*sgd)(const SgdStep&);
  // Σ x², in double.
  double (*squared_norm)(const float* x, int64_t n);
};

// Returns the kernels for the best instruction set of this machine that the environment variable
// ATEN_CPU_CAPABILITY (default, avx2, avx512) allows at the first call.
const Kernels& BestKernels();

// Returns those for each set that this machine has and ATEN_CPU_CAPABILITY allows, best first.
std::vector<const Kernels*> AllKernels();

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_KERNELS_H_
