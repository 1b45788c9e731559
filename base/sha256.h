// Computes SHA-256, which names blobs and data sets.
#ifndef ABLATE_BASE_SHA256_H_
#define ABLATE_BASE_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace ablate {

// Hashes bytes that come in pieces. For one thread.
class Sha256 {
 public:
  Sha256();
  void Add(absl::string_view data);
  // Returns the hash of all added bytes as 64 lower-case hex digits. Call it once, last.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Returns the hash of `bytes` as 64 lower-case hex digits.
std::string Sha256Hex(absl::string_view bytes);

// Returns true if `text` has the form of a hash: 64 lower-case hex digits.
bool IsSha256(absl::string_view text);

}  // namespace ablate

#endif  // ABLATE_BASE_SHA256_H_
