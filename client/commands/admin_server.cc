// `ablate admin init | renew | audit`: prepares the server for sharing.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "proto/join/join_file.h"

namespace ablate::client {
namespace {

std::string DateOf(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%M", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

struct InitOptions {
  std::string address;
  std::vector<std::string> hosts;
  std::string user;
  Output output;
  bool json = false;
};

absl::StatusOr<int> Init(const InitOptions& options, const Context& context,
                         Connection* connection) {
  const bool printed = options.output.is_standard() || (options.json && !options.output.given());
  const std::string file = printed                  ? ""
                           : options.output.given() ? options.output.path
                                                    : "admin.join";
  // Checked first, because init works only once.
  RETURN_IF_ERROR(join::CheckNewFile(file, options.output.force));
  v1::InitializeSharingRequest request;
  request.set_address(options.address);
  for (const std::string& host : options.hosts) request.add_hosts(host);
  request.set_user(options.user);
  const auto join = connection->Call(kInitializeSharing, request);
  if (!join.ok()) return join.status();
  if (options.json || printed) PrintJson(context, *join);
  if (printed) return kSuccess;
  if (absl::Status written = join::WriteJoinFile(file, *join, options.output.force);
      !written.ok()) {
    return absl::Status(written.code(), absl::StrCat(written.message(),
                                                     "; everything else was made. Run `ablate "
                                                     "admin token add ",
                                                     join->user(), " -o FILE` for another file."));
  }
  context.console.Info(absl::StrCat(
      file, ": token of the admin ", join->user(), ", valid until ", DateOf(join->expire_time()),
      " UTC; after `ablate up --listen HOST:PORT` other machines reach the server at ",
      join->address()));
  return kSuccess;
}

struct RenewOptions {
  std::vector<std::string> hosts;
  bool only = false;
  bool json = false;
};

absl::StatusOr<int> Renew(const RenewOptions& options, const Context& context,
                          Connection* connection) {
  v1::RenewCertificateRequest request;
  for (const std::string& host : options.hosts) request.add_hosts(host);
  request.set_drop_others(options.only);
  ASSIGN_OR_RETURN(const auto renewed, connection->Call(kRenewCertificate, request));
  if (options.json) PrintJson(context, renewed);
  context.console.Info(absl::StrCat("certificate for ", absl::StrJoin(renewed.hosts(), ", "),
                                    ", valid until ", DateOf(renewed.expire_time()),
                                    " UTC; new connections use it"));
  return kSuccess;
}

struct AuditOptions {
  std::string user;
  std::string method;
  std::optional<uint32_t> limit;
  bool json = false;
};

absl::StatusOr<int> Audit(const AuditOptions& options, const Context& context,
                          Connection* connection) {
  constexpr uint32_t kDefaultLimit = 50;
  v1::ListAuditRequest request;
  request.set_user(options.user);
  request.set_method(options.method);
  ASSIGN_OR_RETURN(const auto list,
                   ListFirst(connection, kListAudit, &v1::ListAuditResponse::mutable_entries,
                             request, options.limit.value_or(kDefaultLimit)));
  if (options.json) return PrintJson(context, list);
  Table table({{"time, UTC"}, {"user"}, {"method"}, {"what"}, {"outcome"}});
  for (const v1::AuditEntry& entry : list.entries()) {
    table.Add(
        {DateOf(entry.time()), entry.user(), entry.method(), entry.resource(), entry.outcome()});
  }
  return PrintTable(context, table);
}

}  // namespace

Action DefineAdminInit(Command* command) {
  auto options = std::make_shared<InitOptions>();
  command->Argument(&options->address, "ADDRESS",
                    "HOST:PORT at which other machines reach the server");
  command->Options(&options->hosts, "--host", "HOST",
                   "Include another name or address of the machine in the certificate");
  command->Option(&options->user, "--user", "NAME",
                  "Name of the first admin [your user name on this machine]");
  command->Output(&options->output, OutputKind::kFile, "FILE",
                  "Write the admin's join file to FILE, with mode 0600 [admin.join]");
  command->Flag(&options->json, "--json",
                "Print the join file as JSON; write it only if -o is given");
  command->Footer(
      "Run it on the server's machine while the server runs. It creates tls/ (authority and "
      "certificate) and access.db (users and tokens) in the server's folder.\n\n"
      "Example:\n  ablate admin init lab.example.org:7443\n  ablate down\n"
      "  ablate up --listen 0.0.0.0:7443");
  return WithServer(options, Init);
}

Action DefineAdminRenew(Command* command) {
  auto options = std::make_shared<RenewOptions>();
  command->Options(&options->hosts, "--host", "HOST",
                   "Include another name or address of the machine in the certificate");
  command->Flag(&options->only, "--only",
                "Include only these and the ADDRESS of `ablate admin init`, not the hosts of the "
                "previous certificate");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Run it on the server's machine. Join files stay valid because the authority is the same. "
      "The server renews its certificate by itself when 30 days are left, unless tls/authority.key "
      "is kept elsewhere.\n\n"
      "Example:\n  ablate admin renew --host lab.example.org");
  return WithServer(options, Renew);
}

Action DefineAdminAudit(Command* command) {
  auto options = std::make_shared<AuditOptions>();
  command->Option(&options->user, "--user", "NAME", "List only calls of this user [all]");
  command->Option(&options->method, "--method", "PREFIX",
                  "List only methods that begin with PREFIX, such as Experiments. [all]");
  command->Option(&options->limit, "--limit", "N", "List at most N, 0 for all [50]");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate admin audit --user ada");
  return WithServer(options, Audit);
}

}  // namespace ablate::client
