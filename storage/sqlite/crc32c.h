// CRC-32C: tells bytes that a disk or memory changed.
#ifndef ABLATE_STORAGE_SQLITE_CRC32C_H_
#define ABLATE_STORAGE_SQLITE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace ablate::storage {

// The Castagnoli polynomial, as in iSCSI (RFC 3720): finds every change of up to 32 bits in a row.
// By the processor's instruction where it has one.
uint32_t Crc32c(absl::string_view bytes);

// The same by tables, for processors without the instruction.
uint32_t Crc32cByTables(absl::string_view bytes);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_CRC32C_H_
