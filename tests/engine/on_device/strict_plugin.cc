// A plugin for ablate-worker, in place of the one for CUDA: its GPU is the strict device, with
// ABLATE_STRICT_MEMORY bytes.
#include <cstdlib>
#include <string>

#include "tests/engine/on_device/strict_device.h"

extern "C" __attribute__((visibility("default"))) void ablate_open_device(
    double memory_share, std::shared_ptr<ablate::engine::StreamSource>* opened,
    std::string* /*why_not*/) {
  const char* const set = std::getenv("ABLATE_STRICT_MEMORY");
  const double memory = set == nullptr ? 16e9 : std::stod(set);
  *opened = ablate::engine::OpenStrictDevice(static_cast<size_t>(memory_share * memory));
}
