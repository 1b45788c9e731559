// Generate: draws samples of a run's model.
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "ablate/v1/model.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "server/analysis/samples.h"
#include "server/rpc/call.h"
#include "server/rpc/errors.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/names.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

absl::StatusOr<std::string> SubjectOf(const rpc::View& view, const v1::GenerateRequest& request) {
  if (request.run().empty() == request.experiment().empty()) {
    return rpc::InvalidField("run",
                             request.run().empty() ? "neither run nor experiment is given"
                                                   : "run and experiment are both given",
                             "either run, or experiment and cell");
  }
  if (request.experiment().empty()) {
    if (!request.cell().empty()) {
      return rpc::InvalidField("cell", "run and cell are both given",
                               "either run, or experiment and cell");
    }
    return rpc::FindRun(view, request.run(), "run");
  }
  const auto experiment = rpc::FindExperiment(view, request.experiment(), "experiment");
  if (!experiment.ok()) return experiment.status();
  return rpc::FindCellRun(view.store, *experiment, request.cell(), "cell");
}

engine::SampleOptions OptionsOf(const v1::GenerateRequest& request) {
  engine::SampleOptions options;
  if (request.has_count()) options.count = request.count();
  if (request.has_temperature()) options.temperature = request.temperature();
  if (request.has_top_k()) options.top_k = request.top_k();
  if (request.has_top_p()) options.top_p = request.top_p();
  if (request.has_seed()) options.seed = request.seed();
  options.prompt = request.prompt();
  if (request.has_max_tokens()) options.max_tokens = request.max_tokens();
  options.stop = {request.stop().begin(), request.stop().end()};
  options.prompt_ids = {request.prompt_ids().begin(), request.prompt_ids().end()};
  return options;
}

v1::GenerateResponse ToResponse(const worker::v1::Sample& from) {
  v1::GenerateResponse response;
  v1::GeneratedSample& sample = *response.mutable_sample();
  sample.set_index(from.index());
  sample.set_text(from.text());
  sample.set_tokens(from.tokens());
  sample.set_ended(from.ended());
  sample.set_in_training_data(from.in_training_data());
  *sample.mutable_token_ids() = from.token_ids();
  sample.set_stop(from.stop());
  return response;
}

// Kept alive by the call, and by the analysis until its end.
class GenerateReactor final : public grpc::ServerWriteReactor<v1::GenerateResponse>,
                              public rpc::LiveStream,
                              public std::enable_shared_from_this<GenerateReactor> {
 public:
  // Returns the reactor of a new call; the request outlives it.
  static GenerateReactor* Start(Backend* backend, grpc::CallbackServerContext* context,
                                const v1::GenerateRequest* request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void Stop() override;
  void CheckPace(absl::Duration now) override;

 private:
  GenerateReactor(Backend* backend, grpc::CallbackServerContext* context,
                  const v1::GenerateRequest* request);

  void Begin();  // on the pool
  absl::Status Submit();
  void Add(const worker::v1::AnalysisPart& part);
  void AddSummary(const worker::v1::SamplesResult& result);
  // Appends a message; ignored after the end.
  void Push(v1::GenerateResponse message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finishes once everything is written; the first call counts.
  void End(const absl::Status& status);

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::GenerateRequest* const request_;
  rpc::Pace pace_;
  std::shared_ptr<GenerateReactor> self_;  // until OnDone
  rpc::View view_;                         // the caller's
  std::string run_;                        // these are set before the analysis is submitted
  uint32_t step_ = 0;
  uint32_t samples_ = 0;
  bool are_documents_ = false;

  Mutex mutex_;
  std::string analysis_ ABSL_GUARDED_BY(mutex_);  // its ID, once it is submitted
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::GenerateResponse> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

// Resolves a request. INVALID_ARGUMENT, NOT_FOUND.
absl::StatusOr<analysis::SamplesQuery> ToQuery(const rpc::View& view,
                                               const v1::GenerateRequest& request) {
  analysis::SamplesQuery query;
  if (request.has_step() && request.step() < -1) {
    return rpc::InvalidField("step", absl::StrCat(request.step(), " is out of range"),
                             "0 or more, or -1 for the last checkpoint");
  }
  if (request.has_step() && request.step() >= 0) {
    query.step = static_cast<uint32_t>(request.step());
  }
  query.options = OptionsOf(request);
  if (const absl::Status checked = analysis::CheckSamplesOptions(query.options); !checked.ok()) {
    return checked;
  }
  auto run = SubjectOf(view, request);
  if (!run.ok()) return run.status();
  query.run = *std::move(run);
  return query;
}

GenerateReactor::GenerateReactor(Backend* backend, grpc::CallbackServerContext* context,
                                 const v1::GenerateRequest* request)
    : backend_(backend), context_(context), request_(request), pace_(backend->pace) {}

GenerateReactor* GenerateReactor::Start(Backend* backend, grpc::CallbackServerContext* context,
                                        const v1::GenerateRequest* request) {
  // The constructor is private, so that every reactor owns itself.
  std::shared_ptr<GenerateReactor> reactor(new GenerateReactor(backend, context, request));
  reactor->self_ = reactor;
  const auto view = backend->FindView(context);
  absl::Status accepted = view.status();
  if (accepted.ok()) {
    reactor->view_ = *view;
    accepted = backend->generations.Add(reactor.get(), context);
  }
  if (accepted.ok()) {
    accepted =
        backend->pool->TryPost([reactor] { reactor->Begin(); }, backend->pool->UserOf(*context));
  }
  if (!accepted.ok()) reactor->End(accepted);
  return reactor.get();
}

void GenerateReactor::Begin() {
  if (const absl::Status submitted = Submit(); !submitted.ok()) End(submitted);
}

absl::Status GenerateReactor::Submit() {
  const auto query = ToQuery(view_, *request_);
  if (!query.ok()) return query.status();
  auto prepared = analysis::PrepareSamples(backend_->store, *query);
  if (!prepared.ok()) return prepared.status();
  run_ = query->run;
  step_ = prepared->step;
  samples_ = query->options.count;
  are_documents_ = prepared->are_documents;
  schedule::AnalysisRequest& request = prepared->request;
  request.part = [self = shared_from_this()](const worker::v1::AnalysisPart& part) {
    self->Add(part);
  };
  request.done =
      [self = shared_from_this()](const absl::StatusOr<worker::v1::AnalysisResult>& result) {
        if (result.ok()) self->AddSummary(result->samples());
        self->End(analysis::ExplainSamplesError(result.status()));
      };
  schedule::Analyses& analyses = backend_->scheduler->analyses();
  const auto id = analyses.Submit(std::move(request));
  if (!id.ok()) return id.status();
  bool cancelled = false;
  bool stopped = false;
  {
    MutexLock lock(&mutex_);
    analysis_ = *id;
    cancelled = cancelled_;
    stopped = stopped_;
  }
  if (stopped) {
    Stop();
  } else if (cancelled) {
    analyses.Cancel(*id);
  }
  return absl::OkStatus();
}

void GenerateReactor::Add(const worker::v1::AnalysisPart& part) {
  MutexLock lock(&mutex_);
  for (const worker::v1::Sample& sample : part.samples()) Push(ToResponse(sample));
}

void GenerateReactor::AddSummary(const worker::v1::SamplesResult& result) {
  v1::GenerateResponse response;
  v1::GenerateSummary& summary = *response.mutable_summary();
  summary.set_run(rpc::RunName(run_));
  summary.set_step(step_);
  summary.set_samples(samples_);
  summary.set_distinct_share(static_cast<double>(result.distinct()) / samples_);
  if (are_documents_) {
    summary.set_in_training_data_share(static_cast<double>(result.in_training_data()) / samples_);
  }
  MutexLock lock(&mutex_);
  Push(std::move(response));
}

void GenerateReactor::Push(v1::GenerateResponse message) {
  if (ended_) return;
  outgoing_.push_back(std::move(message));
  if (outgoing_.size() == 1) WriteFirst();
}

void GenerateReactor::WriteFirst() {
  pace_.Write(outgoing_.front().ByteSizeLong(), MonotonicNow());
  StartWrite(&outgoing_.front());
}

void GenerateReactor::End(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (ended_) return;
  ended_ = true;
  end_ = status;
  if (outgoing_.empty()) Finish(rpc::ToGrpc(end_));
}

void GenerateReactor::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  pace_.Written(MonotonicNow());
  outgoing_.pop_front();
  // A client that is gone also cancels, which ends the analysis.
  if (!ok) outgoing_.clear();
  if (!outgoing_.empty()) {
    WriteFirst();
  } else if (ended_) {
    Finish(rpc::ToGrpc(end_));
  }
}

void GenerateReactor::CheckPace(absl::Duration now) {
  if (pace_.TooSlow(now)) rpc::EndNow(context_, rpc::TooSlow(pace_));
}

void GenerateReactor::OnCancel() {
  std::string analysis;
  {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    analysis = analysis_;
  }
  if (!analysis.empty()) backend_->scheduler->analyses().Cancel(analysis);
}

// Until the analysis is submitted, Begin uses the call, which may be freed once it is finished;
// Begin ends it then. Messages that aren't being written yet are dropped: a slow client would delay
// the shutdown.
void GenerateReactor::Stop() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    if (analysis_.empty()) return;
  }
  End(rpc::ServerEnds());
  {
    MutexLock lock(&mutex_);
    if (outgoing_.size() > 1) outgoing_.erase(outgoing_.begin() + 1, outgoing_.end());
  }
  OnCancel();
}

void GenerateReactor::OnDone() {
  backend_->generations.Remove(this);
  self_.reset();
}

}  // namespace

grpc::ServerWriteReactor<v1::GenerateResponse>* StartGenerate(Backend* backend,
                                                              grpc::CallbackServerContext* context,
                                                              const v1::GenerateRequest* request) {
  return GenerateReactor::Start(backend, context, request);
}

}  // namespace ablate::service
