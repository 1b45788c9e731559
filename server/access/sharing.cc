#include "server/access/sharing.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/host.h"
#include "base/status_macros.h"

namespace ablate::access {
namespace {

absl::Status NotShared() {
  return absl::FailedPreconditionError(
      "this server isn't shared yet. Run `ablate admin init HOST:PORT` first");
}

// Returns the names for the server's certificate.
std::vector<std::string> NamesOf(const std::string& host, const std::vector<std::string>& hosts) {
  std::vector<std::string> names = {host};
  names.insert(names.end(), hosts.begin(), hosts.end());
  return names;
}

}  // namespace

Sharing::Sharing(const std::string& home)
    : tls_folder_(absl::StrCat(home, "/tls")),
      address_file_(absl::StrCat(home, "/shared-address")) {}

absl::StatusOr<std::unique_ptr<Sharing>> Sharing::Open(const std::string& home) {
  std::unique_ptr<Sharing> sharing(new Sharing(home));
  storage::AccessOptions options;
  options.path = absl::StrCat(home, "/access.db");
  options.on_end = [sharing = sharing.get()](const std::vector<std::string>& tokens) {
    std::function<void(const std::set<std::string>&)> on_end;
    {
      MutexLock lock(&sharing->mutex_);
      on_end = sharing->on_end_;
    }
    if (on_end != nullptr) on_end({tokens.begin(), tokens.end()});
  };
  ASSIGN_OR_RETURN(sharing->store_, storage::AccessStore::Open(std::move(options)));
  return sharing;
}

void Sharing::OnTokensEnd(std::function<void(const std::set<std::string>& tokens)> on_end) {
  MutexLock lock(&mutex_);
  on_end_ = std::move(on_end);
}

absl::Status Sharing::Initialize(const std::string& address, const std::vector<std::string>& hosts,
                                 const std::string& admin, absl::Time now) {
  const auto reached_at = text::ParseHostPort(address);
  if (!reached_at.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("address: ", reached_at.status().message(), "; expected HOST:PORT"));
  }
  // Existing users stay; lost parts of the rest are made again.
  const bool has_users = store_->HasUsers();
  if (has_users && FindEntrance(now).ok()) {
    return absl::FailedPreconditionError(
        "this server is shared already. `ablate admin renew` makes a new certificate");
  }
  if (has_users) {
    const auto user = store_->GetUser(admin);
    if (!user.ok() || user->role != storage::Role::kAdmin) {
      return absl::FailedPreconditionError(absl::StrCat(
          "user: ", admin, " isn't an admin; expected one of this server's admins (--user NAME)"));
    }
  }
  const std::vector<std::string> names = NamesOf(reached_at->host.text, hosts);
  auto tls = access::Initialize(tls_folder_, names, now);
  // An earlier attempt may have come this far, for another address.
  if (absl::IsAlreadyExists(tls.status())) {
    tls = access::Renew(tls_folder_, names, now, OldNames::kDrop);
  }
  if (!tls.ok()) return tls.status();
  const absl::Status written = process::ReplaceFile(address_file_, absl::StrCat(address, "\n"));
  if (!written.ok() || has_users) return written;
  return store_->Initialize(admin, now).status();
}

absl::StatusOr<std::string> Sharing::ReadHost() const {
  ASSIGN_OR_RETURN(const auto address, ReadAddress());
  auto reached_at = text::ParseHostPort(address);
  if (reached_at.ok()) return std::move(reached_at->host.text);
  return absl::DataLossError(absl::StrCat(address_file_, ": ", reached_at.status().message()));
}

absl::StatusOr<tls::CertificateFacts> Sharing::Renew(const std::vector<std::string>& hosts,
                                                     absl::Time now, OldNames old_names) {
  ASSIGN_OR_RETURN(const auto host, ReadHost());
  ASSIGN_OR_RETURN(auto tls, access::Renew(tls_folder_, NamesOf(host, hosts), now, old_names));
  std::function<void()> on_renewal;
  {
    MutexLock lock(&mutex_);
    on_renewal = on_renewal_;
  }
  if (on_renewal != nullptr) on_renewal();
  return std::move(tls.facts);
}

void Sharing::OnRenewal(std::function<void()> on_renewal) {
  MutexLock lock(&mutex_);
  on_renewal_ = std::move(on_renewal);
}

absl::StatusOr<Upkeep> Sharing::KeepFresh(absl::Time now, Clock clock) {
  ASSIGN_OR_RETURN(const auto host, ReadHost());
  return access::KeepFresh(tls_folder_, {host}, now, clock);
}

absl::StatusOr<std::string> Sharing::ReadAddress() const {
  const std::string content = process::ReadWholeFile(address_file_);
  const absl::string_view address = absl::StripAsciiWhitespace(content);
  if (address.empty() || !store_->HasUsers()) return NotShared();
  return std::string(address);
}

absl::StatusOr<Entrance> Sharing::FindEntrance(absl::Time now) const {
  ASSIGN_OR_RETURN(auto address, ReadAddress());
  ASSIGN_OR_RETURN(auto host, ReadHost());
  ASSIGN_OR_RETURN(auto tls, access::Load(tls_folder_, now));
  return Entrance{std::move(address), std::move(host), std::move(tls.authority)};
}

absl::StatusOr<ServerTls> Sharing::LoadTls(absl::Time now) const {
  if (const auto address = ReadAddress(); !address.ok()) return address.status();
  return access::Load(tls_folder_, now);
}

}  // namespace ablate::access
