// Builds a tree of google.protobuf.Value from a parser's events and notes where each field stands.
#ifndef ABLATE_CLIENT_TREE_BUILDER_H_
#define ABLATE_CLIENT_TREE_BUILDER_H_

#include <map>
#include <string>
#include <vector>

#include "client/source_map.h"
#include "client/source_text.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {

// What a YAML or JSON text holds. With `syntax_error` the tree ends where the parser gave up.
struct Document {
  google::protobuf::Value root;
  SourceMap positions;
  std::vector<Diagnostic> problems;
  bool syntax_error = false;
};

// Duplicate keys and nesting beyond kMaxDepth become problems; what is nested too deeply is left
// out.
class TreeBuilder {
 public:
  explicit TreeBuilder(Document* document) : document_(document) {}

  void BeginMap(Position position) { Begin(position, true); }
  void BeginList(Position position) { Begin(position, false); }
  void Key(const std::string& key, Position position);
  void Scalar(google::protobuf::Value value, Position position);
  // Of the innermost map or list.
  void End();
  // Leaves out the value that should come next.
  void Skip();
  void Problem(Position position, std::string message);

  // Whether the next scalar is a key.
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
  // Where the next value goes; its list item is noted.
  google::protobuf::Value* NextSlot(Position position);
  // A value has been put where one was expected.
  void Filled();

  Document* document_;
  std::vector<Level> levels_;
  FieldPath path_;
  int ignored_levels_ = 0;
  bool too_deep_ = false;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_TREE_BUILDER_H_
