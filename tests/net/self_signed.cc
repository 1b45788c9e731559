#include "tests/net/self_signed.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

namespace ablate::rpc {
namespace {

constexpr int kSeconds = 24 * 60 * 60;

template <typename Write>
std::string Pem(Write write) {
  BIO* const text = BIO_new(BIO_s_mem());
  write(text);
  char* data = nullptr;
  const long size = BIO_get_mem_data(text, &data);
  std::string pem(data, size);
  BIO_free(text);
  return pem;
}

}  // namespace

SelfSigned MakeSelfSigned() {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = X509_new();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), kSeconds);
  X509_set_pubkey(certificate, key);
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_sign(certificate, key, EVP_sha256());
  SelfSigned made{Pem([&](BIO* to) { PEM_write_bio_X509(to, certificate); }), Pem([&](BIO* to) {
                    PEM_write_bio_PrivateKey(to, key, nullptr, nullptr, 0, nullptr, nullptr);
                  })};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return made;
}

}  // namespace ablate::rpc
