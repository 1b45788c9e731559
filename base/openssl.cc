#include "base/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include "absl/strings/str_cat.h"

namespace ablate::tls {
namespace {

// Without this OpenSSL would ask for a passphrase at the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

// Returns the bytes that `write` writes; clears the memory, because it may have held a key.
template <typename Write>
absl::StatusOr<std::string> Written(absl::string_view action, Write write) {
  const Memory memory(BIO_new(BIO_s_secmem()));
  if (memory == nullptr || write(memory.get()) != 1) return OpenSslError(action);
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

Memory Reader(absl::string_view text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::Status OpenSslError(absl::string_view action) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("cannot ", action, ": ",
                                          reason != nullptr ? reason : "OpenSSL does not say why"));
}

absl::StatusOr<Certificate> ParseCertificate(absl::string_view pem) {
  Certificate certificate(PEM_read_bio_X509(Reader(pem).get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (certificate != nullptr) return certificate;
  return absl::InvalidArgumentError(
      "no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----");
}

absl::StatusOr<Key> ParseKey(absl::string_view pem) {
  Key key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key != nullptr) return key;
  return absl::InvalidArgumentError(
      "no private key in PEM, without a passphrase, which begins with -----BEGIN PRIVATE KEY-----");
}

absl::StatusOr<std::string> ToPem(const Certificate& certificate) {
  return Written("write a certificate",
                 [&](BIO* out) { return PEM_write_bio_X509(out, certificate.get()); });
}

absl::StatusOr<std::string> ToPem(const Key& key) {
  return Written("write a key", [&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace ablate::tls
