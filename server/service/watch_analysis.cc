// WatchAnalysis.
#include <memory>
#include <string>

#include "ablate/v1/analysis.pb.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "server/rpc/call.h"
#include "server/rpc/errors.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/names.h"
#include "server/schedule/clock.h"
#include "server/service/convert.h"
#include "server/service/services.h"
#include "sync/mutex.h"

namespace ablate::service {
namespace {

absl::Duration Now() { return schedule::SteadyClock().Now(); }

bool HasEnded(const v1::Analysis& analysis) {
  return analysis.state() != v1::AnalysisState::QUEUED &&
         analysis.state() != v1::AnalysisState::RUNNING;
}

// One watcher. Either it rests, or exactly one of a task on the pool and a write is in progress:
// whoever makes `busy_` true owns what is not guarded, until it rests again. Kept alive by the
// call, and by tasks that outlast it.
class WatchAnalysisReactor final : public grpc::ServerWriteReactor<v1::Analysis>,
                                   public rpc::LiveStream,
                                   public std::enable_shared_from_this<WatchAnalysisReactor> {
 public:
  static WatchAnalysisReactor* Start(Backend* backend, grpc::CallbackServerContext* context,
                                     const v1::WatchAnalysisRequest* request);

  void Stop() override { Leave(rpc::ServerEnds()); }
  void Wake() override;
  void CheckPace(absl::Duration now) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { Leave(rpc::CallCancelled()); }
  void OnDone() override;

 private:
  WatchAnalysisReactor(Backend* backend, grpc::CallbackServerContext* context,
                       const v1::WatchAnalysisRequest* request)
      : backend_(backend), context_(context), request_(request), pace_(backend->pace) {}

  // On the pool: tells what has changed, if anything has.
  void Round();
  void Rest();
  // Ends when what is in progress is done.
  void Leave(const absl::Status& why);
  void End(const absl::Status& status) { Finish(rpc::ToGrpc(status)); }

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::WatchAnalysisRequest* const request_;
  rpc::Pace pace_;
  std::shared_ptr<WatchAnalysisReactor> self_;  // until OnDone

  // Owned by whoever made busy_ true.
  std::string id_;
  v1::Analysis told_;
  std::string told_bytes_;

  Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = true;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);  // why to stop; OK while nobody asked
};

WatchAnalysisReactor* WatchAnalysisReactor::Start(Backend* backend,
                                                  grpc::CallbackServerContext* context,
                                                  const v1::WatchAnalysisRequest* request) {
  // The constructor is private, so that every reactor owns itself.
  std::shared_ptr<WatchAnalysisReactor> reactor(
      new WatchAnalysisReactor(backend, context, request));
  reactor->self_ = reactor;
  absl::Status accepted = backend->analysis_watches.Add(reactor.get());
  if (accepted.ok() && !backend->pool->TryPost([reactor] { reactor->Round(); })) {
    accepted = rpc::TooBusy();
  }
  if (!accepted.ok()) reactor->End(accepted);
  return reactor.get();
}

void WatchAnalysisReactor::Round() {
  {
    MutexLock lock(&mutex_);
    woken_ = false;
  }
  if (id_.empty()) {
    const auto id = rpc::FindAnalysis(backend_->store, request_->name(), "name");
    if (!id.ok()) return End(id.status());
    id_ = *id;
  }
  const auto record = backend_->store->GetAnalysis(id_);
  if (!record.ok()) return End(record.status());
  v1::Analysis now = ToProto(*record, backend_->analyses->Progress(*record));
  std::string bytes = now.SerializeAsString();
  if (bytes == told_bytes_) return Rest();
  told_ = std::move(now);
  told_bytes_ = std::move(bytes);
  pace_.Write(told_bytes_.size(), Now());
  StartWrite(&told_);
}

void WatchAnalysisReactor::OnWriteDone(bool ok) {
  pace_.Written(Now());
  if (!ok) return End(absl::CancelledError("the watcher is gone"));
  if (HasEnded(told_)) return End(absl::OkStatus());
  Rest();
}

void WatchAnalysisReactor::Rest() {
  absl::Status end;
  {
    MutexLock lock(&mutex_);
    end = end_;
    if (end.ok() && woken_) {
      backend_->pool->Post([self = shared_from_this()] { self->Round(); });
    } else if (end.ok()) {
      busy_ = false;
    }
  }
  if (!end.ok()) End(end);
}

void WatchAnalysisReactor::Wake() {
  MutexLock lock(&mutex_);
  woken_ = true;
  if (busy_) return;
  busy_ = true;
  backend_->pool->Post([self = shared_from_this()] { self->Round(); });
}

void WatchAnalysisReactor::Leave(const absl::Status& why) {
  {
    MutexLock lock(&mutex_);
    end_.Update(why);
    if (busy_) return;
    busy_ = true;
  }
  End(why);
}

void WatchAnalysisReactor::CheckPace(absl::Duration now) {
  if (pace_.TooSlow(now)) rpc::EndNow(context_, rpc::TooSlow(pace_));
}

void WatchAnalysisReactor::OnDone() {
  backend_->analysis_watches.Remove(this);
  self_.reset();
}

}  // namespace

grpc::ServerWriteReactor<v1::Analysis>* StartWatchAnalysis(
    Backend* backend, grpc::CallbackServerContext* context,
    const v1::WatchAnalysisRequest* request) {
  return WatchAnalysisReactor::Start(backend, context, request);
}

}  // namespace ablate::service
