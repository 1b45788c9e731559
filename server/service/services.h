// The gRPC services and the objects that their handlers share. Handlers keep no state of their own
// and may be called on any thread.
#ifndef ABLATE_SERVER_SERVICE_SERVICES_H_
#define ABLATE_SERVER_SERVICE_SERVICES_H_

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "ablate/v1/analysis.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/metric.pb.h"
#include "ablate/v1/model.pb.h"
#include "ablate/v1/report.pb.h"
#include "ablate/worker/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/analysis/runner.h"
#include "server/lookup/cancelled.h"
#include "server/lookup/limits.h"
#include "server/lookup/names.h"
#include "server/results/series.h"
#include "server/rpc/blob_pins.h"
#include "server/rpc/call.h"
#include "server/rpc/live_streams.h"
#include "server/rpc/work_pool.h"
#include "server/schedule/scheduler_thread.h"
#include "server/service/snapshots.h"
#include "server/submit/backend.h"
#include "storage/store.h"

namespace ablate::submit {
class AnalysisPlanner;
}

namespace ablate::service {

// Pointers outlive every handler and reactor.
struct Backend : submit::Backend {
  rpc::WorkPool* pool = nullptr;
  rpc::WorkPool* comparing = nullptr;    // for computations of seconds
  rpc::WorkPool* submissions = nullptr;  // few, because each may need much memory
  std::string owner;                     // caller of calls through the unix socket
  std::string sql_program;               // answers a SQL statement (sql/child.h)
  absl::Duration sql_processor_time;     // of a statement
  rpc::MinPace pace;                     // of streams
  rpc::ByteBudget specs{"bytes of experiments", lookup::kMaxSpecBytesAtOnce};
  rpc::ByteBudget models{"bytes of models", lookup::kMaxModelBytesAtOnce};
  analysis::AnalysisRunner* analyses = nullptr;
  submit::AnalysisPlanner* planner = nullptr;
  WatchedExperiments watched;
  rpc::LiveStreams watches{"watches", lookup::kMaxWatches};
  rpc::LiveStreams analysis_watches{"watches of analyses", lookup::kMaxWatches};
  // Limited separately, so that unread exports leave room for other reads.
  rpc::LiveStreams exports{"exports", lookup::kMaxReads, lookup::kMaxTransferTime};
  rpc::LiveStreams downloads{"downloads", lookup::kMaxReads, lookup::kMaxTransferTime};
  rpc::LiveStreams queries{"queries", lookup::kMaxReads, lookup::kMaxTransferTime};
  rpc::LiveStreams statements{"SQL statements", lookup::kMaxStatements, lookup::kMaxTransferTime};
  rpc::LiveStreams comparisons{"comparisons and tables", lookup::kMaxWaitingCalls,
                               lookup::kMaxAnswerTime};
  rpc::LiveStreams reports{"reports and figures", lookup::kMaxReports, lookup::kMaxAnswerTime};
  rpc::LiveStreams generations{"generations", lookup::kMaxGenerations, lookup::kMaxAnswerTime};
  rpc::LiveStreams uploads{"uploads", lookup::kMaxUploads, lookup::kMaxTransferTime};
  rpc::LiveStreams saves{"cancels that wait for workers", lookup::kMaxSaves};

  std::array<rpc::LiveStreams*, 11> AllStreams() {
    return {&watches,     &analysis_watches, &exports,     &downloads, &queries, &statements,
            &comparisons, &reports,          &generations, &uploads,   &saves};
  }
  // Returns the caller without blocking. UNAUTHENTICATED if the token has ended since the call was
  // accepted.
  absl::StatusOr<storage::Caller> FindCaller(const grpc::ServerContextBase& context) const;
  // Returns the caller's view: admins see everything, others what isn't private to other users.
  absl::StatusOr<lookup::View> FindView(const grpc::ServerContextBase& context) const;
  // The same for a call whose request names experiments: the caller is told which one a name meant.
  absl::StatusOr<lookup::View> FindView(grpc::ServerContextBase* context) const;
  lookup::View ViewOf(const storage::Caller& caller) const;
  // Like rpc::Answer, with the caller's view. `this` must outlive the call.
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                   std::function<absl::Status(const lookup::View&)> work) const;
  // The same for a comparison, which calls `cancelled` now and then.
  grpc::ServerUnaryReactor* AnswerByComparing(
      grpc::CallbackServerContext* context,
      std::function<absl::Status(const lookup::View&, const lookup::Cancelled& cancelled)> work);
  // The same for a change, logged as `method` (MakeChange in changes.h). It sets the name of the
  // resource that it changes.
  grpc::ServerUnaryReactor* AnswerChange(
      grpc::CallbackServerContext* context, std::string method,
      std::function<absl::Status(const storage::Caller&, std::string* resource)> work) const;
  // Returns the context of a new stream of this kind.
  rpc::StreamCall Stream(grpc::CallbackServerContext* context, rpc::LiveStreams* kind) const {
    return {context, pool, kind, pace, pool->UserOf(*context)};
  }
};

// The objects that attached streams use; outlives their calls. The scheduler may hold a stream
// longer; one whose call has ended uses none of this.
struct WorkerBackend {
  storage::Store* store = nullptr;
  schedule::SchedulerThread* scheduler = nullptr;
  rpc::WorkPool* pool = nullptr;
  rpc::MinPace pace;
  analysis::AnalysisRunner* analyses = nullptr;
  rpc::BlobPins pins;
  // Returns the user whose token a call has; empty for workers on this machine. UNAUTHENTICATED if
  // the token has ended since the call was accepted. Thread-safe.
  std::function<absl::StatusOr<std::string>(const grpc::ServerContextBase& context)> find_user;
  rpc::LiveStreams streams{"workers", lookup::kMaxWorkerStreams};
  rpc::LiveStreams transfers{"transfers of workers", lookup::kMaxWorkerTransfers};
};

// Make the services; the arguments must outlive them.
std::unique_ptr<grpc::Service> MakeExperimentsService(Backend* backend);
std::unique_ptr<grpc::Service> MakeRunsService(Backend* backend);
std::unique_ptr<grpc::Service> MakeMetricsService(Backend* backend);
std::unique_ptr<grpc::Service> MakeDatasetsService(Backend* backend);
std::unique_ptr<grpc::Service> MakeArtifactsService(Backend* backend);
std::unique_ptr<grpc::Service> MakeAnalysesService(Backend* backend);
std::unique_ptr<grpc::Service> MakeReportsService(Backend* backend);
std::unique_ptr<grpc::Service> MakeModelsService(Backend* backend);
std::unique_ptr<grpc::Service> MakeWorkersService(Backend* backend);
std::unique_ptr<grpc::Service> MakeQueueService(Backend* backend);
std::unique_ptr<grpc::Service> MakeScalerService(Backend* backend);
std::unique_ptr<grpc::Service> MakeAdminService(Backend* backend);
std::unique_ptr<grpc::Service> MakeWorkerChannelService(WorkerBackend* backend);

// Methods with a file of their own. Pointers must outlive the call.

// Creates an experiment. INVALID_ARGUMENT lists every problem; with validate_only they are in the
// response and nothing is changed. RESOURCE_EXHAUSTED if the disk has no room for the runs' data. A
// request that was accepted before gets the stored part of its first answer instead. ALREADY_EXISTS
// if its owner, of `view`, used request_id for another request. Moves from `request`.
absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(const Backend& backend,
                                                              const lookup::View& view,
                                                              v1::CreateExperimentRequest* request);
// Answers a call whose request is still bytes. As a message it can be thirty times as large, so its
// size is checked before it is parsed, and only a few are parsed at once. Errors as
// CreateExperiment's; RESOURCE_EXHAUSTED also while there are too many bytes of such requests.
grpc::ServerUnaryReactor* AnswerCreate(Backend* backend, grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request, grpc::ByteBuffer* response);

// Import: results that were trained elsewhere, kept or compared.
grpc::ServerReadReactor<v1::ImportRequest>* StartImport(Backend* backend,
                                                        grpc::CallbackServerContext* context,
                                                        v1::ImportResponse* response);

// CreateAnalysis. `asked_by` is the experiment whose spec asks for it, or empty; the viewer of
// `view` owns a new one. INVALID_ARGUMENT lists every problem, unless it is validate_only. Blocks
// on the store.
absl::Status CreateAnalysis(const Backend& backend, const v1::CreateAnalysisRequest& request,
                            const lookup::View& view, const std::string& asked_by,
                            v1::CreateAnalysisResponse* response);

// WatchExperiment: a stream that sleeps until a commit.
grpc::ServerWriteReactor<v1::ExperimentEvent>* StartWatch(
    Backend* backend, grpc::CallbackServerContext* context,
    const v1::WatchExperimentRequest* request);

// RenderFigure. Errors as CompareGrid's, DrawFigure's and figure::Render's; RESOURCE_EXHAUSTED for
// a picture larger than kPageBytes, and while kMaxReports are being made. `context` is the call's;
// null if it has no user. Blocks on the store.
absl::Status RenderFigure(Backend* backend, const lookup::View& view,
                          grpc::CallbackServerContext* context,
                          const v1::RenderFigureRequest& request,
                          v1::RenderFigureResponse* response);

// WatchAnalysis: a stream that sleeps until an analysis has changed.
grpc::ServerWriteReactor<v1::Analysis>* StartWatchAnalysis(Backend* backend,
                                                           grpc::CallbackServerContext* context,
                                                           const v1::WatchAnalysisRequest* request);

// Export: the points of an experiment, cell by cell, as files for other programs.
grpc::ServerWriteReactor<v1::FileChunk>* StartExport(Backend* backend,
                                                     grpc::CallbackServerContext* context,
                                                     const v1::ExportRequest* request);

// Generate: samples of a run's model, which the analysis worker draws.
grpc::ServerWriteReactor<v1::GenerateResponse>* StartGenerate(Backend* backend,
                                                              grpc::CallbackServerContext* context,
                                                              const v1::GenerateRequest* request);

// Sql: the rows of a statement, which a process of its own reads from the store.
grpc::ServerWriteReactor<v1::SqlRows>* StartSql(Backend* backend,
                                                grpc::CallbackServerContext* context,
                                                const v1::SqlRequest* request);

// UploadModel: imports a model from its files.
grpc::ServerReadReactor<v1::UploadModelRequest>* StartUploadModel(
    Backend* backend, grpc::CallbackServerContext* context, v1::Model* response);

// ExportModel: an imported model, or a run's checkpoint, as files.
grpc::ServerWriteReactor<v1::FileChunk>* StartExportModel(Backend* backend,
                                                          grpc::CallbackServerContext* context,
                                                          const v1::ExportModelRequest* request);

// Attach: a worker's long stream, which passes messages to and from the scheduler.
grpc::ServerBidiReactor<worker::v1::FromWorker, worker::v1::ToWorker>* StartAttach(
    WorkerBackend* backend, grpc::CallbackServerContext* context);

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_SERVICES_H_
