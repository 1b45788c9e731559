// Looks after the certificate of a shared server while it runs.
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

// All are set.
struct CertificateKeeperOptions {
  std::function<absl::Time()> now;
  // Time since some fixed moment, which no correction of the clock changes; goes on while the
  // machine sleeps.
  std::function<absl::Duration()> elapsed;
  // Has those who connect from now on served with it. Not called by Load.
  std::function<absl::Status(const ServerTls&)> use;
  // Told in a sentence what was done, and what somebody should do.
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> warn;
};

// Renews the certificate in time, if that can be, and has what is on disk used. By a clock that was
// just set, or with which the server has just started, nothing is renewed that is still valid: it
// has to last for kSettled. Thread-safe; all methods may wait for the disk.
class CertificateKeeper {
 public:
  static constexpr absl::Duration kSettled = absl::Hours(6);
  // The sharing must outlive it.
  CertificateKeeper(Sharing* sharing, CertificateKeeperOptions options);

  // Returns the certificate; renews it first if it is not valid. Errors as Sharing::LoadTls's, also
  // for one that has expired and could not be renewed.
  absl::StatusOr<ServerTls> Load();
  // Returns true if a day has passed since the last look at the certificate, or the clock was set.
  bool due() const;
  // Looks at the certificate if that is due, renews it if little time is left, and uses the files'.
  // If that can't be used, it warns, and the server keeps the certificate that it has.
  void Check();
  // Uses what is there, for somebody else has changed it.
  void Reload();

 private:
  // Returns true if the clock was set since the last look at it, by more than it drifts in a day.
  bool WasSet(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Says what became of it.
  void Renew(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // If it is another.
  void Use(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Sharing* const sharing_;
  const CertificateKeeperOptions options_;
  // Also held while it is loaded and used, so that the newest is used last.
  mutable Mutex mutex_;
  absl::Time looked_at_ ABSL_GUARDED_BY(mutex_);
  // By `elapsed`:
  absl::Duration looked_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  absl::Duration settled_ ABSL_GUARDED_BY(mutex_);   // from when on the clock is relied on
  std::string fingerprint_ ABSL_GUARDED_BY(mutex_);  // of the one that is used
};

}  // namespace ablate::access

#endif  // ABLATE_SERVER_ACCESS_CERTIFICATE_KEEPER_H_
