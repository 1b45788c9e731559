#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/escaping.h"

namespace ablate::process {

std::string RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t got = 0; got < size;) {
    const ssize_t now = getrandom(bytes.data() + got, size - got, 0);
    if (now < 0 && errno != EINTR) std::abort();
    if (now > 0) got += static_cast<size_t>(now);
  }
  return bytes;
}

std::string RandomId() { return absl::BytesToHexString(RandomBytes(16)); }

}  // namespace ablate::process
