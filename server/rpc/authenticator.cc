#include "server/rpc/authenticator.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/descriptor.h"
#include "server/rpc/identity.h"

namespace ablate::rpc {
namespace {

constexpr absl::string_view kOurs = "/ablate.";
constexpr absl::string_view kScaler = "/externalscaler.ExternalScaler/";
constexpr char kPath[] = ":path";

// Ranks the roles that a rule admits, besides admins, by what they may do.
int RankOf(storage::Role role) { return static_cast<int>(role); }

storage::Role LeastOf(const v1::Access& rule) {
  switch (rule.least()) {
    case v1::Role::reader:
      return storage::Role::kReader;
    case v1::Role::member:
      return storage::Role::kMember;
    case v1::Role::worker:
      return storage::Role::kWorker;
    default:
      return storage::Role::kAdmin;
  }
}

// Returns "Experiments.CancelExperiment".
std::string ShortName(absl::string_view path) {
  const size_t dot = path.rfind('.');
  return absl::StrReplaceAll(path.substr(dot == absl::string_view::npos ? 1 : dot + 1),
                             {{"/", "."}});
}

// Returns "cancel experiment" for the path of Experiments.CancelExperiment: users don't know the
// names of methods.
std::string ActionOf(absl::string_view path) {
  std::string action;
  for (const char c : path.substr(path.rfind('/') + 1)) {
    if (absl::ascii_isupper(c) && !action.empty()) action += ' ';
    action += absl::ascii_tolower(c);
  }
  return action;
}

}  // namespace

absl::StatusOr<v1::Access> RuleOf(absl::string_view path) {
  v1::Access rule;
  if (path == "/grpc.health.v1.Health/Check") {
    rule.set_anyone(true);
    return rule;
  }
  // It is gRPC's own method, so that nothing could end it together with its token.
  if (path == "/grpc.health.v1.Health/Watch") {
    return absl::UnimplementedError("Health.Watch isn't supported. Call Health.Check");
  }
  if (absl::StartsWith(path, "/grpc.reflection.")) {
    rule.set_least(v1::Role::reader);
    return rule;
  }
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  const google::protobuf::MethodDescriptor* method = nullptr;
  if (absl::StartsWith(path, kOurs)) {
    method = pool->FindMethodByName(absl::StrReplaceAll(path.substr(1), {{"/", "."}}));
  }
  if (method == nullptr) return absl::UnimplementedError("there is no such method");
  if (!method->options().HasExtension(v1::access)) {
    return absl::InternalError(
        absl::StrCat(method->full_name(), " has no access rule (a bug of the server)"));
  }
  return method->options().GetExtension(v1::access);
}

absl::Status CheckRole(const v1::Access& rule, storage::Role role, absl::string_view path) {
  if (rule.local()) {
    return absl::PermissionDeniedError(
        absl::StrCat("\"", ActionOf(path),
                     "\" is for the server's owner only, through the server's unix socket"));
  }
  if (rule.anyone()) return absl::OkStatus();
  const storage::Role least = LeastOf(rule);
  const bool enough = least == storage::Role::kWorker || role == storage::Role::kWorker
                          ? role == least
                          : RankOf(role) >= RankOf(least);
  if (enough) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("\"", ActionOf(path), "\" needs the role ",
                                                  storage::RoleName(least), "; yours is ",
                                                  storage::RoleName(role)));
}

Authenticator::Authenticator(const storage::AccessStore* store, net::AuthenticationLog* log,
                             std::function<absl::Time()> now)
    : store_(store), log_(log), now_(std::move(now)) {}

net::CheckedCall Authenticator::Check(const net::CallMetadata& metadata,
                                      const std::string& address) const {
  const absl::Time now = now_();
  const auto path = metadata.find(kPath);
  const absl::string_view method =
      path == metadata.end() ? "" : absl::string_view(path->second.data(), path->second.size());
  const auto rule = RuleOf(method);
  net::Refusal refusal;
  refusal.address = address;
  // Clients can make up any name of an unknown method.
  if (rule.ok()) refusal.method = ShortName(method);
  const auto refuse = [&](const absl::Status& why, const std::string& user) {
    refusal.why = why;
    log_->NoteRefusal(refusal, now);
    return net::CheckedCall{user, why};
  };
  // Its requests have tokens; its connection stays an unauthenticated peer's.
  if (absl::StartsWith(method, kScaler)) return {"", absl::OkStatus()};
  const auto secret = SecretIn(metadata);
  if (!secret.ok()) return refuse(secret.status(), "");
  if (const auto token = store_->FindToken(*secret); token.has_value()) {
    refusal.user = token->user;
    refusal.token = token->id;
  }
  const auto caller = store_->Identify(*secret, now);
  if (!caller.ok()) return refuse(caller.status(), "");
  log_->NoteUse(caller->token);
  if (!rule.ok()) return {caller->user, rule.status()};
  if (const absl::Status let_in = CheckRole(*rule, caller->role, method); !let_in.ok()) {
    return refuse(let_in, caller->user);
  }
  return {caller->user, absl::OkStatus()};
}

}  // namespace ablate::rpc
