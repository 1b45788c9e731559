// WatchExperiment.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/experiment.pb.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call.h"
#include "server/rpc/errors.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/names.h"
#include "server/rpc/page.h"
#include "server/schedule/clock.h"
#include "server/service/convert.h"
#include "server/service/services.h"
#include "server/service/watch_feed.h"
#include "sync/mutex.h"

namespace ablate::service {
namespace {

// Between rounds of one watcher: short enough for a first point to seem immediate, and so long that
// a watcher of a huge experiment takes a tenth of a core at most.
constexpr absl::Duration kMinPause = absl::Milliseconds(10);
constexpr int kPausePerWork = 9;

absl::Duration Now() { return schedule::SteadyClock().Now(); }

absl::Status CheckKeyCount(const v1::WatchExperimentRequest& request) {
  if (request.keys_size() <= rpc::kMaxWatchKeys) return absl::OkStatus();
  return rpc::TooMany("keys", request.keys_size(), rpc::kMaxWatchKeys);
}

std::vector<std::string> WatchedKeys(const v1::WatchExperimentRequest& request) {
  if (request.keys().empty()) return std::vector<std::string>{"train/loss", "eval/loss"};
  return std::vector<std::string>(request.keys().begin(), request.keys().end());
}

// One watcher. Either it rests, or exactly one of a task on the pool and a write is in progress:
// whoever makes `busy_` true owns everything that is not guarded, until it rests again. Kept alive
// by the call, and by tasks and timers that outlast it.
class WatchReactor final : public grpc::ServerWriteReactor<v1::ExperimentEvent>,
                           public rpc::LiveStream,
                           public std::enable_shared_from_this<WatchReactor> {
 public:
  // The reactor of a new call; what is pointed to outlives the call.
  static WatchReactor* Start(Backend* backend, grpc::CallbackServerContext* context,
                             const v1::WatchExperimentRequest* request);

  void Stop() override;
  void Wake() override;
  void CheckPace(absl::Duration now) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WatchReactor(Backend* backend, grpc::CallbackServerContext* context,
               const v1::WatchExperimentRequest* request);

  void Open();
  void Round();
  absl::Status Collect();
  absl::Status MakeEvents(const std::vector<storage::CellRecord>& cells,
                          const storage::RunCounts& counts);
  // Tells of a stall or of its end, or of the experiment's analyses, if no cell's event does.
  void TellOfAll(const storage::RunCounts& counts);
  // What every event says of the whole experiment.
  void AddOfAll(const storage::RunCounts& counts, v1::ExperimentEvent* event) const;
  void WriteNext();
  void Rest();
  void OnTimer(absl::Duration at);
  void End(const absl::Status& status);
  // Has a round begin at `at`, or now if that has passed.
  void Schedule(absl::Duration at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::WatchExperimentRequest* const request_;
  rpc::Pace pace_;
  std::shared_ptr<WatchReactor> self_;  // until OnDone

  // Owned by whoever made busy_ true.
  std::string experiment_;
  std::vector<std::string> keys_;
  WatchFeed feed_{0};
  uint64_t token_ = 0;      // of what was told before this round
  bool has_ended_ = false;  // before this round's reads
  bool more_ = false;       // cells are left that changed before this round
  bool final_ = false;
  std::string stalled_;                         // as told last
  std::optional<v1::AnalysisCounts> analyses_;  // likewise; none if it asks for none
  std::deque<v1::ExperimentEvent> batch_;

  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = true;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // why to stop; OK while nobody asked
  absl::Duration earliest_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();  // next round
  std::optional<absl::Duration> timer_ ABSL_GUARDED_BY(mutex_);             // soonest
};

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
    accepted = rpc::TooBusy();
  }
  if (!accepted.ok()) reactor->End(accepted);
  return reactor.get();
}

void WatchReactor::Open() {
  storage::Store* store = backend_->store;
  const auto experiment = rpc::FindExperiment(store, request_->name(), "name");
  if (!experiment.ok()) return End(experiment.status());
  experiment_ = *experiment;
  keys_ = WatchedKeys(*request_);
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
    earliest_ = end + std::max(kMinPause, kPausePerWork * (end - begin));
  }
  if (!collected.ok()) return End(collected);
  WriteNext();
}

absl::Status WatchReactor::Collect() {
  const auto changed = backend_->store->ChangedCells(experiment_, feed_.seen(), rpc::kCellsAtOnce);
  if (!changed.ok()) return changed.status();
  feed_.Changed(*changed);
  const bool full = changed->size() >= rpc::kCellsAtOnce;
  // Read after the cells, so that counts are never older than they are. The end must be known
  // before they are read, or a last change could be missed.
  const auto record = backend_->store->GetExperiment(experiment_);
  if (!record.ok()) return record.status();
  final_ = has_ended_ && !full;
  has_ended_ = record->state != storage::ExperimentState::kActive;
  more_ = full || (has_ended_ && !final_);
  const std::string stalled = has_ended_ ? "" : backend_->store->stalled();
  bool changed = std::exchange(stalled_, stalled) != stalled;
  if (record->analyses.any) {
    v1::AnalysisCounts analyses = ToProto(record->analyses);
    changed |=
        !analyses_.has_value() || analyses_->SerializeAsString() != analyses.SerializeAsString();
    analyses_ = std::move(analyses);
  }
  absl::Status made = MakeEvents(feed_.Take(Now(), final_), record->counts);
  if (made.ok() && batch_.empty() && changed) TellOfAll(record->counts);
  return made;
}

void WatchReactor::AddOfAll(const storage::RunCounts& counts, v1::ExperimentEvent* event) const {
  event->set_stalled(stalled_);
  *event->mutable_counts() = ToProto(counts);
  if (analyses_.has_value()) *event->mutable_analyses() = *analyses_;
}

void WatchReactor::TellOfAll(const storage::RunCounts& counts) {
  v1::ExperimentEvent& event = batch_.emplace_back();
  event.set_token(WatchToken(backend_->store->generation(), token_));
  AddOfAll(counts, &event);
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
    event.set_run(rpc::RunName(cells[i].run));
    event.set_state(ToProto(cells[i].state));
    event.set_step(cells[i].step);
    event.set_steps(cells[i].steps);
    event.set_token(before);
    AddOfAll(counts, &event);
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

void WatchReactor::CheckPace(absl::Duration now) {
  if (pace_.TooSlow(now)) rpc::EndNow(context_, rpc::TooSlow(pace_));
}

void WatchReactor::Stop() {
  {
    MutexLock lock(&mutex_);
    end_ = rpc::ServerEnds();
    if (busy_) return;
    busy_ = true;
  }
  End(rpc::ServerEnds());
}

void WatchReactor::OnCancel() {
  const absl::Status cancelled = rpc::CallCancelled();
  {
    MutexLock lock(&mutex_);
    end_.Update(cancelled);
    if (busy_) return;
    busy_ = true;
  }
  End(cancelled);
}

void WatchReactor::End(const absl::Status& status) { Finish(rpc::ToGrpc(status)); }

void WatchReactor::OnDone() {
  backend_->watches.Remove(this);
  self_.reset();
}

}  // namespace

grpc::ServerWriteReactor<v1::ExperimentEvent>* StartWatch(
    Backend* backend, grpc::CallbackServerContext* context,
    const v1::WatchExperimentRequest* request) {
  return WatchReactor::Start(backend, context, request);
}

}  // namespace ablate::service
