// Checks that an analysis gives the same bits wherever it is interrupted.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PIECES_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PIECES_H_

#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {

// Expects equal bits in both results.
inline void ExpectSameBits(const AnalysisResult& a, const AnalysisResult& b) {
  ASSERT_EQ(a.numbers.size(), b.numbers.size());
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    EXPECT_EQ(a.numbers[i].name, b.numbers[i].name);
    EXPECT_EQ(a.numbers[i].value, b.numbers[i].value) << a.numbers[i].name;
    EXPECT_EQ(a.numbers[i].undefined, b.numbers[i].undefined) << a.numbers[i].name;
  }
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (size_t i = 0; i < a.arrays.size(); ++i) {
    EXPECT_EQ(a.arrays[i].name, b.arrays[i].name);
    EXPECT_EQ(a.arrays[i].axes, b.arrays[i].axes);
    EXPECT_EQ(a.arrays[i].shape, b.arrays[i].shape);
    EXPECT_EQ(a.arrays[i].type, b.arrays[i].type);
    EXPECT_TRUE(a.arrays[i].bytes == b.arrays[i].bytes) << a.arrays[i].name;
  }
  EXPECT_EQ(a.notes, b.notes);
}

// Computes every piece with a new analysis, each of which resumes from the state saved by the
// previous one.
inline void ExpectSameBitsWhereverItIsCut(const AnalysisRequest& request) {
  const AnalysisResult whole = Analyzed(request);
  const std::atomic<bool> stop{false};
  std::string state;
  for (int64_t made = 0;; ++made) {
    auto analysis = MakeAnalysis(request);
    ASSERT_TRUE(analysis.ok()) << analysis.status();
    if (made > 0) {
      const absl::Status restored = (*analysis)->Restore(state);
      ASSERT_TRUE(restored.ok()) << restored;
    }
    ASSERT_EQ((*analysis)->made(), made);
    if (made == (*analysis)->pieces()) {
      const auto pieced = (*analysis)->Finish();
      ASSERT_TRUE(pieced.ok()) << pieced.status();
      return ExpectSameBits(whole, *pieced);
    }
    const absl::Status advanced = (*analysis)->Advance(stop);
    ASSERT_TRUE(advanced.ok()) << advanced;
    const auto saved = (*analysis)->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    state = *saved;
  }
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PIECES_H_
