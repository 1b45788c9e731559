#include "server/engine/core/analyses/dependency_words.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ablate::engine {
namespace {

constexpr size_t kMostRelationNames = 12;

// Returns the number of a word's head, 0 for the root; nullopt if the column has none of the
// sentence's.
std::optional<size_t> HeadOf(const TaggedWord& word, size_t words) {
  uint32_t head = 0;
  if (!absl::SimpleAtoi(word.head, &head) || head > words) return std::nullopt;
  return head;
}

bool HasRelation(const TaggedWord& word, absl::string_view relation) {
  return relation == "all" || word.relation == relation ||
         word.relation.substr(0, word.relation.find(':')) == relation;
}

bool SharesToken(const TokenSpan& a, const TokenSpan& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Returns the words that a word can attend to, without itself.
std::vector<size_t> CandidatesOf(const std::vector<TokenSpan>& words, size_t word, bool causal) {
  std::vector<size_t> candidates;
  for (size_t other = 0; other < (causal ? word : words.size()); ++other) {
    if (!SharesToken(words[word], words[other])) candidates.push_back(other);
  }
  return candidates;
}

// Returns the probability of the head among the candidates with the most tokens, which get the
// largest weight if all tokens have the same.
double ChanceOf(const std::vector<TokenSpan>& words, const DependentWord& dependent) {
  const auto tokens = [&](size_t word) { return words[word].last - words[word].first + 1; };
  int64_t most = 0, equal = 0;
  for (const size_t candidate : dependent.candidates) {
    if (tokens(candidate) > most) equal = 0;
    most = std::max(most, tokens(candidate));
    if (tokens(candidate) == most) ++equal;
  }
  return tokens(dependent.head) == most ? 1 / static_cast<double>(equal) : 0;
}

}  // namespace

DependencyWords SelectDependents(const std::string& relation, bool causal, const TaggedRows& rows) {
  DependencyWords selected;
  std::map<int64_t, uint64_t> offsets;
  for (const TaggedRow& row : rows.rows) {
    const std::vector<TaggedWord>& words = rows.sentences[row.sentence].words;
    std::vector<DependentWord>& of_row = selected.of_rows.emplace_back();
    for (size_t i = 0; i < row.words.size(); ++i) {
      const size_t head = HeadOf(words[i], words.size()).value_or(0);
      if (head == 0 || !HasRelation(words[i], relation)) continue;
      DependentWord dependent = {i, head - 1, CandidatesOf(row.words, i, causal)};
      const std::vector<size_t>& candidates = dependent.candidates;
      if (candidates.size() < 2 ||
          !std::binary_search(candidates.begin(), candidates.end(), dependent.head)) {
        continue;
      }
      ++offsets[static_cast<int64_t>(dependent.head) - static_cast<int64_t>(i)];
      ++selected.words;
      selected.chance += ChanceOf(row.words, dependent);
      of_row.push_back(std::move(dependent));
    }
  }
  for (const auto& [offset, count] : offsets) {
    const bool nearer = std::abs(offset) < std::abs(selected.offset);
    if (count < selected.at_offset || (count == selected.at_offset && !nearer)) continue;
    selected.at_offset = count;
    selected.offset = offset;
  }
  return selected;
}

std::vector<OptionProblem> CheckDependency(const std::string& relation, bool causal,
                                           const SequenceSummary& read) {
  if (read.tagged == nullptr) {
    return {{"inputs.dataset", "", "dependency needs tagged sentences",
             "a data set in CoNLL-U, whose words have heads"}};
  }
  std::set<std::string> relations;
  for (const TaggedSentence& sentence : read.tagged->sentences) {
    for (size_t i = 0; i < sentence.words.size(); ++i) {
      const TaggedWord& word = sentence.words[i];
      const size_t words = sentence.words.size();
      if (!HeadOf(word, words).has_value()) {
        return {{"inputs.dataset", "",
                 absl::StrCat("word ", i + 1, " of the sentence at line ", sentence.line,
                              " has the head \"", word.head, "\""),
                 absl::StrCat("a word's number, 0 to ", words, ", in column 7")}};
      }
      relations.emplace(word.relation.substr(0, word.relation.find(':')));
    }
  }
  if (SelectDependents(relation, causal, *read.tagged).words > 0) return {};
  std::vector<std::string> names = {"all"};
  for (const std::string& name : relations) {
    if (names.size() == kMostRelationNames) break;
    if (name != "_" && name != "root") names.push_back(name);
  }
  return {{"dependency", relation,
           absl::StrCat("no word has the relation \"", relation, "\" to a head that it sees"),
           absl::StrJoin(names, ", ")}};
}

}  // namespace ablate::engine
