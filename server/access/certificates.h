// Makes this server's own certificate authority, and server certificates that it signs. Nothing
// here is on disk; see tls_folder.h. All functions are pure except for random numbers, and
// thread-safe.
#ifndef ABLATE_SERVER_ACCESS_CERTIFICATES_H_
#define ABLATE_SERVER_ACCESS_CERTIFICATES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace ablate::access {

// A certificate and its private key, both PEM. Keys use the curve P-256.
struct CertifiedKey {
  std::string certificate;
  std::string key;  // a secret
};

// Join files hold the authority, so this is how long they can be used.
inline constexpr absl::Duration kAuthorityLifetime = absl::Hours(24 * 3652);

// Browsers and operating systems accept server certificates of at most 398 days; within that bound,
// pages and proxies with this certificate work everywhere. Clients don't check revocation, so this
// is also how long a key that was stolen unnoticed is of use. A renewal needs no new join files.
inline constexpr absl::Duration kServerLifetime = absl::Hours(24 * 397);

// Certificates become valid this long before they are made, because clients' clocks may be behind.
inline constexpr absl::Duration kClockSkew = absl::Hours(1);

inline constexpr size_t kMaxHosts = 64;

// Returns the names by which a server is always reached on its own machine: localhost, 127.0.0.1
// and ::1.
const std::vector<std::string>& LocalHosts();

// Makes a new key and its self-signed certificate, named "ablate NAME", which may sign server
// certificates but no further authorities. INVALID_ARGUMENT unless `name` is printable and has 1 to
// 57 characters, as many as X.509 leaves.
absl::StatusOr<CertifiedKey> MakeAuthority(absl::string_view name, absl::Time now);

// Makes a new key and a certificate for TLS servers, signed by the authority, for `hosts` (DNS
// names or IP addresses) and LocalHosts(). It ends `lifetime` after `now`, or with the authority if
// that is earlier. INVALID_ARGUMENT names a host that isn't valid or that no client can connect to
// (0.0.0.0); FAILED_PRECONDITION if the authority has expired or its key belongs to another
// certificate.
absl::StatusOr<CertifiedKey> MakeServerCertificate(const CertifiedKey& authority,
                                                   const std::vector<std::string>& hosts,
                                                   absl::Time now,
                                                   absl::Duration lifetime = kServerLifetime);

}  // namespace ablate::access

#endif  // ABLATE_SERVER_ACCESS_CERTIFICATES_H_
