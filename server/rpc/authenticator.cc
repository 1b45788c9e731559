#include "server/rpc/authenticator.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/descriptor.h"
#include "server/rpc/errors.h"
#include "server/rpc/identity.h"

namespace ablate::rpc {
namespace {

constexpr absl::string_view kOurs = "/ablate.";
constexpr char kPath[] = ":path";

// Roles that a rule lets in besides admins, in the order of what they may.
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

// "Experiments.CancelExperiment".
std::string ShortName(absl::string_view path) {
  const size_t dot = path.rfind('.');
  return absl::StrReplaceAll(path.substr(dot == absl::string_view::npos ? 1 : dot + 1),
                             {{"/", "."}});
}

}  // namespace

absl::StatusOr<v1::Access> RuleOf(absl::string_view path) {
  v1::Access rule;
  if (absl::StartsWith(path, "/grpc.health.v1.Health/")) {
    rule.set_anyone(true);
    return rule;
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
        absl::StrCat(method->full_name(), " has no rule of who may call it"));
  }
  return method->options().GetExtension(v1::access);
}

absl::Status CheckRole(const v1::Access& rule, storage::Role role, absl::string_view path) {
  if (rule.local()) {
    return absl::PermissionDeniedError(
        absl::StrCat(ShortName(path), " is for the server's owner alone, through its unix socket"));
  }
  if (rule.anyone()) return absl::OkStatus();
  const storage::Role least = LeastOf(rule);
  const bool enough = least == storage::Role::kWorker || role == storage::Role::kWorker
                          ? role == least
                          : RankOf(role) >= RankOf(least);
  if (enough) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(ShortName(path), " needs the role ",
                                                  storage::RoleName(least), "; yours is ",
                                                  storage::RoleName(role)));
}

Authenticator::Authenticator(storage::AccessStore* store, std::function<absl::Time()> now)
    : store_(store), now_(std::move(now)) {}

absl::Status Authenticator::Check(const InputMetadata& metadata) const {
  const auto secret = SecretIn(metadata);
  if (!secret.ok()) return secret.status();
  const auto caller = store_->Authenticate(*secret, now_());
  if (!caller.ok()) return caller.status();
  const auto path = metadata.find(kPath);
  const absl::string_view method =
      path == metadata.end() ? "" : absl::string_view(path->second.data(), path->second.size());
  const auto rule = RuleOf(method);
  return rule.ok() ? CheckRole(*rule, caller->role, method) : rule.status();
}

grpc::Status Authenticator::Process(const InputMetadata& metadata, grpc::AuthContext*,
                                    OutputMetadata*, OutputMetadata*) {
  return ToGrpc(Check(metadata));
}

}  // namespace ablate::rpc
