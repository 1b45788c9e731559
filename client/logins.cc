#include "client/logins.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "proto/join/join_file.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLoginNameBytes = 64;
constexpr absl::string_view kLoginExtension = ".json";

}  // namespace

Logins::Logins(std::string folder) : folder_(std::move(folder)) {}

absl::StatusOr<Logins> Logins::Of(const process::Environment& environment) {
  const auto config = environment("XDG_CONFIG_HOME");
  // A relative path is none, says the specification of these folders.
  if (config && fs::path(*config).is_absolute()) return Logins(absl::StrCat(*config, "/ablate"));
  if (const auto home = environment("HOME")) return Logins(absl::StrCat(*home, "/.config/ablate"));
  return absl::FailedPreconditionError("no folder for logins: set HOME or XDG_CONFIG_HOME");
}

absl::Status Logins::CheckName(const std::string& name) {
  const bool fits = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("._-", c);
  });
  if (fits && !name.empty() && name.size() <= kMaxLoginNameBytes && name[0] != '.' &&
      name != kPersonal) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(reflect::Quoted(name),
                   " is not a server name; expected 1 to 64 letters, digits and . _ -, other than "
                   "\"personal\", the server on this machine"));
}

std::string Logins::FileOf(const std::string& name) const {
  return absl::StrCat(folder_, "/servers/", name, kLoginExtension);
}

absl::Status Logins::Add(const std::string& name, const v1::JoinFile& join) {
  RETURN_IF_ERROR(CheckName(name));
  const auto known = Find(name);
  if (known.ok() && known->certificate_authority() != join.certificate_authority()) {
    return absl::AlreadyExistsError(absl::StrCat(
        name, " is the name of another server (", known->address(),
        "); give this one another by --name NAME, or run `ablate logout ", name, "` first"));
  }
  std::error_code error;
  fs::create_directories(fs::path(folder_).parent_path(), error);
  for (const std::string& folder : {folder_, folder_ + "/servers"}) {
    if (absl::Status made = process::MakePrivateFolder(folder); !made.ok()) return made;
  }
  // Whole or not at all: the old one is there until the new one has its name.
  const std::string draft = absl::StrCat(FileOf(name), ".new");
  fs::remove(draft, error);
  RETURN_IF_ERROR(join::WriteJoinFile(draft, join));
  fs::rename(draft, FileOf(name), error);
  if (error)
    return absl::FailedPreconditionError(absl::StrCat(FileOf(name), ": ", error.message()));
  return process::ReplaceFile(absl::StrCat(folder_, "/current"), absl::StrCat(name, "\n"));
}

absl::StatusOr<v1::JoinFile> Logins::Find(const std::string& name) const {
  const std::vector<std::string> names = Names();
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    return join::ReadJoinFile(FileOf(name));
  }
  return absl::NotFoundError(absl::StrCat("no server is named ", reflect::Quoted(name),
                                          "; expected personal", names.empty() ? "" : ", ",
                                          absl::StrJoin(names, ", "),
                                          ". `ablate login --join FILE` adds one."));
}

absl::Status Logins::Remove(const std::string& name) {
  if (auto found = Find(name); absl::IsNotFound(found.status())) return found.status();
  std::error_code error;
  fs::remove(FileOf(name), error);
  if (error)
    return absl::FailedPreconditionError(absl::StrCat(FileOf(name), ": ", error.message()));
  if (Current() == name) fs::remove(folder_ + "/current", error);
  return absl::OkStatus();
}

std::vector<std::string> Logins::Names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ + "/servers", error)) {
    const std::string file = entry.path().filename().string();
    if (absl::EndsWith(file, kLoginExtension))
      names.push_back(file.substr(0, file.size() - kLoginExtension.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Logins::Current() const {
  const std::string content = process::ReadWholeFile(absl::StrCat(folder_, "/current"));
  return std::string(absl::StripAsciiWhitespace(content));
}

}  // namespace ablate::client
