// Builds and reads the store's own binary formats, and seals them with checksums.
#ifndef ABLATE_STORAGE_SQLITE_BYTES_H_
#define ABLATE_STORAGE_SQLITE_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::storage {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the formats are little endian");

// First byte of all these formats: their version.
inline constexpr uint8_t kSealed = 4;

inline void PutVarint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

template <typename Value>
void PutRaw(std::string* out, Value value) {
  static_assert(std::is_arithmetic_v<Value>);
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline void PutText(std::string* out, absl::string_view text) {
  PutVarint(out, text.size());
  out->append(text.data(), text.size());
}

// Reads what the functions above wrote. After the first malformed or missing byte everything reads
// as 0 or empty and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return Fail(), 0;
  }

  template <typename Value>
  Value Raw() {
    Value value{};
    const absl::string_view bytes = Take(sizeof(value));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }

  absl::string_view Text() { return Take(Varint()); }

  absl::string_view Take(uint64_t size) {
    if (size > rest_.size()) return Fail(), absl::string_view();
    const absl::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  void Fail() {
    ok_ = false;
    rest_ = {};
  }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

// Seals bytes against corruption and against being taken for another row's: version 4, the CRC-32C
// of `place` and the bytes, then the bytes. `place` identifies their row and isn't stored.
std::string Seal(absl::string_view place, absl::string_view content);

// Returns the sealed bytes. DATA_LOSS if the bytes or the place have changed.
absl::StatusOr<absl::string_view> Unseal(absl::string_view place, absl::string_view bytes);

// Computes CRC-32C (Castagnoli polynomial, as in iSCSI, RFC 3720), which detects every burst of up
// to 32 changed bits. Uses the processor's instruction if there is one. `before` is the CRC of
// preceding bytes; the result is that of both together.
uint32_t Crc32c(absl::string_view bytes, uint32_t before = 0);

// Computes the same with tables, for processors without the instruction.
uint32_t Crc32cByTables(absl::string_view bytes, uint32_t before = 0);

}  // namespace ablate::storage

#endif  // ABLATE_STORAGE_SQLITE_BYTES_H_
