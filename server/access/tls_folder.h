// The certificates of a shared server on disk: `tls/` in its home.
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

// The folder has mode 0700, keys 0600.
struct TlsFiles {
  explicit TlsFiles(const std::string& tls_folder);
  std::string folder;
  std::string authority_certificate;  // authority.pem: also in every join file
  std::string authority_key;       // authority.key: for renewals alone, and may be kept elsewhere
  std::string server_certificate;  // server.pem
  std::string server_key;          // server.key
  // server.old.pem and server.old.key: the pair that KeepFresh replaced last.
  std::string old_certificate;
  std::string old_key;
};

// What a server serves with.
struct ServerTls {
  std::string authority;  // its certificate in PEM
  CertifiedKey server;
  tls::CertificateFacts facts;  // of the server's certificate
};

// Functions below are for one machine's processes: they wait for each other by a lock on the
// folder, and are thread-safe. Errors name the file and what is wrong with it.

// Makes the folder with a new authority, which has this machine's name, and a server's certificate
// for `hosts` (see MakeServerCertificate). All or nothing of it is there, also after a crash: what
// that leaves is a folder beside, "tls.XXXXXX", which nobody reads. ALREADY_EXISTS if there is one,
// for every join file holds its authority.
absl::StatusOr<ServerTls> Initialize(const std::string& tls_folder,
                                     const std::vector<std::string>& hosts, absl::Time now);

// Returns what a server serves with: the certificate, or, if that one is not valid `now`, the one
// that KeepFresh replaced last, if that is: a renewal by a clock that was ahead makes a
// certificate that is not valid yet once the clock is right. NOT_FOUND if the folder or a file is
// missing, FAILED_PRECONDITION if others may enter it or read a key, a file is no PEM, a key is not
// its certificate's, the server's certificate is not the authority's, or one of them is not valid
// `now`.
absl::StatusOr<ServerTls> Load(const std::string& tls_folder, absl::Time now);

// Whether a new certificate is for what the old one was for, too.
enum class OldNames { kKeep, kDrop };

// Gives the server a new key and certificate by the same authority, so that join files stay valid;
// for `hosts`, LocalHosts() and, as far as it can be read, what the old one was for. A server that
// runs keeps what it has loaded. What KeepFresh replaced before goes. The old ones are there, or
// the new, also after a crash; the old ones may have expired, be damaged or missing, the authority
// may not. Errors as Load's and MakeServerCertificate's.
absl::StatusOr<ServerTls> Renew(const std::string& tls_folder,
                                const std::vector<std::string>& hosts, absl::Time now,
                                OldNames old_names = OldNames::kKeep);

// A server renews its certificate by itself once it has less than this left: time enough to see a
// warning where that can't be.
inline constexpr absl::Duration kRenewBefore = absl::Hours(24 * 30);

enum class Upkeep {
  kFine,            // kRenewBefore is left, or more
  kWaits,           // there is less left, and the clock is not to be relied on
  kRenewed,         // there was less left, or none
  kNeedsKey,        // there is less left, and no authority.key
  kNeedsAuthority,  // there is less left of the authority, and a certificate can't outlive it
};

// Says if `now` is relied on. A clock that was just set may be set back.
enum class Clock { kSettled, kDoubtful };

// Renews the server's certificate, for `hosts`, too, if that is due and can be; by a doubtful clock
// only if none is valid `now`. Errors as Renew's and, of a certificate that can't be read, as
// Load's.
absl::StatusOr<Upkeep> KeepFresh(const std::string& tls_folder,
                                 const std::vector<std::string>& hosts, absl::Time now,
                                 Clock clock = Clock::kSettled);

}  // namespace ablate::access

#endif  // ABLATE_SERVER_ACCESS_TLS_FOLDER_H_
