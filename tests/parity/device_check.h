// Compares the backend of an accelerator with the reference backend on the CPU, in float64.
#ifndef ABLATE_TESTS_PARITY_DEVICE_CHECK_H_
#define ABLATE_TESTS_PARITY_DEVICE_CHECK_H_

#include <string>

#include "server/engine/config.h"
#include "server/engine/torch/device/device_stream.h"
#include "tests/parity/grid.h"

namespace ablate::engine {

// Makes the case's updates in blocks of several sizes, and an evaluation, on both. Returns "" if
// losses, norms, parameters, buffers and slots differ by at most 1e-7 of their own size, else what
// differs.
std::string DeviceDifference(GridCase grid, Device device, StreamSource& streams);

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_PARITY_DEVICE_CHECK_H_
