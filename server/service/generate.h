// Generate: samples as a stream, while the worker for analyses makes them.
#ifndef ABLATE_SERVER_SERVICE_GENERATE_H_
#define ABLATE_SERVER_SERVICE_GENERATE_H_

#include <deque>
#include <memory>
#include <string>

#include "ablate/v1/model.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/server_callback.h"
#include "server/service/backend.h"
#include "server/service/live_streams.h"
#include "server/service/samples.h"
#include "sync/mutex.h"

namespace ablate::service {

// What a request means. INVALID_ARGUMENT, NOT_FOUND.
absl::StatusOr<SamplesQuery> ToQuery(storage::Store* store, const v1::GenerateRequest& request);

// Kept alive by the call, and by the analysis until its end.
class GenerateReactor final : public grpc::ServerWriteReactor<v1::GenerateResponse>,
                              public LiveStream,
                              public std::enable_shared_from_this<GenerateReactor> {
 public:
  // The reactor of a new call, whose request lives as long.
  static GenerateReactor* Start(Backend* backend, grpc::CallbackServerContext* context,
                                const v1::GenerateRequest* request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void Stop() override;
  void Look(absl::Duration now) override;

 private:
  GenerateReactor(Backend* backend, grpc::CallbackServerContext* context,
                  const v1::GenerateRequest* request);

  void Begin();  // on the pool
  absl::Status Submit();
  void Add(const worker::v1::AnalysisPart& part);
  void AddSummary(const worker::v1::SamplesResult& result);
  // Nothing after the end.
  void Push(v1::GenerateResponse message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finishes once everything is written; the first end counts.
  void End(const absl::Status& status);

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::GenerateRequest* const request_;
  Pace pace_;
  std::shared_ptr<GenerateReactor> self_;  // until OnDone
  std::string run_;                        // these are set before the analysis is submitted
  uint32_t step_ = 0;
  uint32_t samples_ = 0;

  Mutex mutex_;
  std::string analysis_ ABSL_GUARDED_BY(mutex_);  // its id, once it is submitted
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::GenerateResponse> outgoing_ ABSL_GUARDED_BY(mutex_);  // the first is being written
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_GENERATE_H_
