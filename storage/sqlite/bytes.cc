#include "storage/sqlite/bytes.h"

#include <array>
#include <cstddef>
#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace ablate::storage {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // with its bits reversed

// Tables for eight bytes at a time.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

// Table k: what a byte contributes if k bytes follow it.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
constexpr Tables kCrcTables = MakeTables();

uint64_t Load(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) uint32_t ByInstruction(absl::string_view bytes, uint32_t before) {
  uint64_t crc = ~before;
  for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t))) {
    crc = _mm_crc32_u64(crc, Load(bytes.data()));
  }
  auto rest = static_cast<uint32_t>(crc);
  for (const char byte : bytes) rest = _mm_crc32_u8(rest, static_cast<unsigned char>(byte));
  return ~rest;
}
#endif

}  // namespace

uint32_t Crc32cByTables(absl::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t))) {
    const uint64_t word = Load(bytes.data()) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kCrcTables[7 - k][word >> (8 * k) & 0xff];
  }
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kCrcTables[0][(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  }
  return ~crc;
}

uint32_t Crc32c(absl::string_view bytes, uint32_t before) {
#ifdef __x86_64__
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ByInstruction(bytes, before);
#endif
  return Crc32cByTables(bytes, before);
}

std::string Seal(absl::string_view place, absl::string_view content) {
  std::string sealed;
  sealed.reserve(1 + sizeof(uint32_t) + content.size());
  PutRaw(&sealed, kSealed);
  PutRaw(&sealed, Crc32c(content, Crc32c(place)));
  sealed.append(content.data(), content.size());
  return sealed;
}

absl::StatusOr<absl::string_view> Unseal(absl::string_view place, absl::string_view bytes) {
  ByteReader in(bytes);
  const auto version = in.Raw<uint8_t>();
  const auto checksum = in.Raw<uint32_t>();
  if (!in.ok() || version != kSealed) {
    return absl::DataLossError("they are malformed");
  }
  const absl::string_view content = bytes.substr(1 + sizeof(checksum));
  if (Crc32c(content, Crc32c(place)) == checksum) return content;
  return absl::DataLossError("their checksum does not match");
}

}  // namespace ablate::storage
