#include "server/worker/relay_command.h"

#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/host.h"
#include "base/log_file.h"
#include "base/tcp.h"
#include "proto/join/join_file.h"
#include "server/worker/relay.h"

namespace ablate::worker {
namespace {

constexpr int kCantRelayExit = 1;

int Fail(int code, absl::string_view option, const absl::Status& why) {
  std::fprintf(stderr, "%s\n", absl::StrCat(option, why.message()).c_str());
  return code;
}

std::string Problem(const std::string& address, uint16_t least_port) {
  const auto parsed = text::ParseHostPort(address, least_port);
  if (parsed.ok()) return "";
  return absl::StrCat("must be HOST:PORT, is ", address, ": ", parsed.status().message());
}

}  // namespace

std::string AddressProblem(const std::string& address) { return Problem(address, 1); }

const CLI::App* DefineRelay(CLI::App& app, RelayFlags& flags) {
  CLI::App* const relay = app.add_subcommand(
      "relay", "Pass connections of workers on to a server that they\nhave no route to");
  relay->footer(
      "Workers use it by --join FILE --through HOST:PORT. TLS is between worker and\n"
      "server: the relay has no key.\n\n"
      "Exit codes:\n"
      "  0   ended by SIGTERM or SIGINT\n"
      "  1   the address can't be used\n"
      "  6   the join file can't be used\n"
      "  64  invalid options");
  relay
      ->add_option("--listen", flags.listen,
                   "Accept connections at HOST:PORT, such as 0.0.0.0:7444")
      ->check([](const std::string& address) { return Problem(address, 0); })
      ->type_name("HOST:PORT")
      ->required();
  relay->add_option("--to", flags.to, "Connect to the server at HOST:PORT, and nowhere else")
      ->check(AddressProblem)
      ->type_name("HOST:PORT");
  relay->add_option("--join", flags.join, "Connect to the server of the join file FILE")
      ->type_name("FILE");
  relay->callback([&app, &flags] {
    if (!app.parse_order().empty()) {
      throw CLI::ValidationError(app.parse_order().front()->get_name(), "is for workers");
    }
    if (flags.to.empty() == flags.join.empty()) {
      throw CLI::ValidationError("exactly one of --to and --join must be given");
    }
  });
  return relay;
}

int RunRelay(const RelayFlags& flags) {
  RelayOptions options;
  options.listen = flags.listen;
  options.to = flags.to;
  if (!flags.join.empty()) {
    const auto file = join::ReadJoinFile(flags.join);
    if (!file.ok()) return Fail(kNoServerExit, "--join: ", file.status());
    options.to = file->address();
  }
  options.resolve = [server = *text::ParseHostPort(options.to)] { return net::Resolve(server); };
  options.on_trouble = [](const std::string& trouble) { spdlog::warn("{}", trouble); };
  const sigset_t signals = process::BlockEndSignals();
  const process::FileDescriptor stop(signalfd(-1, &signals, SFD_CLOEXEC));
  process::RaiseFileLimit();
  const std::string host = flags.listen.substr(0, flags.listen.rfind(':'));
  const std::string to = options.to;
  const auto relay = Relay::Listen(std::move(options));
  if (!relay.ok()) return Fail(kCantRelayExit, "--listen: ", relay.status());
  spdlog::info("relaying {}:{} to {}", host, (*relay)->port(), to);
  const absl::Status ended = (*relay)->Run(stop.get());
  return ended.ok() ? 0 : Fail(kCantRelayExit, "", ended);
}

}  // namespace ablate::worker
