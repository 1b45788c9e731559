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
  void Prepare(const QueryColumns& columns);
  void ReadRows(const Model& model, const QueryColumns& columns);
  void BackThroughRowNorm(const Model& model);
  void RowsBack(const Model& model, const QueryColumns& columns);
  void Attend(const Model& model, const QueryColumns& columns);
  void AttendBack(const Model& model, const QueryColumns& columns);
  void FillWeightsMask(const QueryColumns& columns);
  QueryAttention AttentionOf(const QueryColumns& columns, int sequence);
  void Run(const Model& model, const QueryColumns& columns);
  // Of [heads][width][columns], to and from rows [columns][heads][RoundUp(width)].
  void ToRows(const float* by_feature, float* rows) const;
  void ToFeatures(const float* rows, float* by_feature) const;
  // to[heads][width][columns] = the part of a head's weight, transposed, times its rows of x.
  void ThroughHeads(const float* weight, const float* x, float* to) const;
  // The other way: to[width][columns] = the parts of the weight times x [heads][width][columns].
  void FromHeads(const float* weight, const float* x, float* to) const;
  // Adds Σ_columns x·yᵀ to a head's part of dweight, y as rows.
  void AddHeadGradients(const float* x, const float* rows, float* dweight) const;

  bool normalises_rows() const;

  const ModelConfig& config_;
  const LearningRule rule_;
  const Kernels& kernels_;
  Layers layers_;
  Head head_;
  PositionTable positions_;
  const int row_;  // floats of a row, RoundUp(width)

  int columns_ = 0;
  ColumnGroup last_;  // a column a sequence
  std::vector<int64_t> last_element_;
  std::vector<int> first_row_;  // by sequence, in rows_

  // A row a token.
  int count_ = 0;
  Floats embedded_;  // [count][row], after dropout
  Floats row_mask_;
  Floats by_feature_;  // [width][RoundUp(count)]
  NormMemory row_norm_;
  Floats rows_;  // what attention reads, [count][row]
  Floats drows_;
  std::vector<const float*> row_at_;

  Floats stream_;   // [width][columns]
  Floats in_last_;  // what queries are formed of
  Floats q_;
  Floats absorbed_;  // [heads][width][columns]
  Floats queries_;   // [columns][heads][row]
  Floats offsets_;   // [columns][heads]
  Floats weights_;   // by sequence
  std::vector<int64_t> weights_at_;
  Floats weights_mask_;
  Floats seen_;             // [columns][heads][row]
  Floats seen_by_feature_;  // [heads][width][columns]
  Floats sums_;             // [columns][heads]
  Floats context_;          // [width][columns]
  SublayerMemory attention_;
  Layers::FeedForwardMemory feed_forward_;

  Floats d_;
  Floats room_;
  Floats dcontext_;
  Floats dq_;
  Floats dseen_;
  Floats back_dseen_;
  Floats back_queries_;
  Floats dqueries_;
  Floats doffsets_;
  Floats dsums_;
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_QUERY_PASS_H_
