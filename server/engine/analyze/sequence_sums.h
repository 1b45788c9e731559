// Divides means over targets among the sequences that are read: the arrays by_sequence/NUMBER, over
// which comparisons pair models (server/results/units.h).
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_SEQUENCE_SUMS_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_SEQUENCE_SUMS_H_

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/analysis.h"
#include "server/engine/analyze/computation.h"
#include "server/engine/core/data/batches.h"

namespace ablate::engine {

// Returns the array by_sequence/NUMBER, [part, sequence]. Part 0 of a sequence is S/n times its
// sum, of S sequences with n targets in all, and part 1 is S/n times its targets. So the mean of
// part 0 is the number, and that of part 1 is 1. Both [S], in the order read.
AnalysisArray SequenceArray(const std::string& number, const at::Tensor& sums,
                            const at::Tensor& targets);

// Accumulates sums over the targets of each sequence, as part of a Computation's state.
class SequenceSums {
 public:
  // `batches` are those that the analysis reads. Each of `numbers` is a mean over their targets.
  SequenceSums(const std::vector<TokenBatch>& batches, std::vector<std::string> numbers);

  // Adds the values of a batch's targets that count, [n] float64 for each number. `rows` [n] int64
  // has the sequence of each in the batch (CountedTargets).
  void Add(int64_t batch, const at::Tensor& rows, const std::vector<at::Tensor>& values);

  StateTensor State() const { return {"by_sequence", sums_}; }

  // Adds an array for each number (SequenceArray), over the sequences with targets.
  void AddArrays(AnalysisResult* result) const;

 private:
  const std::vector<std::string> numbers_;
  std::vector<int64_t> first_;  // for each batch the index of its first sequence
  at::Tensor sums_;             // [numbers + 1, sequences] float64; the last row counts targets
};

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_SEQUENCE_SUMS_H_
