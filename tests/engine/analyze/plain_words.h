// Replaces words of a text as docs/reference/analyses/robustness.md describes, character by
// character and independent of engine/analyze.
#ifndef ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_WORDS_H_
#define ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_WORDS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/core/data/random.h"

namespace ablate::engine {

// A text with replaced words.
struct PlainWords {
  std::string text;           // with replaced words
  std::vector<bool> stayed;   // of each character of the text: in a word that stays
  std::vector<int64_t> from;  // of such a character: its place in the original
};

// Returns a text in which a fraction of the words is replaced by the draws of a stream.
inline PlainWords ReplaceByHand(const std::string& text, double fraction, uint64_t state,
                                const std::string& letters) {
  const auto uniform = [state](uint64_t n) {
    return static_cast<double>(SplitMix64::At(state, n) >> 11) * 0x1p-53;
  };
  const auto white = [](char c) { return c == ' ' || c == '\n'; };
  struct Word {
    size_t begin, end;
  };
  std::vector<Word> words;
  for (size_t i = 0; i < text.size(); ++i) {
    if (white(text[i])) continue;
    if (i == 0 || white(text[i - 1])) words.push_back({i, i});
    words.back().end = i + 1;
  }
  size_t count =
      std::min(words.size(), static_cast<size_t>(std::floor(fraction * words.size() + 1e-9)));
  if (count == 0 && !words.empty() && fraction > 0) count = 1;
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < words.size(); ++i) order.emplace_back(uniform(4 * i), i);
  std::sort(order.begin(), order.end());
  std::vector<bool> chosen(words.size());
  for (size_t i = 0; i < count; ++i) chosen[order[i].second] = true;
  PlainWords made;
  size_t at = 0;
  const auto append = [&](char c, bool stays, size_t from) {
    made.text += c;
    made.stayed.push_back(stays);
    made.from.push_back(static_cast<int64_t>(from));
  };
  for (size_t i = 0; i < words.size(); ++i) {
    for (; at < words[i].begin; ++at) append(text[at], false, 0);
    if (chosen[i]) {
      for (uint64_t j = 1; j <= 3; ++j) {
        append(
            letters[static_cast<size_t>(uniform(4 * i + j) * static_cast<double>(letters.size()))],
            false, 0);
      }
    } else {
      for (size_t j = words[i].begin; j < words[i].end; ++j) append(text[j], true, j);
    }
    at = words[i].end;
  }
  for (; at < text.size(); ++at) append(text[at], false, 0);
  return made;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_ANALYZE_PLAIN_WORDS_H_
