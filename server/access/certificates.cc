#include "server/access/certificates.h"

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/certificate_facts.h"
#include "base/host.h"
#include "base/openssl.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace ablate::access {
namespace {

using tls::Certificate;
using tls::CertificateFacts;
using tls::CheckKey;
using tls::CheckTimes;
using tls::Key;
using tls::OpenSslError;
using tls::Owned;
using tls::ParseCertificate;
using tls::ParseKey;
using tls::ReadFacts;
using tls::ToPem;

// X.509 allows 64 characters in a common name.
constexpr size_t kMaxName = 57;
constexpr int kSerialBits = 128;

using BigNumber = Owned<BIGNUM, BN_free>;
using Extension = Owned<X509_EXTENSION, X509_EXTENSION_free>;
using Names = Owned<GENERAL_NAMES, GENERAL_NAMES_free>;

struct ExtensionText {
  int kind;
  const char* value;
};

constexpr ExtensionText kAuthorityExtensions[] = {
    {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
    {NID_key_usage, "critical,keyCertSign,cRLSign"},
    {NID_subject_key_identifier, "hash"},
};
constexpr ExtensionText kServerExtensions[] = {
    {NID_basic_constraints, "critical,CA:FALSE"},
    {NID_key_usage, "critical,digitalSignature"},
    {NID_ext_key_usage, "serverAuth"},
    {NID_subject_key_identifier, "hash"},
    {NID_authority_key_identifier, "keyid:always"},
};

// Content of a certificate, except its extensions.
struct Draft {
  std::string common_name;
  absl::Time from;
  absl::Time to;
};

absl::StatusOr<Key> MakeKey() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("make a key");
  return key;
}

// Sets a random serial number, which distinguishes the certificates of one authority and makes the
// signed bytes unpredictable.
bool SetSerial(X509* x509) {
  const BigNumber serial(BN_new());
  return serial != nullptr &&
         BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(x509)) != nullptr;
}

bool SetTimes(X509* x509, const Draft& draft) {
  return ASN1_TIME_set(X509_getm_notBefore(x509), absl::ToTimeT(draft.from)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(x509), absl::ToTimeT(draft.to)) != nullptr;
}

bool SetSubject(X509* x509, const std::string& common_name) {
  return X509_NAME_add_entry_by_NID(X509_get_subject_name(x509), NID_commonName, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(common_name.data()),
                                    static_cast<int>(common_name.size()), -1, 0) == 1;
}

// Makes a certificate of the key without extensions and signature; `issuer` is null if self-signed.
absl::StatusOr<Certificate> Begin(const Draft& draft, const Key& key, const X509* issuer) {
  Certificate certificate(X509_new());
  X509* const x509 = certificate.get();
  const bool set =
      x509 != nullptr && X509_set_version(x509, X509_VERSION_3) == 1 && SetSerial(x509) &&
      SetTimes(x509, draft) && SetSubject(x509, draft.common_name) &&
      X509_set_issuer_name(x509, X509_get_subject_name(issuer != nullptr ? issuer : x509)) == 1 &&
      X509_set_pubkey(x509, key.get()) == 1;
  if (!set) return OpenSslError("make a certificate");
  return certificate;
}

template <size_t kCount>
absl::Status AddExtensions(X509* x509, X509* issuer, const ExtensionText (&extensions)[kCount]) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, x509, nullptr, nullptr, 0);
  for (const ExtensionText& text : extensions) {
    const Extension extension(X509V3_EXT_nconf_nid(nullptr, &context, text.kind, text.value));
    if (extension == nullptr || X509_add_ext(x509, extension.get(), -1) != 1) {
      return OpenSslError(absl::StrCat("add ", OBJ_nid2ln(text.kind), " to a certificate"));
    }
  }
  return absl::OkStatus();
}

bool AddName(GENERAL_NAMES* names, const text::Host& host) {
  const bool is_address = !host.address.empty();
  const std::string& bytes = is_address ? host.address : host.text;
  ASN1_STRING* value = ASN1_STRING_type_new(is_address ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
  GENERAL_NAME* name = GENERAL_NAME_new();
  if (value == nullptr || name == nullptr ||
      ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size())) != 1) {
    ASN1_STRING_free(value);
    GENERAL_NAME_free(name);
    return false;
  }
  GENERAL_NAME_set0_value(name, is_address ? GEN_IPADD : GEN_DNS, value);
  if (sk_GENERAL_NAME_push(names, name) > 0) return true;
  GENERAL_NAME_free(name);
  return false;
}

// Adds the names without OpenSSL's text syntax, in which a comma in a name would begin another
// name.
absl::Status AddNames(X509* x509, const std::vector<text::Host>& hosts) {
  const Names names(GENERAL_NAMES_new());
  bool added = names != nullptr;
  for (const text::Host& host : hosts) added = added && AddName(names.get(), host);
  if (!added || X509_add1_ext_i2d(x509, NID_subject_alt_name, names.get(), 0, 0) != 1) {
    return OpenSslError("add names to a certificate");
  }
  return absl::OkStatus();
}

absl::StatusOr<CertifiedKey> Sign(const Certificate& certificate, const Key& key,
                                  const Key& signer) {
  if (X509_sign(certificate.get(), signer.get(), EVP_sha256()) == 0) {
    return OpenSslError("sign a certificate");
  }
  ASSIGN_OR_RETURN(std::string certificate_pem, ToPem(certificate));
  ASSIGN_OR_RETURN(std::string key_pem, ToPem(key));
  return CertifiedKey{std::move(certificate_pem), std::move(key_pem)};
}

// Parses the hosts, each once, those of this machine last.
absl::StatusOr<std::vector<text::Host>> ParseHosts(std::vector<std::string> hosts) {
  if (hosts.size() > kMaxHosts) {
    return absl::InvalidArgumentError(
        absl::StrCat("hosts: ", hosts.size(), " hosts; expected at most ", kMaxHosts));
  }
  hosts.insert(hosts.end(), LocalHosts().begin(), LocalHosts().end());
  std::vector<text::Host> parsed;
  for (const std::string& name : hosts) {
    absl::StatusOr<text::Host> host = text::ParseHost(name);
    if (!host.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("host \"", absl::CHexEscape(name), "\": ", host.status().message()));
    }
    if (host->text == "0.0.0.0" || host->text == "::") {
      return absl::InvalidArgumentError(
          absl::StrCat("host \"", name,
                       "\": a client can't connect to it; expected a name or address that clients "
                       "use"));
    }
    if (std::find(parsed.begin(), parsed.end(), *host) == parsed.end()) {
      parsed.push_back(*std::move(host));
    }
  }
  return parsed;
}

// Returns the authority's facts; FAILED_PRECONDITION unless it can sign at `now`.
absl::StatusOr<CertificateFacts> CheckAuthority(const CertifiedKey& authority, absl::Time now) {
  RETURN_IF_ERROR(CheckKey(authority.certificate, authority.key));
  absl::StatusOr<CertificateFacts> facts = ReadFacts(authority.certificate);
  if (!facts.ok()) return facts;
  if (!facts->authority) {
    return absl::FailedPreconditionError("the certificate isn't an authority's");
  }
  RETURN_IF_ERROR(CheckTimes(*facts, now));
  return facts;
}

}  // namespace

const std::vector<std::string>& LocalHosts() {
  static const auto* const hosts = new std::vector<std::string>{"localhost", "127.0.0.1", "::1"};
  return *hosts;
}

absl::StatusOr<CertifiedKey> MakeAuthority(absl::string_view name, absl::Time now) {
  if (!text::IsPrintable(name, kMaxName)) {
    return absl::InvalidArgumentError(absl::StrCat("authority name: \"", absl::CHexEscape(name),
                                                   "\" is invalid; expected 1 to ", kMaxName,
                                                   " printable characters"));
  }
  ASSIGN_OR_RETURN(const Key key, MakeKey());
  const Draft draft{absl::StrCat("ablate ", name), now - kClockSkew, now + kAuthorityLifetime};
  ASSIGN_OR_RETURN(const Certificate certificate, Begin(draft, key, nullptr));
  X509* const x509 = certificate.get();
  RETURN_IF_ERROR(AddExtensions(x509, x509, kAuthorityExtensions));
  return Sign(certificate, key, key);
}

absl::StatusOr<CertifiedKey> MakeServerCertificate(const CertifiedKey& authority,
                                                   const std::vector<std::string>& hosts,
                                                   absl::Time now, absl::Duration lifetime) {
  ASSIGN_OR_RETURN(const std::vector<text::Host> names, ParseHosts(hosts));
  ASSIGN_OR_RETURN(const CertificateFacts facts, CheckAuthority(authority, now));
  ASSIGN_OR_RETURN(const Certificate issuer, ParseCertificate(authority.certificate));
  ASSIGN_OR_RETURN(const Key signer, ParseKey(authority.key));
  ASSIGN_OR_RETURN(const Key key, MakeKey());
  // No authority has this name: a certificate whose subject equals its issuer looks self-signed.
  const Draft draft{"ablated", now - kClockSkew, std::min(now + lifetime, facts.not_after)};
  ASSIGN_OR_RETURN(const Certificate certificate, Begin(draft, key, issuer.get()));
  X509* const x509 = certificate.get();
  RETURN_IF_ERROR(AddNames(x509, names));
  RETURN_IF_ERROR(AddExtensions(x509, issuer.get(), kServerExtensions));
  return Sign(certificate, key, signer);
}

}  // namespace ablate::access
