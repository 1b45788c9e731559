// `ablate admin user | token …`: who may reach the server.
#include <google/protobuf/empty.pb.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "proto/join/join_file.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr int64_t kSecondsOfDay = 86'400;
constexpr uint32_t kMostDays = 3650;  // as the server has it
constexpr char kYes[] = "yes", kNo[] = "no";

// Returns the role of this name; `option` is for the error. INVALID_ARGUMENT.
absl::StatusOr<v1::Role::Value> ReadRole(const char* option, const std::string& name) {
  v1::Role::Value role = v1::Role::unspecified;
  const bool known = v1::Role::Value_Parse(name, &role) && role != v1::Role::unspecified;
  if (known) return role;
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": ", reflect::Quoted(name),
                   " is unknown; expected reader, member, admin or worker"));
}

struct TokenOptions {
  std::string user;
  std::string role = "member";
  bool programs = false;
  std::string note;
  std::optional<uint32_t> days;
  Output output;
  bool json = false;
};

absl::StatusOr<v1::CreateTokenRequest> MakeTokenRequest(const TokenOptions& options) {
  v1::CreateTokenRequest request;
  request.set_user(options.user);
  request.set_note(options.note);
  if (!options.days) return request;
  if (*options.days < 1 || *options.days > kMostDays) {
    return absl::InvalidArgumentError(
        absl::StrCat("--days: ", *options.days, " is out of range; expected 1 to ", kMostDays));
  }
  request.mutable_lifetime()->set_seconds(*options.days * kSecondsOfDay);
  return request;
}

// Revokes a token that nobody has; returns `why`.
absl::Status Forget(const v1::Token& token, Connection* connection, absl::Status why) {
  v1::RevokeTokenRequest revoke;
  revoke.set_name(token.name());
  connection->Call(kRevokeToken, revoke).IgnoreError();
  return why;
}

// Returns an error if the join file can't be written, before a token is made.
absl::Status CheckJoinOutput(const Output& output) {
  return output.is_standard() ? absl::OkStatus() : join::CheckNewFile(output.path, output.force);
}

// Makes a token and writes its join file, or prints it if no file is named.
absl::Status MakeToken(const TokenOptions& options, const v1::CreateTokenRequest& request,
                       const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const auto created, connection->Call(kCreateToken, request));
  const std::string what = absl::StrCat("token ", Id(created.token().name()), " of ", options.user,
                                        ", valid until ", Day(created.join().expire_time()),
                                        "; whoever has the file acts as ", options.user);
  if (!options.output.given() || options.output.is_standard()) {
    context.console.data() << ToJson(created.join()) << std::flush;
    if (!context.console.data()) {
      return Forget(
          created.token(), connection,
          absl::DataLossError("writing the token to standard output failed; it is revoked"));
    }
    context.console.Info(what);
    return absl::OkStatus();
  }
  if (absl::Status written =
          join::WriteJoinFile(options.output.path, created.join(), options.output.force);
      !written.ok()) {
    return Forget(created.token(), connection, written);
  }
  if (options.json) PrintJson(context, created.token());
  context.console.Info(absl::StrCat(options.output.path, ": ", what));
  return absl::OkStatus();
}

// Both requests are checked before any is sent, so that no user is made without a token.
struct NewUser {
  v1::CreateUserRequest user;
  v1::CreateTokenRequest token;
};

absl::StatusOr<NewUser> MakeNewUser(const TokenOptions& options) {
  ASSIGN_OR_RETURN(const auto role, ReadRole("--role", options.role));
  ASSIGN_OR_RETURN(auto token, MakeTokenRequest(options));
  NewUser made;
  made.user.set_user(options.user);
  made.user.set_role(role);
  made.user.set_programs(options.programs);
  made.token = std::move(token);
  return made;
}

absl::StatusOr<int> AddUser(const TokenOptions& options, const NewUser& request,
                            const Context& context, Connection* connection) {
  RETURN_IF_ERROR(CheckJoinOutput(options.output));
  ASSIGN_OR_RETURN(const auto user, connection->Call(kCreateUser, request.user));
  absl::Status made = MakeToken(options, request.token, context, connection);
  if (made.ok()) return kSuccess;
  // As if nothing had happened, so that the same command can be given again.
  v1::DeleteUserRequest undo;
  undo.set_name(options.user);
  if (connection->Call(kDeleteUser, undo).ok()) return made;
  return absl::Status(made.code(), absl::StrCat(made.message(), "; ", options.user,
                                                " is a user without a token: `ablate admin token "
                                                "add ",
                                                options.user, "` makes one"));
}

absl::StatusOr<int> AddToken(const TokenOptions& options, const v1::CreateTokenRequest& request,
                             const Context& context, Connection* connection) {
  RETURN_IF_ERROR(CheckJoinOutput(options.output));
  RETURN_IF_ERROR(MakeToken(options, request, context, connection));
  return kSuccess;
}

struct UserListOptions {
  std::string user;
  bool json = false;
};

absl::StatusOr<int> ListUsers(const UserListOptions& options, const Context& context,
                              Connection* connection) {
  ASSIGN_OR_RETURN(const auto list,
                   ListAll(connection, kListUsers, &v1::ListUsersResponse::mutable_users));
  if (options.json) return PrintJson(context, list);
  Table table({{"user"}, {"role"}, {"programs"}, {"created"}});
  for (const v1::User& user : list.users()) {
    table.Add({Id(user.name()), v1::Role::Value_Name(user.role()), user.programs() ? kYes : kNo,
               Ago(user.create_time(), context.now())});
  }
  return PrintTable(context, table);
}

std::string StateOf(const v1::Token& token, absl::Time now) {
  if (token.has_revoke_time()) return "revoked";
  const absl::Time expires = absl::FromUnixSeconds(token.expire_time().seconds());
  return token.has_expire_time() && expires <= now ? "expired" : "valid";
}

absl::StatusOr<int> ListTokens(const UserListOptions& options, const Context& context,
                               Connection* connection) {
  v1::ListTokensRequest request;
  request.set_user(options.user);
  ASSIGN_OR_RETURN(const auto list, ListAll(connection, kListTokens,
                                            &v1::ListTokensResponse::mutable_tokens, request));
  if (options.json) return PrintJson(context, list);
  Table table({{"token"}, {"user"}, {"note"}, {"state"}, {"expires"}, {"last used"}});
  for (const v1::Token& token : list.tokens()) {
    table.Add({Id(token.name()), Id(token.user()), token.note(), StateOf(token, context.now()),
               token.has_expire_time() ? Day(token.expire_time()) : "—",
               token.has_last_use_time() ? Ago(token.last_use_time(), context.now()) : "never"});
  }
  return PrintTable(context, table);
}

struct RoleOptions {
  std::string user;
  std::string role;
  bool json = false;
};

absl::StatusOr<v1::UpdateUserRequest> MakeRoleRequest(const RoleOptions& options) {
  ASSIGN_OR_RETURN(const auto role, ReadRole("ROLE", options.role));
  v1::UpdateUserRequest request;
  request.set_name(options.user);
  request.set_role(role);
  return request;
}

absl::StatusOr<int> SetRole(const RoleOptions& options, const v1::UpdateUserRequest& request,
                            const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const auto user, connection->Call(kUpdateUser, request));
  if (options.json) PrintJson(context, user);
  context.console.Info(
      absl::StrCat(Id(user.name()), " is ", v1::Role::Value_Name(user.role()), " now"));
  return kSuccess;
}

struct ProgramsOptions {
  std::string user;
  std::string programs;
  bool json = false;
};

absl::StatusOr<v1::UpdateUserRequest> MakeProgramsRequest(const ProgramsOptions& options) {
  if (options.programs != kYes && options.programs != kNo) {
    return absl::InvalidArgumentError(absl::StrCat("ALLOWED: ", reflect::Quoted(options.programs),
                                                   " is unknown; expected yes or no"));
  }
  v1::UpdateUserRequest request;
  request.set_name(options.user);
  request.set_programs(options.programs == kYes);
  return request;
}

absl::StatusOr<int> SetPrograms(const ProgramsOptions& options,
                                const v1::UpdateUserRequest& request, const Context& context,
                                Connection* connection) {
  ASSIGN_OR_RETURN(const auto user, connection->Call(kUpdateUser, request));
  if (options.json) PrintJson(context, user);
  context.console.Info(absl::StrCat(
      Id(user.name()), user.programs() ? " may submit programs" : " may not submit programs",
      user.programs() && !request.programs() ? ", because admins always may" : ""));
  return kSuccess;
}

struct NameOptions {
  std::string name;
  bool json = false;
};

absl::StatusOr<int> RemoveUser(const NameOptions& options, const Context& context,
                               Connection* connection) {
  v1::DeleteUserRequest request;
  request.set_name(options.name);
  RETURN_IF_ERROR(connection->Call(kDeleteUser, request).status());
  if (options.json) PrintJson(context, google::protobuf::Empty());
  context.console.Info(absl::StrCat("removed ", options.name, "; its experiments stay"));
  return kSuccess;
}

absl::StatusOr<int> Revoke(const NameOptions& options, const Context& context,
                           Connection* connection) {
  v1::RevokeTokenRequest request;
  request.set_name(options.name);
  ASSIGN_OR_RETURN(const auto token, connection->Call(kRevokeToken, request));
  if (options.json) PrintJson(context, token);
  context.console.Info(absl::StrCat("revoked token ", Id(token.name()), " of ", Id(token.user())));
  return kSuccess;
}

void DefineTokenOptions(Command* command, TokenOptions* options) {
  command->Option(&options->note, "--note", "TEXT", "Note about the token's use, such as laptop");
  command->Option(&options->days, "--days", "N", "Days until the token expires, 1–3650 [90]");
  command->Output(&options->output, OutputKind::kFile, "FILE",
                  "Write the join file to FILE, with mode 0600 [standard output]");
  command->Flag(&options->json, "--json",
                "With -o, print the token's message as JSON, without its secret");
}

}  // namespace

Action DefineAdminUserAdd(Command* command) {
  auto options = std::make_shared<TokenOptions>();
  command->Argument(&options->user, "NAME", "User name: lower-case letters, digits and . _ -");
  command->Option(&options->role, "--role", "ROLE",
                  "Role: reader (reads), member (creates, changes its own), admin (changes all) or "
                  "worker (trains) [member]");
  command->Flag(&options->programs, "--programs", "Let a member submit own programs");
  DefineTokenOptions(command, options.get());
  command->Footer(
      "The user needs only the join file: `ablate login --join FILE`. A machine that trains for "
      "the server needs one of role worker: `ablate-worker --join FILE`.\n\n"
      "Examples:\n  ablate admin user add ada -o ada.join\n"
      "  ablate admin user add gpu2 --role worker -o gpu2.join");
  return WithServer(*command, options, MakeNewUser, AddUser);
}

Action DefineAdminUserLs(Command* command) {
  auto options = std::make_shared<UserListOptions>();
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate admin user ls");
  return WithServer(options, ListUsers);
}

Action DefineAdminUserRole(Command* command) {
  auto options = std::make_shared<RoleOptions>();
  command->Argument(&options->user, "NAME", "User name");
  command->Argument(&options->role, "ROLE", "New role: reader, member, admin or worker");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Open streams of the user's tokens end.\n\n"
      "Example:\n  ablate admin user role ada admin");
  return WithServer(*command, options, MakeRoleRequest, SetRole);
}

Action DefineAdminUserPrograms(Command* command) {
  auto options = std::make_shared<ProgramsOptions>();
  command->Argument(&options->user, "NAME", "User name");
  command->Argument(&options->programs, "ALLOWED", "Right to submit programs: yes or no");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Admins always may submit programs. Experiments that exist go on after `no`.\n\n"
      "Example:\n  ablate admin user programs ada yes");
  return WithServer(*command, options, MakeProgramsRequest, SetPrograms);
}

Action DefineAdminUserRm(Command* command) {
  auto options = std::make_shared<NameOptions>();
  command->Argument(&options->name, "NAME", "User name");
  command->Flag(&options->json, "--json", "Print an empty message as JSON");
  command->Footer("The user's experiments stay.\n\nExample:\n  ablate admin user rm ada");
  return WithServer(options, RemoveUser);
}

Action DefineAdminTokenAdd(Command* command) {
  auto options = std::make_shared<TokenOptions>();
  command->Argument(&options->user, "USER", "User name");
  DefineTokenOptions(command, options.get());
  command->Footer("Example:\n  ablate admin token add ada --note laptop -o ada-laptop.join");
  return WithServer(*command, options, MakeTokenRequest, AddToken);
}

Action DefineAdminTokenLs(Command* command) {
  auto options = std::make_shared<UserListOptions>();
  command->OptionalArgument(&options->user, "USER", "User name [yourself; for admins: all users]");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer("Example:\n  ablate admin token ls ada");
  return WithServer(options, ListTokens);
}

Action DefineAdminTokenRevoke(Command* command) {
  auto options = std::make_shared<NameOptions>();
  command->Argument(&options->name, "TOKEN", "ID of the token, from `ablate admin token ls`");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Open streams of the token end.\n\nExample:\n"
      "  ablate admin token revoke 5f0c2a91");
  return WithServer(options, Revoke);
}

}  // namespace ablate::client
