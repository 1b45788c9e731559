#include "server/service/alerts.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "base/tool.h"
#include "server/lookup/names.h"

namespace ablate::service {
namespace {

// A commit may become visible some time after the time that it was given.
constexpr absl::Duration kOverlap = absl::Minutes(1);

Alert About(const storage::ExperimentNews& news, absl::string_view kind, absl::string_view what) {
  return {std::string(kind), absl::StrCat(news.name, " of ", news.owner, " ", what),
          lookup::ExperimentName(news.id), news.name, news.owner};
}

// Returns text such as "28 done, 2 failed".
std::string Outcome(const storage::RunCounts& counts) {
  const std::pair<uint32_t, const char*> rows[] = {{counts.done, "done"},
                                                   {counts.diverged, "diverged"},
                                                   {counts.failed, "failed"},
                                                   {counts.cancelled, "cancelled"}};
  std::vector<std::string> parts;
  for (const auto& [count, state] : rows) {
    if (count > 0) parts.push_back(absl::StrCat(text::Grouped(count), " ", state));
  }
  return absl::StrJoin(parts, ", ");
}

Alert EndOf(const storage::ExperimentNews& news) {
  const bool cancelled = news.state == storage::ExperimentState::kCancelled;
  const std::string outcome = Outcome(news.counts);  // empty if others still train all of its runs
  return About(news, cancelled ? "experiment_cancelled" : "experiment_ended",
               absl::StrCat(cancelled ? "was cancelled" : "has ended", outcome.empty() ? "" : ": ",
                            outcome));
}

}  // namespace

std::string AlertLine(const Alert& alert) {
  nlohmann::ordered_json line = {{"alert", alert.kind}, {"text", alert.text}};
  if (!alert.experiment.empty()) {
    line["experiment"] = alert.experiment;
    line["name"] = alert.name;
    line["owner"] = alert.owner;
  }
  return absl::StrCat(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

std::vector<Alert> AlertRules::Next(const AlertFacts& facts) {
  std::vector<Alert> alerts;
  for (const storage::ExperimentNews& news : facts.experiments) {
    const Known is{news.counts.failed > 0, news.state != storage::ExperimentState::kActive};
    const Known was = std::exchange(known_[news.id], is);
    if (!began_) continue;
    if (is.failed && !was.failed && !is.ended) {
      alerts.push_back(About(news, "run_failed", "has a failed run"));
    }
    if (is.ended && !was.ended) alerts.push_back(EndOf(news));
  }
  began_ = true;
  std::set<std::string> failing;
  for (const auto& [cluster, why] : facts.failing_clusters) {
    failing.insert(cluster);
    if (failing_clusters_.count(cluster) > 0) continue;
    alerts.push_back({"pilots_fail", absl::StrCat("cluster ", cluster, ": ", why), "", "", ""});
  }
  failing_clusters_ = std::move(failing);
  const bool stalled = !facts.stalled.empty();
  if (stalled && !stalled_) {
    alerts.push_back(
        {"stalled", absl::StrCat("nothing can be stored: ", facts.stalled), "", "", ""});
  }
  stalled_ = stalled;
  if (facts.free_bytes < kLowBytes && !low_) {
    const std::string megabytes = text::Grouped(facts.free_bytes / 1'000'000);
    alerts.push_back(
        {"disk_low", absl::StrCat("the disk has ", megabytes, " MB left"), "", "", ""});
  }
  low_ = facts.free_bytes < (low_ ? kEnoughBytes : kLowBytes);
  return alerts;
}

Alerts::Alerts(std::string command, storage::Store* store, schedule::SchedulerThread* scheduler,
               absl::Duration every)
    : command_(std::move(command)),
      store_(store),
      scheduler_(scheduler),
      every_(every),
      thread_([this, first = ReadFacts()] { Loop(first); }) {}

Alerts::~Alerts() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void Alerts::Loop(absl::StatusOr<AlertFacts> facts) {
  while (true) {
    if (facts.ok()) Send(rules_.Next(*facts));
    if (!facts.ok() && facts.status() != error_) {
      spdlog::warn("can't check for alerts: {}", std::string(facts.status().message()));
    }
    error_ = facts.status();
    {
      MutexLock lock(&mutex_);
      if (!stopping_) wake_.WaitFor(&mutex_, absl::ToChronoMilliseconds(every_));
      if (stopping_) return;
    }
    facts = ReadFacts();
  }
}

bool Alerts::stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

void Alerts::Send(const std::vector<Alert>& alerts) {
  for (const Alert& alert : alerts) {
    if (stopping()) return;
    const auto ran = process::RunTool({"/bin/sh", "-c", command_}, AlertLine(alert));
    if (ran.ok()) continue;
    spdlog::warn("the command for alerts failed for \"{}\": {}", alert.text,
                 std::string(ran.status().message()));
  }
}

absl::StatusOr<AlertFacts> Alerts::ReadFacts() {
  AlertFacts facts;
  const absl::Time now = absl::Now();
  const uint64_t change = store_->change_number();
  if (change != change_) {
    ASSIGN_OR_RETURN(facts.experiments, store_->NewsSince(since_));
  }
  ASSIGN_OR_RETURN(facts.free_bytes, store_->FreeBytes());
  facts.stalled = store_->stalled();
  scheduler_->Run([&facts](schedule::Scheduler& scheduler) {
    facts.failing_clusters = scheduler.pilots().Failing();
  });
  change_ = change;
  since_ = absl::ToUnixMicros(now - kOverlap);
  return facts;
}

}  // namespace ablate::service
