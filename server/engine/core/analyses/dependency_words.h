// Selects the words of tagged sentences whose syntactic head attention is scored on: the option
// `dependency` of the analysis `attention`. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_DEPENDENCY_WORDS_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_DEPENDENCY_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/engine/analysis.h"
#include "server/engine/core/analyses/tagged_rows.h"

namespace ablate::engine {

// A word that is scored, the words that it can attend to, and its head among them. Indices are
// those of TaggedRow::words.
struct DependentWord {
  size_t word = 0;
  size_t head = 0;
  std::vector<size_t> candidates;  // at least two, ascending
};

struct DependencyWords {
  std::vector<std::vector<DependentWord>> of_rows;  // in the order of TaggedRows::rows
  double chance = 0;       // number found by equal weights on all tokens; ties are divided
  uint64_t words = 0;      // in all rows
  uint64_t at_offset = 0;  // of them, those whose head is `offset` words further on
  int64_t offset = 0;      // the one with the largest `at_offset`, the nearest if several have it
};

// Selects the words with a relation to a head that they can attend to. `relation` is `all`, or a
// relation with or without its subtype. Candidates are the other words of the row that share no
// token with the word, only earlier ones if `causal`. Heads must be numbers (CheckDependency).
DependencyWords SelectDependents(const std::string& relation, bool causal, const TaggedRows& rows);

// Returns the problems of the option `dependency` for the sequences that are read.
std::vector<OptionProblem> CheckDependency(const std::string& relation, bool causal,
                                           const SequenceSummary& read);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_DEPENDENCY_WORDS_H_
