// WatchExperiment: a stream that sleeps until something was committed.
#include "server/service/watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/schedule/clock.h"
#include "server/service/call.h"
#include "server/service/convert.h"
#include "server/service/errors.h"
#include "server/service/names.h"
#include "server/service/page.h"
#include "server/service/watch_token.h"

namespace ablate::service {
namespace {

// Between rounds of one watcher: short enough for a first point to seem immediate, and so long that
// a watcher of a huge experiment takes a tenth of a core at most.
constexpr absl::Duration kLeastPause = absl::Milliseconds(10);
constexpr int kPausePerWork = 9;

absl::Duration Now() { return schedule::SteadyClock().Now(); }

absl::Status CheckKeyCount(const v1::WatchExperimentRequest& request) {
  if (request.keys_size() <= kMostWatchKeys) return absl::OkStatus();
  return TooMany("keys", request.keys_size(), kMostWatchKeys);
}

std::vector<std::string> WantedKeys(const v1::WatchExperimentRequest& request) {
  if (request.keys().empty()) return std::vector<std::string>{"train/loss", "eval/loss"};
  return std::vector<std::string>(request.keys().begin(), request.keys().end());
}

}  // namespace

WatchReactor::WatchReactor(Backend* backend, grpc::CallbackServerContext* context,
                           const v1::WatchExperimentRequest* request)
    : backend_(backend), context_(context), request_(request), pace_(backend->pace) {}

WatchReactor* WatchReactor::Start(Backend* backend, grpc::CallbackServerContext* context,
                                  const v1::WatchExperimentRequest* request) {
  // The constructor is private, so that every reactor owns itself.
  std::shared_ptr<WatchReactor> reactor(new WatchReactor(backend, context, request));
  reactor->self_ = reactor;
  absl::Status accepted = CheckKeyCount(*request);
  if (accepted.ok()) accepted = backend->watches.Add(reactor.get());
  if (accepted.ok() && !backend->pool->TryPost([reactor] { reactor->Open(); })) {
    accepted = TooBusy();
  }
  if (!accepted.ok()) reactor->End(accepted);
  return reactor.get();
}

void WatchReactor::Open() {
  storage::Store* store = backend_->store;
  const auto experiment = FindExperiment(store, request_->name(), "name");
  if (!experiment.ok()) return End(experiment.status());
  experiment_ = *experiment;
  keys_ = WantedKeys(*request_);
  const auto token =
      ParseWatchToken(request_->token(), store->generation(), store->change_number());
  if (!token.ok()) return End(token.status());
  feed_ = WatchFeed(*token);
  token_ = *token;
  Round();
}

void WatchReactor::Round() {
  {
    MutexLock lock(&mutex_);
    woken_ = false;
  }
  const absl::Duration begin = Now();
  const absl::Status collected = Collect();
  const absl::Duration end = Now();
  {
    MutexLock lock(&mutex_);
    earliest_ = end + std::max(kLeastPause, kPausePerWork * (end - begin));
  }
  if (!collected.ok()) return End(collected);
  WriteNext();
}

absl::Status WatchReactor::Collect() {
  const auto changed = backend_->store->ChangedCells(experiment_, feed_.seen(), kCellsAtOnce);
  if (!changed.ok()) return changed.status();
  feed_.Changed(*changed);
  const bool full = changed->size() >= kCellsAtOnce;
  // Read after the cells, so that counts are never older than they are. The end must be known
  // before they are read, or a last change could be missed.
  const auto record = backend_->store->GetExperiment(experiment_);
  if (!record.ok()) return record.status();
  final_ = has_ended_ && !full;
  has_ended_ = record->state != storage::ExperimentState::kActive;
  more_ = full || (has_ended_ && !final_);
  const std::string stalled = has_ended_ ? "" : backend_->store->stalled();
  const bool changed_stall = std::exchange(stalled_, stalled) != stalled;
  absl::Status made = MakeEvents(feed_.Take(Now(), final_), record->counts);
  if (made.ok() && batch_.empty() && changed_stall) TellStall(record->counts);
  return made;
}

void WatchReactor::TellStall(const storage::RunCounts& counts) {
  v1::ExperimentEvent& event = batch_.emplace_back();
  event.set_token(WatchToken(backend_->store->generation(), token_));
  event.set_stalled(stalled_);
  *event.mutable_counts() = ToProto(counts);
}

absl::Status WatchReactor::MakeEvents(const std::vector<storage::CellRecord>& cells,
                                      const storage::RunCounts& counts) {
  if (cells.empty()) return absl::OkStatus();
  std::vector<std::string> runs;
  for (const storage::CellRecord& cell : cells) runs.push_back(cell.run);
  const auto summaries = backend_->store->Summaries(runs);
  if (!summaries.ok()) return summaries.status();
  const std::string before = WatchToken(backend_->store->generation(), token_);
  for (size_t i = 0; i < cells.size(); ++i) {
    v1::ExperimentEvent& event = batch_.emplace_back();
    event.set_cell(cells[i].name);
    event.set_run(RunName(cells[i].run));
    event.set_state(ToProto(cells[i].state));
    event.set_step(cells[i].step);
    event.set_steps(cells[i].steps);
    event.set_token(before);
    event.set_stalled(stalled_);
    *event.mutable_counts() = ToProto(counts);
    for (const storage::Summary& summary : (*summaries)[i].keys) {
      const bool wanted = std::find(keys_.begin(), keys_.end(), summary.key) != keys_.end();
      if (wanted && summary.count > summary.nonfinite) {
        (*event.mutable_last())[summary.key] = summary.last;
      }
    }
    if (!(*summaries)[i].keys.empty()) feed_.ToldValues(cells[i].index);
  }
  token_ = feed_.token();
  batch_.back().set_token(WatchToken(backend_->store->generation(), token_));
  return absl::OkStatus();
}

void WatchReactor::WriteNext() {
  if (!batch_.empty()) {
    pace_.Write(batch_.front().ByteSizeLong(), Now());
    StartWrite(&batch_.front());
  } else if (final_) {
    End(absl::OkStatus());
  } else {
    Rest();
  }
}

void WatchReactor::OnWriteDone(bool ok) {
  pace_.Written(Now());
  if (!ok) return End(absl::CancelledError("the watcher is gone"));
  batch_.pop_front();
  WriteNext();
}

void WatchReactor::Rest() {
  absl::Status end;
  {
    MutexLock lock(&mutex_);
    end = end_;
    if (end.ok()) {
      busy_ = false;
      const std::optional<absl::Duration> progress = feed_.next_time();
      if (more_) {
        Schedule(absl::ZeroDuration());
      } else if (woken_) {
        Schedule(earliest_);
      } else if (progress.has_value()) {
        Schedule(std::max(*progress, earliest_));
      }
    }
  }
  if (!end.ok()) End(end);
}

void WatchReactor::Schedule(absl::Duration at) {
  const absl::Duration now = Now();
  if (at <= now) {
    busy_ = true;
    backend_->pool->Post([self = shared_from_this()] { self->Round(); });
  } else if (!timer_.has_value() || at < *timer_) {
    timer_ = at;
    backend_->pool->PostAfter(at - now, [self = shared_from_this(), at] { self->OnTimer(at); });
  }
}

void WatchReactor::OnTimer(absl::Duration at) {
  {
    MutexLock lock(&mutex_);
    if (timer_ != at) return;
    timer_.reset();
    if (busy_) return;
    // A round that came meanwhile may have put the next one off.
    if (Now() < earliest_) return Schedule(earliest_);
    busy_ = true;
  }
  Round();
}

void WatchReactor::Wake() {
  MutexLock lock(&mutex_);
  woken_ = true;
  if (!busy_) Schedule(earliest_);
}

void WatchReactor::Look(absl::Duration now) {
  if (pace_.TooSlow(now)) EndNow(context_, TooSlow(pace_));
}

void WatchReactor::Stop() {
  {
    MutexLock lock(&mutex_);
    end_ = ServerEnds();
    if (busy_) return;
    busy_ = true;
  }
  End(ServerEnds());
}

void WatchReactor::OnCancel() {
  const absl::Status cancelled = absl::CancelledError("the call was cancelled");
  {
    MutexLock lock(&mutex_);
    end_.Update(cancelled);
    if (busy_) return;
    busy_ = true;
  }
  End(cancelled);
}

void WatchReactor::End(const absl::Status& status) { Finish(ToGrpc(status)); }

void WatchReactor::OnDone() {
  backend_->watches.Remove(this);
  self_.reset();
}

}  // namespace ablate::service
