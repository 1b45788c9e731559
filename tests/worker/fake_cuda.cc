// A library with the functions of CUDA's driver that a check of a GPU calls. FAKE_CUDA in the
// environment is the number of devices; a negative number is an error.
#include <cstdlib>

namespace {

int Given() {
  const char* const given = std::getenv("FAKE_CUDA");
  return given == nullptr ? 0 : std::atoi(given);
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return Given() < 0 ? -Given() : 0; }
int cuDeviceGetCount(int* count) {
  *count = Given();
  return 0;
}

}  // extern "C"
