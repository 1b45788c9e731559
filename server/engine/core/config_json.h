// Writes a struct of the config as JSON, for checkpoints and for the tests' reference in PyTorch.
#ifndef ABLATE_SERVER_ENGINE_CORE_CONFIG_JSON_H_
#define ABLATE_SERVER_ENGINE_CORE_CONFIG_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "server/engine/config.h"
#include "server/engine/names.h"

namespace ablate::engine {

// Returns an object with the members that ForEachField visits, in their order: a value of an enum
// by its name, a struct as an object. A member's key is the end of its path.
template <HasFields Config>
nlohmann::ordered_json ConfigJson(const Config& config) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  ForEachField(config, [&json](const std::string& path, const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    nlohmann::ordered_json& entry = json[path.substr(path.rfind('.') + 1)];
    if constexpr (HasFields<Value>) {
      entry = ConfigJson(value);
    } else if constexpr (std::is_enum_v<Value>) {
      entry = NameOf(value);
    } else {
      entry = value;
    }
  });
  return json;
}

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_CORE_CONFIG_JSON_H_
