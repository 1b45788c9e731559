// Export: the points of an experiment, cell by cell, as files for other programs.
#ifndef ABLATE_SERVER_SERVICE_EXPORT_H_
#define ABLATE_SERVER_SERVICE_EXPORT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ablate/v1/report.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/report/export/encoder.h"
#include "server/service/backend.h"
#include "server/service/damages.h"
#include "server/service/pull_stream.h"

namespace ablate::service {

// Holds some hundred cells and one chunk at a time, whatever the experiment's size.
class ExportReactor final : public PullStream<v1::FileChunk> {
 public:
  // `context` and `request` outlive the call.
  ExportReactor(Backend* backend, grpc::CallbackServerContext* context,
                const v1::ExportRequest* request);

 private:
  absl::StatusOr<bool> Fill(std::deque<v1::FileChunk>* batch) override;
  absl::Status Open();
  // The next cell and its keys; false if there is none.
  absl::StatusOr<bool> NextCell();
  // What a batch ends with when there is no next cell.
  absl::StatusOr<bool> End(const std::deque<v1::FileChunk>& batch) const;
  absl::Status ReadSeries(std::deque<v1::FileChunk>* batch);
  void Encode(absl::Span<const uint32_t> steps, absl::Span<const double> values,
              std::deque<v1::FileChunk>* batch);
  // Where bytes for `path` go: the last chunk if it is of that file and not full.
  std::string* ChunkOf(const std::string& path, std::deque<v1::FileChunk>* batch) const;
  absl::Status ReadStartTime();

  Backend* const backend_;
  const v1::ExportRequest* const request_;
  std::string experiment_;
  std::unique_ptr<report::Encoder> encoder_;  // null until it is open
  std::vector<storage::CellRecord> cells_;    // a page of them
  size_t cell_ = 0;                           // in that page
  uint32_t next_index_ = 0;                   // of the page after it
  report::ExportedCell current_;
  std::string path_;               // of the current cell
  bool begun_ = false;             // the current cell has bytes
  std::vector<std::string> keys_;  // of the current cell
  size_t key_ = 0;
  uint64_t next_step_ = 0;  // where the series goes on in the next batch
  bool at_end_ = false;
  Damages damages_;
};

}  // namespace ablate::service

#endif  // ABLATE_SERVER_SERVICE_EXPORT_H_
