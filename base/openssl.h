// Owns OpenSSL's objects, reads and writes them as PEM, and turns OpenSSL's errors into statuses.
#ifndef ABLATE_BASE_OPENSSL_H_
#define ABLATE_BASE_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ablate::tls {

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
template <typename T, auto kFree>
using Owned = std::unique_ptr<T, Freed<kFree>>;

using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Owned<X509, X509_free>;
using Memory = Owned<BIO, BIO_free_all>;

// Returns a BIO that reads `text`, which must outlive it.
Memory Reader(absl::string_view text);

// Returns INTERNAL with `action` and OpenSSL's error text. Clears this thread's error queue.
absl::Status OpenSslError(absl::string_view action);

// Parses a PEM certificate; INVALID_ARGUMENT if the text holds none.
absl::StatusOr<Certificate> ParseCertificate(absl::string_view pem);
// Parses a PEM private key; INVALID_ARGUMENT if the text holds none, or an encrypted one.
absl::StatusOr<Key> ParseKey(absl::string_view pem);

absl::StatusOr<std::string> ToPem(const Certificate& certificate);
absl::StatusOr<std::string> ToPem(const Key& key);  // PKCS #8

}  // namespace ablate::tls

#endif  // ABLATE_BASE_OPENSSL_H_
