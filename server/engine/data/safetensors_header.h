// The header of a safetensors file: what it may say, before ranges are compared with the data.
#ifndef ABLATE_SERVER_ENGINE_DATA_SAFETENSORS_HEADER_H_
#define ABLATE_SERVER_ENGINE_DATA_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/safetensors.h"

namespace ablate::engine {

// The key that holds a file's metadata and therefore cannot name a tensor.
inline constexpr absl::string_view kSafetensorsMetadataKey = "__metadata__";

struct TensorEntry {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;  // extents ≥ 0
  std::vector<int64_t>
      range;  // data_offsets: the first byte and the one behind the last, ≥ 0, unchecked
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // as the header orders them
  std::map<std::string, std::string> metadata;
};

// INVALID_ARGUMENT says what is wrong; its length does not depend on the header's.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json);

// As the format spells it: "F32".
absl::string_view TensorTypeName(TensorType type);

// Size of a tensor in bytes; false if an extent is negative or the size does not fit 63 bits.
bool TensorBytes(TensorType type, const std::vector<int64_t>& shape, int64_t& bytes);

// Text of a file for an error message: in quotes, escaped to ASCII, cut where it is long.
std::string Quoted(absl::string_view text);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_DATA_SAFETENSORS_HEADER_H_
