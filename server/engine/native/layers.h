// The layers of the family on columns, forward and back: linears, norms, and what stands around a
// sublayer. All activations are [features][columns].
#ifndef ABLATE_SERVER_ENGINE_NATIVE_LAYERS_H_
#define ABLATE_SERVER_ENGINE_NATIVE_LAYERS_H_

#include <cstddef>
#include <cstdint>

#include "server/engine/config.h"
#include "server/engine/data/dropout_site.h"
#include "server/engine/model/sites.h"
#include "server/engine/native/floats.h"
#include "server/engine/native/kernels.h"
#include "server/engine/native/model.h"

namespace ablate::engine::native {

// How a pass is made.
struct PassSetting {
  bool training = false;  // dropout, a batch's statistics, and memory for the way back
  NormBackward norm_backward = NormBackward::kExact;
  uint32_t seed = 0;  // of dropout
  uint32_t step = 0;
};

// A group of columns as its layers see it.
struct ColumnGroup {
  int count = 0;
  const float* real = nullptr;  // [count], 1 for a token; only where a norm reads other columns
  float tokens = 0;             // of `real`
  // [count], of the first of a column's elements among all that a site with `width` features could
  // have: what dropout counts by.
  const int64_t* element = nullptr;
};

// A site whose name is built only where something is dropped.
struct BlockSite {
  Site site;
  int block = 0;
};

// What a norm keeps for the way back.
struct NormMemory {
  Floats z;
  Floats inverse;
  Floats share;
};

// What stands around one sublayer f of a residual stream x, kept for the way back: x + s·f(norm x),
// norm(x + s·f x), x + s·norm(f(norm x)) or x + s·f x.
struct SublayerMemory {
  Floats in;  // what f reads
  NormMemory norm;
  NormMemory post_norm;
  Floats mask;  // of dropout
};

struct SublayerNorms {
  bool present = false;
  const Norm& norm;
  const Norm& post_norm;
};

// Whether norms of blocks stand before what reads the stream.
bool NormsInput(const NormConfig& config);

SublayerNorms AttentionNorms(const ModelConfig& config, const Block& block);
SublayerNorms FeedForwardNorms(const ModelConfig& config, const Block& block);

// Not thread-safe: it has room for what it works on.
class Layers {
 public:
  // References are kept.
  Layers(const ModelConfig& config, const PassSetting& pass, const Kernels& kernels)
      : config_(config), pass_(pass), kernels_(kernels) {}

  // y ← Wx + b, or y ← y + Wx + b.
  void Apply(const Linear& linear, const float* x, int columns, float* y, bool add = false) const;
  // dx ← Bᵀdy or dx ← dx + Bᵀdy, where B is what the linear's gradient goes through.
  void Back(const Linear& linear, const float* dy, int columns, float* dx, bool add = false) const;
  // Adds the gradients of weight and bias.
  void AddGradients(const Linear& linear, const float* x, const float* dy, int columns);

  void Normalise(const Norm& norm, const float* x, const ColumnGroup& group, float* y,
                 NormMemory& memory) const;
  // dx may be dy unless it is added to.
  void NormaliseBack(const Norm& norm, const NormMemory& memory, const float* dy,
                     const ColumnGroup& group, float* dx, bool add) const;

  // What the sublayer reads, in memory.in.
  void Begin(const SublayerNorms& norms, const float* stream, const ColumnGroup& group,
             SublayerMemory& memory) const;
  // The sublayer's last linear, of `x`, and how its output meets the stream.
  void End(const SublayerNorms& norms, const Linear& last, const float* x, BlockSite site,
           const ColumnGroup& group, SublayerMemory& memory, float* stream);
  // d is the gradient of the stream behind the sublayer and becomes the part of it that passes the
  // sublayer by. The gradient of the last linear's output: d itself where it is the same, else
  // written to `room`.
  const float* EndBack(const SublayerNorms& norms, const ColumnGroup& group,
                       const SublayerMemory& memory, float* d, float* room) const;
  // Adds to d, or puts there if nothing passes by, what comes through the norm before the sublayer
  // from dx, the gradient of memory.in, which is overwritten.
  void BeginBack(const SublayerNorms& norms, const ColumnGroup& group, const SublayerMemory& memory,
                 float* dx, float* d) const;

  // The feed-forward sublayer of a block on `stream`, and back from d.
  struct FeedForwardMemory {
    SublayerMemory sublayer;
    Floats slope;
    Floats hidden;
  };
  void FeedForward(const Block& block, int index, const ColumnGroup& group,
                   FeedForwardMemory& memory, float* stream);
  void FeedForwardBack(const Block& block, const ColumnGroup& group, FeedForwardMemory& memory,
                       float* d);

  // Multiplies x, of the model's width, by a new mask of this site, kept in `mask`. Nothing where
  // nothing is dropped.
  void Drop(BlockSite site, const ColumnGroup& group, Floats& mask, float* x) const;

  // The masks of a site in this update; for callers that drop, as it takes the site's name.
  DropoutSite MasksOf(BlockSite site) const {
    return {config_.dropout, pass_.seed, pass_.step, SiteName(site.site, site.block)};
  }

  const Kernels& kernels() const { return kernels_; }
  const ModelConfig& config() const { return config_; }
  const PassSetting& pass() const { return pass_; }
  bool drops() const { return pass_.training && config_.dropout > 0; }

 private:
  bool Inside(const SublayerNorms& norms) const;
  bool Is(const SublayerNorms& norms, NormPlacement placement) const;
  // Whether a sublayer's output is added to the stream as it comes.
  bool AddsPlainly(const SublayerNorms& norms) const;

  const ModelConfig& config_;
  const PassSetting& pass_;
  const Kernels& kernels_;
  Floats transposed_;
  Floats update_;
  Floats dup_;
  Floats room_;
};

// Fills [lines][length] with what dropout multiplies by (data/dropout_site.h): line l begins with
// element first[l], and element j of it goes to mask[l·line + j·stride].
struct MaskLines {
  const int64_t* first = nullptr;
  int lines = 0;
  int length = 0;
  ptrdiff_t line = 0;
  ptrdiff_t stride = 1;
};
void FillMask(const DropoutSite& site, const MaskLines& lines, float* mask);

}  // namespace ablate::engine::native

#endif  // ABLATE_SERVER_ENGINE_NATIVE_LAYERS_H_
