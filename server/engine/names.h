// Maps the engine's enum values to names, with one table per enum, beside the enum. The spec uses
// these names, and so do checkpoints and resume states. Torch-free.
#ifndef ABLATE_SERVER_ENGINE_NAMES_H_
#define ABLATE_SERVER_ENGINE_NAMES_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ablate::engine {

template <typename Enum>
struct Named {
  Enum value;
  absl::string_view name;
};

// kNames<Enum> lists every value of the enum in the order of its declaration.
template <typename Enum>
inline constexpr std::nullptr_t kNames = nullptr;

// Returns the value's name; empty if `value` isn't one of the enum's.
template <typename Enum>
constexpr absl::string_view NameOf(Enum value) {
  for (const Named<Enum>& entry : kNames<Enum>) {
    if (entry.value == value) return entry.name;
  }
  return {};
}

template <typename Enum>
constexpr std::optional<Enum> FindByName(absl::string_view name) {
  for (const Named<Enum>& entry : kNames<Enum>) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

// Returns "layer, rms", for an error that lists the allowed values.
template <typename Enum>
std::string AllNames() {
  std::string names;
  for (const Named<Enum>& entry : kNames<Enum>) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", entry.name);
  }
  return names;
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_NAMES_H_
