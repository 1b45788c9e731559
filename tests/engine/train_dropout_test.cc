// Tests that dropout masks depend on seed, step, hook point and element, and on nothing else.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/engine/core/data/random.h"
#include "server/engine/torch/model/dropout.h"

namespace ablate::engine {
namespace {

const at::TensorOptions kFloat = at::TensorOptions().dtype(at::kFloat);

DropoutLines Lines(int64_t count, int64_t length) {
  return {at::arange(count, at::kLong) * length, length};
}

Dropout Of(double rate, uint32_t seed = 1, uint32_t step = 0) { return {rate, seed, step, 0}; }

TEST(DropoutMaskTest, IsThatOfAPlainGenerator) {
  const at::Tensor mask = DropoutMask(Of(0.3, 7, 5), "embedding", Lines(4, 10), kFloat);
  SplitMix64 streams(StreamSeed(7, "dropout/embedding"));
  streams.Skip(5);
  SplitMix64 elements(streams.Next());
  for (int64_t i = 0; i < mask.numel(); ++i) {
    const double u = static_cast<double>(elements.Next() >> 32) * 0x1p-32;
    EXPECT_FLOAT_EQ(mask.view(-1)[i].item<float>(), u < 0.3 ? 0.0F : 1 / 0.7F) << i;
  }
}

TEST(DropoutMaskTest, IsTheSameByTensorOperations) {
  const DropoutLines lines = {
      at::tensor(std::vector<int64_t>{0, 5, int64_t{1} << 40, 7, 9, 11, 3, 2, 1}, at::kLong), 33};
  for (const Dropout& dropout : {Of(0.4), Of(0.4, 4000000000U, 1U << 31), Of(0.4, 3, 17)}) {
    EXPECT_TRUE(at::equal(DropoutMask(dropout, "site", lines, kFloat),
                          ComposedDropoutMask(dropout, "site", lines, kFloat)));
  }
}

TEST(DropoutMaskTest, LeavesOutTheShareThatIsAskedFor) {
  const at::Tensor mask = DropoutMask(Of(0.2), "site", Lines(100, 10'000), kFloat);
  EXPECT_NEAR(mask.eq(0).to(at::kDouble).mean().item<double>(), 0.2, 5 * 4e-4);
  EXPECT_NEAR(mask.to(at::kDouble).mean().item<double>(), 1, 5 * 5e-4);
}

TEST(DropoutMaskTest, DiffersBySeedStepAndSite) {
  const at::Tensor mask = DropoutMask(Of(0.5), "site", Lines(1, 100), kFloat);
  EXPECT_FALSE(at::equal(mask, DropoutMask(Of(0.5, 2), "site", Lines(1, 100), kFloat)));
  EXPECT_FALSE(at::equal(mask, DropoutMask(Of(0.5, 1, 1), "site", Lines(1, 100), kFloat)));
  EXPECT_FALSE(at::equal(mask, DropoutMask(Of(0.5), "other", Lines(1, 100), kFloat)));
}

TEST(DropoutMaskTest, IsNotMovedByWhatElseIsMasked) {
  const at::Tensor all = DropoutMask(Of(0.5), "site", Lines(8, 16), kFloat);
  DropoutLines some = Lines(8, 16);
  some.first = some.first.narrow(0, 3, 2);
  EXPECT_TRUE(at::equal(all.narrow(0, 3, 2), DropoutMask(Of(0.5), "site", some, kFloat)));
}

}  // namespace
}  // namespace ablate::engine
