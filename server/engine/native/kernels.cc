#include "server/engine/native/kernels.h"

// AVX-512, AVX2 with fused multiply-add, and what every machine has: more targets would cost time
// to compile and gain nothing here.
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/engine/native/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "server/engine/native/attention-inl.h"
#include "server/engine/native/gemm-inl.h"
#include "server/engine/native/norm-inl.h"
#include "server/engine/native/optimizer-inl.h"
#include "server/engine/native/pointwise-inl.h"
#include "server/engine/native/query_attention-inl.h"
#include "server/engine/native/strip_attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ablate::engine::native::HWY_NAMESPACE {

const Kernels kKernels = {
    hwy::TargetName(HWY_TARGET),
    HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3,
    MultiplyMatrices,
    Transpose,
    AddRowSums,
    ForwardNorm,
    BackNorm,
    ForwardBatchNorm,
    BackBatchNorm,
    StandardiseByRow,
    AttentionForward,
    AttentionBackward,
    ForwardStripAttention,
    ForwardLaneAttention,
    ForwardQueryAttention,
    BackQueryAttention,
    ApplyActivation,
    ScoreLoss,
    SummariseScores,
    Multiply,
    Combine,
    AddTo,
    Rotate,
    Lerp,
    StepAdam,
    StepSgd,
    SquaredNorm,
};

}  // namespace ablate::engine::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ablate::engine::native {

std::vector<const Kernels*> AllKernels() {
  const int64_t supported = hwy::SupportedTargets();
  std::vector<const Kernels*> all;
#if HWY_TARGETS & HWY_AVX3
  if (supported & HWY_AVX3) all.push_back(&N_AVX3::kKernels);
#endif
#if HWY_TARGETS & HWY_AVX2
  if (supported & HWY_AVX2) all.push_back(&N_AVX2::kKernels);
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
