#include "base/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"

namespace ablate {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
}

void Sha256::Add(absl::string_view data) {
  EVP_DigestUpdate(context_.get(), data.data(), data.size());
}

std::string Sha256::Hex() {
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 hash;
  hash.Add(bytes);
  return hash.Hex();
}

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace ablate
