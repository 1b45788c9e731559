// The server's methods as plain calls: deadlines, retries, and errors as absl::Status.
#include "client/connection.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "ablate/v1/artifact.grpc.pb.h"
#include "ablate/v1/dataset.grpc.pb.h"
#include "ablate/v1/experiment.grpc.pb.h"
#include "ablate/v1/metric.grpc.pb.h"
#include "ablate/v1/model.grpc.pb.h"
#include "ablate/v1/report.grpc.pb.h"
#include "ablate/v1/run.grpc.pb.h"
#include "ablate/v1/worker.grpc.pb.h"
#include "client/call_status.h"

namespace ablate::client {
namespace {

constexpr absl::Duration kUsual = absl::Seconds(30);
constexpr absl::Duration kLong = absl::Minutes(5);
constexpr absl::Duration kPauses[] = {absl::Milliseconds(100), absl::Milliseconds(400)};
// A response with 100,000 cells takes some 20 MB.
constexpr int kMaxMessageBytes = 128 << 20;

struct Options {
  absl::Duration deadline = kUsual;
  bool repeatable = true;
};

std::shared_ptr<grpc::Channel> Channel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // A server that restarts is back within a second: look often. Not
  // GRPC_ARG_MIN_RECONNECT_BACKOFF_MS: that is also how long a connection may take, and a busy
  // machine takes its time.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

struct Connection::Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : experiments(channel),
        runs(channel),
        metrics(channel),
        datasets(channel),
        artifacts(channel),
        reports(channel),
        models(channel),
        workers(channel) {}

  v1::Experiments::Stub experiments;
  v1::Runs::Stub runs;
  v1::Metrics::Stub metrics;
  v1::Datasets::Stub datasets;
  v1::Artifacts::Stub artifacts;
  v1::Reports::Stub reports;
  v1::Models::Stub models;
  v1::Workers::Stub workers;
};

namespace {

// One unary call with its deadline and, if it may be repeated, its repetitions.
template <typename Response, typename Stub, typename Request>
absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                           Response*),
                              Stub& stub, const Request& request, const std::string& address,
                              const Sleep& sleep, Options options = {}) {
  const auto* pause = std::begin(kPauses);
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMicroseconds(options.deadline));
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (status.ok()) return response;
    const absl::Status failed = StatusOf(status, address);
    const bool again =
        options.repeatable && pause != std::end(kPauses) && absl::IsUnavailable(failed);
    if (!again) return failed;
    sleep(*pause++);
  }
}

// Reads a stream to its end or until `on_message` returns an error.
template <typename Message, typename Stub, typename Request>
absl::Status Stream(std::unique_ptr<grpc::ClientReader<Message>> (Stub::*method)(
                        grpc::ClientContext*, const Request&),
                    Stub& stub, const Request& request,
                    const std::function<absl::Status(const Message&)>& on_message,
                    const std::string& address) {
  grpc::ClientContext context;
  const auto reader = (stub.*method)(&context, request);
  Message message;
  while (reader->Read(&message)) {
    const absl::Status status = on_message(message);
    if (status.ok()) continue;
    context.TryCancel();
    reader->Finish();
    return status;
  }
  return StatusOf(reader->Finish(), address);
}

}  // namespace

Connection::Connection(const std::string& address, Sleep sleep)
    : address_(address),
      sleep_(std::move(sleep)),
      stubs_(std::make_unique<Stubs>(Channel(address))) {}

Connection::~Connection() = default;

absl::StatusOr<v1::CreateExperimentResponse> Connection::CreateExperiment(
    const v1::CreateExperimentRequest& request) {
  return Call(&v1::Experiments::Stub::CreateExperiment, stubs_->experiments, request, address_,
              sleep_, {kLong, true});  // its request id makes it repeatable
}

absl::StatusOr<v1::Experiment> Connection::GetExperiment(const v1::GetExperimentRequest& request) {
  return Call(&v1::Experiments::Stub::GetExperiment, stubs_->experiments, request, address_,
              sleep_);
}

absl::StatusOr<v1::ListExperimentsResponse> Connection::ListExperiments(
    const v1::ListExperimentsRequest& request) {
  return Call(&v1::Experiments::Stub::ListExperiments, stubs_->experiments, request, address_,
              sleep_);
}

absl::StatusOr<v1::Experiment> Connection::CancelExperiment(
    const v1::CancelExperimentRequest& request) {
  return Call(&v1::Experiments::Stub::CancelExperiment, stubs_->experiments, request, address_,
              sleep_);
}

absl::Status Connection::DeleteExperiment(const v1::DeleteExperimentRequest& request) {
  return Call(&v1::Experiments::Stub::DeleteExperiment, stubs_->experiments, request, address_,
              sleep_, {kUsual, false})
      .status();
}

absl::Status Connection::WatchExperiment(
    const v1::WatchExperimentRequest& request,
    const std::function<absl::Status(const v1::ExperimentEvent&)>& on_event) {
  return Stream(&v1::Experiments::Stub::WatchExperiment, stubs_->experiments, request, on_event,
                address_);
}

absl::StatusOr<v1::ListRunsResponse> Connection::ListRuns(const v1::ListRunsRequest& request) {
  return Call(&v1::Runs::Stub::ListRuns, stubs_->runs, request, address_, sleep_);
}

absl::StatusOr<v1::ListRunEventsResponse> Connection::ListRunEvents(
    const v1::ListRunEventsRequest& request) {
  return Call(&v1::Runs::Stub::ListRunEvents, stubs_->runs, request, address_, sleep_);
}

absl::StatusOr<v1::ListMetricsResponse> Connection::ListMetrics(
    const v1::ListMetricsRequest& request) {
  return Call(&v1::Metrics::Stub::ListMetrics, stubs_->metrics, request, address_, sleep_);
}

absl::Status Connection::QueryMetrics(
    const v1::QueryMetricsRequest& request,
    const std::function<absl::Status(const v1::Series&)>& on_series) {
  return Stream(&v1::Metrics::Stub::QueryMetrics, stubs_->metrics, request, on_series, address_);
}

absl::StatusOr<v1::Comparison> Connection::Compare(const v1::CompareRequest& request) {
  return Call(&v1::Metrics::Stub::Compare, stubs_->metrics, request, address_, sleep_,
              {kLong, true});
}

absl::StatusOr<v1::Dataset> Connection::UploadDataset(
    const v1::UploadDatasetRequest& first,
    const std::function<absl::StatusOr<std::string>()>& next_chunk) {
  grpc::ClientContext context;
  v1::Dataset dataset;
  const auto writer = stubs_->datasets.UploadDataset(&context, &dataset);
  v1::UploadDatasetRequest message = first;
  // A failed write means that the server has answered already: it holds the data, or refuses it.
  while (writer->Write(message)) {
    absl::StatusOr<std::string> chunk = next_chunk();
    if (!chunk.ok()) {
      context.TryCancel();
      writer->Finish();
      return chunk.status();
    }
    if (chunk->empty()) break;
    message.Clear();
    message.set_data(*std::move(chunk));
  }
  writer->WritesDone();
  const absl::Status status = StatusOf(writer->Finish(), address_);
  if (!status.ok()) return status;
  return dataset;
}

absl::StatusOr<v1::Dataset> Connection::GetDataset(const v1::GetDatasetRequest& request) {
  return Call(&v1::Datasets::Stub::GetDataset, stubs_->datasets, request, address_, sleep_);
}

absl::StatusOr<v1::ListDatasetsResponse> Connection::ListDatasets(
    const v1::ListDatasetsRequest& request) {
  return Call(&v1::Datasets::Stub::ListDatasets, stubs_->datasets, request, address_, sleep_);
}

absl::Status Connection::DeleteDataset(const v1::DeleteDatasetRequest& request) {
  return Call(&v1::Datasets::Stub::DeleteDataset, stubs_->datasets, request, address_, sleep_,
              {kUsual, false})
      .status();
}

absl::StatusOr<v1::ListArtifactsResponse> Connection::ListArtifacts(
    const v1::ListArtifactsRequest& request) {
  return Call(&v1::Artifacts::Stub::ListArtifacts, stubs_->artifacts, request, address_, sleep_);
}

absl::Status Connection::ReadArtifact(
    const v1::ReadArtifactRequest& request,
    const std::function<absl::Status(const v1::ArtifactChunk&)>& on_chunk) {
  return Stream(&v1::Artifacts::Stub::ReadArtifact, stubs_->artifacts, request, on_chunk, address_);
}

absl::Status Connection::Export(const v1::ExportRequest& request,
                                const std::function<absl::Status(const v1::FileChunk&)>& on_chunk) {
  return Stream(&v1::Reports::Stub::Export, stubs_->reports, request, on_chunk, address_);
}

absl::Status Connection::RenderReport(
    const v1::RenderReportRequest& request,
    const std::function<absl::Status(const v1::FileChunk&)>& on_chunk) {
  return Stream(&v1::Reports::Stub::RenderReport, stubs_->reports, request, on_chunk, address_);
}

absl::Status Connection::Generate(
    const v1::GenerateRequest& request,
    const std::function<absl::Status(const v1::GenerateResponse&)>& on_message) {
  return Stream(&v1::Models::Stub::Generate, stubs_->models, request, on_message, address_);
}

absl::StatusOr<v1::RenderTableResponse> Connection::RenderTable(
    const v1::RenderTableRequest& request) {
  return Call(&v1::Reports::Stub::RenderTable, stubs_->reports, request, address_, sleep_,
              {kLong, true});
}

absl::StatusOr<v1::RenderFigureResponse> Connection::RenderFigure(
    const v1::RenderFigureRequest& request) {
  return Call(&v1::Reports::Stub::RenderFigure, stubs_->reports, request, address_, sleep_,
              {kLong, true});
}

absl::StatusOr<v1::ListWorkersResponse> Connection::ListWorkers(absl::Duration patience) {
  return Call(&v1::Workers::Stub::ListWorkers, stubs_->workers, v1::ListWorkersRequest(), address_,
              sleep_, {patience, false});
}

absl::StatusOr<v1::ListWorkersResponse> Connection::ListWorkers(
    const v1::ListWorkersRequest& request) {
  return Call(&v1::Workers::Stub::ListWorkers, stubs_->workers, request, address_, sleep_);
}

}  // namespace ablate::client
