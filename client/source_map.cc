// Where each field of an experiment file is written.
#include "client/source_map.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

namespace ablate::client {
namespace {

// The text between the quotes at the front of `*text`, which is left behind them. Control
// characters are written as \xNN there, other escapes are a backslash before the character itself.
std::string TakeQuoted(absl::string_view* text) {
  std::string out;
  size_t i = 1;
  for (; i < text->size() && (*text)[i] != '"'; ++i) {
    uint32_t code = 0;
    if ((*text)[i] != '\\' || i + 1 == text->size()) {
      out += (*text)[i];
    } else if ((*text)[i + 1] == 'x' && absl::SimpleHexAtoi(text->substr(i + 2, 2), &code)) {
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += (*text)[++i];
    }
  }
  text->remove_prefix(std::min(i + 1, text->size()));
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
