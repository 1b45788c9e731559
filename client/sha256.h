// SHA-256, piece by piece.
#ifndef ABLATE_CLIENT_SHA256_H_
#define ABLATE_CLIENT_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace ablate::client {

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

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_SHA256_H_
