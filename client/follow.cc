// Watches an experiment until it has ended, through restarts of the server.
#include "client/follow.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/exit_code.h"
#include "client/names.h"
#include "client/number_text.h"
#include "client/progress.h"
#include "text/decimal.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kPause = absl::Milliseconds(500);
// Longer than gRPC tries to connect to a server that hangs (20 s).
constexpr absl::Duration kSignOfLife = absl::Seconds(30);

// A server that is away, or too busy for one more watch.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

absl::StatusOr<v1::Experiment> Get(Connection* connection, const std::string& name) {
  v1::GetExperimentRequest request;
  request.set_name(name);
  return connection->GetExperiment(request);
}

// One watch, and a look at what came of it: the experiment if it has ended, UNAVAILABLE if there
// is more to come.
absl::StatusOr<v1::Experiment> WatchOnce(Connection* connection,
                                         v1::WatchExperimentRequest* request,
                                         const OnEvent& on_event) {
  absl::Status watched =
      connection->WatchExperiment(*request, [&](const v1::ExperimentEvent& event) {
        request->set_token(event.token());
        on_event(event);
        return absl::OkStatus();
      });
  if (absl::IsOutOfRange(watched) && !request->token().empty()) {
    request->clear_token();
    return absl::UnavailableError("the server no longer knows where this watch was");
  }
  if (!watched.ok()) return watched;
  absl::StatusOr<v1::Experiment> experiment = Get(connection, request->name());
  if (experiment.ok() && experiment->state() == v1::ExperimentState::ACTIVE) {
    return absl::UnavailableError("the server ended the watch early");
  }
  return experiment;
}

}  // namespace

absl::StatusOr<v1::Experiment> Follow(Connection* connection, const Context& context,
                                      const v1::Experiment& experiment, const OnEvent& on_event) {
  v1::WatchExperimentRequest request;
  request.set_name(experiment.name());
  const std::string primary = PrimaryMetric(experiment.spec());
  for (const std::string& key : {std::string("train/loss"), primary}) request.add_keys(key);
  absl::Time lost = absl::InfiniteFuture();  // when the server was first missed
  while (true) {
    const absl::Time began = context.now();
    absl::StatusOr<v1::Experiment> ended =
        WatchOnce(connection, &request, [&](const v1::ExperimentEvent& event) {
          lost = absl::InfiniteFuture();
          on_event(event);
        });
    if (!MayPass(ended.status())) return ended;
    // A watch that went on for long had a server, though nothing happened.
    if (context.now() - began >= kSignOfLife) lost = absl::InfiniteFuture();
    lost = std::min(lost, context.now());
    if (context.now() - lost >= kPatience) return ended;
    context.sleep(kPause);
  }
}

absl::StatusOr<v1::Experiment> FollowWithProgress(Connection* connection, const Context& context,
                                                  const v1::Experiment& experiment,
                                                  std::ostream* out, bool live) {
  ProgressOptions options;
  options.name = Id(experiment.name());
  options.primary = PrimaryMetric(experiment.spec());
  options.live = live;
  options.width = context.console.width;
  options.out = out;
  options.now = context.now;
  Progress progress(std::move(options));
  absl::StatusOr<v1::Experiment> ended =
      Follow(connection, context, experiment,
             [&](const v1::ExperimentEvent& event) { progress.Update(event); });
  progress.Finish();
  return ended;
}

std::string PrimaryMetric(const v1::ExperimentSpec& spec) {
  return spec.report().has_primary() ? spec.report().primary() : "eval/loss";
}

int ExitCodeOf(const v1::Experiment& experiment) {
  if (experiment.counts().failed() > 0) return kFailure;
  const bool cancelled =
      experiment.state() == v1::ExperimentState::CANCELLED || experiment.counts().cancelled() > 0;
  return cancelled ? kCancelled : kSuccess;
}

std::string StateText(const v1::Experiment& experiment) {
  if (!experiment.stalled().empty()) return absl::StrCat("STALLED: ", experiment.stalled());
  return v1::ExperimentState::Value_Name(experiment.state());
}

std::string CountsText(const v1::RunCounts& counts) {
  std::vector<std::string> parts;
  const std::pair<uint32_t, const char*> all[] = {
      {counts.done(), "done"},     {counts.diverged(), "diverged"},
      {counts.failed(), "failed"}, {counts.running(), "training"},
      {counts.queued(), "queued"}, {counts.cancelled(), "cancelled"}};
  for (const auto& [count, word] : all) {
    if (count > 0) parts.push_back(absl::StrCat(text::Grouped(count), " ", word));
  }
  return parts.empty() ? "no runs" : absl::StrJoin(parts, ", ");
}

int FailToWait(const Context& context, const absl::Status& status) {
  const int code = Fail(context, status);
  return code == kFailure ? kWaitFailed : code;
}

void SayHowItEnded(const Context& context, const v1::Experiment& experiment) {
  const std::string id = Id(experiment.name());
  std::string line = absl::StrCat(id, ": ", CountsText(experiment.counts()));
  if (experiment.counts().failed() > 0) {
    absl::StrAppend(&line, "; `ablate runs ", id, "` shows why, `ablate logs ", id,
                    "/CELL` what happened");
  }
  context.console.Say(line);
}

}  // namespace ablate::client
