// Splits text into the words that byte pair encoding merges within.
#ifndef ABLATE_BASE_TOKENIZER_WORD_SPLITTER_H_
#define ABLATE_BASE_TOKENIZER_WORD_SPLITTER_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "base/tokenizer/character_classes.h"
#include "base/tokenizer/word_pattern.h"

namespace ablate::tokenizer {

// Finds the matches of a pattern, which cover each text without gaps. \s is Unicode's White_Space.
// A byte that isn't part of a well-formed UTF-8 sequence counts as one character of
// [^\s\p{L}\p{N}]. A match of more than kMaxWordBytes is cut there, between two characters, so that
// time and memory per word are bounded. Immutable.
class WordSplitter {
 public:
  static constexpr size_t kMaxWordBytes = 2 << 20;
  static constexpr size_t kNeedsMore = absl::string_view::npos;

  explicit WordSplitter(const WordPattern& pattern = {}) : pattern_(pattern) {}

  // Returns the end of the word that begins at `begin`, which must be inside `text`. If `is_last`
  // is false, more text will follow; the result is kNeedsMore if the end depends on it. `*resume`
  // is then the place at which the next call may continue with the same word and a longer text; it
  // must be 0 in the first call for a word.
  size_t EndOfWord(absl::string_view text, size_t begin, bool is_last, size_t* resume) const;

 private:
  struct Character {
    CharacterClass kind;
    size_t bytes;  // 0: the end of the text cuts it, and more will follow
  };
  Character At(absl::string_view text, size_t offset, bool is_last) const;
  // Returns true if a word may have a character before its run of `kind`.
  bool Joins(char first, CharacterClass first_kind, CharacterClass kind) const;
  // Returns the end of the numbers at `at`, of which the pattern allows only some.
  size_t EndOfNumbers(absl::string_view text, size_t at, bool is_last) const;
  // Returns the end of the line ends at `at`, which belong to the word; `*resume` as in EndOfWord.
  static size_t EndOfLineEnds(absl::string_view text, size_t begin, size_t at, bool is_last,
                              size_t* resume);

  WordPattern pattern_;
  CharacterClasses classes_;
};

}  // namespace ablate::tokenizer

#endif  // ABLATE_BASE_TOKENIZER_WORD_SPLITTER_H_
