// A plugin for ablate-worker, in place of the one for CUDA: its GPU is the strict device.
#include "tests/engine/on_device/strict_device.h"

extern "C" __attribute__((visibility("default"))) void ablate_open_device(
    double /*memory_share*/, std::shared_ptr<ablate::engine::StreamSource>* opened,
    std::string* /*why_not*/) {
  *opened = ablate::engine::OpenStrictDevice();
}
