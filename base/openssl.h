// OpenSSL's objects as values of ours: freed with their owner, read from and written as PEM, and
// its errors as statuses.
#ifndef ABLATE_TLS_OPENSSL_H_
#define ABLATE_TLS_OPENSSL_H_

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

// Reads `text`, which must outlive it.
Memory Reader(absl::string_view text);

// INTERNAL: that `action` failed, and what OpenSSL says of it. Empties this thread's errors.
absl::Status OpenSslError(absl::string_view action);

// INVALID_ARGUMENT if the text holds no PEM certificate.
absl::StatusOr<Certificate> ParseCertificate(absl::string_view pem);
// INVALID_ARGUMENT if the text holds no PEM private key, or one that a passphrase encrypts.
absl::StatusOr<Key> ParseKey(absl::string_view pem);

absl::StatusOr<std::string> ToPem(const Certificate& certificate);
absl::StatusOr<std::string> ToPem(const Key& key);  // PKCS #8

}  // namespace ablate::tls

#endif  // ABLATE_TLS_OPENSSL_H_
