// Random bytes of the kernel, which nothing in this process can make guessable.
#ifndef ABLATE_BASE_RANDOM_H_
#define ABLATE_BASE_RANDOM_H_

#include <cstddef>
#include <string>

namespace ablate::process {

// Ends the process if the kernel has none to give. Thread-safe.
std::string RandomBytes(size_t size);

// Returns 128 random bits as 32 hex digits: an id that is never drawn twice.
std::string RandomId();

}  // namespace ablate::process

#endif  // ABLATE_BASE_RANDOM_H_
