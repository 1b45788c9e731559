// `ablate web`: serves a live page of the server to this machine's browsers.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/spawn.h"
#include "client/command_table.h"
#include "client/logins.h"
#include "client/web/http.h"
#include "client/web/site.h"
#include "google/protobuf/struct.pb.h"

namespace ablate::client {
namespace {

struct WebOptions {
  std::optional<uint32_t> port;
  bool open = false;
  bool json = false;
};

// Returns a function that connects to the server that the environment names. The personal server
// may have another address after a restart.
absl::StatusOr<web::Connect> Connector(const Context& context) {
  absl::StatusOr<ServerAddress> first = FindServer(context.environment);
  if (!first.ok()) return first.status();
  return [environment = context.environment, sleep = context.sleep, first = *std::move(first)] {
    const absl::StatusOr<ServerAddress> now = FindServer(environment);
    return std::make_unique<Connection>(now.ok() ? *now : first, sleep);
  };
}

// Returns the folder of the personal server; "" for a server elsewhere.
std::string FolderOf(const Context& context, const ServerAddress& server) {
  const absl::StatusOr<Home> home = FindHome("", context.environment);
  return home.ok() && server.login.empty() && !server.given ? home->folder : "";
}

// Opens the address in a browser. All users of this machine can read a program's arguments, so the
// browser gets a file that only this user can read; the secret in it ends with this process.
absl::Status OpenBrowser(const std::string& address) {
  std::string path = (std::filesystem::temp_directory_path() / "ablate-XXXXXX.html").string();
  const process::FileDescriptor file(mkstemps(path.data(), 5));
  const std::string page = absl::StrCat(
      "<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0; url=", address, "\">\n");
  const process::FileDescriptor log(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (file.get() < 0 || log.get() < 0 ||
      write(file.get(), page.data(), page.size()) != static_cast<ssize_t>(page.size())) {
    return absl::UnavailableError(absl::StrCat(path, " can't be written"));
  }
  pid_t pid = 0;
  const int error =
      process::SpawnDetached("xdg-open", {path}, process::OwnEnvironment(), log.get(), &pid);
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("xdg-open: ", std::strerror(error), "; open the address yourself"));
}

int Web(const WebOptions& options, const Context& context) {
  if (options.port.value_or(0) > 65'535) {
    context.console.Error(
        absl::StrCat("--port: ", *options.port, " is not a port; expected 1 to 65535"));
    return kUsage;
  }
  const absl::StatusOr<ServerAddress> server = FindServer(context.environment);
  const absl::StatusOr<web::Connect> connect = Connector(context);
  if (!server.ok() || !connect.ok()) return FailSettings(context, connect.status());
  auto http = web::HttpServer::Listen(static_cast<uint16_t>(options.port.value_or(0)));
  if (!http.ok()) return Fail(context, http.status());
  web::Site site(context, *connect, server->login.empty() ? kPersonal : server->login,
                 FolderOf(context, *server));
  site.run = RunProgram;
  const uint16_t port = (*http)->port();
  const std::string address = web::FirstAddress(site.secrets, port);
  if (options.json) {
    google::protobuf::Struct result;
    (*result.mutable_fields())["address"].set_string_value(address);
    (*result.mutable_fields())["port"].set_number_value(port);
    PrintJson(context, result);
    context.console.data() << std::flush;
  } else {
    *context.console.out << address << std::endl;
  }
  context.console.Info(
      "Whoever has this address can use the page as you. Ctrl-C ends it; the server and its runs "
      "go "
      "on.");
  if (options.open) {
    const absl::Status opened = OpenBrowser(address);
    if (!opened.ok()) context.console.Note(absl::StrCat("--open: ", opened.message()));
  }
  (*http)->Serve(
      [&site, port](const web::Request& request) { return web::Answer(site, port, request); });
  site.feeds.Close();
  return kSuccess;
}

}  // namespace

Action DefineWeb(Command* command) {
  auto options = std::make_shared<WebOptions>();
  command->Option(&options->port, "--port", "PORT",
                  "Listen on PORT of 127.0.0.1, 1–65535 [any free one]");
  command->Flag(&options->open, "--open", "Open the page in a browser");
  command->Flag(&options->json, "--json", "Print address and port as JSON, and serve");
  command->Footer(
      "Prints the page's address. It has a secret: whoever has it can use the page as you. Only "
      "this machine can connect. The page shows the same as your commands, without a permission "
      "system of its own: docs/howto/open-the-live-page.md.\n\n"
      "Examples:\n  ablate web --open\n  ablate web --port 8080");
  return [options](const Context& context) { return Web(*options, context); };
}

}  // namespace ablate::client
