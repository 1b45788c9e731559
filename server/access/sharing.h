// State of a shared server: who may reach it, with which certificate, and at which address.
#ifndef ABLATE_SERVER_ACCESS_SHARING_H_
#define ABLATE_SERVER_ACCESS_SHARING_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/access/tls_folder.h"
#include "storage/access_store.h"

namespace ablate::access {

// The server's part of a join file.
struct Entrance {
  std::string address;      // HOST:PORT
  std::string server_name;  // HOST, without brackets
  std::string authority;    // its authority's certificate in PEM
};

// Manages the sharing of one server in its home: access.db, tls/ and shared-address. Thread-safe.
class Sharing {
 public:
  // Opens access.db, or creates it. Errors as AccessStore's.
  static absl::StatusOr<std::unique_ptr<Sharing>> Open(const std::string& home);

  storage::AccessStore& store() { return *store_; }
  // Sets the callback for tokens that a change has ended, replacing the previous one; null removes
  // it. The callback must not change users or tokens.
  void OnTokensEnd(std::function<void(const std::set<std::string>& tokens)> on_end);

  // Makes the authority, the server's certificate for the address's host and `hosts`, and the first
  // user, an admin. Completes an earlier attempt, or remakes lost parts: if there are users,
  // `admin` must be one of them and an admin. INVALID_ARGUMENT for an invalid address or host;
  // FAILED_PRECONDITION if nothing is missing.
  absl::Status Initialize(const std::string& address, const std::vector<std::string>& hosts,
                          const std::string& admin, absl::Time now);
  // Makes a new certificate by the same authority, for the host where clients reach the server,
  // `hosts` and the old certificate's names (tls_folder.h). FAILED_PRECONDITION before Initialize.
  absl::StatusOr<tls::CertificateFacts> Renew(const std::vector<std::string>& hosts, absl::Time now,
                                              OldNames old_names = OldNames::kKeep);
  // Sets the callback for a certificate made by Renew, replacing the previous one; null removes it.
  void OnRenewal(std::function<void()> on_renewal);
  // Renews the certificate if that is due (tls_folder.h). FAILED_PRECONDITION before Initialize.
  absl::StatusOr<Upkeep> KeepFresh(absl::Time now, Clock clock);

  // Returns the server's part of a join file. FAILED_PRECONDITION before Initialize; errors as
  // tls_folder.h's Load.
  absl::StatusOr<Entrance> FindEntrance(absl::Time now) const;
  absl::StatusOr<ServerTls> LoadTls(absl::Time now) const;
  // Returns HOST:PORT, where clients reach the server. FAILED_PRECONDITION before Initialize.
  absl::StatusOr<std::string> ReadAddress() const;

 private:
  explicit Sharing(const std::string& home);
  absl::StatusOr<std::string> ReadHost() const;  // host of the address, without brackets

  const std::string tls_folder_;
  const std::string address_file_;
  Mutex mutex_;
  std::function<void(const std::set<std::string>&)> on_end_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_renewal_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<storage::AccessStore> store_;
};

}  // namespace ablate::access

#endif  // ABLATE_SERVER_ACCESS_SHARING_H_
