#include "server/submit/quotas.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/config/estimate.h"
#include "server/lookup/errors.h"

namespace ablate::submit {
namespace {

absl::Status Beyond(absl::string_view message) {
  return lookup::WithReason(absl::ResourceExhaustedError(message), "QUOTA_EXCEEDED");
}

std::string Megabytes(uint64_t bytes) { return spec::BytesText(static_cast<double>(bytes)); }

}  // namespace

storage::Quota QuotaOf(const Backend& backend, const std::string& user) {
  if (backend.sharing == nullptr) return {};
  const auto known = backend.sharing->store().GetUser(user);
  return known.ok() ? known->quota : storage::Quota();
}

absl::Status CheckQuota(const Backend& backend, const std::string& user, const Demand& demand) {
  const storage::Quota quota = QuotaOf(backend, user);
  if (!quota.queued_runs.has_value() && !quota.stored_bytes.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto has, backend.store->HoldingsOf(user));
  const uint64_t runs = has.open_runs + demand.runs;
  if (demand.runs > 0 && quota.queued_runs.has_value() &&
      runs > static_cast<uint64_t>(*quota.queued_runs)) {
    return Beyond(absl::StrCat(user, " has ", has.open_runs,
                               " queued or training runs, and this experiment would add ",
                               demand.runs, "; the quota is ", *quota.queued_runs,
                               ". Wait, cancel runs, or submit a smaller experiment"));
  }
  const uint64_t bytes = has.bytes + demand.bytes;
  if (demand.bytes > 0 && quota.stored_bytes.has_value() &&
      bytes > static_cast<uint64_t>(*quota.stored_bytes)) {
    return Beyond(absl::StrCat(user, " has ", Megabytes(has.bytes),
                               " stored, and this request would add about ",
                               Megabytes(demand.bytes), "; the quota is ",
                               Megabytes(static_cast<uint64_t>(*quota.stored_bytes)),
                               ". Remove something, or submit something smaller"));
  }
  return absl::OkStatus();
}

absl::Status CheckMayRunPrograms(const Backend& backend, const storage::Viewer& caller,
                                 const v1::ExperimentSpec& spec) {
  // Without users the caller is the owner; an admin sees all.
  if (!spec.base().has_program() || caller.sees_all || backend.sharing == nullptr) {
    return absl::OkStatus();
  }
  const auto user = backend.sharing->store().GetUser(caller.user);
  if (user.ok() && user->programs) return absl::OkStatus();
  return lookup::WithReason(
      absl::PermissionDeniedError(absl::StrCat(
          "base.program: ", caller.user,
          " may not submit programs on this server. An admin can allow it: `ablate admin user "
          "programs ",
          caller.user, " yes`")),
      "NO_PROGRAMS");
}

}  // namespace ablate::submit
