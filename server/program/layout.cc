#include "server/program/layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace ablate::program {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel's

// The files of /etc that programs need: no passwords, no keys, no configuration of services.
constexpr const char* kEtcFiles[] = {
    "alternatives", "group",     "host.conf",    "hosts",      "ld.so.cache",   "ld.so.conf",
    "ld.so.conf.d", "localtime", "locale.alias", "mime.types", "nsswitch.conf", "os-release",
    "passwd",       "protocols", "services",     "timezone",
};

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Returns the text of a symbolic link; nothing if the path isn't one.
std::optional<std::string> ReadLink(const std::string& path) {
  std::array<char, 4096> text;
  const ssize_t size = readlink(path.c_str(), text.data(), text.size());
  if (size < 0) return std::nullopt;
  return std::string(text.data(), static_cast<size_t>(size));
}

void AddSystem(Layout* layout) {
  layout->binds.push_back({"/usr", "/usr"});
  for (const char* folder : {"/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"}) {
    if (const auto link = ReadLink(folder)) {
      layout->links[folder] = *link;
    } else if (Exists(folder)) {
      layout->binds.push_back({folder, folder});
    }
  }
  for (const char* name : kEtcFiles) {
    const std::string path = absl::StrCat("/etc/", name);
    if (Exists(path)) layout->binds.push_back({path, path});
  }
}

void AddEnvironment(const Environment& environment, Layout* layout) {
  for (const std::string& folder : environment.folders) layout->binds.push_back({folder, folder});
  if (environment.interpreter.empty() || environment.is_virtual) return;
  for (const char* name : {"python", "python3"}) {
    layout->links[absl::StrCat(kLinkFolder, "/", name)] = environment.interpreter;
  }
}

bool IsAbsolute(absl::string_view path) {
  return absl::StartsWith(path, "/") && !absl::StrContains(path, "/../");
}

// A zero byte would end an argument, and the rest would become an option of the sandbox.
bool HasZeroByte(const Request& request) {
  const auto has = [](absl::string_view text) { return absl::StrContains(text, '\0'); };
  std::vector<absl::string_view> texts(request.command.begin(), request.command.end());
  for (const auto& [name, value] : request.variables) texts.insert(texts.end(), {name, value});
  for (const Mount& mount : request.data) texts.insert(texts.end(), {mount.name, mount.source});
  texts.insert(texts.end(), request.devices.begin(), request.devices.end());
  const Environment& environment = request.environment;
  texts.insert(texts.end(), environment.folders.begin(), environment.folders.end());
  texts.insert(texts.end(), {request.folder, request.helpers, environment.interpreter});
  return std::any_of(texts.begin(), texts.end(), has);
}

absl::Status CheckNames(const Request& request) {
  if (request.command.empty() || request.command[0].empty()) {
    return absl::InvalidArgumentError("command: it is empty; expected a program");
  }
  if (HasZeroByte(request)) {
    return absl::InvalidArgumentError("command, variables or paths: a text has a zero byte");
  }
  for (const auto& [name, value] : request.variables) {
    if (name.empty() || absl::StrContains(name, '=')) {
      return absl::InvalidArgumentError(
          absl::StrCat("variables: \"", name, "\"; expected a name without ="));
    }
  }
  std::set<absl::string_view> names;
  for (const Mount& mount : request.data) {
    const bool plain = !mount.name.empty() && mount.name != "." && mount.name != ".." &&
                       !absl::StrContains(mount.name, '/');
    if (!plain || !names.insert(mount.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("data: \"", mount.name, "\"; expected distinct names without /"));
    }
  }
  for (const std::string& device : request.devices) {
    if (!absl::StartsWith(device, "/dev/") || !IsAbsolute(device)) {
      return absl::InvalidArgumentError(
          absl::StrCat("devices: ", device, "; expected a path below /dev"));
    }
  }
  return absl::OkStatus();
}

// Returns the host's path of `path`, whose links are resolved; nothing if no bind holds it.
std::optional<std::string> HostPath(const Layout& layout, const std::string& path) {
  const Bind* best = nullptr;
  for (const Bind& bind : layout.binds) {
    const bool inside = bind.target == "/" || path == bind.target ||
                        absl::StartsWith(path, absl::StrCat(bind.target, "/"));
    if (inside && (best == nullptr || bind.target.size() >= best->target.size())) best = &bind;
  }
  if (best == nullptr) return std::nullopt;
  if (best->target == "/") return path;
  return absl::StrCat(best->source, path.substr(best->target.size()));
}

// Returns the text of the link at `path`; nothing if it isn't a link.
std::optional<std::string> LinkAt(const Layout& layout, const std::string& path) {
  const auto made = layout.links.find(path);
  if (made != layout.links.end()) return made->second;
  // The sandbox resolves links on the way to a bind's source.
  for (const Bind& bind : layout.binds) {
    if (bind.target == path) return std::nullopt;
  }
  const auto host = HostPath(layout, path);
  return host.has_value() ? ReadLink(*host) : std::nullopt;
}

}  // namespace

Layout SandboxLayout(const Request& request) {
  Layout layout;
  AddSystem(&layout);
  layout.binds.push_back({request.folder, kWorkFolder, Access::kWrite});
  if (!request.helpers.empty()) layout.binds.push_back({request.helpers, kHelperFolder});
  for (const Mount& mount : request.data) {
    layout.binds.push_back({mount.source, absl::StrCat(kDataFolder, "/", mount.name)});
  }
  AddEnvironment(request.environment, &layout);
  if (request.devices.empty()) return layout;
  layout.binds.push_back({"/sys", "/sys"});
  for (const std::string& device : request.devices) {
    layout.binds.push_back({device, device, Access::kDevice});
  }
  return layout;
}

Layout HostLayout() { return {{{"/", "/", Access::kWrite}}, {}}; }

absl::Status CheckRequest(const Request& request) {
  RETURN_IF_ERROR(CheckNames(request));
  std::vector<std::string> sources = {request.folder};
  if (!request.helpers.empty()) sources.push_back(request.helpers);
  for (const Mount& mount : request.data) sources.push_back(mount.source);
  const Environment& environment = request.environment;
  sources.insert(sources.end(), environment.folders.begin(), environment.folders.end());
  for (const std::string& source : sources) {
    if (!IsAbsolute(source) || source == "/") {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", source, "\": expected the absolute path of a folder below /"));
    }
    RETURN_IF_ERROR(CheckReachable(source));
  }
  struct stat folder {};
  if (stat(request.folder.c_str(), &folder) != 0 || !S_ISDIR(folder.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(request.folder, ": it isn't a folder"));
  }
  return absl::OkStatus();
}

std::optional<std::string> FindFile(const Layout& layout, const std::string& path) {
  std::vector<std::string> left = absl::StrSplit(path, '/', absl::SkipEmpty());
  std::reverse(left.begin(), left.end());
  std::vector<std::string> found;
  for (int links = 0; !left.empty();) {
    const std::string part = left.back();
    left.pop_back();
    if (part == ".") continue;
    if (part == "..") {
      if (!found.empty()) found.pop_back();
      continue;
    }
    found.push_back(part);
    const auto link = LinkAt(layout, absl::StrCat("/", absl::StrJoin(found, "/")));
    if (!link.has_value()) continue;
    if (++links > kMaxLinks) return std::nullopt;
    found.pop_back();
    if (absl::StartsWith(*link, "/")) found.clear();
    std::vector<std::string> more = absl::StrSplit(*link, '/', absl::SkipEmpty());
    left.insert(left.end(), more.rbegin(), more.rend());
  }
  const auto host = HostPath(layout, absl::StrCat("/", absl::StrJoin(found, "/")));
  return host.has_value() && Exists(*host) ? host : std::nullopt;
}

}  // namespace ablate::program
