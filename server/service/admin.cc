// Admin service: users, their tokens and the audit log.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ablate/v1/admin.pb.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/access/sharing.h"
#include "server/lookup/errors.h"
#include "server/lookup/page.h"
#include "server/rpc/call.h"
#include "server/rpc/identity.h"
#include "server/service/check_store.h"
#include "server/service/convert.h"
#include "server/service/methods.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

constexpr int kMaxHosts = 63;  // in addition to the address's
constexpr absl::Duration kLifetime = absl::Hours(24 * 90);
constexpr absl::Duration kLeastLifetime = absl::Minutes(1);
constexpr absl::Duration kMostLifetime = absl::Hours(24 * 3650);
constexpr absl::string_view kUsers = "users/", kTokens = "tokens/";

std::string UserName(absl::string_view user) { return absl::StrCat(kUsers, user); }
std::string TokenName(absl::string_view id) { return absl::StrCat(kTokens, id); }

// Returns the name without its collection, which is optional.
std::string WithoutCollection(absl::string_view name, absl::string_view collection) {
  return std::string(absl::StripPrefix(name, collection));
}

constexpr std::pair<storage::Role, v1::Role::Value> kRoles[] = {
    {storage::Role::kReader, v1::Role::reader},
    {storage::Role::kMember, v1::Role::member},
    {storage::Role::kAdmin, v1::Role::admin},
    {storage::Role::kWorker, v1::Role::worker}};

v1::Role::Value AdminProto(storage::Role role) {
  for (const auto& [stored, message] : kRoles) {
    if (stored == role) return message;
  }
  return v1::Role::unspecified;
}

absl::StatusOr<storage::Role> FromProto(v1::Role::Value role) {
  for (const auto& [stored, message] : kRoles) {
    if (message == role) return stored;
  }
  return lookup::InvalidField(
      "role",
      absl::StrCat(v1::Role::Value_IsValid(role) ? v1::Role::Value_Name(role) : absl::StrCat(role),
                   " isn't a user's role"),
      "reader, member, admin or worker");
}

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  return service::ToTimestamp(absl::ToUnixMicros(time));
}

v1::Quota AdminProto(const storage::Quota& quota) {
  v1::Quota message;
  if (quota.lanes) message.set_lanes(static_cast<uint32_t>(*quota.lanes));
  if (quota.queued_runs) message.set_queued_runs(static_cast<uint64_t>(*quota.queued_runs));
  if (quota.stored_bytes) message.set_stored_bytes(static_cast<uint64_t>(*quota.stored_bytes));
  return message;
}

absl::StatusOr<storage::Quota> FromProto(const v1::Quota& quota) {
  storage::Quota stored;
  if (quota.has_lanes() && quota.lanes() == 0) {
    return lookup::InvalidField("quota.lanes", "0 would block runs forever", "at least 1");
  }
  if (quota.has_lanes()) stored.lanes = quota.lanes();
  const std::tuple<const char*, bool, uint64_t, std::optional<int64_t>*> large[] = {
      {"quota.queued_runs", quota.has_queued_runs(), quota.queued_runs(), &stored.queued_runs},
      {"quota.stored_bytes", quota.has_stored_bytes(), quota.stored_bytes(), &stored.stored_bytes}};
  for (const auto& [field, given, value, to] : large) {
    if (!given) continue;
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      return lookup::InvalidField(field, absl::StrCat(value, " is too large"),
                                  absl::StrCat("at most ", INT64_MAX));
    }
    *to = static_cast<int64_t>(value);
  }
  return stored;
}

v1::Usage AdminProto(const storage::DeviceShare& share, const storage::Holdings& holdings) {
  v1::Usage usage;
  usage.set_lanes(share.training);
  usage.set_queued_runs(holdings.open_runs);
  usage.set_stored_bytes(holdings.bytes);
  usage.mutable_device_time()->set_seconds(static_cast<int64_t>(share.used / 1e6));
  return usage;
}

v1::User AdminProto(const storage::User& user) {
  v1::User message;
  message.set_name(UserName(user.name));
  message.set_role(AdminProto(user.role));
  *message.mutable_create_time() = ToTimestamp(user.created);
  *message.mutable_quota() = AdminProto(user.quota);
  const bool is_member = user.role == storage::Role::kMember;
  message.set_programs((user.programs && is_member) || user.role == storage::Role::kAdmin);
  return message;
}

v1::Token AdminProto(const storage::Token& token) {
  v1::Token message;
  message.set_name(TokenName(token.id));
  message.set_user(UserName(token.user));
  message.set_note(token.note);
  *message.mutable_create_time() = ToTimestamp(token.created);
  if (token.expires) *message.mutable_expire_time() = ToTimestamp(*token.expires);
  if (token.revoked) *message.mutable_revoke_time() = ToTimestamp(*token.revoked);
  if (token.last_used) *message.mutable_last_use_time() = ToTimestamp(*token.last_used);
  return message;
}

v1::AuditEntry AdminProto(const storage::Audit& audit) {
  v1::AuditEntry entry;
  *entry.mutable_time() = ToTimestamp(audit.time);
  entry.set_user(audit.user);
  if (!audit.token.empty()) entry.set_token(TokenName(audit.token));
  entry.set_method(audit.method);
  entry.set_resource(audit.resource);
  entry.set_outcome(audit.outcome);
  return entry;
}

// Adds a page of in-memory rows, starting after the page token; `key` is the sort key.
template <typename Row, typename Key, typename Add, typename Request, typename Response>
absl::Status AddPage(const std::vector<Row>& rows, const std::string& list, const Key& key,
                     const Add& add, const Request& request, Response* response) {
  ASSIGN_OR_RETURN(const auto page, lookup::ReadPage(request, list, lookup::kDefaultPage));
  auto from = rows.begin();
  if (!page.position.empty()) {
    from = std::find_if(rows.begin(), rows.end(),
                        [&](const Row& row) { return key(row) == page.position; });
    if (from != rows.end()) ++from;
  }
  uint32_t added = 0;
  for (; from != rows.end() && added < page.size; ++from, ++added) add(*from, response);
  if (from != rows.end() && added > 0) {
    response->set_next_page_token(lookup::PageToken(list, key(*(from - 1))));
  }
  return absl::OkStatus();
}

// --- Methods

absl::Status WhoAmI(const Backend& backend, const storage::Caller& caller, const v1::WhoAmIRequest&,
                    v1::WhoAmIResponse* response) {
  response->set_user(UserName(caller.user));
  response->set_role(AdminProto(caller.role));
  if (caller.token.empty()) return absl::OkStatus();
  response->set_token(TokenName(caller.token));
  for (const storage::Token& token : backend.sharing->store().ListTokens(caller.user)) {
    if (token.id != caller.token || !token.expires) continue;
    *response->mutable_expire_time() = ToTimestamp(*token.expires);
  }
  return absl::OkStatus();
}

// Returns the join file with the token's secret and the server's address.
absl::StatusOr<v1::JoinFile> MakeJoinFile(access::Sharing* sharing,
                                          const storage::IssuedToken& issued, absl::Time now) {
  ASSIGN_OR_RETURN(auto entrance, sharing->FindEntrance(now));
  v1::JoinFile join;
  join.set_address(std::move(entrance.address));
  join.set_server_name(std::move(entrance.server_name));
  join.set_certificate_authority(std::move(entrance.authority));
  join.set_user(issued.token.user);
  join.set_token(issued.secret);
  *join.mutable_expire_time() = ToTimestamp(*issued.token.expires);
  return join;
}

absl::Status InitializeSharing(const Backend& backend, const storage::Caller& caller,
                               const v1::InitializeSharingRequest& request,
                               v1::JoinFile* response) {
  if (!rpc::IsLocal(caller)) {
    return absl::PermissionDeniedError(
        "only allowed through the server's unix socket. Run the command on the server machine as "
        "its owner");
  }
  if (request.hosts_size() > kMaxHosts) {
    return lookup::TooMany("hosts", request.hosts_size(), kMaxHosts);
  }
  const absl::Time now = absl::Now();
  const std::string admin = request.user().empty() ? backend.owner : request.user();
  access::Sharing* const sharing = backend.sharing;
  RETURN_IF_ERROR(sharing->Initialize(
      request.address(), {request.hosts().begin(), request.hosts().end()}, admin, now));
  ASSIGN_OR_RETURN(const auto issued,
                   sharing->store().IssueToken(admin, "made by admin init", kLifetime,
                                               rpc::ActorOf(caller), now));
  ASSIGN_OR_RETURN(*response, MakeJoinFile(sharing, issued, now));
  return absl::OkStatus();
}

absl::Status RenewCertificate(const Backend& backend, const storage::Caller&,
                              const v1::RenewCertificateRequest& request,
                              v1::RenewCertificateResponse* response) {
  if (request.hosts_size() > kMaxHosts) {
    return lookup::TooMany("hosts", request.hosts_size(), kMaxHosts);
  }
  ASSIGN_OR_RETURN(const auto facts,
                   backend.sharing->Renew(
                       {request.hosts().begin(), request.hosts().end()}, absl::Now(),
                       request.drop_others() ? access::OldNames::kDrop : access::OldNames::kKeep));
  for (const std::string& name : facts.names) response->add_hosts(name);
  *response->mutable_expire_time() = ToTimestamp(facts.not_after);
  return absl::OkStatus();
}

absl::Status CreateUser(const Backend& backend, const storage::Caller& caller,
                        const v1::CreateUserRequest& request, v1::User* response) {
  ASSIGN_OR_RETURN(const auto role, request.role() == v1::Role::unspecified
                                        ? storage::Role::kMember
                                        : FromProto(request.role()));
  // The first user is created through the unix socket; access by the network needs admin init.
  if (const auto entrance = backend.sharing->FindEntrance(absl::Now()); !entrance.ok()) {
    return entrance.status();
  }
  if (request.user() == backend.owner && role != storage::Role::kAdmin) {
    return lookup::InvalidField("user", absl::StrCat(backend.owner, " is the server's owner"),
                                "another name, or the role admin");
  }
  // A new user with the name would get what the old one owned.
  ASSIGN_OR_RETURN(const auto owns, backend.store->OwnsAnything(request.user()));
  if (owns && request.user() != backend.owner) {
    return absl::FailedPreconditionError(
        absl::StrCat("user: ", request.user(),
                     " still owns experiments, data sets, models or analyses, which a new user of "
                     "that name would inherit. Choose another name, or remove them first"));
  }
  ASSIGN_OR_RETURN(const auto user, backend.sharing->store().CreateUser(
                                        request.user(), role, {}, rpc::ActorOf(caller), absl::Now(),
                                        request.programs()));
  *response = AdminProto(user);
  return absl::OkStatus();
}

absl::Status ListUsers(const Backend& backend, const storage::Caller&,
                       const v1::ListUsersRequest& request, v1::ListUsersResponse* response) {
  ASSIGN_OR_RETURN(auto holdings, backend.store->GetHoldings());
  ASSIGN_OR_RETURN(auto shares, backend.store->GetShares());
  return AddPage(
      backend.sharing->store().ListUsers(), "users",
      [](const storage::User& user) { return user.name; },
      [&](const storage::User& user, v1::ListUsersResponse* page) {
        v1::User* const row = page->add_users();
        *row = AdminProto(user);
        *row->mutable_usage() = AdminProto(shares[user.name], holdings[user.name]);
      },
      request, response);
}

absl::Status UpdateUser(const Backend& backend, const storage::Caller& caller,
                        const v1::UpdateUserRequest& request, v1::User* response) {
  storage::AccessStore& store = backend.sharing->store();
  const std::string name = WithoutCollection(request.name(), kUsers);
  const storage::Actor actor = rpc::ActorOf(caller);
  if (request.role() == v1::Role::unspecified && !request.has_programs()) {
    return lookup::InvalidField("role", "role and programs are missing", "one of them");
  }
  if (request.role() != v1::Role::unspecified) {
    ASSIGN_OR_RETURN(const auto role, FromProto(request.role()));
    RETURN_IF_ERROR(store.SetRole(name, role, actor, absl::Now()));
  }
  if (request.has_programs()) {
    RETURN_IF_ERROR(store.SetPrograms(name, request.programs(), actor, absl::Now()));
  }
  ASSIGN_OR_RETURN(const auto user, store.GetUser(name));
  *response = AdminProto(user);
  return absl::OkStatus();
}

absl::Status SetQuota(const Backend& backend, const storage::Caller& caller,
                      const v1::SetQuotaRequest& request, v1::User* response) {
  ASSIGN_OR_RETURN(const auto quota, FromProto(request.quota()));
  storage::AccessStore& store = backend.sharing->store();
  const std::string name = WithoutCollection(request.name(), kUsers);
  RETURN_IF_ERROR(store.SetQuota(name, quota, rpc::ActorOf(caller), absl::Now()));
  // Runs that waited for the old limit may start now.
  backend.scheduler->Post([](schedule::Scheduler& scheduler) { scheduler.Dispatch(); });
  ASSIGN_OR_RETURN(const auto user, store.GetUser(name));
  *response = AdminProto(user);
  return absl::OkStatus();
}

absl::Status DeleteUser(const Backend& backend, const storage::Caller& caller,
                        const v1::DeleteUserRequest& request, google::protobuf::Empty*) {
  return backend.sharing->store().DeleteUser(WithoutCollection(request.name(), kUsers),
                                             rpc::ActorOf(caller), absl::Now());
}

absl::Status CreateToken(const Backend& backend, const storage::Caller& caller,
                         const v1::CreateTokenRequest& request, v1::CreateTokenResponse* response) {
  storage::AccessStore& store = backend.sharing->store();
  const std::string name = WithoutCollection(request.user(), kUsers);
  ASSIGN_OR_RETURN(const auto user, store.GetUser(name));
  absl::Duration lifetime = kLifetime;
  if (request.has_lifetime()) {
    lifetime =
        absl::Seconds(request.lifetime().seconds()) + absl::Nanoseconds(request.lifetime().nanos());
  }
  const int32_t nanos = request.lifetime().nanos();
  if (nanos < 0 || nanos > 999'999'999 || lifetime < kLeastLifetime || lifetime > kMostLifetime) {
    return lookup::InvalidField("lifetime",
                                absl::StrCat(absl::FormatDuration(lifetime), " is out of range"),
                                "1 minute to 3,650 days");
  }
  const absl::Time now = absl::Now();
  // Before the token is made: without an address nobody could use it.
  if (const auto entrance = backend.sharing->FindEntrance(now); !entrance.ok()) {
    return entrance.status();
  }
  ASSIGN_OR_RETURN(const auto issued,
                   store.IssueToken(name, request.note(), lifetime, rpc::ActorOf(caller), now));
  ASSIGN_OR_RETURN(auto join, MakeJoinFile(backend.sharing, issued, now));
  *response->mutable_token() = AdminProto(issued.token);
  *response->mutable_join() = std::move(join);
  return absl::OkStatus();
}

absl::Status ListTokens(const Backend& backend, const storage::Caller& caller,
                        const v1::ListTokensRequest& request, v1::ListTokensResponse* response) {
  const bool admin = caller.role == storage::Role::kAdmin;
  std::string user = WithoutCollection(request.user(), kUsers);
  if (!admin && !user.empty() && user != caller.user) {
    return absl::PermissionDeniedError(
        absl::StrCat("user: only ", user, " and admins may list the tokens of ", user));
  }
  if (!admin) user = caller.user;
  const auto whose = user.empty() ? std::nullopt : std::optional<std::string>(user);
  std::vector<storage::Token> tokens = backend.sharing->store().ListTokens(whose);
  std::reverse(tokens.begin(), tokens.end());
  return AddPage(
      tokens, absl::StrCat("tokens of ", user),
      [](const storage::Token& token) { return token.id; },
      [](const storage::Token& token, v1::ListTokensResponse* page) {
        *page->add_tokens() = AdminProto(token);
      },
      request, response);
}

absl::Status RevokeToken(const Backend& backend, const storage::Caller& caller,
                         const v1::RevokeTokenRequest& request, v1::Token* response) {
  storage::AccessStore& store = backend.sharing->store();
  const std::string id = WithoutCollection(request.name(), kTokens);
  const bool admin = caller.role == storage::Role::kAdmin;
  const auto find = [&]() -> absl::StatusOr<storage::Token> {
    const auto whose = admin ? std::nullopt : std::optional<std::string>(caller.user);
    for (storage::Token& token : store.ListTokens(whose)) {
      if (token.id == id) return std::move(token);
    }
    return absl::NotFoundError(
        absl::StrCat("there is no token ", TokenName(id), admin ? "" : " of yours"));
  };
  if (const auto found = find(); !found.ok()) return found.status();
  RETURN_IF_ERROR(store.RevokeToken(id, rpc::ActorOf(caller), absl::Now()));
  ASSIGN_OR_RETURN(const auto token, find());
  *response = AdminProto(token);
  return absl::OkStatus();
}

absl::Status ListAudit(const Backend& backend, const storage::Caller&,
                       const v1::ListAuditRequest& request, v1::ListAuditResponse* response) {
  storage::AuditQuery query;
  query.user = WithoutCollection(request.user(), kUsers);
  query.method_prefix = request.method();
  const std::string list = absl::StrCat("audit of ", query.user, " ", query.method_prefix);
  ASSIGN_OR_RETURN(const auto page, lookup::ReadPage(request, list, lookup::kDefaultPage));
  if (!page.position.empty() && !absl::SimpleAtoi(page.position, &query.before)) {
    return lookup::NotAPageToken(request.page_token());
  }
  ASSIGN_OR_RETURN(const auto audits, backend.sharing->store().ListAudits(query, page.size));
  for (const storage::Audit& audit : audits.rows) *response->add_entries() = AdminProto(audit);
  if (audits.next) {
    response->set_next_page_token(lookup::PageToken(list, absl::StrCat(*audits.next)));
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Admin", backend);
  methods->Answer(WhoAmI);
  methods->Answer(InitializeSharing);
  methods->Answer(RenewCertificate);
  methods->Compare(CheckStore);
  methods->Answer(CreateUser);
  methods->Answer(ListUsers);
  methods->Answer(UpdateUser);
  methods->Answer(SetQuota);
  methods->Answer(DeleteUser);
  methods->Answer(CreateToken);
  methods->Answer(ListTokens);
  methods->Answer(RevokeToken);
  methods->Answer(ListAudit);
  return methods;
}

}  // namespace ablate::service
