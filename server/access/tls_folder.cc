#include "server/access/tls_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/certificate_facts.h"
#include "base/file.h"
#include "base/private_file.h"
#include "base/private_folder.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace ablate::access {
namespace {

using process::Readers;
using tls::CertificateFacts;
using tls::CheckIssued;
using tls::CheckKey;
using tls::CheckTimes;
using tls::ReadFacts;

constexpr size_t kMaxFileBytes = 64 << 10;

// Returns the name of the draft in which a renewal writes `file`.
std::string DraftOf(const std::string& file) { return absl::StrCat(file, ".new"); }

absl::Status Annotated(const std::string& file, const absl::Status& status) {
  if (status.ok()) return status;
  // A wrong file isn't a wrong argument of the caller.
  const absl::StatusCode code = status.code() == absl::StatusCode::kInvalidArgument
                                    ? absl::StatusCode::kFailedPrecondition
                                    : status.code();
  return absl::Status(code, absl::StrCat(file, ": ", status.message()));
}

// Locks the folder until the descriptor is closed. NOT_FOUND if there is no folder.
absl::StatusOr<process::FileDescriptor> Lock(const std::string& folder) {
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0 && errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat(
        "folder ", folder, " doesn't exist. Make certificates with `ablate admin init`"));
  }
  RETURN_IF_ERROR(process::CheckPrivateFolder(folder));
  process::FileDescriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.open() || flock(opened.get(), LOCK_EX) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock folder ", folder));
  }
  return opened;
}

// Reads a certificate and its key. Checks the key's file first, because its mode matters most.
absl::StatusOr<CertifiedKey> ReadPair(const std::string& certificate_file,
                                      const std::string& key_file) {
  ASSIGN_OR_RETURN(std::string key,
                   process::ReadBoundedFile(key_file, kMaxFileBytes, Readers::kOwner));
  ASSIGN_OR_RETURN(std::string certificate,
                   process::ReadBoundedFile(certificate_file, kMaxFileBytes, Readers::kAll));
  return CertifiedKey{std::move(certificate), std::move(key)};
}

absl::Status CheckPair(const CertifiedKey& pair, const std::string& certificate_file,
                       const std::string& key_file) {
  const absl::StatusOr<CertificateFacts> facts = ReadFacts(pair.certificate);
  if (!facts.ok()) return Annotated(certificate_file, facts.status());
  const absl::Status match = CheckKey(pair.certificate, pair.key);
  if (absl::IsFailedPrecondition(match)) {
    return absl::FailedPreconditionError(
        absl::StrCat(key_file, " isn't the key of the certificate in ", certificate_file,
                     ". Restore the pair from a backup"));
  }
  return Annotated(key_file, match);
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", from, " to ", to));
}

// Completes a renewal that was stopped between its two renames: the key is in place, and the whole
// draft of the certificate is moved now. Leaves any other draft alone.
absl::Status FinishRenewal(const TlsFiles& files) {
  const std::string draft = DraftOf(files.server_certificate);
  if (::access(draft.c_str(), F_OK) != 0) return absl::OkStatus();
  const absl::StatusOr<CertifiedKey> renewed = ReadPair(draft, files.server_key);
  if (!renewed.ok() || !CheckKey(renewed->certificate, renewed->key).ok()) return absl::OkStatus();
  RETURN_IF_ERROR(Rename(draft, files.server_certificate));
  return process::SyncFolder(files.folder);
}

// Checks the content of all files; `file` and `key_file` are those of `server`.
absl::StatusOr<ServerTls> Check(const TlsFiles& files, std::string authority, CertifiedKey server,
                                const std::string& file, const std::string& key_file,
                                absl::Time now) {
  RETURN_IF_ERROR(CheckPair(server, file, key_file));
  const absl::StatusOr<CertificateFacts> authority_facts = ReadFacts(authority);
  if (!authority_facts.ok()) {
    return Annotated(files.authority_certificate, authority_facts.status());
  }
  if (absl::Status issued = CheckIssued(authority, server.certificate); !issued.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("the certificate in ", file,
                                                      " wasn't signed by the authority in ",
                                                      files.authority_certificate));
  }
  if (absl::Status valid = CheckTimes(*authority_facts, now); !valid.ok()) {
    return Annotated(files.authority_certificate, valid);
  }
  absl::StatusOr<CertificateFacts> facts = ReadFacts(server.certificate);
  if (!facts.ok()) return Annotated(file, facts.status());
  if (absl::Status valid = CheckTimes(*facts, now); !valid.ok()) {
    return Annotated(file, valid);
  }
  return ServerTls{std::move(authority), std::move(server), *std::move(facts)};
}

// The caller holds the folder's lock.
absl::StatusOr<ServerTls> LoadLocked(const TlsFiles& files, absl::Time now) {
  RETURN_IF_ERROR(FinishRenewal(files));
  ASSIGN_OR_RETURN(CertifiedKey server, ReadPair(files.server_certificate, files.server_key));
  ASSIGN_OR_RETURN(std::string authority, process::ReadBoundedFile(files.authority_certificate,
                                                                   kMaxFileBytes, Readers::kAll));
  // Not needed to serve, but the owner should learn that others could take it.
  const absl::StatusOr<std::string> authority_key =
      process::ReadBoundedFile(files.authority_key, kMaxFileBytes, Readers::kOwner);
  if (!authority_key.ok() && !absl::IsNotFound(authority_key.status())) {
    return authority_key.status();
  }
  auto tls =
      Check(files, authority, std::move(server), files.server_certificate, files.server_key, now);
  if (tls.ok()) return tls;
  absl::StatusOr<CertifiedKey> old = ReadPair(files.old_certificate, files.old_key);
  if (!old.ok()) return tls;
  auto old_tls =
      Check(files, authority, *std::move(old), files.old_certificate, files.old_key, now);
  return old_tls.ok() ? old_tls : tls;
}

absl::Status CreatePair(const CertifiedKey& pair, const std::string& certificate_file,
                        const std::string& key_file) {
  RETURN_IF_ERROR(process::CreateFile(key_file, pair.key, Readers::kOwner));
  return process::CreateFile(certificate_file, pair.certificate, Readers::kAll);
}

// Returns the first part of this machine's name that is printable.
std::string MachineName() {
  char name[58] = "";
  // A name that is too long is cut; POSIX need not terminate it then.
  gethostname(name, sizeof name - 1);
  return text::IsPrintable(name, sizeof name) ? name : "server";
}

// Writes all of a new folder into a draft that no other process knows.
absl::Status WriteAll(const TlsFiles& draft, const std::vector<std::string>& hosts,
                      absl::Time now) {
  ASSIGN_OR_RETURN(const CertifiedKey authority, MakeAuthority(MachineName(), now));
  ASSIGN_OR_RETURN(const CertifiedKey server, MakeServerCertificate(authority, hosts, now));
  RETURN_IF_ERROR(CreatePair(authority, draft.authority_certificate, draft.authority_key));
  RETURN_IF_ERROR(CreatePair(server, draft.server_certificate, draft.server_key));
  return process::SyncFolder(draft.folder);
}

absl::Status AlreadyThere(const std::string& folder) {
  return absl::AlreadyExistsError(absl::StrCat(
      folder,
      " exists, and join files contain its authority. Renew the server's certificate, or move the "
      "folder away for a new authority, which makes all join files invalid"));
}

void RemoveOldPair(const TlsFiles& files) {
  unlink(files.old_certificate.c_str());
  unlink(files.old_key.c_str());
}

// Keeps a copy of the pair that a renewal replaces, unless it can't be read.
absl::Status KeepOldPair(const TlsFiles& files) {
  const absl::StatusOr<CertifiedKey> old = ReadPair(files.server_certificate, files.server_key);
  if (!old.ok() || !CheckKey(old->certificate, old->key).ok()) return absl::OkStatus();
  RemoveOldPair(files);
  return CreatePair(*old, files.old_certificate, files.old_key);
}

// Replaces the server's pair. After the key's rename FinishRenewal would complete the renewal;
// after the certificate's it isn't needed.
absl::Status ReplaceServerPair(const TlsFiles& files, const CertifiedKey& server) {
  const std::string certificate_draft = DraftOf(files.server_certificate);
  const std::string key_draft = DraftOf(files.server_key);
  // Left by a renewal that was stopped before its renames.
  unlink(certificate_draft.c_str());
  unlink(key_draft.c_str());
  RETURN_IF_ERROR(CreatePair(server, certificate_draft, key_draft));
  RETURN_IF_ERROR(process::SyncFolder(files.folder));
  RETURN_IF_ERROR(Rename(key_draft, files.server_key));
  RETURN_IF_ERROR(Rename(certificate_draft, files.server_certificate));
  return process::SyncFolder(files.folder);
}

absl::StatusOr<CertificateFacts> FactsIn(const std::string& certificate_file) {
  ASSIGN_OR_RETURN(const auto text,
                   process::ReadBoundedFile(certificate_file, kMaxFileBytes, Readers::kAll));
  absl::StatusOr<CertificateFacts> facts = ReadFacts(text);
  if (!facts.ok()) return Annotated(certificate_file, facts.status());
  return facts;
}

// Returns the facts of the certificate that Load uses, judged by times only: the server's, or the
// previous one if only that one is valid at `now`.
absl::StatusOr<CertificateFacts> ServedFacts(const TlsFiles& files, absl::Time now) {
  absl::StatusOr<CertificateFacts> facts = FactsIn(files.server_certificate);
  if (!facts.ok() || CheckTimes(*facts, now).ok()) return facts;
  absl::StatusOr<CertificateFacts> old = FactsIn(files.old_certificate);
  return old.ok() && CheckTimes(*old, now).ok() ? old : facts;
}

// Returns the certificate's names except `hosts` and those that each certificate has; nothing if it
// can't be read.
std::vector<std::string> OtherNames(const std::string& certificate_file,
                                    const std::vector<std::string>& hosts) {
  const absl::StatusOr<CertificateFacts> facts = FactsIn(certificate_file);
  if (!facts.ok()) return {};
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> others;
  for (const std::string& name : facts->names) {
    if (!has(hosts, name) && !has(LocalHosts(), name)) others.push_back(name);
  }
  return others;
}

// The caller holds the folder's lock.
absl::StatusOr<ServerTls> RenewLocked(const TlsFiles& files, std::vector<std::string> hosts,
                                      absl::Time now, OldNames old_names) {
  ASSIGN_OR_RETURN(const CertifiedKey authority,
                   ReadPair(files.authority_certificate, files.authority_key));
  RETURN_IF_ERROR(CheckPair(authority, files.authority_certificate, files.authority_key));
  if (old_names == OldNames::kKeep) {
    const std::vector<std::string> others = OtherNames(files.server_certificate, hosts);
    hosts.insert(hosts.end(), others.begin(), others.end());
  }
  const absl::StatusOr<CertifiedKey> server = MakeServerCertificate(authority, hosts, now);
  if (absl::IsFailedPrecondition(server.status())) {
    return Annotated(files.authority_certificate, server.status());
  }
  if (!server.ok()) return server.status();
  RETURN_IF_ERROR(ReplaceServerPair(files, *server));
  return LoadLocked(files, now);
}

}  // namespace

TlsFiles::TlsFiles(const std::string& tls_folder)
    : folder(tls_folder),
      authority_certificate(absl::StrCat(tls_folder, "/authority.pem")),
      authority_key(absl::StrCat(tls_folder, "/authority.key")),
      server_certificate(absl::StrCat(tls_folder, "/server.pem")),
      server_key(absl::StrCat(tls_folder, "/server.key")),
      old_certificate(absl::StrCat(tls_folder, "/server.old.pem")),
      old_key(absl::StrCat(tls_folder, "/server.old.key")) {}

absl::StatusOr<ServerTls> Initialize(const std::string& tls_folder,
                                     const std::vector<std::string>& hosts, absl::Time now) {
  struct stat info;
  if (lstat(tls_folder.c_str(), &info) == 0) return AlreadyThere(tls_folder);
  std::string draft = absl::StrCat(tls_folder, ".XXXXXX");
  if (mkdtemp(draft.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make a folder next to ", tls_folder));
  }
  absl::Status made = WriteAll(TlsFiles(draft), hosts, now);
  // rename replaces only a missing or an empty folder, never one with an authority.
  if (made.ok() && std::rename(draft.c_str(), tls_folder.c_str()) != 0) {
    made = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR
               ? AlreadyThere(tls_folder)
               : absl::ErrnoToStatus(errno, absl::StrCat("cannot make folder ", tls_folder));
  }
  if (!made.ok()) {
    std::error_code ignored;
    std::filesystem::remove_all(draft, ignored);
    return made;
  }
  const std::string above = std::filesystem::absolute(tls_folder).parent_path();
  RETURN_IF_ERROR(process::SyncFolder(above));
  return Load(tls_folder, now);
}

absl::StatusOr<ServerTls> Load(const std::string& tls_folder, absl::Time now) {
  ASSIGN_OR_RETURN(const process::FileDescriptor lock, Lock(tls_folder));
  return LoadLocked(TlsFiles(tls_folder), now);
}

absl::StatusOr<ServerTls> Renew(const std::string& tls_folder,
                                const std::vector<std::string>& hosts, absl::Time now,
                                OldNames old_names) {
  ASSIGN_OR_RETURN(const process::FileDescriptor lock, Lock(tls_folder));
  const TlsFiles files(tls_folder);
  absl::StatusOr<ServerTls> renewed = RenewLocked(files, hosts, now, old_names);
  // A renewal by hand may be due to a stolen key, so the old pair must go.
  if (renewed.ok()) RemoveOldPair(files);
  return renewed;
}

absl::StatusOr<Upkeep> KeepFresh(const std::string& tls_folder,
                                 const std::vector<std::string>& hosts, absl::Time now,
                                 Clock clock) {
  ASSIGN_OR_RETURN(const process::FileDescriptor lock, Lock(tls_folder));
  const TlsFiles files(tls_folder);
  RETURN_IF_ERROR(FinishRenewal(files));
  ASSIGN_OR_RETURN(const auto facts, ServedFacts(files, now));
  const bool valid = CheckTimes(facts, now).ok();
  if (valid && facts.not_after - now >= kRenewBefore) return Upkeep::kFine;
  ASSIGN_OR_RETURN(const auto authority, FactsIn(files.authority_certificate));
  if (facts.not_after >= authority.not_after) return Upkeep::kNeedsAuthority;
  if (::access(files.authority_key.c_str(), F_OK) != 0) return Upkeep::kNeedsKey;
  if (valid && clock == Clock::kDoubtful) return Upkeep::kWaits;
  RETURN_IF_ERROR(KeepOldPair(files));
  RETURN_IF_ERROR(RenewLocked(files, hosts, now, OldNames::kKeep).status());
  return Upkeep::kRenewed;
}

}  // namespace ablate::access
