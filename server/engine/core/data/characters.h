// Reads UTF-8 text line by line, and numbers its characters. Only this file decides which texts are
// rejected and where lines end.
#ifndef ABLATE_SERVER_ENGINE_CORE_DATA_CHARACTERS_H_
#define ABLATE_SERVER_ENGINE_CORE_DATA_CHARACTERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::engine {

// Iterates over the lines of a text. Lines end with LF or CR LF; a byte order mark at the start
// isn't part of the text. The text must outlive the reader.
class LineReader {
 public:
  // `text` begins with a line, which has the number `first_line`, from 1, in the whole text.
  LineReader(absl::string_view text, size_t first_line);

  // Stores the code points of the next line in `line`, with a final line feed if a line end
  // follows. Returns false at the end. INVALID_ARGUMENT, with line and column, for a byte that
  // isn't UTF-8 and a control character other than a tab or line end; the line after it is next.
  absl::StatusOr<bool> Next(std::u32string& line);

 private:
  // Returns the problem after `read` characters of a line, and goes to the next one.
  absl::Status Problem(size_t read, absl::string_view problem);

  absl::string_view text_;
  size_t line_;  // the next one's number
  size_t offset_ = 0;
};

// Replaces code points by their rank among the distinct ones. Returns those in ascending order.
std::u32string NumberCharacters(std::vector<uint32_t>& tokens);

// Returns the rank of a code point in an ascending alphabet, or nullopt if it is missing.
std::optional<uint32_t> RankOf(char32_t point, const std::u32string& alphabet);

// Returns code points in UTF-8.
std::string Utf8Of(const std::u32string& points);

// Returns a code point as errors print it: "é" U+00E9, or U+001B alone.
std::string CharacterText(char32_t point);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_DATA_CHARACTERS_H_
