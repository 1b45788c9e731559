// Computes the layers of the model family on columns, forward and backward: linears, norms,
// residual additions and dropout. All activations are [features][columns].
#ifndef ABLATE_SERVER_ENGINE_NATIVE_LAYERS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_LAYERS_H_

#include <cstddef>
#include <cstdint>

#include "server/engine/config.h"
#include "server/engine/core/data/dropout_stream.h"
#include "server/engine/core/hook_points.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {

// Arguments of a pass.
struct PassSetting {
  bool training = false;  // dropout, batch statistics, and memory for the backward pass
  NormBackward norm_backward = NormBackward::kExact;
  uint32_t seed = 0;  // of dropout
  uint32_t step = 0;
};

// Describes a group of columns to the layers.
struct ColumnGroup {
  int count = 0;
  const float* real = nullptr;  // [count], 1 for a token, 0 for padding; set if a norm reads other
                                // columns
  float tokens = 0;             // sum of `real`
  // [count], index of a column's first element among all elements of a hook point with `width`
  // features; dropout counts by it.
  const int64_t* element = nullptr;
};

// A hook point. Its name is built only if something is dropped.
struct BlockHookPoint {
  HookPoint hook_point;
  int block = 0;
};

// Data that a norm keeps for the backward pass.
struct NormMemory {
  Floats x_hat;
  Floats rstd;
  Floats along_scale;
  Floats x;      // of pointwise norms
  Floats slope;  // of pointwise norms
};

// Data that one sublayer f of a residual stream x keeps for the backward pass. The result is x +
// s·f(norm x), norm(x + s·f x), x + s·norm(f(norm x)) or x + s·f x.
struct SublayerMemory {
  Floats in;  // input of f
  NormMemory norm;
  NormMemory post_norm;
  Floats mask;    // dropout factors
  Floats update;  // before its learned factor
};

// The norms before and after a sublayer, if its block has any, and the factor of its update.
struct SublayerNorms {
  bool present = false;
  const Norm& norm;
  const Norm& post_norm;
  const UpdateFactor& factor;
};

// Returns true if a block's norms precede what reads the stream.
bool NormsInput(const NormConfig& config);

SublayerNorms AttentionNorms(const ModelConfig& config, const Block& block);
SublayerNorms FeedForwardNorms(const ModelConfig& config, const Block& block);

// Applies layers forward and backward. Not thread-safe: it owns scratch memory.
class Layers {
 public:
  // Keeps references.
  Layers(const ModelConfig& config, const PassSetting& pass, const Kernels& kernels)
      : config_(config), pass_(pass), kernels_(kernels) {}

  // y ← Wx + b, or y ← y + Wx + b.
  void Apply(const Linear& linear, const float* x, int columns, float* y, bool add = false) const;
  // dx ← Bᵀdy or dx ← dx + Bᵀdy, where B is the matrix that the linear's gradient uses.
  void Back(const Linear& linear, const float* dy, int columns, float* dx, bool add = false) const;
  // Adds the gradients of weight and bias.
  void AddGradients(const Linear& linear, const float* x, const float* dy, int columns);

  void Normalise(const Norm& norm, const float* x, const ColumnGroup& group, float* y,
                 NormMemory& memory) const;
  // dx may alias dy unless `add`.
  void NormaliseBack(const Norm& norm, const NormMemory& memory, const float* dy,
                     const ColumnGroup& group, float* dx, bool add) const;

  // A sublayer consists of Begin, its own computation, and End; backward of EndBack, the gradient
  // of that computation, and BeginBack.
  //
  // Computes the sublayer's input, memory.in.
  void Begin(const SublayerNorms& norms, const float* stream, const ColumnGroup& group,
             SublayerMemory& memory) const;
  // Applies the sublayer's last linear to `x` and adds the result to the stream.
  void End(const SublayerNorms& norms, const Linear& last, const float* x,
           BlockHookPoint hook_point, const ColumnGroup& group, SublayerMemory& memory,
           float* stream);
  // d is the gradient of the stream after the sublayer, and becomes its part along the residual
  // connection. Returns the gradient of the last linear's output: d itself if they are equal, else
  // `room`, where it is written.
  const float* EndBack(const SublayerNorms& norms, const ColumnGroup& group,
                       const SublayerMemory& memory, float* d, float* room) const;
  // Adds the gradient through the norm before the sublayer to d, or stores it there if there is no
  // residual connection. dx, the gradient of memory.in, is overwritten.
  void BeginBack(const SublayerNorms& norms, const ColumnGroup& group, const SublayerMemory& memory,
                 float* dx, float* d) const;

  // The feed-forward sublayer of a block: applied to `stream`, and backward from d.
  struct FeedForwardMemory {
    SublayerMemory sublayer;
    Floats slope;
    Floats hidden;
  };
  void FeedForward(const Block& block, int index, const ColumnGroup& group,
                   FeedForwardMemory& memory, float* stream);
  void FeedForwardBack(const Block& block, const ColumnGroup& group, FeedForwardMemory& memory,
                       float* d);
  // The same without Begin and BeginBack: reads memory.sublayer.in, and returns its gradient, valid
  // until the next call. d becomes its part along the residual connection.
  void ApplyFeedForward(const Block& block, int index, const ColumnGroup& group,
                        FeedForwardMemory& memory, float* stream);
  float* FeedForwardInputBack(const Block& block, const ColumnGroup& group,
                              FeedForwardMemory& memory, float* d);

  // Multiplies x, which has the model's width, by a new dropout mask of this hook point, kept in
  // `mask`. Does nothing if nothing is dropped.
  void Drop(BlockHookPoint hook_point, const ColumnGroup& group, Floats& mask, float* x) const;

  // Returns the masks of a hook point in this update. Call it only if something is dropped, because
  // it builds the hook point's name.
  DropoutStream MasksOf(BlockHookPoint hook_point) const {
    return {config_.dropout, pass_.seed, pass_.step,
            HookPointName(hook_point.hook_point, hook_point.block)};
  }

  const Kernels& kernels() const { return kernels_; }
  const ModelConfig& config() const { return config_; }
  const PassSetting& pass() const { return pass_; }
  bool drops() const { return pass_.training && config_.dropout > 0; }

 private:
  bool Inside(const SublayerNorms& norms) const;
  bool Is(const SublayerNorms& norms, NormPlacement placement) const;
  // Returns true if a sublayer's output is added to the stream unchanged.
  bool AddsPlainly(const SublayerNorms& norms) const;
  // Multiplies an update [width][columns] by its learned factor, and back: then adds the factor's
  // gradient, and makes the gradient of the product in `d` that of the update.
  void Scale(const UpdateFactor& factor, int columns, Floats& kept, float* update) const;
  void ScaleBack(const UpdateFactor& factor, int columns, const Floats& kept, float* d) const;

  const ModelConfig& config_;
  const PassSetting& pass_;
  const Kernels& kernels_;
  Floats transposed_;
  Floats update_;
  mutable Floats product_;
  Floats dup_;
  Floats room_;
};

// Fills [lines][length] with dropout factors (core/data/dropout_stream.h): line l begins with
// element first[l], and its element j is stored at mask[l·line + j·stride].
struct MaskLines {
  const int64_t* first = nullptr;
  int lines = 0;
  int length = 0;
  ptrdiff_t line = 0;
  ptrdiff_t stride = 1;
};
void FillMask(const DropoutStream& stream, const MaskLines& lines, float* mask);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_LAYERS_H_
