// The records that TensorBoard's event files are made of: the length and the bytes, each with a
// masked checksum. Pure functions.
#ifndef ABLATE_SERVER_REPORT_EXPORT_TENSORBOARD_H_
#define ABLATE_SERVER_REPORT_EXPORT_TENSORBOARD_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ablate::report {

// CRC-32C (Castagnoli) of `bytes`, as RFC 3720 has it.
uint32_t Crc32c(absl::string_view bytes);

// A checksum rotated and offset, so that the checksum of bytes that contain it is not degenerate.
uint32_t Masked(uint32_t crc);

// Appends: length (8 bytes), its masked checksum (4), `data`, its masked checksum (4); little
// endian.
void AppendRecord(absl::string_view data, std::string* bytes);

}  // namespace ablate::report

#endif  // ABLATE_SERVER_REPORT_EXPORT_TENSORBOARD_H_
