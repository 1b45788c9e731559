// Reads YAML and JSON texts into a tree of values with the position of every field.
#ifndef ABLATE_CLIENT_SUBMIT_DOCUMENT_H_
#define ABLATE_CLIENT_SUBMIT_DOCUMENT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/submit/source_text.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {

// Content of a YAML or JSON text. With `syntax_error` the tree ends where the parser gave up.
struct Document {
  google::protobuf::Value root;
  SourceMap positions;
  std::vector<Diagnostic> problems;
  std::vector<FieldPath> unread;  // fields, or those around them, that the problems are about
  bool syntax_error = false;
};

// Parses one document of YAML 1.2, or JSON. JSON is YAML except for tabs and escapes of surrogates,
// which a text that begins with '{' may have. Anchors, aliases, tags and tabs in the indentation
// are refused: no experiment needs them, and each lets a small file mean something unexpected.
Document ParseYaml(const SourceText& source);

// Returns the value of a plain YAML scalar by the core schema of YAML 1.2, in which `no` and `off`
// are words: null, a bool, a number (decimal, 0o17, 0x1f, .inf, .nan), otherwise the text itself.
google::protobuf::Value PlainScalar(absl::string_view text);

google::protobuf::Value StringValue(absl::string_view text);

// Builds a Document from a parser's events. Duplicate keys and nesting beyond kMaxDepth become
// problems. Maps with the same key are merged; of other values with the same key the last is kept.
// Values that are nested too deeply are left out.
class TreeBuilder {
 public:
  explicit TreeBuilder(Document* document) : document_(document) {}

  void BeginMap(Position position) { Begin(position, true); }
  void BeginList(Position position) { Begin(position, false); }
  void Key(const std::string& key, Position position);
  void Scalar(google::protobuf::Value value, Position position);
  // Ends the innermost map or list.
  void End();
  // Leaves out the value that should come next.
  void Skip();
  void Problem(Position position, std::string message);

  // Returns true if the next scalar is a key.
  bool ExpectsKey() const;
  bool InList() const { return !levels_.empty() && !levels_.back().is_map; }

 private:
  struct Level {
    google::protobuf::Value* value = nullptr;
    bool is_map = false;
    google::protobuf::Value* next = nullptr;  // of a map, after its key
    std::map<std::string, Position> keys;
  };

  void Begin(Position position, bool is_map);
  // Returns the slot of the next value; adds an item to a list.
  google::protobuf::Value* NextSlot(Position position);
  // Clears a value. A value of a duplicate key becomes unread.
  google::protobuf::Value* Replace(google::protobuf::Value* value);
  // Continues after a value.
  void FinishValue();

  Document* document_;
  std::vector<Level> levels_;
  FieldPath path_;
  int ignored_levels_ = 0;
  bool too_deep_ = false;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SUBMIT_DOCUMENT_H_
