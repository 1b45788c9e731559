#include "server/analysis/times.h"

#include <cstdint>

namespace ablate::analysis {
namespace {

// So many analyses of a group say how long others take, up to so many times as large ones as the
// largest of them.
constexpr uint64_t kFewAnalyses = 3;
constexpr double kFurthest = 10;

}  // namespace

ExpectedTime ExpectTime(const spec::GroupTime& guess, const storage::AnalysisTimes& made) {
  if (made.analyses < kFewAnalyses) return {guess.mean, false};
  return {guess.mean * made.device_time / made.guessed_time,
          guess.largest <= kFurthest * made.largest};
}

}  // namespace ablate::analysis
