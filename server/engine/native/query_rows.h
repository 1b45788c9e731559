// Holds the embeddings that an absorbed-attention pass attends to: one row of RoundUp(width) floats
// per token.
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

// Embeds and normalises the rows, forward and backward. Not thread-safe: it owns scratch memory.
class QueryRows {
 public:
  // Keeps the reference.
  explicit QueryRows(const Layers& layers);

  // Embeds all tokens of the columns' sequences, or only the last ones if no block has attention.
  // The arguments must outlive the pass.
  void Embed(const Model& model, const QueryColumns& columns);
  // Applies the norm before attention, if there is one, to what attention reads.
  void Normalise(const Norm& norm);
  // Copies each sequence's last row to its column of to [width][columns]. Padding columns repeat
  // the last sequence.
  void CopyLast(float* to);

  // Returns the rows of a sequence, one per token.
  const float* const* of(int sequence) const { return row_.data() + first_[At(sequence)]; }
  float* gradients(int sequence) {
    return gradients_.data() + int64_t{first_[At(sequence)]} * floats_;
  }

  // The backward pass: gradients are cleared, accumulated, passed through the norm, and added to
  // the model's embeddings.
  void ClearGradients();
  // Adds d [width][columns], the gradient of CopyLast's output.
  void AddLastGradients(const float* d);
  void NormaliseBack(const Norm& norm);
  void EmbedBack(const Model& model);

  // Floats per row.
  int floats() const { return floats_; }

 private:
  static size_t At(int sequence) { return static_cast<size_t>(sequence); }

  // Returns the first position of a sequence that has a row.
  int FirstPosition(int length) const;
  // Returns the row of a sequence's last token.
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
  Floats embedded_;    // rows, after dropout; empty if rows are the embeddings themselves
  Floats mask_;        // dropout factors
  Floats by_feature_;  // [width][RoundUp(rows)]
  NormMemory norm_;
  Floats normalised_;  // rows
  Floats gradients_;   // rows
  Floats last_;        // one row per column
};

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_QUERY_ROWS_H_
