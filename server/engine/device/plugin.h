// Declares the function that a plugin with a device's code exports.
#ifndef ABLATE_SERVER_ENGINE_DEVICE_PLUGIN_H_
#define ABLATE_SERVER_ENGINE_DEVICE_PLUGIN_H_

#include <memory>
#include <string>

#include "server/engine/device/device_stream.h"

namespace ablate::engine {

// Opens the first visible device, or sets `why_not` if there is none that can be used. Throws
// c10::Error.
using OpenDevice = void(std::shared_ptr<StreamSource>* opened, std::string* why_not);

inline constexpr char kOpenDevice[] = "ablate_open_device";  // its symbol

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DEVICE_PLUGIN_H_
