// One pass of a model of a single block whose loss reads each sequence's last position alone: a
// column is a sequence. Other positions are rows that its query looks at, and have no keys, values
// or columns of their own.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_QUERY_PASS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_QUERY_PASS_H_

#include <cstdint>
#include <vector>

#include "server/engine/config.h"
#include "server/engine/native/columns.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/head.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/layers.h"
#include "server/engine/native/model.h"
#include "server/engine/native/query_rows.h"

namespace ablate::engine::native {

// Whether a model can be passed in this way: rotated keys can't be absorbed into a query.
bool HasQueryPass(const ModelConfig& config);

// Not thread-safe: it has room for what it works on.
class QueryPass {
 public:
  // References are kept. `rule` is what gradients are formed by.
  QueryPass(const ModelConfig& config, const PassSetting& pass, LearningRule rule,
            const Kernels& kernels);

  // Adds the gradient of the rows' loss.
  LossSums AddGradient(const Model& model, const QueryColumns& columns, const Objective& objective);

  LossSums Score(const Model& model, const QueryColumns& columns);

 private:
  // Of the fused linear, by rows.
  struct Parts {
    Linear queries;
    Linear keys;
    Linear values;
  };
  static Parts PartsOf(const Linear& qkv);

  void Prepare(const QueryColumns& columns);
  void Run(const Model& model, const QueryColumns& columns);

  // A score q·(Wk·x + bk) is (Wkᵀq)·x + q·bk, and Σ w·(Wv·x + bv) is Wv·Σ w·x + bv·Σ w: what a
  // query looks for, its offset and what it sees are formed once a sequence, not once a row.
  void Attend(const Block& block, const QueryColumns& columns);
  void FormQueries(const Parts& qkv);
  void FillWeightsMask(const QueryColumns& columns);
  void FormContext(const Linear& values);

  void AttendBack(const Block& block, const QueryColumns& columns);
  void ContextBack(const Linear& values, const QueryColumns& columns);
  void LookBack(const Parts& qkv, const QueryColumns& columns);
  void QueriesBack(const Parts& qkv);

  // What the kernel sees of a sequence.
  QueryAttention AttentionOf(const QueryColumns& columns, int sequence);

  // By the rows W of a weight that are a head's, for each head: rows [columns][heads][row] are
  // Wᵀ·(the head's features of x [width][columns]), and the other way the head's features of to
  // [width][columns] are W·(its rows).
  const float* Absorb(const float* weight, const float* x, Floats& rows);
  void Emit(const float* weight, const Floats& rows, float* to);
  // Adds Σ_columns x·rowᵀ to the head's part of dweight.
  void AddHeadGradients(const float* x, const Floats& rows, float* dweight) const;

  const ModelConfig& config_;
  const LearningRule rule_;
  const Kernels& kernels_;
  Layers layers_;
  Head head_;
  QueryRows rows_;

  int columns_ = 0;
  ColumnGroup last_;  // a column a sequence
  std::vector<int64_t> last_element_;

  Floats stream_;   // [width][columns]
  Floats in_;       // what queries are formed of, [width][columns]
  Floats q_;        // [width][columns]
  Floats queries_;  // what they look for in a row, [columns][heads][row]
  Floats offsets_;  // [columns][heads]
  Floats weights_;  // by sequence, [heads][RoundUp(length)]
  Floats mask_;     // of the weights' dropout
  std::vector<int64_t> weights_at_;
  Floats seen_;     // Σ w·x, [columns][heads][row]
  Floats sums_;     // Σ w, [columns][heads]
  Floats context_;  // [width][columns]
  SublayerMemory attention_;
  Layers::FeedForwardMemory feed_forward_;

  Floats d_;         // of the stream
  Floats dcontext_;  // and so on
  Floats dsums_;
  Floats dseen_;
  Floats dqueries_;
  Floats doffsets_;
  Floats dq_;
  // What a row's gradient is formed with where it goes back by other matrices than forward.
  Floats feedback_seen_;
  Floats feedback_queries_;
  Floats room_;  // [width][columns]
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_QUERY_PASS_H_
