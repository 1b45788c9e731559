#include "server/submit/plan_limits.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/lookup/limits.h"
#include "server/submit/quotas.h"

namespace ablate::submit {
namespace {

constexpr double kLargeShareOfDisk = .8;  // beyond this, an experiment's size is worth a note

// Returns "training 128 runs with 224 analyses".
std::string WorkOf(size_t runs, uint64_t analyses) {
  return absl::StrCat("training ", runs, runs == 1 ? " run" : " runs",
                      analyses > 0 ? absl::StrCat(" with ", analyses, " analyses") : "");
}

spec::Problem OverLimit(const std::string& field, const std::string& limit,
                        const std::string& needed, const std::string& work) {
  return reflect::MakeProblem(
      field, limit, absl::StrCat(work, " needs about ", needed, ", more than ", limit),
      absl::StrCat("at least ", needed, ". Raise the limit, or submit a smaller experiment"));
}

std::string SecondsText(absl::Duration time) {
  return absl::StrCat(absl::ToInt64Seconds(absl::Ceil(time, absl::Seconds(1))), "s");
}

// Checks measured times against the limit. A guess may be wrong by several times, so it only warns.
void CheckDeviceTime(const std::string& work, Plan* plan) {
  constexpr char kField[] = "limits.device_time";
  const auto& problems = plan->resolution.problems;
  const bool told =
      std::any_of(problems.begin(), problems.end(),
                  [&](const spec::Problem& problem) { return problem.field == kField; });
  if (told) return;  // the limit itself is out of range
  const auto& wanted = plan->resolution.spec.limits().device_time();
  const absl::Duration limit = absl::Seconds(wanted.seconds()) + absl::Nanoseconds(wanted.nanos());
  const std::string text = google::protobuf::util::TimeUtil::ToString(wanted);
  const Cost& cost = plan->cost;
  if (cost.measured_time > limit) {
    plan->resolution.problems.push_back(
        OverLimit(kField, text, SecondsText(cost.measured_time), work));
  } else if (cost.device_time > limit) {
    plan->resolution.notes.push_back(absl::StrCat(
        kField, ": ", work, " may take about ", SecondsText(cost.device_time), ", more than ", text,
        "; this is a guess (too few similar runs or analyses were made here), so the experiment is "
        "accepted"));
  }
}

std::string RoundedUpMegabytes(uint64_t bytes) {
  return absl::StrCat((bytes + 999'999) / 1'000'000, " MB");
}

// Returns the runs that would count for the owner's quota and don't yet: new ones, and those that
// other users have queued or training.
uint64_t RunsToAdd(const Plan& plan) {
  uint64_t runs = 0;
  for (size_t i = 0; i < plan.runs.size(); ++i) {
    const storage::KnownRun& known = plan.known[i];
    const bool open =
        known.state == storage::RunState::kQueued || known.state == storage::RunState::kLeased;
    if (!plan.reused[i] || (open && !known.counts_toward_quota)) ++runs;
  }
  return runs;
}

}  // namespace

void CheckLimits(size_t trained, Plan* plan) {
  if (plan->analyses > lookup::kMaxOpenAnalyses) {
    plan->resolution.problems.push_back(reflect::MakeProblem(
        "analyses", "", absl::StrCat(text::Grouped(plan->analyses), " analyses in all"),
        absl::StrCat("at most ", text::Grouped(lookup::kMaxOpenAnalyses))));
  }
  const v1::Limits& limits = plan->resolution.spec.limits();
  const std::string work = WorkOf(trained, plan->analyses);
  if (limits.has_device_time()) CheckDeviceTime(work, plan);
  if (limits.has_bytes() && plan->cost.bytes > limits.bytes()) {
    const auto words = [](uint64_t bytes) { return absl::StrCat(text::Grouped(bytes), " bytes"); };
    plan->resolution.problems.push_back(
        OverLimit("limits.bytes", words(limits.bytes()), words(plan->cost.bytes), work));
  }
}

absl::Status CheckRoom(const storage::Store& store, Plan* plan) {
  ASSIGN_OR_RETURN(const uint64_t free, store.FreeBytes());
  const uint64_t needed = plan->cost.bytes;
  if (needed == 0) return absl::OkStatus();
  const std::string what =
      absl::StrCat("the experiment needs about ", RoundedUpMegabytes(needed), ", and ",
                   store.folder(), " has ", RoundedUpMegabytes(free), " free");
  if (needed > free) {
    plan->no_room = absl::StrCat(what, ". Free disk space, or submit a smaller experiment");
  } else if (static_cast<double>(needed) > kLargeShareOfDisk * static_cast<double>(free)) {
    plan->resolution.notes.push_back(what);
  }
  return absl::OkStatus();
}

absl::Status CheckUsersQuota(const Backend& backend, const std::string& user, Plan* plan) {
  const absl::Status allowed = CheckQuota(backend, user, {RunsToAdd(*plan), plan->cost.bytes});
  if (!absl::IsResourceExhausted(allowed)) return allowed;
  plan->no_room = std::string(allowed.message());
  return absl::OkStatus();
}

}  // namespace ablate::submit
