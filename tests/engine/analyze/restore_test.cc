// Tests which saved states Analysis::Restore rejects.
#include <gtest/gtest.h>

#include "base/safetensors.h"
#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {
namespace {

std::unique_ptr<Analysis> AnalysisOf(const AnalysisOptions& options) {
  auto analysis = MakeAnalysis({options, {ModelM()}, {100, ""}});
  EXPECT_TRUE(analysis.ok()) << analysis.status();
  return *std::move(analysis);
}

// Returns the state after one piece, with this revision; "" omits the revision.
std::string StateOfRevision(const AnalysisOptions& options, const std::string& revision) {
  const auto analysis = AnalysisOf(options);
  const std::atomic<bool> stop{false};
  EXPECT_TRUE(analysis->Advance(stop).ok());
  const auto state = analysis->Save();
  EXPECT_TRUE(state.ok()) << state.status();
  auto file = ParseSafetensors(*state);
  EXPECT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata.erase("revision"), 1u);
  if (!revision.empty()) file->metadata["revision"] = revision;
  return *WriteSafetensors(file->tensors, file->metadata);
}

TEST(RestoreTest, RefusesAStateOfAnotherRevisionAndStaysAsItWas) {
  const GradientFlowOptions options;
  ASSERT_EQ(KindOf(options).revision, 1);
  for (const std::string revision : {"", "0", "2"}) {
    const auto analysis = AnalysisOf(options);
    const absl::Status restored = analysis->Restore(StateOfRevision(options, revision));
    EXPECT_TRUE(absl::IsInvalidArgument(restored)) << revision << ": " << restored;
    EXPECT_EQ(analysis->made(), 0);
  }
  const auto analysis = AnalysisOf(options);
  EXPECT_TRUE(analysis->Restore(StateOfRevision(options, "1")).ok());
  EXPECT_EQ(analysis->made(), 1);
}

TEST(RestoreTest, TakesAStateWithoutARevisionForOneOfRevision0) {
  const SpectrumOptions options;
  ASSERT_EQ(KindOf(options).revision, 0);
  const auto analysis = AnalysisOf(options);
  EXPECT_TRUE(analysis->Restore(StateOfRevision(options, "")).ok());
  EXPECT_EQ(analysis->made(), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(analysis->Restore(StateOfRevision(options, "1"))));
}

TEST(RestoreTest, RefusesAStateOfAnotherKind) {
  const absl::Status restored =
      AnalysisOf(SpectrumOptions())->Restore(StateOfRevision(ActivationsOptions(), "0"));
  EXPECT_TRUE(absl::IsInvalidArgument(restored)) << restored;
}

}  // namespace
}  // namespace ablate::engine
