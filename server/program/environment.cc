#include "server/program/environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/folder_walk.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/program/run.h"

namespace ablate::program {
namespace {

constexpr absl::Duration kMaxTime = absl::Seconds(60);

// Prints one object on the last line. Its folders are without those inside of others and of /usr,
// which is always mounted; sys.path has those of editable installs, too.
constexpr char kScript[] = R"(
import hashlib, importlib.metadata, json, os, platform, re, sys, sysconfig
found = {}
for one in importlib.metadata.distributions():
    name = one.metadata["Name"]
    if name:
        found.setdefault(re.sub("[-_.]+", "-", name).lower(), one.version or "")
version = platform.python_version()
lock = "\n".join(sorted(f"{name}=={its_version}" for name, its_version in found.items()))
lock = f"{sys.implementation.name} {version}\n{sysconfig.get_platform()}\n{lock}\n"
folders = ["/usr"]
for one in sorted({sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix,
                   os.path.dirname(os.path.realpath(sys.executable)),
                   *(p for p in sys.path if os.path.isabs(p) and os.path.isdir(p))}):
    if not any((one + "/").startswith(outer + "/") for outer in folders):
        folders.append(one)
torch = f", torch {found['torch']}" if "torch" in found else ""
print("\n" + json.dumps({
    "executable": sys.executable,
    "virtual": sys.prefix != sys.base_prefix,
    "version": f"Python {version}{torch}, {hashlib.sha256(lock.encode()).hexdigest()[:8]}",
    "folders": folders[1:],
}))
)";

// Returns the object that kScript printed; another value if it has failed.
nlohmann::json FactsIn(absl::string_view log) {
  absl::ConsumeSuffix(&log, "\n");
  return nlohmann::json::parse(log.substr(log.rfind('\n') + 1), nullptr,
                               /*allow_exceptions=*/false);
}

// Returns 8 hex digits that change with the folders' files. Contents aren't read: they may be
// large.
absl::StatusOr<std::string> VersionOf(const std::vector<std::string>& folders) {
  std::set<std::string> files;
  for (const std::string& folder : folders) {
    std::error_code ignored;  // it was entered already
    const std::string real = std::filesystem::canonical(folder, ignored);
    RETURN_IF_ERROR(WalkFolder(AT_FDCWD, real, [&files](const FolderEntry& entry) {
      const struct stat& info = entry.info;
      files.insert(absl::StrCat(entry.path, " ", info.st_size, " ", info.st_mtim.tv_sec, ".",
                                info.st_mtim.tv_nsec, "\n"));
      return absl::OkStatus();
    }));
  }
  return Sha256Hex(absl::StrCat(absl::StrJoin(folders, "\n"), "\n", absl::StrJoin(files, "")))
      .substr(0, 8);
}

bool HasAllFacts(const nlohmann::json& facts) {
  return facts.is_object() && facts.contains("executable") && facts["executable"].is_string() &&
         facts.contains("virtual") && facts["virtual"].is_boolean() && facts.contains("version") &&
         facts["version"].is_string() && facts.contains("folders") && facts["folders"].is_array();
}

}  // namespace

absl::Status CheckReachable(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (access(folder.c_str(), X_OK) == 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": can't enter ", folder, " (", std::strerror(errno),
                     "). Let this user enter it, or use a folder elsewhere."));
  }
  if (access(path.c_str(), F_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(errno)));
}

absl::StatusOr<Environment> DescribePython(const std::string& name, const std::string& python,
                                           const std::vector<std::string>& data) {
  RETURN_IF_ERROR(CheckReachable(python));
  Request request;
  request.command = {python, "-I", "-c", kScript};
  request.folder = "/tmp";
  request.limits.time = kMaxTime;
  request.sandboxed = false;
  ASSIGN_OR_RETURN(const Output output, RunToEnd(std::move(request)));
  const nlohmann::json facts = FactsIn(output.log);
  if (!output.ended->ok() || !HasAllFacts(facts)) {
    return absl::InvalidArgumentError(
        absl::StrCat(python, " isn't a usable Python (", output.ended->reason,
                     "); expected an interpreter of Python 3.8 or later. ", output.log));
  }
  Environment result{.name = name,
                     .interpreter = facts["executable"],
                     .is_virtual = facts["virtual"],
                     .folders = facts["folders"],
                     .version = facts["version"]};
  result.folders.insert(result.folders.end(), data.begin(), data.end());
  for (const std::string& folder : result.folders) RETURN_IF_ERROR(CheckReachable(folder + "/"));
  if (data.empty()) return result;
  ASSIGN_OR_RETURN(const std::string version, VersionOf(data));
  absl::StrAppend(&result.version, ", data ", version);
  return result;
}

}  // namespace ablate::program
