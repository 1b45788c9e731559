#include <gtest/gtest.h>

#include <cstring>

#include "server/engine/torch/train/torch_memory.h"

namespace ablate::engine {
namespace {

constexpr size_t kBlock = KeptBlocks::kLeast;

class KeptBlocksTest : public ::testing::Test {
 protected:
  KeptBlocksTest() { blocks_.Clear(); }
  ~KeptBlocksTest() override { blocks_.Clear(); }

  KeptBlocks& blocks_ = KeptBlocks::Get();
};

TEST_F(KeptBlocksTest, ReusesTheSmallestBlockThatFits) {
  void* const large = [&] {
    const at::DataPtr larger = blocks_.allocate(kBlock + kBlock / 4);
    const at::DataPtr smaller = blocks_.allocate(kBlock);
    return larger.get();
  }();
  EXPECT_EQ(blocks_.kept(), 2 * kBlock + kBlock / 4);
  const at::DataPtr first = blocks_.allocate(kBlock);
  EXPECT_NE(first.get(), large);
  EXPECT_EQ(blocks_.kept(), kBlock + kBlock / 4);
  const at::DataPtr second = blocks_.allocate(kBlock);
  EXPECT_EQ(second.get(), large);
  EXPECT_EQ(blocks_.kept(), 0u);
  at::DataPtr third = blocks_.allocate(kBlock + 1);  // a new one, of whole pages
  std::memset(third.mutable_get(), 1, kBlock + 1);
}

TEST_F(KeptBlocksTest, DoesNotWasteMoreThanAQuarter) {
  blocks_.allocate(kBlock + kBlock / 2);
  const at::DataPtr made = blocks_.allocate(kBlock);
  EXPECT_EQ(blocks_.kept(), kBlock + kBlock / 2);
}

TEST_F(KeptBlocksTest, KeepsNoSmallAndNoHugeBlocks) {
  blocks_.allocate(kBlock - 1);
  blocks_.allocate(0);
  blocks_.allocate(KeptBlocks::kLargest + 1);
  EXPECT_EQ(blocks_.kept(), 0u);
}

TEST_F(KeptBlocksTest, TakesBlocksOfTheRawInterface) {
  for (const size_t bytes : {size_t{100}, kBlock}) {
    void* const memory = blocks_.raw_allocate(bytes);
    std::memset(memory, 1, bytes);
    blocks_.raw_deallocate(memory);
  }
  EXPECT_EQ(blocks_.kept(), kBlock);
}

TEST_F(KeptBlocksTest, ForgetsTheOldestBlocksAboveTheBound) {
  {
    const at::DataPtr last = blocks_.allocate(KeptBlocks::kLargest);
    const at::DataPtr middle = blocks_.allocate(KeptBlocks::kLargest);
    const at::DataPtr first = blocks_.allocate(kBlock);
  }
  EXPECT_EQ(blocks_.kept(), KeptBlocks::kMost);
  const at::DataPtr made = blocks_.allocate(kBlock);
  EXPECT_EQ(blocks_.kept(), KeptBlocks::kMost) << "the oldest had been freed";
}

}  // namespace
}  // namespace ablate::engine
