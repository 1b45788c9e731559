// How a safetensors file begins.
#ifndef ABLATE_TESTS_ENGINE_HEADER_LENGTH_H_
#define ABLATE_TESTS_ENGINE_HEADER_LENGTH_H_

#include <cstdint>
#include <string>

namespace ablate::engine {

inline std::string Length(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
  return bytes;
}

}  // namespace ablate::engine

#endif  // ABLATE_TESTS_ENGINE_HEADER_LENGTH_H_
