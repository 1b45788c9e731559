// Names of leases: random, so that a lease of a restored backup is never taken for another.
#include <array>
#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "server/schedule/scheduler.h"

namespace ablate::schedule {

std::string RandomLeaseId() {
  std::random_device system;
  std::array<char, 16> bytes;
  for (size_t i = 0; i < bytes.size(); i += 4) {
    const uint32_t word = system();
    for (size_t k = 0; k < 4; ++k) bytes[i + k] = static_cast<char>(word >> (8 * k));
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

}  // namespace ablate::schedule
