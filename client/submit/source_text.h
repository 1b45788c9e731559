// The text of an experiment file: read with limits, checked, and addressed by line and column, so
// that a problem found anywhere later, also by the server, is reported where it stands.
#ifndef ABLATE_CLIENT_SUBMIT_SOURCE_TEXT_H_
#define ABLATE_CLIENT_SUBMIT_SOURCE_TEXT_H_

#include <cstddef>
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/reflect/text.h"

namespace ablate::client {

// Both from 1; columns count characters. Line 0 stands for the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

// Something wrong with an experiment. `where` is set if it stands elsewhere than in the file, such
// as `--set training.stepz`.
struct Diagnostic {
  Position position;
  std::string message;
  std::string where;
};

// `names.yaml:3:5: message` or `--set training.stepz: message`, fit for a terminal.
std::string ToString(const Diagnostic& diagnostic, absl::string_view file);

// `message`, which begins with the path of the field that it is about, behind a `where` that names
// that field already: without the field, or with what of the path lies below it.
std::string WithoutField(absl::string_view message, absl::string_view field);

// In the order in which they stand in the file; those of the command line come last.
void SortByPosition(std::vector<Diagnostic>* diagnostics);

// Largest experiment file, in bytes.
inline constexpr size_t kMaxFileBytes = 1 << 20;
// How deep lists and mappings of an experiment file may nest.
inline constexpr int kMaxDepth = reflect::kMaxDepth;

class SourceText {
 public:
  // Without a byte order mark, if `text` begins with one.
  explicit SourceText(std::string text);

  absl::string_view text() const { return text_; }
  // Of the byte at `offset`; an offset beyond the end is the end. Takes constant time: a file may
  // be one line.
  Position At(size_t offset) const;
  // The byte at a line and byte column, both from 0.
  size_t Offset(int line, int byte_column) const;

  // The first byte that is not UTF-8 or a control character other than tab and line break, or the
  // file's size; empty if there is none.
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

// The whole of `path`, at most kMaxFileBytes. NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT with a
// message that does not repeat the path.
absl::StatusOr<std::string> ReadText(const std::string& path);
absl::StatusOr<std::string> ReadText(std::istream& in);

// Field names, map keys and list indices on the way to a field.
using FieldPath = std::vector<std::string>;

// `axes[0].settings[1].set["model.norm.placement"]` in its five parts. Accepts any text.
FieldPath ParseFieldPath(absl::string_view text);

// Where each field of an experiment file is written.
class SourceMap {
 public:
  void Add(const FieldPath& path, Position position);
  bool Has(const FieldPath& path) const;
  // Where the field is written, else the nearest field around it; line 0 if there is none.
  Position Find(absl::string_view field) const;

 private:
  std::map<std::string, Position> positions_;  // by the parts joined with a separator
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_SOURCE_TEXT_H_
