// QueryMetrics: series of many runs and keys, read and written piece by piece.
#ifndef ABLATE_SERVER_SERVICE_QUERY_METRICS_H_
#define ABLATE_SERVER_SERVICE_QUERY_METRICS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "ablate/v1/metric.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/service/backend.h"
#include "server/service/damages.h"
#include "server/service/downsample.h"
#include "server/service/pull_stream.h"

namespace ablate::service {

class QueryMetricsReactor final : public PullStream<v1::Series> {
 public:
  // `context` and `request` outlive the call.
  QueryMetricsReactor(Backend* backend, grpc::CallbackServerContext* context,
                      const v1::QueryMetricsRequest* request);

 private:
  struct Subject {  // whose series are wanted
    std::string cell;
    std::string run;
    uint32_t last_step = 0;  // where its series end
  };

  absl::Status Check() const override;
  absl::StatusOr<bool> Fill(std::deque<v1::Series>* batch) override;
  absl::Status Open();
  absl::Status CollectSubjects();
  absl::Status CollectCells(const std::string& experiment);
  absl::Status CollectKeys(const Subject& subject);
  // Each moves on to the next series when this one is read to its end.
  absl::Status ReadThinned(const Subject& subject, std::deque<v1::Series>* batch);
  absl::Status ReadFull(const Subject& subject, std::deque<v1::Series>* batch);
  void Append(const Subject& subject, const std::vector<uint32_t>& steps,
              const std::vector<double>& values, std::deque<v1::Series>* batch);
  void NextSeries();
  void NextSubject();
  // Goes on after a series or a run whose stored bytes are damaged: the others are well. Any other
  // error is returned.
  absl::Status PassOver(const absl::Status& status);

  Backend* const backend_;
  const v1::QueryMetricsRequest* const request_;
  bool open_ = false;
  std::vector<Subject> subjects_;
  size_t subject_ = 0;
  std::vector<std::string> keys_;  // of the subject
  bool has_keys_ = false;
  size_t key_ = 0;
  uint64_t next_step_ = 0;  // where the series goes on in the next batch
  size_t batch_bytes_ = 0;
  Damages damages_;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_QUERY_METRICS_H_
