// Finds stop strings in text that grows token by token. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_CORE_ANALYSES_STOP_STRINGS_H_
#define ABLATE_SERVER_ENGINE_CORE_ANALYSES_STOP_STRINGS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ablate::engine {

struct StopFound {
  size_t begin = 0;  // byte of the text at which the occurrence begins
  size_t which = 0;  // index of the stop string
};

// Returns the occurrence of a stop string that begins first in `text`, of several there the
// shortest. Only occurrences that end after the first `searched` bytes count, so that a text that
// is searched each time it has grown costs time for its new bytes only, whatever its length. No
// stop string is empty.
std::optional<StopFound> FindStop(absl::string_view text, size_t searched,
                                  absl::Span<const std::string> stops);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_ANALYSES_STOP_STRINGS_H_
