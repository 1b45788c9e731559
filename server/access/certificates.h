// A certificate authority of this server's own, and the server's certificate made of it. Nothing
// here is on disk: see tls_folder.h. All functions are pure but for random numbers, and
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

// A certificate and its private key, both PEM. Keys are of the curve P-256.
struct CertifiedKey {
  std::string certificate;
  std::string key;  // a secret
};

// As long as join files that hold the authority can be used.
inline constexpr absl::Duration kAuthorityLifetime = absl::Hours(24 * 3652);

// What browsers and operating systems accept of a server is 398 days at most, so that a page or a
// proxy with this certificate works everywhere. No client looks at revocations: a server's key that
// was stolen unnoticed is of use until then and no longer. A renewal needs no new join files.
inline constexpr absl::Duration kServerLifetime = absl::Hours(24 * 397);

// Certificates are valid from so long before they were made: clocks of clients are behind at times.
inline constexpr absl::Duration kClockSkew = absl::Hours(1);

inline constexpr size_t kMaxHosts = 64;

// What a server is always reached by on its own machine: localhost, 127.0.0.1 and ::1.
const std::vector<std::string>& LocalHosts();

// A new key and its self-signed certificate, which may sign servers' certificates and nothing
// below. It is called "ablate NAME"; INVALID_ARGUMENT unless `name` is printable and has 1 to 57
// characters, as many as X.509 leaves.
absl::StatusOr<CertifiedKey> MakeAuthority(absl::string_view name, absl::Time now);

// A new key and its certificate for TLS servers, by the authority, for `hosts` (DNS names or IP
// addresses) and LocalHosts(). It ends `lifetime` after `now`, but not after the authority.
// INVALID_ARGUMENT names a host that is none, or that no client can connect to (0.0.0.0);
// FAILED_PRECONDITION if the authority has expired or its key is another's.
absl::StatusOr<CertifiedKey> MakeServerCertificate(const CertifiedKey& authority,
                                                   const std::vector<std::string>& hosts,
                                                   absl::Time now,
                                                   absl::Duration lifetime = kServerLifetime);

}  // namespace ablate::access

#endif  // ABLATE_SERVER_ACCESS_CERTIFICATES_H_
