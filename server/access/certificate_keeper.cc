#include "server/access/certificate_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/certificate_facts.h"

namespace ablate::access {
namespace {

constexpr absl::Duration kLookEvery = absl::Hours(24);
constexpr absl::Duration kDrift = absl::Minutes(10);

// Returns what an administrator should do; empty if nothing.
std::string ToDo(Upkeep upkeep) {
  switch (upkeep) {
    case Upkeep::kFine:
    case Upkeep::kWaits:
    case Upkeep::kRenewed:
      return "";
    case Upkeep::kNeedsKey:
      return "the server's certificate ends soon and can't be renewed, because tls/authority.key "
             "is missing. Put it back, and run `ablate admin renew`";
    case Upkeep::kNeedsAuthority:
      return "the server's certificate and its authority end soon. Make a new authority, and hand "
             "out new join files (docs/explanation/security.md)";
  }
  return "";
}

}  // namespace

CertificateKeeper::CertificateKeeper(Sharing* sharing, CertificateKeeperOptions options)
    : sharing_(sharing), options_(std::move(options)) {}

absl::StatusOr<ServerTls> CertificateKeeper::Load() {
  MutexLock lock(&mutex_);
  const absl::Time now = options_.now();
  settled_ = options_.elapsed() + kSettled;
  // A server that isn't shared: Renew would only warn with the same reason.
  if (!sharing_->ReadAddress().ok()) {
    if (const auto tls = sharing_->LoadTls(now); !tls.ok()) return tls.status();
  }
  Renew(now);
  absl::StatusOr<ServerTls> tls = sharing_->LoadTls(now);
  if (tls.ok()) fingerprint_ = tls->facts.fingerprint;
  return tls;
}

bool CertificateKeeper::due() const {
  MutexLock lock(&mutex_);
  return options_.elapsed() >= next_ || WasSet(options_.now());
}

void CertificateKeeper::Check() {
  MutexLock lock(&mutex_);
  const absl::Time now = options_.now();
  const bool was_set = WasSet(now);
  if (options_.elapsed() < next_ && !was_set) return;
  if (was_set) settled_ = options_.elapsed() + kSettled;
  Renew(now);
  Use(now);
}

void CertificateKeeper::Reload() {
  MutexLock lock(&mutex_);
  Use(options_.now());
}

bool CertificateKeeper::WasSet(absl::Time now) const {
  return absl::AbsDuration((now - looked_at_) - (options_.elapsed() - looked_)) > kDrift;
}

void CertificateKeeper::Renew(absl::Time now) {
  looked_at_ = now;
  looked_ = options_.elapsed();
  const Clock clock = looked_ >= settled_ ? Clock::kSettled : Clock::kDoubtful;
  const absl::StatusOr<Upkeep> upkeep = sharing_->KeepFresh(now, clock);
  const bool waits = upkeep.ok() && *upkeep == Upkeep::kWaits;
  next_ = waits ? settled_ : looked_ + kLookEvery;
  if (!upkeep.ok()) {
    options_.warn(absl::StrCat("the server's certificate isn't renewed automatically: ",
                               upkeep.status().message()));
    return;
  }
  if (*upkeep == Upkeep::kRenewed) options_.log("renewed the server's certificate");
  if (const std::string to_do = ToDo(*upkeep); !to_do.empty()) options_.warn(to_do);
}

void CertificateKeeper::Use(absl::Time now) {
  const absl::StatusOr<ServerTls> tls = sharing_->LoadTls(now);
  if (tls.ok() && tls->facts.fingerprint == fingerprint_) return;
  const absl::Status used = tls.ok() ? options_.use(*tls) : tls.status();
  if (used.ok()) {
    fingerprint_ = tls->facts.fingerprint;
    options_.log(absl::StrCat("new connections get the certificate for ",
                              absl::StrJoin(tls->facts.names, ", "), " until ",
                              tls::FormatDate(tls->facts.not_after)));
    return;
  }
  options_.warn(absl::StrCat("the server keeps its present certificate: ", used.message()));
}

}  // namespace ablate::access
