// Runs absorbed attention at the last position: a pass of a single-block model whose loss reads
// only each sequence's last position. A column is a sequence. Other positions are rows that its
// query attends to; they have no keys, values or columns of their own.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_ABSORBED_PASS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_ABSORBED_PASS_H_

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/native/attended_rows.h"
#include "server/engine/native/columns.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/head.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/layers.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {

// Returns true if a model supports this pass. Rotary keys can't be absorbed into a query.
bool HasAbsorbedPass(const ModelConfig& config);

// Computes losses and gradients of LastColumns. Not thread-safe: it owns scratch memory.
class AbsorbedPass {
 public:
  // Keeps references. `rule` forms the gradients.
  AbsorbedPass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
               const Kernels& kernels);

  // Returns the loss of the rows and adds its gradient.
  LossSums AddGradient(const Model& model, const LastColumns& columns, const Objective& objective);

  LossSums Score(const Model& model, const LastColumns& columns);

 private:
  // The three parts of the fused qkv linear, by rows.
  struct Parts {
    Linear queries;
    Linear keys;
    Linear values;
  };
  static Parts PartsOf(const Linear& qkv);

  void Prepare(const LastColumns& columns);
  void Run(const Model& model, const LastColumns& columns);

  // Computes attention. A score q·(Wk·x + bk) is (Wkᵀq)·x + q·bk, and Σ w·(Wv·x + bv) is Wv·Σ w·x +
  // bv·Σ w. The absorbed query, its offset and its context are therefore computed once per
  // sequence, not once per row.
  void Attend(const Block& block, const LastColumns& columns);
  void FormQueries(const Parts& qkv);
  void FillWeightsMask(const LastColumns& columns);
  void FormContext(const Linear& values);

  void AttendBack(const Block& block, const LastColumns& columns);
  void ContextBack(const Linear& values, const LastColumns& columns);
  void LookBack(const Parts& qkv, const LastColumns& columns);
  void QueriesBack(const Parts& qkv);

  // Returns the kernel's arguments for a sequence.
  AbsorbedAttention AttentionOf(const LastColumns& columns, int sequence);

  // Apply, for each head, the rows W of a weight that belong to it. Absorb returns rows
  // [columns][heads][row] = Wᵀ·(the head's features of x [width][columns]). Emit computes the
  // head's features of to [width][columns] as W·(its rows).
  const float* Absorb(const float* weight, const float* x, Floats& rows);
  void Emit(const float* weight, const Floats& rows, float* to);
  // Adds Σ_columns x·rowᵀ to the head's part of dweight.
  void AddHeadGradients(const float* x, const Floats& rows, float* dweight) const;

  const ModelConfig& config_;
  const LearningRule rule_;
  const Kernels& kernels_;
  Layers layers_;
  Head head_;
  AttendedRows rows_;

  int columns_ = 0;
  ColumnGroup last_;  // one column per sequence
  std::vector<int64_t> last_element_;

  Floats stream_;   // [width][columns]
  Floats in_;       // input of the queries' linear, [width][columns]
  Floats q_;        // [width][columns]
  Floats queries_;  // absorbed queries, [columns][heads][row]
  Floats offsets_;  // [columns][heads]
  Floats weights_;  // by sequence, [heads][RoundUp(length)]
  Floats mask_;     // dropout factors of the weights
  std::vector<int64_t> weights_at_;
  Floats seen_;     // Σ w·x, [columns][heads][row]
  Floats sums_;     // Σ w, [columns][heads]
  Floats context_;  // [width][columns]
  SublayerMemory attention_;
  Layers::FeedForwardMemory feed_forward_;

  Floats d_;         // gradient of the stream
  Floats dcontext_;  // gradients of context_ and so on
  Floats dsums_;
  Floats dseen_;
  Floats dqueries_;
  Floats doffsets_;
  Floats dq_;
  // Used in a row's gradient if feedback matrices replace the weights.
  Floats feedback_seen_;
  Floats feedback_queries_;
  Floats room_;  // [width][columns]
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_ABSORBED_PASS_H_
