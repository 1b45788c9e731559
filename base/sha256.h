// SHA-256, as blobs and data sets are named.
#ifndef ABLATE_BASE_SHA256_H_
#define ABLATE_BASE_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace ablate {

// Of bytes that come in pieces. One thread.
class Sha256 {
 public:
  Sha256();
  void Add(absl::string_view data);
  // 64 lower-case hex digits of all that was added; to be called once, last.
  std::string Hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Of bytes that are all there: 64 lower-case hex digits.
std::string Sha256Hex(absl::string_view bytes);

// Whether `text` could be one: 64 lower-case hex digits.
bool IsSha256(absl::string_view text);

}  // namespace ablate

#endif  // ABLATE_BASE_SHA256_H_
