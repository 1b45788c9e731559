// Reads words, strings and operators of a filter, one at a time, from its beginning.
#ifndef ABLATE_SERVER_FILTER_SCANNER_H_
#define ABLATE_SERVER_FILTER_SCANNER_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/filter/filter.h"

namespace ablate::filter {

// A word or a string in quotes.
struct Token {
  std::string text;
  bool quoted = false;
  size_t column = 0;
};

// A position in the text, before the next token. Every Take skips spaces, and leaves the position
// after them if the next token is of another kind.
class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  // Returns true after the last token.
  bool AtEnd();
  // Returns the column of the next token.
  size_t Column();
  // Takes this word, in capitals or small letters.
  bool TakeKeyword(absl::string_view keyword);
  bool TakeCharacter(char character);
  std::optional<Operator> TakeOperator();

  enum class Place { kName, kValue };  // values may contain colons, as times do
  // Takes a word or a string. Nothing if the next token is neither, or a string without its end:
  // then `open_string()` is true.
  std::optional<Token> TakeText(Place place);
  bool open_string() const { return open_string_; }

  // Returns a mistake at the next token, which it shows: "'&&' isn't an operator".
  Mistake Unexpected(absl::string_view isnt, absl::string_view expected);

 private:
  void SkipSpaces();
  // Returns the word at the position; empty if none begins there.
  absl::string_view PeekWord(Place place) const;
  std::optional<Token> TakeString();

  absl::string_view text_;
  size_t at_ = 0;
  bool open_string_ = false;
};

}  // namespace ablate::filter

#endif  // ABLATE_SERVER_FILTER_SCANNER_H_
