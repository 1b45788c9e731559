// Reads tagged sentences in CoNLL-U, the format of Universal Dependencies: one line per word with
// ten columns. Lemmas and enhanced dependencies aren't read.
#ifndef ABLATE_BASE_CONLLU_H_
#define ABLATE_BASE_CONLLU_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate {

// A syntactic word: a line whose ID is a whole number. The views point into the file's bytes.
struct TaggedWord {
  absl::string_view form;
  absl::string_view upos;      // "_" if it has none; likewise the next two
  absl::string_view xpos;      // the language's own part of speech
  absl::string_view features;  // Name=Value, separated by |
  // The number of the word that it depends on, 0 for the root, and the relation; not checked.
  absl::string_view head = {};
  absl::string_view relation = {};
  // The word's bytes in the sentence's text. Words of a multiword token divide its bytes if their
  // forms add up to its form; otherwise each has all of them.
  size_t begin = 0;
  size_t end = 0;
};

struct TaggedSentence {
  size_t line = 0;   // number of its first word's line, from 1
  std::string text;  // forms, separated by spaces except after SpaceAfter=No
  std::vector<TaggedWord> words;
};

inline constexpr size_t kMaxSentenceWords = 10'000;
inline constexpr size_t kMaxConlluLineBytes = 64 << 10;
// The beginning of a file by which it is known as CoNLL-U.
inline constexpr size_t kConlluBeginningBytes = 64 << 10;

// Returns the value of a label, which is upos, xpos or the name of a feature; empty if the word has
// none.
absl::string_view LabelOf(const TaggedWord& word, absl::string_view label);

// Returns true if a file is meant as CoNLL-U: its first line that is neither empty nor a comment
// (#) has ten columns, separated by tabs, and the ID of a sentence's first line. That line must be
// within the first kConlluBeginningBytes, which are all that is looked at.
bool IsConllu(absl::string_view beginning);

// Iterates over the sentences of a file, which must outlive it and the words read.
class ConlluReader {
 public:
  explicit ConlluReader(absl::string_view file);

  // Reads the next sentence. Returns false at the end. Returns INVALID_ARGUMENT, with the number of
  // the line, for text that isn't UTF-8 or has control characters, a line of more than
  // kMaxConlluLineBytes, another number of columns, an empty form, IDs that don't count words from
  // 1, multiword tokens and empty nodes in wrong places, a multiword token of more than two words
  // that has more words than its form has bytes, and features that aren't pairs or repeat a name.
  absl::StatusOr<bool> Next(TaggedSentence& sentence);

 private:
  absl::string_view rest_;
  size_t line_ = 0;  // lines read
};

}  // namespace ablate

#endif  // ABLATE_BASE_CONLLU_H_
