// Reads tagged sentences (base/conllu.h) as the sequences of an analysis, and finds the tokens of
// their words. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_TAGGED_ROWS_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_TAGGED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/conllu.h"
#include "server/engine/analysis.h"
#include "server/engine/core/analyses/inputs.h"
#include "server/engine/core/analyses/sampling.h"

namespace ablate::engine {

// The first and the last position of a word's tokens in its row. A token that has bytes of two
// words belongs to both.
struct TokenSpan {
  int64_t first = 0;
  int64_t last = 0;
};

// A sentence as a sequence.
struct TaggedRow {
  size_t sentence = 0;  // index among the sentences
  // Tokens of the sentence's first words, which are those that lie wholly within the context.
  std::vector<TokenSpan> words;
};

// The sentences that an analysis reads. Each is the sequence of one row.
struct TaggedRows {
  std::shared_ptr<const std::string> file;  // the bytes that the words view
  std::vector<TaggedSentence> sentences;    // in the file's order, without their text
  std::vector<TaggedRow> rows;              // in the order of the batches' rows, by length
};

// Reads the sentences of `*inputs.text` in order, by the characters or the tokenizer of the run's
// own data. A sentence is cut to the context. Rows are grouped by length, so that none is padded.
// Malformed lines and unknown characters in what is read are problems.
absl::StatusOr<SequencesRead> ReadTaggedSentences(const SampledData& own, int64_t context,
                                                  const AnalysisInputs& inputs);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_TAGGED_ROWS_H_
