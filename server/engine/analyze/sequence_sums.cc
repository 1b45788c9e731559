#include "server/engine/analyze/sequence_sums.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/analyze/analysis_context.h"

namespace ablate::engine {

AnalysisArray SequenceArray(const std::string& number, const at::Tensor& sums,
                            const at::Tensor& targets) {
  const at::Tensor parts = at::stack({sums, targets}) * sums.numel() / targets.sum();
  return ArrayOf(absl::StrCat("by_sequence/", number), {"part", "sequence"}, parts);
}

SequenceSums::SequenceSums(const std::vector<TokenBatch>& batches, std::vector<std::string> numbers)
    : numbers_(std::move(numbers)) {
  int64_t sequences = 0;
  for (const TokenBatch& batch : batches) {
    first_.push_back(sequences);
    sequences += batch.rows;
  }
  sums_ = at::zeros({static_cast<int64_t>(numbers_.size()) + 1, sequences}, at::kDouble);
}

void SequenceSums::Add(int64_t batch, const at::Tensor& rows,
                       const std::vector<at::Tensor>& values) {
  std::vector<at::Tensor> all = values;
  all.push_back(at::ones_like(values[0]));
  sums_.index_add_(1, OnHost(rows) + first_[static_cast<size_t>(batch)], OnHost(at::stack(all)));
}

void SequenceSums::AddArrays(AnalysisResult* result) const {
  const at::Tensor read = sums_[-1] > 0;
  const at::Tensor targets = sums_[-1].masked_select(read);  // [S]
  if (targets.numel() == 0) return;
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const at::Tensor sums = sums_[static_cast<int64_t>(i)].masked_select(read);  // [S]
    result->arrays.push_back(SequenceArray(numbers_[i], sums, targets));
  }
}

}  // namespace ablate::engine
