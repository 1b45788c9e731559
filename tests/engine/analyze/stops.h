// Checks that a stopped piece leaves no trace.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_STOPS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_STOPS_H_

#include "server/engine/analyze/computation.h"
#include "tests/engine/analyze/pieces.h"

namespace ablate::engine {

inline std::string BytesOfState(Computation& computation) {
  std::string bytes;
  for (const StateTensor& state : computation.State()) {
    bytes.append(static_cast<const char*>(state.tensor.const_data_ptr()), state.tensor.nbytes());
  }
  return bytes;
}

// Stops every piece once in its middle before computing it.
template <typename Options>
void ExpectNothingOfWhatWasStopped(const Options& options, Material material) {
  const auto whole = Compute(options, material), stopped = Compute(options, material);
  ASSERT_TRUE(whole.ok() && stopped.ok());
  const std::atomic<bool> stop{true};
  for (int64_t piece = 0; piece < (*whole)->pieces(); ++piece) {
    (*whole)->Add(piece);
    const std::string before = BytesOfState(**stopped);
    material.stop = &stop;
    EXPECT_THROW((*stopped)->Add(piece), c10::Error) << piece;
    material.stop = nullptr;
    EXPECT_TRUE(before == BytesOfState(**stopped)) << piece;
    (*stopped)->Add(piece);
  }
  ExpectSameBits((*whole)->Finish(), (*stopped)->Finish());
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_STOPS_H_
