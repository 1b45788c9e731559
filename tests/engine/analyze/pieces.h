// Checks that an analysis gives the same bits wherever it is interrupted, and the same numbers
// however its sequences are batched.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PIECES_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PIECES_H_

#include "server/engine/analyze/computation.h"
#include "server/engine/core/analyses/inputs.h"
#include "tests/engine/analyze/drawn_subjects.h"
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

// Returns the result of a computation of all pieces.
inline AnalysisResult Finished(const MadeComputation& made) {
  EXPECT_TRUE(made.ok()) << made.status();
  for (int64_t piece = 0; piece < (*made)->pieces(); ++piece) (*made)->Add(piece);
  return (*made)->Finish();
}

// Returns the result of one computation over the batches of `analysis`.
template <typename Options>
AnalysisResult ComputedFrom(const Options& options, const AnalysisContext& analysis) {
  return Finished(Compute(options, analysis));
}

// Expects the same names and reasons, and values that differ by at most `tolerance`, relative for
// values above 1.
inline void ExpectSameNumbers(const AnalysisResult& a, const AnalysisResult& b, double tolerance) {
  ASSERT_EQ(a.numbers.size(), b.numbers.size());
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    const AnalysisNumber& expected = b.numbers[i];
    EXPECT_EQ(a.numbers[i].name, expected.name);
    EXPECT_EQ(a.numbers[i].undefined, expected.undefined) << expected.name;
    EXPECT_NEAR(a.numbers[i].value, expected.value,
                tolerance * std::max(1.0, std::abs(expected.value)))
        << expected.name;
  }
}

// Expects equal numbers, up to rounding, from the sequences of a drawn context one by one and from
// all of them in one batch, padded if they have several lengths.
template <typename Options>
void ExpectEqualInOneBatch(const Options& options, uint64_t number) {
  const AnalysisContext alone = DrawnContext(number, Precision::kFloat64);
  AnalysisContext together = alone;
  together.batches = {JoinRows(alone.batches)};
  ExpectSameNumbers(ComputedFrom(options, alone), ComputedFrom(options, together), 1e-9);
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PIECES_H_
