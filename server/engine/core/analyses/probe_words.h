// Selects the words that `probe` learns from and is scored on, and draws the labels of its
// controls; checks its label and estimates its cost. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_PROBE_WORDS_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_PROBE_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/engine/analysis.h"
#include "server/engine/core/analyses/tagged_rows.h"

namespace ablate::engine {

// Bytes of the word vectors of several depths that are kept together.
inline constexpr uint64_t kMostFeatureBytes = 1'000'000'000;
inline constexpr size_t kMostProbeLabels = 256;
inline constexpr size_t kMostLabelBytes = 100;
// The probe of the labels themselves, and those of the two controls.
inline constexpr int64_t kProbeFits = 3;

// A word that has the label and lies within the context.
struct ProbeWord {
  TokenSpan tokens;   // positions in its row
  int64_t label = 0;  // index among the labels
  absl::string_view form;
};

struct ProbeWords {
  std::vector<std::string> labels;  // of all words, ascending by bytes
  // The words of the sentences to learn from, then those of the scored sentences; both by sentence
  // in the file's order.
  std::vector<ProbeWord> words;
  size_t training = 0;  // number of words to learn from
  // The words of each row: indices of the first one and of the one after the last.
  std::vector<std::pair<size_t, size_t>> of_rows;
  // Number of words in each scored sentence, in order, at least one each.
  std::vector<size_t> scored_sentences;
  size_t training_sentences = 0;
  size_t unlabelled = 0;  // words within the context that lack the label
  size_t cut = 0;         // words beyond the context
};

// Selects the words of sentences that CheckProbed accepts. Sentences without a word that is used
// aren't counted. Of the other S sentences, max(1, round(test · S)) are scored, but at most S − 1:
// those with the lowest word(key(seed, "analysis/probe/split"), sentence).
ProbeWords SelectWords(const ProbeOptions& options, const TaggedRows& rows, uint32_t seed);

// Returns the labels of all words.
std::vector<int64_t> LabelsOf(const ProbeWords& words);
// The same with those of the words to learn from in random order.
std::vector<int64_t> ShuffledLabels(const ProbeWords& words, uint32_t seed);
// Returns a random label for each form, drawn from the labels of the words to learn from.
std::vector<int64_t> TypeLabels(const ProbeWords& words, uint32_t seed);

// The functions of probe's row in the table of kinds.
std::vector<OptionProblem> CheckProbed(const AnalysisOptions& options, const ModelConfig& model,
                                       const SequenceSummary& read);
AnalysisCost ProbeCost(const AnalysisOptions& options, const RunConfig& config, uint64_t tokens,
                       size_t subjects);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_PROBE_WORDS_H_
