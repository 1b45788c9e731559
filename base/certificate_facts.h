// What a certificate says, and whether keys and certificates belong together.
#ifndef ABLATE_TLS_CERTIFICATE_FACTS_H_
#define ABLATE_TLS_CERTIFICATE_FACTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::tls {

struct CertificateFacts {
  std::string subject;  // its common name
  std::string issuer;   // the common name of who signed it
  std::vector<std::string>
      names;                // the DNS names and IP addresses that it is for, as it lists them
  absl::Time not_before;    // whole seconds, as all times in certificates
  absl::Time not_after;     // the last second in which it is valid
  bool authority = false;   // may sign others
  std::string fingerprint;  // SHA-256 of all of it: 32 pairs of upper-case hex digits, with colons
};

// Of the first certificate in the text; INVALID_ARGUMENT if there is none.
absl::StatusOr<CertificateFacts> ReadFacts(absl::string_view certificate_pem);

// FAILED_PRECONDITION unless the private key is the one of the certificate; INVALID_ARGUMENT where
// one of them is none.
absl::Status CheckKey(absl::string_view certificate_pem, absl::string_view key_pem);

// FAILED_PRECONDITION unless the authority, which may, has signed the certificate. Does not look at
// times.
absl::Status CheckIssued(absl::string_view authority_pem, absl::string_view certificate_pem);

// FAILED_PRECONDITION, with the date, before and after the times between which it is valid.
absl::Status CheckTimes(const CertificateFacts& facts, absl::Time now);

// "2027-12-25 14:03:12 UTC".
std::string FormatDate(absl::Time time);

// For people: lines with the names, the dates and the fingerprint.
std::string Describe(const CertificateFacts& facts);

}  // namespace ablate::tls

#endif  // ABLATE_TLS_CERTIFICATE_FACTS_H_
