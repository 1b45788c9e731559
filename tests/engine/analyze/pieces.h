// That an analysis does not notice where it is cut.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PIECES_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PIECES_H_

#include "tests/engine/analyze/small_models.h"

namespace ablate::engine {

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
    EXPECT_TRUE(a.arrays[i].bytes == b.arrays[i].bytes) << a.arrays[i].name;
  }
}

// Made with a new analysis for every piece, each of which goes on from the state of the one before.
inline void ExpectSameBitsWhereverItIsCut(const AnalysisRequest& request) {
  const AnalysisResult whole = Analyzed(request);
  auto last = MakeAnalysis(request);
  ASSERT_TRUE(last.ok()) << last.status();
  const std::atomic<bool> stop{false};
  while ((*last)->made() < (*last)->pieces()) {
    ASSERT_TRUE((*last)->Advance(stop).ok());
    const auto state = (*last)->Save();
    ASSERT_TRUE(state.ok()) << state.status();
    last = MakeAnalysis(request);
    ASSERT_TRUE((*last)->Restore(*state).ok());
  }
  const auto pieced = (*last)->Finish();
  ASSERT_TRUE(pieced.ok()) << pieced.status();
  ExpectSameBits(whole, *pieced);
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PIECES_H_
