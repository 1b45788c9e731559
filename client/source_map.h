// Where each field of an experiment file is written, so that a problem found anywhere later, also
// by the server, is reported at its line and column.
#ifndef ABLATE_CLIENT_SOURCE_MAP_H_
#define ABLATE_CLIENT_SOURCE_MAP_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/source_text.h"

namespace ablate::client {

// Field names, map keys and list indices on the way to a field.
using FieldPath = std::vector<std::string>;

// `axes[0].settings[1].set["model.norm.placement"]` in its five parts. Accepts any text.
FieldPath ParseFieldPath(absl::string_view text);

class SourceMap {
 public:
  void Add(const FieldPath& path, Position position);
  // Where the field is written, else the nearest field around it; line 0 if there is none.
  Position Find(absl::string_view field) const;

 private:
  std::map<std::string, Position> positions_;  // by the parts joined with a separator
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SOURCE_MAP_H_
