// Returns random bytes from the kernel, for secrets and ids.
#ifndef ABLATE_BASE_RANDOM_H_
#define ABLATE_BASE_RANDOM_H_

#include <cstddef>
#include <string>

namespace ablate::process {

// Ends the process if the kernel has no random bytes. Thread-safe.
std::string RandomBytes(size_t size);

// Returns 128 random bits as 32 hex digits: an id that is never drawn twice.
std::string RandomId();

}  // namespace ablate::process

#endif  // ABLATE_BASE_RANDOM_H_
