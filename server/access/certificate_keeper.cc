#include "server/access/certificate_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tls/certificate_facts.h"

namespace ablate::access {
namespace {

constexpr absl::Duration kLookEvery = absl::Hours(24);

// What somebody should do; empty if nothing.
std::string ToDo(Upkeep upkeep) {
  switch (upkeep) {
    case Upkeep::kFine:
    case Upkeep::kRenewed:
      return "";
    case Upkeep::kNeedsKey:
      return "the server's certificate ends soon, and is not renewed for tls/authority.key is not "
             "there: put it back for a while, and run `ablate admin renew`";
    case Upkeep::kNeedsAuthority:
      return "the server's certificate ends soon, with its authority: begin with a new one, and "
             "hand out new join files (docs/security.md)";
  }
  return "";
}

}  // namespace

CertificateKeeper::CertificateKeeper(Sharing* sharing, CertificateKeeperOptions options)
    : sharing_(sharing), options_(std::move(options)) {}

absl::StatusOr<ServerTls> CertificateKeeper::Load() {
  MutexLock lock(&mutex_);
  const absl::Time now = options_.now();
  next_ = now + kLookEvery;
  Renew(now);
  absl::StatusOr<ServerTls> tls = sharing_->LoadTls(now);
  if (tls.ok()) fingerprint_ = tls->facts.fingerprint;
  return tls;
}

bool CertificateKeeper::due() const {
  MutexLock lock(&mutex_);
  return options_.now() >= next_;
}

void CertificateKeeper::Check() {
  MutexLock lock(&mutex_);
  const absl::Time now = options_.now();
  if (now < next_) return;
  next_ = now + kLookEvery;
  Renew(now);
  Use(now);
}

void CertificateKeeper::Reload() {
  MutexLock lock(&mutex_);
  Use(options_.now());
}

void CertificateKeeper::Renew(absl::Time now) {
  const absl::StatusOr<Upkeep> upkeep = sharing_->KeepFresh(now);
  if (!upkeep.ok()) {
    options_.warn(
        absl::StrCat("the server's certificate is not looked after: ", upkeep.status().message()));
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
    options_.log(absl::StrCat("who connects is served with the certificate for ",
                              absl::StrJoin(tls->facts.names, ", "), " until ",
                              tls::FormatDate(tls->facts.not_after)));
    return;
  }
  options_.warn(
      absl::StrCat("the server goes on with the certificate that it has: ", used.message()));
}

}  // namespace ablate::access
