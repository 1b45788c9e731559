// `ablate admin quota …`: limits of users, and their usage.
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/admin.pb.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "client/command_table.h"
#include "client/names.h"
#include "client/output/format.h"
#include "client/output/table.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

constexpr absl::string_view kNone = "none";

struct SetOptions {
  std::string user;
  // As given; empty: as it was.
  std::string lanes, queued_runs, stored;
  bool json = false;
};

// A whole number, perhaps with a unit of bytes, from `least` to `most`.
absl::StatusOr<uint64_t> ReadNumber(const std::string& option, const std::string& text, bool bytes,
                                    uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const bool read = bytes ? ParseBytes(text, &value) : absl::SimpleAtoi(text, &value);
  if (read && value >= least && value <= most) return value;
  return absl::InvalidArgumentError(absl::StrCat(
      option, ": ", reflect::Quoted(text), " is not a limit; expected ", kNone, ", or ", least,
      " to ", most, bytes ? " with or without a unit, such as 20GB" : ""));
}

// One limit of a quota: its option, range and field.
struct Limit {
  const char* option;
  std::string SetOptions::*text;
  bool bytes;
  uint64_t least, most;
  void (*set)(uint64_t value, v1::Quota* quota);
  void (*clear)(v1::Quota* quota);
};
constexpr Limit kLimits[] = {
    {"--lanes", &SetOptions::lanes, false, 1, std::numeric_limits<uint32_t>::max(),
     [](uint64_t value, v1::Quota* quota) { quota->set_lanes(static_cast<uint32_t>(value)); },
     [](v1::Quota* quota) { quota->clear_lanes(); }},
    {"--queued-runs", &SetOptions::queued_runs, false, 0, std::numeric_limits<int64_t>::max(),
     [](uint64_t value, v1::Quota* quota) { quota->set_queued_runs(value); },
     [](v1::Quota* quota) { quota->clear_queued_runs(); }},
    {"--stored", &SetOptions::stored, true, 0, std::numeric_limits<int64_t>::max(),
     [](uint64_t value, v1::Quota* quota) { quota->set_stored_bytes(value); },
     [](v1::Quota* quota) { quota->clear_stored_bytes(); }},
};

// New value of a limit; none if it is removed.
struct Change {
  const Limit* limit;
  std::optional<uint64_t> value;
};
using Changes = std::vector<Change>;

absl::StatusOr<Changes> ReadChanges(const SetOptions& options) {
  Changes changes;
  for (const Limit& limit : kLimits) {
    const std::string& text = options.*limit.text;
    if (text.empty()) continue;
    changes.push_back({&limit, std::nullopt});
    if (text == kNone) continue;
    ASSIGN_OR_RETURN(changes.back().value,
                     ReadNumber(limit.option, text, limit.bytes, limit.least, limit.most));
  }
  if (!changes.empty()) return changes;
  return absl::InvalidArgumentError(
      "no limit is given; expected --lanes, --queued-runs or --stored");
}

void Apply(const Changes& changes, v1::Quota* quota) {
  for (const Change& change : changes) {
    if (change.value) {
      change.limit->set(*change.value, quota);
    } else {
      change.limit->clear(quota);
    }
  }
}

absl::StatusOr<v1::ListUsersResponse> Users(Connection* connection) {
  return ListAll(connection, kListUsers, &v1::ListUsersResponse::mutable_users);
}

// "3", "none".
template <typename Value>
std::string Most(bool given, Value value) {
  return given ? absl::StrCat(value) : std::string(kNone);
}

std::string StoredText(const v1::Quota& quota) {
  return quota.has_stored_bytes() ? Bytes(quota.stored_bytes()) : std::string(kNone);
}

absl::StatusOr<int> SetQuota(const SetOptions& options, const Changes& changes,
                             const Context& context, Connection* connection) {
  ASSIGN_OR_RETURN(const auto users, Users(connection));
  v1::SetQuotaRequest request;
  request.set_name(options.user);
  for (const v1::User& user : users.users()) {
    if (Id(user.name()) == Id(options.user)) *request.mutable_quota() = user.quota();
  }
  Apply(changes, request.mutable_quota());
  ASSIGN_OR_RETURN(const auto user, connection->Call(kSetQuota, request));
  if (options.json) PrintJson(context, user);
  const v1::Quota& quota = user.quota();
  context.console.Info(absl::StrCat(
      Id(user.name()), ": lanes ", Most(quota.has_lanes(), quota.lanes()), ", queued runs ",
      Most(quota.has_queued_runs(), quota.queued_runs()), ", stored ", StoredText(quota)));
  return kSuccess;
}

// Returns usage and limit, such as "3 of 4".
std::string Of(const std::string& has, const std::string& most) {
  return most == kNone ? has : absl::StrCat(has, " of ", most);
}

struct QuotaListOptions {
  bool json = false;
};

absl::StatusOr<int> ListQuotas(const QuotaListOptions& options, const Context& context,
                               Connection* connection) {
  ASSIGN_OR_RETURN(const auto list, Users(connection));
  if (options.json) return PrintJson(context, list);
  Table table({{"user"}, {"lanes"}, {"queued runs"}, {"stored"}, {"recent device time"}});
  for (const v1::User& user : list.users()) {
    const v1::Quota& quota = user.quota();
    const v1::Usage& usage = user.usage();
    table.Add(
        {Id(user.name()), Of(absl::StrCat(usage.lanes()), Most(quota.has_lanes(), quota.lanes())),
         Of(absl::StrCat(usage.queued_runs()), Most(quota.has_queued_runs(), quota.queued_runs())),
         Of(Bytes(usage.stored_bytes()), StoredText(quota)),
         Duration(absl::Seconds(usage.device_time().seconds()))});
  }
  return PrintTable(context, table);
}

}  // namespace

Action DefineAdminQuotaSet(Command* command) {
  auto options = std::make_shared<SetOptions>();
  command->Argument(&options->user, "NAME", "User name");
  command->Option(&options->lanes, "--lanes", "N",
                  "Limit the runs that workers hold at one time, to train now or next, 1 or more, "
                  "or none");
  command->Option(&options->queued_runs, "--queued-runs", "N",
                  "Limit the runs that are queued or training, 0 or more, or none; a submit beyond "
                  "the limit is refused");
  command->Option(&options->stored, "--stored", "SIZE",
                  "Limit the bytes of checkpoints, data sets and arrays, and of those that queued "
                  "runs will write, such as 20GB, or none");
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "Limits that aren't given are unchanged. Runs and data that exceed a new limit stay.\n\n"
      "Example:\n  ablate admin quota set ada --lanes 4 --stored 20GB");
  return WithServer(*command, options, ReadChanges, SetQuota);
}

Action DefineAdminQuotaLs(Command* command) {
  auto options = std::make_shared<QuotaListOptions>();
  command->Flag(&options->json, "--json", kJsonHelp);
  command->Footer(
      "A run is charged to the first owner of the experiments that keep it alive. Recent device "
      "time halves every hour; the user with the least comes first.\n\n"
      "Example:\n  ablate admin quota ls");
  return WithServer(options, ListQuotas);
}

}  // namespace ablate::client
