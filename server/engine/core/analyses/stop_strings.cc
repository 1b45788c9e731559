#include "server/engine/core/analyses/stop_strings.h"

#include <algorithm>

namespace ablate::engine {

std::optional<StopFound> FindStop(absl::string_view text, size_t searched,
                                  absl::Span<const std::string> stops) {
  std::optional<StopFound> first;
  for (size_t i = 0; i < stops.size(); ++i) {
    const absl::string_view stop = stops[i];
    // An occurrence that begins earlier ends within the bytes that were searched.
    const size_t begin = text.find(stop, searched - std::min(searched, stop.size() - 1));
    if (begin == absl::string_view::npos) continue;
    const bool comes_first = !first.has_value() || begin < first->begin ||
                             (begin == first->begin && stop.size() < stops[first->which].size());
    if (comes_first) first = {begin, i};
  }
  return first;
}

}  // namespace ablate::engine
