// Reads UTF-8 text line by line, and numbers its characters: the only place that knows which texts
// are refused and where lines end.
#ifndef ABLATE_SERVER_ENGINE_DATA_CHARACTERS_H_
#define ABLATE_SERVER_ENGINE_DATA_CHARACTERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::engine {

// Walks over the lines of a text. Lines end with LF or CR LF; a byte order mark at the start is not
// part of the text. The text must outlive the reader.
class LineReader {
 public:
  // `text` begins with a line, at this byte of the whole text.
  LineReader(absl::string_view text, size_t begins_at);

  // Puts the code points of the next line into `line`, with a line feed last if one ends it; false
  // when there is none. INVALID_ARGUMENT at a byte that is not UTF-8 or a control character that is
  // neither a tab nor a line end.
  absl::StatusOr<bool> Next(std::u32string& line);

 private:
  absl::string_view text_;
  const size_t begins_at_;
  size_t offset_ = 0;
};

// Replaces code points by their rank among the distinct ones, and returns those in ascending order.
std::u32string NumberCharacters(std::vector<uint32_t>& tokens);

// The rank of a code point among ascending ones; none if it is not among them.
std::optional<uint32_t> RankOf(char32_t point, const std::u32string& alphabet);

// A code point as errors have it: "é" U+00E9, or U+001B alone.
std::string CharacterText(char32_t point);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DATA_CHARACTERS_H_
