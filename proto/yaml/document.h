// Reads YAML and JSON texts into a tree of values with the position of every field.
#ifndef ABLATE_PROTO_YAML_DOCUMENT_H_
#define ABLATE_PROTO_YAML_DOCUMENT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "proto/yaml/source_text.h"

namespace ablate::yaml {

// Content of a YAML or JSON text. With `syntax_error` the tree ends where the parser gave up.
struct Document {
  google::protobuf::Value root;  // a field without a value has one of no kind
  SourceMap positions;
  std::vector<Diagnostic> problems;
  std::vector<FieldPath> unread;  // fields, or those around them, that the problems are about
  bool syntax_error = false;
};

// Values that anchors (&name) and aliases (*name) may have together, so that a small file can't
// become a huge one.
inline constexpr size_t kMaxExpandedValues = 100'000;

// Parses one document of YAML 1.2, or JSON. JSON is YAML except for tabs and escapes of surrogates,
// which a text that begins with '{' may have. Aliases and merge keys (<<) are replaced by what they
// stand for; problems of such values have the alias's position. Tags and tabs in the indentation
// are refused: no experiment needs them, and each lets a small file mean something unexpected.
Document ParseYaml(const SourceText& source);

// Returns the value of a plain YAML scalar by the core schema of YAML 1.2, in which `no` and `off`
// are words: null, a bool, a number (decimal, 0o17, 0x1f, .inf, .nan), otherwise the text itself.
// A whole number with too many digits for a double stays a text, so that no digit is lost.
google::protobuf::Value PlainScalar(absl::string_view text);

google::protobuf::Value StringValue(absl::string_view text);

// Returns the member of a map; null if it has none, and if `value` isn't a map.
const google::protobuf::Value* FindMember(const google::protobuf::Value& value, const char* name);

// Reads the value of an option as in a YAML file. INVALID_ARGUMENT describes the problem.
absl::StatusOr<google::protobuf::Value> ParseValue(absl::string_view text);

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
  // Gives the next value a name, by the parser's number.
  void Anchor(size_t anchor) { anchor_ = anchor; }
  // Adds a copy of a value that has ended.
  void Alias(size_t anchor, Position position);
  // Ends the innermost map or list.
  void End();
  // Leaves out the value that should come next.
  void Skip();
  void Problem(Position position, std::string message);

  // Returns the path of the field whose value comes next, or of the list that has it.
  std::string Where() const;
  // Returns true if the next scalar is a key.
  bool ExpectsKey() const;
  bool InList() const { return !levels_.empty() && !levels_.back().is_map; }

 private:
  struct Level {
    google::protobuf::Value* value = nullptr;
    bool is_map = false;
    google::protobuf::Value* next = nullptr;  // of a map, after its key
    std::map<std::string, Position> keys;
    size_t anchor = 0;  // 0: none
    Position begin;
  };

  // A value with a name.
  struct Anchored {
    google::protobuf::Value value;
    size_t values = 0;  // number of values in it, with itself
    int depth = 0;      // levels of lists and maps
  };

  void Begin(Position position, bool is_map);
  // Returns the slot of the next value; adds an item to a list.
  google::protobuf::Value* NextSlot(Position position);
  // Clears a value. A value of a duplicate key becomes unread.
  google::protobuf::Value* Replace(google::protobuf::Value* value);
  // Continues after a value.
  void FinishValue();
  // Keeps a value for aliases.
  void Remember(size_t anchor, const google::protobuf::Value& value, Position position);
  // Counts expanded values; false, with a problem, if they become too many.
  bool TakeExpanded(size_t values, Position position);
  // Replaces << in the map that ends by the fields that it lacks.
  void Merge(Level* level);

  Document* document_;
  std::vector<Level> levels_;
  FieldPath path_;
  int ignored_levels_ = 0;
  bool too_deep_ = false;
  size_t anchor_ = 0;  // of the next value; 0: none
  std::map<size_t, Anchored> anchored_;
  size_t expanded_ = 0;  // values so far
};

}  // namespace ablate::yaml

#endif  // ABLATE_PROTO_YAML_DOCUMENT_H_
