#include "server/engine/native/kernels.h"

#include <cstdlib>
#include <string_view>

// Targets: AVX-512, AVX2 with fused multiply-add, and the baseline. More targets would cost compile
// time without a gain.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/engine/native/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "server/engine/native/absorbed_attention-inl.h"
#include "server/engine/native/attention-inl.h"
#include "server/engine/native/gemm-inl.h"
#include "server/engine/native/lane_attention-inl.h"
#include "server/engine/native/norm-inl.h"
#include "server/engine/native/optimizer-inl.h"
#include "server/engine/native/pointwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

const Kernels kKernels = {
    .target = hwy::TargetName(HWY_TARGET),
    .fused = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3,
    .gemm = MultiplyMatrices,
    .transpose = Transpose,
    .add_row_sums = AddRowSums,
    .norm_forward = ForwardNorm,
    .norm_back = BackNorm,
    .pointwise_norm_forward = ForwardPointwiseNorm,
    .pointwise_norm_back = BackPointwiseNorm,
    .batch_norm_forward = ForwardBatchNorm,
    .batch_norm_back = BackBatchNorm,
    .standardise_rows = StandardiseByRow,
    .attention = AttentionForward,
    .attention_back = AttentionBackward,
    .prefix_batch_attention = ForwardPrefixBatchAttention,
    .lane_attention = ForwardLaneAttention,
    .absorbed_attention = ForwardAbsorbedAttention,
    .absorbed_attention_back = BackAbsorbedAttention,
    .activate = ApplyActivation,
    .cross_entropy = ComputeCrossEntropy,
    .summarise_logits = SummariseLogits,
    .multiply = Multiply,
    .combine = Combine,
    .cap = Cap,
    .cap_back = CapBack,
    .add = AddTo,
    .rotate = Rotate,
    .lerp = Lerp,
    .adam = StepAdam,
    .sgd = StepSgd,
    .lion = StepLion,
    .squared_norm = SquaredNorm,
};

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ablate::engine::native {

namespace {

// Returns the targets that ATEN_CPU_CAPABILITY allows. The variable limits LibTorch's instructions,
// so that both trainers use the same ones. LibTorch warns about an unknown name.
int64_t AllowedTargets() {
  const char* variable = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string_view capability = variable == nullptr ? "" : variable;
  if (capability == "default") return 0;
  if (capability == "avx2") return HWY_AVX2;
  return HWY_AVX2 | HWY_AVX3;
}

}  // namespace

std::vector<const Kernels*> AllKernels() {
  const int64_t usable = hwy::SupportedTargets() & AllowedTargets();
  std::vector<const Kernels*> all;
#if HWY_TARGETS & HWY_AVX3
  if (usable & HWY_AVX3) all.push_back(&N_AVX3::kKernels);
#endif
#if HWY_TARGETS & HWY_AVX2
  if (usable & HWY_AVX2) all.push_back(&N_AVX2::kKernels);
#endif
  all.push_back(&HWY_NAMESPACE::kKernels);
  return all;
}

const Kernels& BestKernels() {
  static const Kernels& best = *AllKernels().front();
  return best;
}

}  // namespace ablate::engine::native
#endif
