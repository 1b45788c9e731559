// A record of TensorBoard's files: the length and the bytes, each with a masked checksum.
#include "server/report/export/record.h"

#include <boost/crc.hpp>

namespace ablate::report {
namespace {

// The polynomial of Castagnoli; begins and ends inverted, bits reflected.
using Castagnoli = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

template <typename Integer>
std::string LittleEndian(Integer value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  }
  return bytes;
}

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  Castagnoli crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

void AppendRecord(absl::string_view data, std::string* bytes) {
  const std::string length = LittleEndian(uint64_t{data.size()});
  bytes->append(length);
  bytes->append(LittleEndian(Masked(Crc32c(length))));
  bytes->append(data.data(), data.size());
  bytes->append(LittleEndian(Masked(Crc32c(data))));
}

}  // namespace ablate::report
