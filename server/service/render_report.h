// RenderReport: one HTML page about some experiments, made and sent one at a time.
#ifndef ABLATE_SERVER_SERVICE_RENDER_REPORT_H_
#define ABLATE_SERVER_SERVICE_RENDER_REPORT_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "ablate/v1/report.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/report/html/page.h"
#include "server/service/backend.h"
#include "server/service/pull_stream.h"
#include "server/service/trained_grid.h"

namespace ablate::service {

// Everything that a page says about one experiment; its figures' names begin with `prefix`. Errors
// as CompareGrid's; figures that can't be drawn, or samples that can't be had, are none. Blocks on
// the store, on gnuplot and on the worker for analyses.
absl::StatusOr<html::Experiment> DescribeExperiment(const Backend& backend,
                                                    const v1::CompareRequest& request,
                                                    const std::string& prefix,
                                                    const Cancelled& cancelled);

class RenderReportReactor final : public PullStream<v1::FileChunk> {
 public:
  // `context` and `request` outlive the call.
  RenderReportReactor(Backend* backend, grpc::CallbackServerContext* context,
                      const v1::RenderReportRequest* request);

 private:
  absl::StatusOr<bool> Fill(std::deque<v1::FileChunk>* batch) override;
  // Finds every experiment before the first byte; a key, an axis or a step that one of them lacks
  // ends the page when it is its turn.
  absl::Status Open();
  absl::StatusOr<std::string> Section(size_t index);

  Backend* const backend_;
  const v1::RenderReportRequest* const request_;
  html::Page page_;
  size_t next_ = 0;  // an experiment, the first with the head; then the foot
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_RENDER_REPORT_H_
