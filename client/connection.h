// The server's methods as plain calls: deadlines, retries, and errors as absl::Status.
#ifndef ABLATE_CLIENT_CONNECTION_H_
#define ABLATE_CLIENT_CONNECTION_H_

#include <functional>
#include <memory>
#include <string>

#include "ablate/v1/artifact.pb.h"
#include "ablate/v1/comparison.pb.h"
#include "ablate/v1/dataset.pb.h"
#include "ablate/v1/experiment.pb.h"
#include "ablate/v1/metric.pb.h"
#include "ablate/v1/model.pb.h"
#include "ablate/v1/report.pb.h"
#include "ablate/v1/run.pb.h"
#include "ablate/v1/worker.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace ablate::client {

using Sleep = std::function<void(absl::Duration)>;

// Unary calls have a deadline of 30 s (5 min where a large grid is expanded or compared); those
// that may be repeated without harm are tried three times while the answer is UNAVAILABLE. Streams
// have no deadline and are not repeated: `on_…` is called for each message and ends the stream by
// returning an error, which is then the call's result. Errors carry the server's message. Not
// thread-safe.
class Connection {
 public:
  // `address` as FindServer gives it. Connects with the first call.
  Connection(const std::string& address, Sleep sleep);
  ~Connection();

  absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
      const v1::CreateExperimentRequest& request);
  absl::StatusOr<v1::Experiment> GetExperiment(const v1::GetExperimentRequest& request);
  absl::StatusOr<v1::ListExperimentsResponse> ListExperiments(
      const v1::ListExperimentsRequest& request);
  absl::StatusOr<v1::Experiment> CancelExperiment(const v1::CancelExperimentRequest& request);
  absl::Status DeleteExperiment(const v1::DeleteExperimentRequest& request);
  absl::Status WatchExperiment(
      const v1::WatchExperimentRequest& request,
      const std::function<absl::Status(const v1::ExperimentEvent&)>& on_event);

  absl::StatusOr<v1::ListRunsResponse> ListRuns(const v1::ListRunsRequest& request);
  absl::StatusOr<v1::ListRunEventsResponse> ListRunEvents(const v1::ListRunEventsRequest& request);

  absl::StatusOr<v1::ListMetricsResponse> ListMetrics(const v1::ListMetricsRequest& request);
  absl::Status QueryMetrics(const v1::QueryMetricsRequest& request,
                            const std::function<absl::Status(const v1::Series&)>& on_series);
  absl::StatusOr<v1::Comparison> Compare(const v1::CompareRequest& request);

  // `first` has the name and the hash; `next_chunk` gives the bytes in order, an empty string at
  // the end.
  absl::StatusOr<v1::Dataset> UploadDataset(
      const v1::UploadDatasetRequest& first,
      const std::function<absl::StatusOr<std::string>()>& next_chunk);
  absl::StatusOr<v1::Dataset> GetDataset(const v1::GetDatasetRequest& request);
  absl::StatusOr<v1::ListDatasetsResponse> ListDatasets(const v1::ListDatasetsRequest& request);
  absl::Status DeleteDataset(const v1::DeleteDatasetRequest& request);

  absl::StatusOr<v1::ListArtifactsResponse> ListArtifacts(const v1::ListArtifactsRequest& request);
  absl::Status ReadArtifact(const v1::ReadArtifactRequest& request,
                            const std::function<absl::Status(const v1::ArtifactChunk&)>& on_chunk);

  absl::Status RenderReport(const v1::RenderReportRequest& request,
                            const std::function<absl::Status(const v1::FileChunk&)>& on_chunk);
  absl::Status Export(const v1::ExportRequest& request,
                      const std::function<absl::Status(const v1::FileChunk&)>& on_chunk);
  absl::Status Generate(const v1::GenerateRequest& request,
                        const std::function<absl::Status(const v1::GenerateResponse&)>& on_message);
  absl::StatusOr<v1::RenderTableResponse> RenderTable(const v1::RenderTableRequest& request);
  absl::StatusOr<v1::RenderFigureResponse> RenderFigure(const v1::RenderFigureRequest& request);

  // `patience` replaces the usual deadline and there is no second try: for asking whether a server
  // is there.
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers(absl::Duration patience);
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers(const v1::ListWorkersRequest& request);

 private:
  struct Stubs;
  std::string address_;
  Sleep sleep_;
  std::unique_ptr<Stubs> stubs_;
};

}  // namespace ablate::client

#endif  // ABLATE_CLIENT_CONNECTION_H_
