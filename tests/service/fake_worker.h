// A scripted worker: attaches, takes runs, reports events, writes blobs.
#ifndef ABLATE_TESTS_SERVICE_FAKE_WORKER_H_
#define ABLATE_TESTS_SERVICE_FAKE_WORKER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ablate/worker/v1/worker.grpc.pb.h"
#include "absl/status/status.h"

namespace ablate::service {

// For one thread. Attaches when it is made; every wait has the stream's deadline of a minute.
class FakeWorker {
 public:
  struct Leased {
    std::string lease;
    worker::v1::GrantedRun run;
  };
  struct Series {
    std::string key;
    std::vector<uint32_t> steps;
    std::vector<double> values;
  };

  // A worker whose name begins with cuda- has a GPU. One with programs- in its name runs programs,
  // and nothing else if it has a GPU.
  FakeWorker(const std::shared_ptr<grpc::Channel>& channel, const std::string& name, uint32_t lanes,
             worker::v1::Role role = worker::v1::TRAIN, const std::string& environment = "");
  // Ends the stream.
  ~FakeWorker();

  // Waits for a grant unless a granted run is left.
  Leased NextRun();
  void Started(const Leased& run);
  // Sends an event that ends at `step`, or at the last step of the series if that is later.
  void Points(const Leased& run, const std::vector<Series>& series, uint32_t step);
  // Writes the blob and reports it; returns its hash.
  std::string Checkpoint(const Leased& run, uint32_t step, const std::string& bytes);
  // Does the same for a resume state.
  std::string State(const Leased& run, uint32_t step, const std::string& bytes);
  void Finished(const Leased& run, uint32_t step, bool diverged = false);
  void Failed(const Leased& run, const std::string& message, bool is_final = false);
  void Log(const Leased& run, const std::string& text);
  // Waits for an analysis unless one is left.
  worker::v1::Analyze NextAnalysis();
  void AnalysisPart(const worker::v1::Analyze& analysis,
                    const std::vector<worker::v1::Sample>& samples);
  void AnalysisResult(const worker::v1::Analyze& analysis, uint32_t distinct, uint32_t found);
  void AnalysisFailed(const worker::v1::Analyze& analysis, const absl::Status& status);
  // Publishes a computation's state, unless that is empty, and reports its progress; returns the
  // state's hash.
  std::string AnalysisSaved(const worker::v1::Analyze& analysis, double progress,
                            const std::string& state = "", bool yielded = false,
                            uint64_t busy_us = 0);
  // Publishes the bytes of its arrays, unless they are empty, and ends with `result`.
  void ComputationResult(const worker::v1::Analyze& analysis, v1::Analysis result,
                         const std::string& arrays = "", uint64_t busy_us = 0);
  // Waits until the analysis is asked to yield.
  void WaitForYield(const worker::v1::Analyze& analysis);
  // Waits until the analysis is withdrawn.
  void WaitForWithdrawal(const worker::v1::Analyze& analysis);
  // Ends the stream at once, like a crash.
  void Crash();
  // Sends any message.
  bool Send(const worker::v1::FromWorker& message);
  // Waits until every event is acknowledged.
  void Settle();
  // Waits until the run's state is asked for.
  void WaitForSave(const Leased& run);
  // Waits for a Cancel of the run.
  void WaitForCancel(const Leased& run);
  // Waits for the end of the stream; must be the last call.
  grpc::Status WaitForEnd();

  grpc::Status WriteBlob(const std::string& lease, const std::string& sha256,
                         const std::vector<std::string>& chunks);
  grpc::Status ReadBlob(const std::string& lease, const std::string& sha256, std::string* bytes);

 private:
  void Report(const Leased& run, worker::v1::Event event);
  // Publishes a blob under `grant`; returns its hash.
  std::string Publish(const std::string& grant, const std::string& bytes);
  // Receives one message; returns false at the end of the stream.
  bool Receive();

  std::unique_ptr<worker::v1::WorkerChannel::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<worker::v1::FromWorker, worker::v1::ToWorker>> stream_;
  std::deque<Leased> granted_;
  std::map<std::string, uint64_t> sent_, acknowledged_;  // by lease
  std::vector<worker::v1::Cancel> cancels_;
  std::vector<worker::v1::Save> saves_;
  std::deque<worker::v1::Analyze> analyses_;
  std::vector<std::string> withdrawn_;  // ids of analyses
  std::vector<std::string> yielding_;   // likewise, of those asked to yield
  bool welcome_ = false;
  bool ended_ = false;
};

}  // namespace ablate::service

#endif  // ABLATE_TESTS_SERVICE_FAKE_WORKER_H_
