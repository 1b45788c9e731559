// Where each field of an experiment file is written.
#include "client/source_map.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace ablate::client {
namespace {

// The text between the quotes at the front of `*text`, which is left behind them.
std::string TakeQuoted(absl::string_view* text) {
  std::string out;
  size_t i = 1;
  for (; i < text->size() && (*text)[i] != '"'; ++i) {
    if ((*text)[i] == '\\' && i + 1 < text->size()) ++i;
    out += (*text)[i];
  }
  text->remove_prefix(i < text->size() ? i + 1 : i);
  return out;
}

// Names never hold the separator: files with control characters are refused.
std::string Key(const FieldPath& path) { return absl::StrJoin(path, "\x1f"); }

}  // namespace

FieldPath ParseFieldPath(absl::string_view text) {
  FieldPath path;
  while (!text.empty()) {
    if (text[0] == '.' || text[0] == '[' || text[0] == ']') {
      text.remove_prefix(1);
    } else if (text[0] == '"') {
      path.push_back(TakeQuoted(&text));
    } else {
      const size_t end = std::min(text.find_first_of(".[]"), text.size());
      path.emplace_back(text.substr(0, end));
      text.remove_prefix(end);
    }
  }
  return path;
}

void SourceMap::Add(const FieldPath& path, Position position) { positions_[Key(path)] = position; }

Position SourceMap::Find(absl::string_view field) const {
  for (FieldPath path = ParseFieldPath(field); !path.empty(); path.pop_back()) {
    const auto found = positions_.find(Key(path));
    if (found != positions_.end()) return found->second;
  }
  return {};
}

}  // namespace ablate::client
