#include "server/program/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/program/capture.h"

namespace ablate::program {
namespace {

using nlohmann::json;

constexpr absl::Duration kMaxTime = absl::Seconds(60);

// Prints one object. The folders of sys.path have those of editable installs, too.
constexpr char kScript[] = R"(
import importlib.metadata, json, os, platform, re, sys, sysconfig
found = {}
for one in importlib.metadata.distributions():
    name = one.metadata["Name"]
    if name:
        found.setdefault(re.sub("[-_.]+", "-", name).lower(), one.version or "")
print(json.dumps({
    "executable": sys.executable,
    "virtual": sys.prefix != sys.base_prefix,
    "version": platform.python_version(),
    "implementation": sys.implementation.name,
    "platform": sysconfig.get_platform(),
    "folders": [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix,
                os.path.dirname(os.path.realpath(sys.executable))]
        + [p for p in sys.path if os.path.isabs(p) and os.path.isdir(p)],
    "distributions": found,
}))
)";

bool IsInside(absl::string_view path, absl::string_view folder) {
  return path == folder || absl::StartsWith(path, absl::StrCat(folder, "/"));
}

// Returns the folders without those inside of others and inside of /usr, which is always mounted.
std::vector<std::string> Outermost(std::vector<std::string> folders) {
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> result;
  for (const std::string& folder : folders) {
    const bool known = std::any_of(result.begin(), result.end(), [&](const std::string& outer) {
      return IsInside(folder, outer);
    });
    if (!known && !IsInside(folder, "/usr")) result.push_back(folder);
  }
  return result;
}

std::string LockHash(const json& facts) {
  std::vector<std::string> lines;
  for (const auto& [name, version] : facts["distributions"].items()) {
    lines.push_back(absl::StrCat(name, "==", version.get<std::string>()));
  }
  std::sort(lines.begin(), lines.end());
  const std::string text = absl::StrCat(
      facts["implementation"].get<std::string>(), " ", facts["version"].get<std::string>(), "\n",
      facts["platform"].get<std::string>(), "\n", absl::StrJoin(lines, "\n"), "\n");
  return Sha256Hex(text).substr(0, 8);
}

bool HasAllFacts(const json& facts) {
  if (!facts.is_object()) return false;
  for (const char* name : {"executable", "version", "implementation", "platform"}) {
    if (!facts.contains(name) || !facts[name].is_string()) return false;
  }
  return facts.contains("folders") && facts["folders"].is_array() && facts.contains("virtual") &&
         facts["virtual"].is_boolean() && facts.contains("distributions") &&
         facts["distributions"].is_object();
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

absl::StatusOr<Environment> DescribePython(const std::string& name, const std::string& python) {
  RETURN_IF_ERROR(CheckReachable(python));
  ASSIGN_OR_RETURN(const Captured captured, Capture({python, "-I", "-c", kScript}, kMaxTime));
  const json facts = json::parse(captured.output, nullptr, /*allow_exceptions=*/false);
  if (captured.exit_code != 0 || !HasAllFacts(facts)) {
    return absl::InvalidArgumentError(
        absl::StrCat("environment ", name, ": ", python, " isn't a usable Python (exit code ",
                     captured.exit_code, "); expected an interpreter of Python 3.8 or later. ",
                     captured.errors));
  }
  Environment result;
  result.name = name;
  result.interpreter = facts["executable"].get<std::string>();
  result.is_virtual = facts["virtual"].get<bool>();
  std::vector<std::string> folders;
  for (const json& folder : facts["folders"]) {
    if (folder.is_string()) folders.push_back(folder.get<std::string>());
  }
  result.folders = Outermost(std::move(folders));
  for (const std::string& folder : result.folders) RETURN_IF_ERROR(CheckReachable(folder + "/"));
  result.version = absl::StrCat("Python ", facts["version"].get<std::string>());
  const json& distributions = facts["distributions"];
  if (distributions.contains("torch")) {
    absl::StrAppend(&result.version, ", torch ", distributions["torch"].get<std::string>());
  }
  absl::StrAppend(&result.version, ", ", LockHash(facts));
  return result;
}

}  // namespace ablate::program
