// Stores the certificates of a shared server: `tls/` in its home.
#ifndef ABLATE_SERVER_ACCESS_TLS_FOLDER_H_
#define ABLATE_SERVER_ACCESS_TLS_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/certificate_facts.h"
#include "server/access/certificates.h"

namespace ablate::access {

// Paths in the folder, which has mode 0700; keys have 0600.
struct TlsFiles {
  explicit TlsFiles(const std::string& tls_folder);
  std::string folder;
  std::string authority_certificate;  // authority.pem, copied into every join file
  std::string authority_key;       // authority.key, needed for renewals only; may be kept elsewhere
  std::string server_certificate;  // server.pem
  std::string server_key;          // server.key
  // server.old.pem and server.old.key: the pair that KeepFresh last replaced.
  std::string old_certificate;
  std::string old_key;
};

// Certificates and key that a server uses for TLS.
struct ServerTls {
  std::string authority;  // its authority's certificate in PEM
  CertifiedKey server;
  tls::CertificateFacts facts;  // facts of the server's certificate
};

// The functions below serve the processes of one machine: they exclude each other by a lock on the
// folder, and are thread-safe. Errors name the file and its problem.

// Creates the folder with a new authority, named after this machine, and a server certificate for
// `hosts` (see MakeServerCertificate). All of it exists afterwards or nothing, also after a crash,
// which may leave a sibling folder "tls.XXXXXX" that nobody reads. ALREADY_EXISTS if there is a
// folder, because every join file holds its authority.
absl::StatusOr<ServerTls> Initialize(const std::string& tls_folder,
                                     const std::vector<std::string>& hosts, absl::Time now);

// Returns the certificate to serve with. If the present one isn't valid at `now` but the one that
// KeepFresh last replaced is, returns the latter: a renewal by a clock that was ahead makes a
// certificate that isn't valid yet once the clock is right. NOT_FOUND if the folder or a file is
// missing. FAILED_PRECONDITION if others may enter the folder or read a key, a file isn't PEM, a
// key doesn't belong to its certificate, the authority didn't sign the server's certificate, or one
// of them isn't valid at `now`.
absl::StatusOr<ServerTls> Load(const std::string& tls_folder, absl::Time now);

// Says if a new certificate keeps the names of the old one.
enum class OldNames { kKeep, kDrop };

// Gives the server a new key and certificate by the same authority, so that join files stay valid,
// for `hosts`, LocalHosts() and, if readable, the old certificate's names. A running server keeps
// what it has loaded. Removes the pair that KeepFresh replaced earlier. Leaves the old pair or the
// new one, also after a crash. The old pair may be expired, damaged or missing; the authority must
// not. Errors as Load's and MakeServerCertificate's.
absl::StatusOr<ServerTls> Renew(const std::string& tls_folder,
                                const std::vector<std::string>& hosts, absl::Time now,
                                OldNames old_names = OldNames::kKeep);

// A server renews its certificate itself once less time than this is left, which leaves time for a
// person to see a warning if renewal fails.
inline constexpr absl::Duration kRenewBefore = absl::Hours(24 * 30);

enum class Upkeep {
  kFine,            // kRenewBefore or more is left
  kWaits,           // less is left, and the clock isn't reliable
  kRenewed,         // less, or nothing, was left
  kNeedsKey,        // less is left, and authority.key is missing
  kNeedsAuthority,  // the authority has less left, and a certificate can't outlive it
};

// Says if `now` is reliable. A clock that was just set may be set back.
enum class Clock { kSettled, kDoubtful };

// Renews the server's certificate, adding `hosts`, if that is due and possible; with a doubtful
// clock only if no certificate is valid at `now`. Errors as Renew's, and as Load's if a certificate
// can't be read.
absl::StatusOr<Upkeep> KeepFresh(const std::string& tls_folder,
                                 const std::vector<std::string>& hosts, absl::Time now,
                                 Clock clock = Clock::kSettled);

}  // namespace ablate::access

#endif  // ABLATE_SERVER_ACCESS_TLS_FOLDER_H_
