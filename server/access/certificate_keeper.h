// Keeps the certificate of a shared server valid while it runs.
#ifndef ABLATE_SERVER_ACCESS_CERTIFICATE_KEEPER_H_
#define ABLATE_SERVER_ACCESS_CERTIFICATE_KEEPER_H_

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/access/sharing.h"
#include "server/access/tls_folder.h"

namespace ablate::access {

// All members must be set.
struct CertificateKeeperOptions {
  std::function<absl::Time()> now;
  // Returns the time since a fixed moment. No correction of the clock changes it, and it goes on
  // while the machine sleeps.
  std::function<absl::Duration()> elapsed;
  // Makes new connections use the certificate. Not called by Load.
  std::function<absl::Status(const ServerTls&)> use;
  // Receives one sentence: what was done, and what an administrator should do.
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> warn;
};

// Renews the certificate in time if possible, and puts the certificate on disk to use. A clock must
// have been settled for kSettled (not set, and the server running) before it may renew a
// certificate that is still valid. Thread-safe; every method may wait for the disk.
class CertificateKeeper {
 public:
  static constexpr absl::Duration kSettled = absl::Hours(6);
  // `sharing` must outlive this object.
  CertificateKeeper(Sharing* sharing, CertificateKeeperOptions options);

  // Returns the certificate; renews it first if it isn't valid. Errors as Sharing::LoadTls's, also
  // for an expired certificate that could not be renewed.
  absl::StatusOr<ServerTls> Load();
  // Returns true if a day has passed since the last check of the certificate, or the clock was set.
  bool due() const;
  // Checks the certificate if that is due, renews it if little time is left, and loads the files.
  // If they can't be used, logs a warning, and the server keeps the certificate that it has.
  void Check();
  // Loads the files now, after another process or call has changed them.
  void Reload();

 private:
  // Returns true if the clock was set since the last check by more than it drifts in a day.
  bool WasSet(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Renews the certificate and logs the outcome.
  void Renew(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts the certificate on disk to use if it differs from the present one.
  void Use(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Sharing* const sharing_;
  const CertificateKeeperOptions options_;
  // Held during loading and use, too, so that the newest certificate is used last.
  mutable Mutex mutex_;
  absl::Time looked_at_ ABSL_GUARDED_BY(mutex_);
  // Times by `elapsed`:
  absl::Duration looked_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  absl::Duration settled_ ABSL_GUARDED_BY(mutex_);   // when the clock becomes reliable
  std::string fingerprint_ ABSL_GUARDED_BY(mutex_);  // of the certificate in use
};

}  // namespace ablate::access

#endif  // ABLATE_SERVER_ACCESS_CERTIFICATE_KEEPER_H_
