#include "tests/engine/analyze/drawn_subjects.h"

#include <gtest/gtest.h>

#include <set>

namespace ablate::engine {
namespace {

TEST(DrawnSubjectsTest, AreOfTheWholeFamily) {
  std::set<NormKind> norms;
  std::set<NormPlacement> placements;
  std::set<AttentionKind> attentions;
  std::set<LearningRule> rules;
  std::set<size_t> tasks;
  std::set<bool> tied, causal, wide;
  for (uint64_t number = 0; number < 24; ++number) {
    const RunConfig run = DrawnRun(number);
    norms.insert(run.model.norm.kind);
    placements.insert(run.model.norm.placement);
    attentions.insert(run.model.attention.kind);
    rules.insert(run.training.rule);
    tasks.insert(run.task.index());
    tied.insert(run.model.tied_head);
    causal.insert(run.model.attention.causal);
    wide.insert(run.precision == Precision::kFloat64);
  }
  EXPECT_EQ(norms.size(), 4u);
  EXPECT_EQ(placements.size(), 4u);
  EXPECT_EQ(attentions.size(), 3u);
  EXPECT_EQ(rules.size(), 3u);
  EXPECT_EQ(tasks.size(), 4u);
  EXPECT_EQ(tied.size() + causal.size() + wide.size(), 6u);
}

TEST(DrawnSubjectsTest, ReadSeveralRowsOfSeveralLengths) {
  std::set<size_t> lengths;  // numbers of distinct lengths in a material
  for (uint64_t number = 0; number < 24; ++number) {
    const Material material = DrawnMaterial(number, Precision::kFloat32);
    EXPECT_GT(material.batches.size(), 1u) << number;
    std::set<int64_t> of;
    for (const TokenBatch& batch : material.batches) of.insert(batch.length);
    lengths.insert(of.size());
  }
  EXPECT_GT(*lengths.rbegin(), 1u);
}

}  // namespace
}  // namespace ablate::engine
