#include "base/certificate_facts.h"

#include <arpa/inet.h>
#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/openssl.h"
#include "base/status_macros.h"

namespace ablate::tls {
namespace {

using Names = Owned<GENERAL_NAMES, GENERAL_NAMES_free>;

std::string CommonName(const X509_NAME* name) {
  const int index = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (index < 0) return "";
  unsigned char* utf8 = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)));
  if (size < 0) return "";
  std::string text(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return text;
}

std::string Bytes(const ASN1_STRING* text) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

std::string AddressText(const std::string& bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  if (bytes.size() == 4) inet_ntop(AF_INET, bytes.data(), text, sizeof text);
  if (bytes.size() == 16) inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

std::vector<std::string> AlternativeNames(const X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> texts;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) texts.push_back(Bytes(name->d.dNSName));
    if (name->type == GEN_IPADD) texts.push_back(AddressText(Bytes(name->d.iPAddress)));
  }
  return texts;
}

absl::StatusOr<absl::Time> ReadTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return OpenSslError("read the time of a certificate");
  return absl::FromTM(parts, absl::UTCTimeZone());
}

absl::StatusOr<std::string> Fingerprint(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) {
    return OpenSslError("hash a certificate");
  }
  return absl::StrJoin(digest, digest + size, ":", [](std::string* out, unsigned char byte) {
    absl::StrAppendFormat(out, "%02X", byte);
  });
}

}  // namespace

absl::StatusOr<CertificateFacts> ReadFacts(absl::string_view certificate_pem) {
  ASSIGN_OR_RETURN(const Certificate certificate, ParseCertificate(certificate_pem));
  X509* const x509 = certificate.get();
  ASSIGN_OR_RETURN(const absl::Time from, ReadTime(X509_get0_notBefore(x509)));
  ASSIGN_OR_RETURN(const absl::Time to, ReadTime(X509_get0_notAfter(x509)));
  ASSIGN_OR_RETURN(std::string fingerprint, Fingerprint(x509));
  CertificateFacts facts;
  facts.subject = CommonName(X509_get_subject_name(x509));
  facts.issuer = CommonName(X509_get_issuer_name(x509));
  facts.names = AlternativeNames(x509);
  facts.not_before = from;
  facts.not_after = to;
  facts.authority = X509_check_ca(x509) == 1;
  facts.fingerprint = std::move(fingerprint);
  ERR_clear_error();
  return facts;
}

absl::Status CheckKey(absl::string_view certificate_pem, absl::string_view key_pem) {
  ASSIGN_OR_RETURN(const Certificate certificate, ParseCertificate(certificate_pem));
  ASSIGN_OR_RETURN(const Key key, ParseKey(key_pem));
  const bool match = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (match) return absl::OkStatus();
  return absl::FailedPreconditionError("the key is not the certificate's");
}

absl::Status CheckIssued(absl::string_view authority_pem, absl::string_view certificate_pem) {
  ASSIGN_OR_RETURN(const Certificate authority, ParseCertificate(authority_pem));
  ASSIGN_OR_RETURN(const Certificate certificate, ParseCertificate(certificate_pem));
  // The first function checks names, identifiers and that the authority may sign; the second checks
  // the signature.
  const bool issued = X509_check_ca(authority.get()) == 1 &&
                      X509_check_issued(authority.get(), certificate.get()) == X509_V_OK &&
                      X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  ERR_clear_error();
  if (issued) return absl::OkStatus();
  return absl::FailedPreconditionError("the certificate was not made by the authority");
}

absl::Status CheckTimes(const CertificateFacts& facts, absl::Time now) {
  if (now > facts.not_after) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the certificate expired on ", FormatDate(facts.not_after), "; it is ", FormatDate(now)));
  }
  if (now < facts.not_before) {
    return absl::FailedPreconditionError(
        absl::StrCat("the certificate is not valid before ", FormatDate(facts.not_before),
                     "; by this machine's clock it is ", FormatDate(now)));
  }
  return absl::OkStatus();
}

std::string FormatDate(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

std::string Describe(const CertificateFacts& facts) {
  return absl::StrCat("names        ", absl::StrJoin(facts.names, ", "), "\nmade by      ",
                      facts.issuer, "\nvalid from   ", FormatDate(facts.not_before),
                      "\nvalid until  ", FormatDate(facts.not_after), "\nSHA-256      ",
                      facts.fingerprint, "\n");
}

}  // namespace ablate::tls
