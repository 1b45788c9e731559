// Reads and writes the safetensors format: checkpoints, states, arrays, and data sets that aren't
// plain text.
#ifndef ABLATE_BASE_SAFETENSORS_H_
#define ABLATE_BASE_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate {

// kF16, kBF16 and kBool are in files of other programs only.
enum class TensorType { kF32, kF64, kF16, kBF16, kBool, kU8, kU16, kU32, kI64, kU64 };

// Returns the type as the format spells it: "F32".
absl::string_view NameOf(TensorType type);
// Returns the bytes of one element.
int64_t WidthOf(TensorType type);

// One tensor of a file; `bytes` points into memory owned elsewhere.
struct TensorView {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  absl::string_view bytes;  // little-endian, row-major; may be unaligned in a file of another
                            // program
};

struct SafetensorsFile {
  std::vector<TensorView> tensors;  // in file order; views into the parsed bytes
  std::map<std::string, std::string> metadata;

  // Returns null if there is no such tensor.
  const TensorView* Find(absl::string_view name) const;
};

// Returns the bytes of one file, its header padded to 8 bytes. Returns INVALID_ARGUMENT if a name
// repeats, a view's bytes don't fit its shape, or the header exceeds a bound of ParseSafetensors.
absl::StatusOr<std::string> WriteSafetensors(const std::vector<TensorView>& tensors,
                                             const std::map<std::string, std::string>& metadata);

// Returns a name or text of a file for an error message: in quotes, escaped to ASCII, shortened.
std::string Quoted(absl::string_view text);

// Parses a file and checks it completely: header length (at most 16 MiB), JSON, numbers of tensors
// and of metadata (at most 16,384 of each), types, shapes without overflow, and ranges, which must
// be sorted, contiguous and end at the end of the file. Returns INVALID_ARGUMENT with the problem;
// a header beyond a bound is refused before memory grows with it. The views point into `file`,
// which must outlive them.
absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view file);

}  // namespace ablate

#endif  // ABLATE_BASE_SAFETENSORS_H_
