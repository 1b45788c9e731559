// Computes confidence intervals of accuracies by drawing sentences, because words of one sentence
// depend on each other.
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_SENTENCE_BOOTSTRAP_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_SENTENCE_BOOTSTRAP_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace ablate::engine {

struct Interval {
  double low = 0;
  double high = 0;
};

// Returns the 95 % percentile interval of Σcorrect/Σwords for each of several predictions.
// `words` has the number of words of each sentence, at least one each; `correct` those that each
// prediction gets right. 1,000 resamples of as many sentences, below(sentences) of the stream at
// `key` one after the other, are common to all predictions. Quantiles interpolate linearly (type
// 7).
std::vector<Interval> BootstrapIntervals(absl::Span<const size_t> words,
                                         const std::vector<std::vector<int64_t>>& correct,
                                         uint64_t key);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_SENTENCE_BOOTSTRAP_H_
