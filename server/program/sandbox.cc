#include "server/program/sandbox.h"

#include <filesystem>
#include <initializer_list>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/program/run.h"

namespace ablate::program {
namespace {

constexpr char kAppArmor[] =
    "The kernel denies user namespaces to ordinary users. On Ubuntu 23.10 or later, install the "
    "AppArmor profile bwrap-userns-restrict (apt install apparmor-profiles; cp "
    "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/; systemctl reload "
    "apparmor). Elsewhere, set kernel.unprivileged_userns_clone=1 and "
    "user.max_user_namespaces=10000 by sysctl. In a container, allow user namespaces.";
// The files of /etc that programs need: no passwords, no keys, no configuration of services.
constexpr const char* kEtcFiles[] = {
    "alternatives", "group",     "host.conf",    "hosts",      "ld.so.cache",   "ld.so.conf",
    "ld.so.conf.d", "localtime", "locale.alias", "mime.types", "nsswitch.conf", "os-release",
    "passwd",       "protocols", "services",     "timezone",
};

using Options = std::vector<std::string>;

// Shows a file or folder at its own path, if it exists.
void AddReadable(const std::string& path, Options* options) {
  options->insert(options->end(), {"--ro-bind-try", path, path});
}

// Adds an empty folder in memory, bounded unless `bytes` is 0.
void AddMemoryFolder(const std::string& target, uint64_t bytes, Options* options) {
  options->insert(options->end(), {"--perms", "1777"});
  if (bytes > 0) options->insert(options->end(), {"--size", absl::StrCat(bytes)});
  options->insert(options->end(), {"--tmpfs", target});
}

void AddSystem(Options* options) {
  AddReadable("/usr", options);
  for (const char* folder : {"/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"}) {
    std::error_code not_a_link;
    const std::string target = std::filesystem::read_symlink(folder, not_a_link);
    if (not_a_link) {
      AddReadable(folder, options);
    } else {
      options->insert(options->end(), {"--symlink", target, folder});
    }
  }
  for (const char* name : kEtcFiles) AddReadable(absl::StrCat("/etc/", name), options);
}

void AddFolders(const Request& request, Options* options) {
  const auto add = [options](const char* option, const std::string& source, std::string target) {
    options->insert(options->end(), {option, source, std::move(target)});
  };
  add("--bind", request.folder, kWorkFolder);
  if (!request.helpers.empty()) add("--ro-bind", request.helpers, kHelperFolder);
  if (!request.data.empty()) add("--ro-bind", request.data, kDataFolder);
  const Environment& environment = request.environment;
  for (const std::string& folder : environment.folders) AddReadable(folder, options);
  if (!environment.interpreter.empty() && !environment.is_virtual) {
    add("--symlink", environment.interpreter, absl::StrCat(kLinkFolder, "/python"));
    add("--symlink", environment.interpreter, absl::StrCat(kLinkFolder, "/python3"));
  }
  if (!request.devices.empty()) AddReadable("/sys", options);
  for (const std::string& device : request.devices) add("--dev-bind", device, device);
}

}  // namespace

std::vector<std::string> SandboxOptions(const Request& request, bool forks) {
  Options options = {"--unshare-all", "--unshare-user", "--die-with-parent",
                     "--new-session", "--cap-drop",     "ALL",
                     "--hostname",    "ablate",         "--clearenv"};
  const auto add = [&options](std::initializer_list<std::string> words) {
    options.insert(options.end(), words);
  };
  if (forks) {
    add({"--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP", "--cap-add", "CAP_SYS_RESOURCE",
         "--cap-add", "CAP_NET_ADMIN"});
  } else {
    add({"--disable-userns"});
  }
  for (const auto& [name, value] : ProgramVariables(request)) add({"--setenv", name, value});
  add({"--proc", "/proc"});
  // As root, a program could otherwise write to /proc/sys.
  if (!forks) add({"--ro-bind", "/proc/sys", "/proc/sys"});
  add({"--dev", "/dev"});
  AddMemoryFolder("/dev/shm", request.limits.memory_bytes, &options);
  AddMemoryFolder("/tmp", request.limits.disk_bytes, &options);
  AddSystem(&options);
  AddFolders(request, &options);
  // Both are folders in memory, whose size nothing bounds.
  add({"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", kWorkFolder});
  return options;
}

std::string ExplainSandboxError(absl::string_view printed) {
  printed = absl::StripAsciiWhitespace(printed);
  std::string result =
      absl::StrCat("sandbox: ", printed.empty() ? "bwrap failed without a message" : printed, ". ");
  if (absl::StrContains(printed, "Unknown option")) {
    return absl::StrCat(result, "Install bubblewrap 0.8.0 or later.");
  }
  for (absl::string_view sign : {"uid map", "RTM_NEWADDR", "No permissions to create",
                                 "Creating new namespace failed", "user namespace"}) {
    if (absl::StrContains(printed, sign)) return absl::StrCat(result, kAppArmor);
  }
  return absl::StrCat(result, "Run `bwrap --ro-bind / / --unshare-all true` for details.");
}

absl::Status ProbeSandbox() {
  Request request;
  request.command = {"true"};
  request.folder = "/tmp";
  request.limits = {.time = absl::Seconds(20), .memory_bytes = 1 << 20};
  ASSIGN_OR_RETURN(const Output output, RunToEnd(std::move(request)));
  if (output.ended->ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(output.ended->reason);
}

}  // namespace ablate::program
