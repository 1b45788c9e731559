// Generate: draws samples of a run's model, or of an imported one.
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ablate/v1/model.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "grpcpp/support/server_callback.h"
#include "server/analysis/sampled_models.h"
#include "server/analysis/samples.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/rpc/call.h"
#include "server/rpc/live_streams.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

// Checks that a request names one model, and gives the fields that this kind of model needs.
absl::Status CheckNamesOneModel(const v1::GenerateRequest& request) {
  constexpr char kOne[] = "one of run, experiment with cell, and model with tokenizer";
  const bool of_run = !request.run().empty(), of_cell = !request.experiment().empty(),
             of_import = !request.model().empty();
  const int given = (of_run ? 1 : 0) + (of_cell ? 1 : 0) + (of_import ? 1 : 0);
  if (given == 0) {
    return lookup::InvalidField("run", "none of run, experiment and model is given", kOne);
  }
  if (given > 1) {
    return lookup::InvalidField("run", "several of run, experiment and model are given", kOne);
  }
  if (!of_cell && !request.cell().empty()) {
    return lookup::InvalidField("cell", "given without experiment", kOne);
  }
  if (!of_import && !request.tokenizer().empty()) {
    return lookup::InvalidField("tokenizer", "given without model", kOne);
  }
  if (of_import && request.tokenizer().empty()) {
    return lookup::InvalidField("tokenizer", "missing",
                                "the data set of the model's tokenizer. `ablate data add FOLDER` "
                                "uploads a folder with its tokenizer.json, or its vocab.json and "
                                "merges.txt");
  }
  if (of_import && request.step() > -1 && request.has_step()) {
    return lookup::InvalidField("step", absl::StrCat(request.step(), " has no effect"),
                                "no step for an imported model");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FindRunOf(const lookup::View& view,
                                      const v1::GenerateRequest& request) {
  if (!request.run().empty()) return lookup::FindRun(view, request.run(), "run");
  ASSIGN_OR_RETURN(const auto experiment,
                   lookup::FindExperiment(view, request.experiment(), "experiment"));
  return lookup::FindCellRun(view.store, experiment, request.cell(), "cell");
}

// Returns the model that a request names. INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION.
absl::StatusOr<analysis::SampledModel> FindModelOf(const lookup::View& view,
                                                   const v1::GenerateRequest& request) {
  RETURN_IF_ERROR(CheckNamesOneModel(request));
  if (!request.model().empty()) {
    return analysis::FindSampledImport(view, request.model(), request.tokenizer());
  }
  std::optional<uint32_t> step;
  if (request.has_step() && request.step() >= 0) step = static_cast<uint32_t>(request.step());
  ASSIGN_OR_RETURN(const auto run, FindRunOf(view, request));
  return analysis::FindSampledRun(view.store, run, step);
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
  lookup::View view_;                      // the caller's
  // These are set before the analysis is submitted.
  v1::GenerateSummary summary_;  // without shares
  bool are_documents_ = false;

  Mutex mutex_;
  std::string analysis_ ABSL_GUARDED_BY(mutex_);  // its ID, once it is submitted
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::GenerateResponse> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

absl::Status CheckOptions(const v1::GenerateRequest& request,
                          const engine::SampleOptions& options) {
  if (request.has_step() && request.step() < -1) {
    return lookup::InvalidField("step", absl::StrCat(request.step(), " is out of range"),
                                "0 or more, or -1 for the last checkpoint");
  }
  return analysis::CheckSamplesOptions(options);
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
  const engine::SampleOptions options = OptionsOf(*request_);
  RETURN_IF_ERROR(CheckOptions(*request_, options));
  ASSIGN_OR_RETURN(const auto model, FindModelOf(view_, *request_));
  ASSIGN_OR_RETURN(auto request, analysis::PrepareSamples(backend_->store, model, options));
  summary_.set_run(model.run);
  summary_.set_model(model.imported);
  summary_.set_step(model.step);
  summary_.set_samples(options.count);
  are_documents_ = model.spec.spec().task().has_documents();
  request.part = [self = shared_from_this()](const worker::v1::AnalysisPart& part) {
    self->Add(part);
  };
  request.done =
      [self = shared_from_this()](const absl::StatusOr<worker::v1::AnalysisResult>& result) {
        if (result.ok()) self->AddSummary(result->samples());
        self->End(analysis::ExplainSamplesError(result.status()));
      };
  schedule::Analyses& analyses = backend_->scheduler->analyses();
  ASSIGN_OR_RETURN(const auto id, analyses.Submit(std::move(request)));
  bool cancelled = false;
  bool stopped = false;
  {
    MutexLock lock(&mutex_);
    analysis_ = id;
    cancelled = cancelled_;
    stopped = stopped_;
  }
  if (stopped) {
    Stop();
  } else if (cancelled) {
    analyses.Cancel(id);
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
  summary = summary_;
  const double samples = summary.samples();
  summary.set_distinct_share(result.distinct() / samples);
  if (are_documents_) summary.set_in_training_data_share(result.in_training_data() / samples);
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
  if (outgoing_.empty()) Finish(lookup::ToGrpc(end_));
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
    Finish(lookup::ToGrpc(end_));
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
