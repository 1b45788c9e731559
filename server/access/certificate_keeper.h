// Looks after the certificate of a shared server while it runs.
#ifndef ABLATE_SERVER_ACCESS_CERTIFICATE_KEEPER_H_
#define ABLATE_SERVER_ACCESS_CERTIFICATE_KEEPER_H_

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/access/sharing.h"
#include "server/access/tls_folder.h"
#include "sync/mutex.h"

namespace ablate::access {

// All are set.
struct CertificateKeeperOptions {
  std::function<absl::Time()> now;
  // Has those who connect from now on served with it. Not called by Load.
  std::function<absl::Status(const ServerTls&)> use;
  // Told in a sentence what was done, and what somebody should do.
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> warn;
};

// Renews the certificate in time, if that can be, and has what is on disk used. Thread-safe; all
// methods may wait for the disk.
class CertificateKeeper {
 public:
  // The sharing must outlive it.
  CertificateKeeper(Sharing* sharing, CertificateKeeperOptions options);

  // Renewed first, if that is due. Errors as Sharing::LoadTls's, also of what has expired and could
  // not be renewed.
  absl::StatusOr<ServerTls> Load();
  // A day has passed since it was looked at.
  bool due() const;
  // Looks at it if that is due: renews it as Load does, and uses what is there then. What can't be
  // used is warned of, and the server goes on with what it has.
  void Check();
  // Uses what is there, for somebody else has changed it.
  void Reload();

 private:
  // Says what became of it.
  void Renew(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // If it is another.
  void Use(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Sharing* const sharing_;
  const CertificateKeeperOptions options_;
  // Also held while it is loaded and used, so that the newest is used last.
  mutable Mutex mutex_;
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string fingerprint_ ABSL_GUARDED_BY(mutex_);  // of the one that is used
};

}  // namespace ablate::access

#endif  // ABLATE_SERVER_ACCESS_CERTIFICATE_KEEPER_H_
