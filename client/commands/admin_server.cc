// `ablate admin init | renew | audit`: what sharing takes of the server itself.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
  std::string output;
  bool json = false;
};

absl::StatusOr<int> Init(const InitOptions& options, const Context& context,
                         Connection* connection) {
  const bool printed = options.json && options.output.empty();
  const std::string file = printed ? "" : options.output.empty() ? "admin.join" : options.output;
  // Before anything is made, for it is made once.
  if (absl::Status fine = join::CheckNewFile(file); !fine.ok()) return fine;
  v1::InitializeSharingRequest request;
  request.set_address(options.address);
  for (const std::string& host : options.hosts) request.add_hosts(host);
  request.set_user(options.user);
  const auto join = connection->InitializeSharing(request);
  if (!join.ok()) return join.status();
  if (options.json) PrintJson(context, *join);
  if (printed) return kSuccess;
  if (absl::Status written = join::WriteJoinFile(file, *join); !written.ok()) {
    return absl::Status(written.code(), absl::StrCat(written.message(),
                                                     "; all was made but for this file: `ablate "
                                                     "admin token add ",
                                                     join->user(), " -o FILE` makes another"));
  }
  context.console.Info(absl::StrCat(
      file, ": the token of ", join->user(), ", an admin, until ", DateOf(join->expire_time()),
      " UTC; from the next `ablate up --listen HOST:PORT` on others reach ", "the server at ",
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
  const auto renewed = connection->RenewCertificate(request);
  if (!renewed.ok()) return renewed.status();
  if (options.json) PrintJson(context, *renewed);
  context.console.Info(absl::StrCat("a certificate for ", absl::StrJoin(renewed->hosts(), ", "),
                                    " until ", DateOf(renewed->expire_time()),
                                    " UTC; who connects from now on is served with it"));
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
  const auto list =
      ListFirst(connection, &Connection::ListAudit, &v1::ListAuditResponse::mutable_entries,
                request, options.limit.value_or(kDefaultLimit));
  if (!list.ok()) return list.status();
  if (options.json) return PrintJson(context, *list);
  Table table({{"time, UTC"}, {"user"}, {"method"}, {"what"}, {"outcome"}});
  for (const v1::AuditEntry& entry : list->entries()) {
    table.Add(
        {DateOf(entry.time()), entry.user(), entry.method(), entry.resource(), entry.outcome()});
  }
  return PrintTable(context, table);
}

}  // namespace

Action DefineAdminInit(Command* command) {
  auto options = std::make_shared<InitOptions>();
  command->Argument(&options->address, "ADDRESS",
                    "HOST:PORT where others will reach the server, as box.example.org:7443");
  command->Options(&options->hosts, "--host", "HOST",
                   "another name or address of the machine; repeatable");
  command->Option(&options->user, "--user", "NAME", "the first admin [your name on this machine]");
  command->Option(&options->output, "--output,-o", "FILE",
                  "the admin's join file, of mode 0600 [admin.join]");
  command->Flag(&options->json, "--json", "print the join file; written only with -o then");
  command->Footer(
      "On the server's machine, of a server that runs. What it makes is in the server's folder:\n"
      "tls/ has the authority and the certificate, access.db users and tokens.\n\n"
      "Example:\n  ablate admin init box.example.org:7443\n  ablate down\n"
      "  ablate up --listen 0.0.0.0:7443");
  return WithServer(options, Init);
}

Action DefineAdminRenew(Command* command) {
  auto options = std::make_shared<RenewOptions>();
  command->Options(&options->hosts, "--host", "HOST",
                   "another name or address of the machine; repeatable");
  command->Flag(&options->only, "--only",
                "for these and ADDRESS of `ablate admin init` alone, not for what the one before "
                "was for");
  command->Flag(&options->json, "--json", "print the server's message");
  command->Footer(
      "On the server's machine. Join files stay valid: the authority is the same. The server does\n"
      "this by itself when 30 days are left, unless tls/authority.key is kept elsewhere.\n\n"
      "Example:\n  ablate admin renew --host box.example.org");
  return WithServer(options, Renew);
}

Action DefineAdminAudit(Command* command) {
  auto options = std::make_shared<AuditOptions>();
  command->Option(&options->user, "--user", "NAME", "only what this user did");
  command->Option(&options->method, "--method", "PREFIX",
                  "only methods that begin so, as Experiments.");
  command->Option(&options->limit, "--limit", "N", "at most so many, 0 for all [50]");
  command->Flag(&options->json, "--json", "print the server's message");
  command->Footer("Example:\n  ablate admin audit --user ada");
  return WithServer(options, Audit);
}

}  // namespace ablate::client
