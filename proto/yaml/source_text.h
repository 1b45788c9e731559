// Reads the text of an experiment file within limits, checks it, and maps its fields to lines and
// columns, so that every problem, also the server's, is reported at its position.
#ifndef ABLATE_PROTO_YAML_SOURCE_TEXT_H_
#define ABLATE_PROTO_YAML_SOURCE_TEXT_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/reflect/text.h"

namespace ablate::yaml {

// Both from 1; columns count characters. Line 0 stands for the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

// A problem of an experiment.
struct Diagnostic {
  Position position;
  std::string message;
  std::string where = {};  // if it isn't in the file, such as `--set training.stepz`
  std::string field = {};  // its path, if the problem is one field's
};

// Returns `names.yaml:3:5: message` or `--set training.stepz: message`.
std::string ToString(const Diagnostic& diagnostic, absl::string_view file);

// Returns `message`, which begins with the path of its field, without that path; for use after a
// `where` that names the field. The part of the path below the field stays.
std::string WithoutField(absl::string_view message, absl::string_view field);

// Sorts by position in the file. Problems of the command line come last.
void SortByPosition(std::vector<Diagnostic>* diagnostics);

// Largest experiment file, in bytes.
inline constexpr size_t kMaxFileBytes = 1 << 20;
// Deepest nesting of lists and mappings in an experiment file.
inline constexpr int kMaxDepth = reflect::kMaxDepth;

class SourceText {
 public:
  // Removes a byte order mark at the beginning of `text`.
  explicit SourceText(std::string text);

  absl::string_view text() const { return text_; }
  // Returns the position of the byte at `offset`; an offset beyond the end means the end. Takes
  // constant time, also if the file is one line.
  Position At(size_t offset) const;
  // Returns the offset of a line and byte column, both from 0.
  size_t Offset(int line, int byte_column) const;

  // Returns a problem if the text is too large, or for the first byte that isn't UTF-8 or is a
  // control character other than tab and line break.
  std::vector<Diagnostic> Check() const;

 private:
  // A character whose position is known.
  struct Mark {
    size_t offset = 0;
    Position position;
  };

  std::string text_;
  std::vector<size_t> line_starts_;
  std::vector<Mark> marks_;  // every line's first character, and one in so many bytes between
};

// Returns INVALID_ARGUMENT for a text of more than kMaxFileBytes.
absl::Status TooLarge();

// Field names, map keys and list indices on the way to a field.
using FieldPath = std::vector<std::string>;

// Splits `axes[0].settings[1].set["model.norm.placement"]` into its five parts. Accepts any text.
FieldPath ParseFieldPath(absl::string_view text);

// Positions of the fields of an experiment file.
class SourceMap {
 public:
  void Add(const FieldPath& path, Position position);
  bool Has(const FieldPath& path) const;
  // Returns the position of the field, otherwise of the nearest field around it; line 0 if there is
  // none.
  Position Find(absl::string_view field) const;

 private:
  std::map<std::string, Position> positions_;  // by the parts joined with a separator
};

}  // namespace ablate::yaml

#endif  // ABLATE_PROTO_YAML_SOURCE_TEXT_H_
