#include "server/program/sandbox.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/private_folder.h"
#include "base/status_macros.h"
#include "server/program/capture.h"
#include "server/program/command.h"
#include "server/program/layout.h"

namespace ablate::program {
namespace {

constexpr char kInstall[] = "Install it: apt install bubblewrap.";
constexpr char kAppArmor[] =
    "The kernel denies user namespaces to ordinary users. On Ubuntu 23.10 or later, install the "
    "AppArmor profile bwrap-userns-restrict (apt install apparmor-profiles; cp "
    "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/; systemctl reload "
    "apparmor). Elsewhere, set kernel.unprivileged_userns_clone=1 and "
    "user.max_user_namespaces=10000 by sysctl. In a container, allow user namespaces.";

class Options {
 public:
  void Add(std::initializer_list<absl::string_view> words) {
    for (absl::string_view word : words) words_.emplace_back(word);
  }
  // Adds an empty folder in memory, bounded unless `bytes` is 0.
  void AddMemoryFolder(absl::string_view target, uint64_t bytes) {
    Add({"--perms", "1777"});
    if (bytes > 0) Add({"--size", absl::StrCat(bytes)});
    Add({"--tmpfs", target});
  }
  std::vector<std::string> Take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

absl::string_view BindOption(Access access) {
  switch (access) {
    case Access::kRead:
      return "--ro-bind";
    case Access::kWrite:
      return "--bind";
    case Access::kDevice:
      return "--dev-bind";
  }
  return "--ro-bind";
}

// A folder that is removed at the end.
class ProbeFolder {
 public:
  ProbeFolder() { made_ = mkdtemp(path_.data()) != nullptr; }
  ~ProbeFolder() {
    if (made_) rmdir(path_.c_str());
  }
  ProbeFolder(const ProbeFolder&) = delete;
  ProbeFolder& operator=(const ProbeFolder&) = delete;
  bool made() const { return made_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/ablate-probe-XXXXXX";
  bool made_ = false;
};

}  // namespace

absl::StatusOr<std::string> FindSandbox() {
  const std::string path = process::EnvironmentVariable("PATH").value_or("");
  for (absl::string_view folder : absl::StrSplit(absl::StrCat(path, ":/usr/bin"), ':')) {
    const std::string file = absl::StrCat(folder, "/bwrap");
    if (absl::StartsWith(folder, "/") && access(file.c_str(), X_OK) == 0) return file;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("sandbox: bubblewrap isn't installed. ", kInstall));
}

std::vector<std::string> SandboxOptions(const Request& request, bool forks) {
  Options options;
  options.Add({"--unshare-all", "--unshare-user", "--die-with-parent", "--new-session",
               "--cap-drop", "ALL", "--hostname", "ablate", "--clearenv"});
  if (forks) {
    options.Add({"--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP", "--cap-add",
                 "CAP_SYS_RESOURCE"});
  } else {
    options.Add({"--disable-userns"});
  }
  for (const auto& [name, value] : ProgramVariables(request)) {
    options.Add({"--setenv", name, value});
  }
  options.Add({"--proc", "/proc"});
  // As root, a program could otherwise write to /proc/sys.
  if (!forks) options.Add({"--ro-bind", "/proc/sys", "/proc/sys"});
  options.Add({"--dev", "/dev"});
  options.AddMemoryFolder("/dev/shm", request.limits.memory_bytes);
  options.AddMemoryFolder("/tmp", request.limits.disk_bytes);
  const Layout layout = SandboxLayout(request);
  for (const Bind& bind : layout.binds) {
    options.Add({BindOption(bind.access), bind.source, bind.target});
  }
  for (const auto& [path, text] : layout.links) options.Add({"--symlink", text, path});
  // Both are folders in memory, whose size nothing bounds.
  options.Add({"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", kWorkFolder});
  return options.Take();
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
  ASSIGN_OR_RETURN(const std::string bwrap, FindSandbox());
  const ProbeFolder folder;
  if (!folder.made()) return absl::FailedPreconditionError("sandbox: can't make a folder in /tmp");
  Request request;
  request.folder = folder.path();
  request.limits.memory_bytes = request.limits.disk_bytes = 1 << 20;
  std::vector<std::string> command = SandboxOptions(request);
  command.insert(command.begin(), bwrap);
  command.insert(command.end(), {"--", "true"});
  ASSIGN_OR_RETURN(const Captured captured, Capture(std::move(command), absl::Seconds(20)));
  if (captured.exit_code == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(ExplainSandboxError(captured.errors));
}

}  // namespace ablate::program
