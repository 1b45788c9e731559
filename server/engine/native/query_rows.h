// The embeddings that a query pass looks at: a row a token, of RoundUp(width) floats.
#ifndef ABLATE_SERVER_ENGINE_NATIVE_QUERY_ROWS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_QUERY_ROWS_H_

#include <cstddef>
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

// Not thread-safe: it has room for what it works on.
class QueryRows {
 public:
  // The reference is kept.
  explicit QueryRows(const Layers& layers);

  // The embeddings of all tokens of the columns' sequences, or where no block attends of each one's
  // last. What is given must live until the pass is over.
  void Embed(const Model& model, const QueryColumns& columns);
  // As attention reads them, from now on: by the norm before it, if there is one.
  void Normalise(const Norm& norm);
  // Each sequence's last row as its column of to [width][columns]. Columns that are no sequence
  // repeat the last one.
  void CopyLast(float* to);

  // Of a sequence, a row a token.
  const float* const* of(int sequence) const { return row_.data() + first_[At(sequence)]; }
  float* gradients(int sequence) {
    return gradients_.data() + int64_t{first_[At(sequence)]} * floats_;
  }

  // The way back: gradients are set to 0 and added to, become those of what was normalised, and
  // then go to the model's embeddings.
  void ClearGradients();
  // Adds d [width][columns], of what CopyLast gave.
  void AddLastGradients(const float* d);
  void NormaliseBack(const Norm& norm);
  void EmbedBack(const Model& model);

  // Floats of a row.
  int floats() const { return floats_; }

 private:
  static size_t At(int sequence) { return static_cast<size_t>(sequence); }

  // The first position of a sequence that has a row.
  int FirstPosition(int length) const;
  // The row of a sequence's last token.
  int LastOf(int sequence) const;
  bool Normalises() const;
  void Drop();

  const Layers& layers_;
  const ModelConfig& config_;
  const Kernels& kernels_;
  PositionTable positions_;
  const int floats_;

  const QueryColumns* columns_ = nullptr;
  int count_ = 0;           // rows
  std::vector<int> first_;  // by sequence
  std::vector<const float*> row_;
  Floats embedded_;    // rows, after dropout; nothing where a row is an embedding as it is
  Floats mask_;        // of dropout
  Floats by_feature_;  // [width][RoundUp(rows)]
  NormMemory norm_;
  Floats normalised_;  // rows
  Floats gradients_;   // rows
  Floats last_;        // a row a column
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_QUERY_ROWS_H_
