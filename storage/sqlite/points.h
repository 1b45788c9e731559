// Encodes points as bytes: the content of row groups and chunks.
#ifndef ABLATE_STORAGE_SQLITE_POINTS_H_
#define ABLATE_STORAGE_SQLITE_POINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::storage {

// One key's points to encode. The caller owns the vectors, which have equal sizes of at least 1;
// steps ascend strictly.
struct EncodedColumn {
  uint32_t key = 0;  // number of the key in its run
  const std::vector<uint32_t>* steps = nullptr;
  const std::vector<double>* values = nullptr;
};

// Returns the place with which a row's points are sealed (bytes.h): all other columns of its row,
// and its run's name, so that no changed number in the database assigns them to another run or key.
std::string GroupPlace(absl::string_view run, uint64_t id, uint32_t first_step, uint32_t last_step);
std::string ChunkPlace(absl::string_view run, uint32_t key, uint32_t first_step,
                       uint32_t last_step);

// Encodes in little endian, sealed (bytes.h): the distinct step columns (count, first, then either
// one stride or the differences); the columns (key, number of its step column, 4 or 8 bytes a
// value); the values of each. Counts are LEB128. Values are stored as floats if every value of a
// column is one, bit for bit; otherwise as doubles.
std::string EncodePoints(absl::string_view place, const std::vector<EncodedColumn>& columns);

struct DecodedColumn {
  uint32_t key = 0;
  std::vector<uint32_t> steps;
  std::vector<double> values;
};

// Decodes all columns of `bytes` in stored order. DATA_LOSS if they are malformed, changed, or of
// another place.
absl::StatusOr<std::vector<DecodedColumn>> DecodePoints(absl::string_view place,
                                                        absl::string_view bytes);

// Appends one key's points with first_step <= step <= last_step; nothing if the key isn't there.
// DATA_LOSS as DecodePoints, whichever key is damaged.
absl::Status AppendPoints(absl::string_view place, absl::string_view bytes, uint32_t key,
                          uint32_t first_step, uint32_t last_step, std::vector<uint32_t>* steps,
                          std::vector<double>* values);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_POINTS_H_
