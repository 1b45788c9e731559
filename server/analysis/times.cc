#include "server/analysis/times.h"

#include <cstdint>

namespace ablate::analysis {
namespace {

// Minimum number of analyses of a group that predict others' times, and how many times larger than
// the largest of them those may be.
constexpr uint64_t kFewAnalyses = 3;
constexpr double kFurthest = 10;

}  // namespace

ExpectedTime ExpectTime(const spec::GroupTime& guess, const storage::AnalysisTimes& made) {
  if (made.analyses < kFewAnalyses) return {guess.mean, false};
  return {guess.mean * made.device_time / made.guessed_time,
          guess.largest <= kFurthest * made.largest};
}

}  // namespace ablate::analysis
