// Reads X.509 certificates and checks that keys and certificates belong together.
#ifndef ABLATE_BASE_CERTIFICATE_FACTS_H_
#define ABLATE_BASE_CERTIFICATE_FACTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::tls {

struct CertificateFacts {
  std::string subject;             // subject's common name
  std::string issuer;              // issuer's common name
  std::vector<std::string> names;  // DNS names and IP addresses that it is valid for, in its order
  absl::Time not_before;           // whole seconds, as all times in certificates
  absl::Time not_after;            // the last second in which it is valid
  bool authority = false;          // may sign others
  std::string fingerprint;  // SHA-256 of all of it: 32 pairs of upper-case hex digits, with colons
};

// Returns the facts of the first certificate in the text; INVALID_ARGUMENT if there is none.
absl::StatusOr<CertificateFacts> ReadFacts(absl::string_view certificate_pem);

// Returns OK if the private key belongs to the certificate; otherwise FAILED_PRECONDITION, or
// INVALID_ARGUMENT if one of the two texts can't be read.
absl::Status CheckKey(absl::string_view certificate_pem, absl::string_view key_pem);

// Returns OK if the authority signed the certificate and may sign; otherwise FAILED_PRECONDITION.
// Validity times aren't checked.
absl::Status CheckIssued(absl::string_view authority_pem, absl::string_view certificate_pem);

// Returns OK if the certificate is valid at `now`; otherwise FAILED_PRECONDITION with the date.
absl::Status CheckTimes(const CertificateFacts& facts, absl::Time now);

// Formats as "2027-12-25 14:03:12 UTC".
std::string FormatDate(absl::Time time);

// Returns lines for people, with the names, the dates and the fingerprint.
std::string Describe(const CertificateFacts& facts);

}  // namespace ablate::tls

#endif  // ABLATE_BASE_CERTIFICATE_FACTS_H_
