// Export: sends points as files, one cell after another.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/report.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/lookup/errors.h"
#include "server/lookup/names.h"
#include "server/report/export/encoder.h"
#include "server/results/series.h"
#include "server/rpc/streams.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

constexpr absl::Duration kExportSlice = absl::Milliseconds(20);
constexpr uint32_t kCellsAtOnce = 200;
constexpr size_t kPointsAtOnce = 250;  // so that no chunk grows far beyond kMessageBytes
constexpr double kMicros = 1e6;

std::vector<std::string> AxesOf(const std::vector<storage::CellRecord>& cells) {
  std::vector<std::string> axes;
  if (cells.empty()) return axes;
  for (const auto& [axis, label] : cells[0].labels) axes.push_back(axis);
  return axes;
}

struct Format {
  v1::ExportFormat::Value value;
  std::unique_ptr<report::Encoder> (*make_encoder)(const std::vector<std::string>& axes);
};

constexpr Format kFormats[] = {
    {v1::ExportFormat::csv, report::MakeCsvEncoder},
    {v1::ExportFormat::jsonl, report::MakeJsonLinesEncoder},
    {v1::ExportFormat::tensorboard,
     [](const std::vector<std::string>&) { return report::MakeTensorBoardEncoder(); }},
};

absl::StatusOr<std::unique_ptr<report::Encoder>> EncoderOf(v1::ExportFormat::Value format,
                                                           const std::vector<std::string>& axes) {
  for (const Format& one : kFormats) {
    if (one.value == format) return one.make_encoder(axes);
  }
  return lookup::UnknownFormat(format, "csv, jsonl or tensorboard");
}

// Checks that each wanted key has points somewhere in the experiment.
absl::Status CheckPresent(storage::Store* store, const std::string& experiment,
                          const analysis::AnalysisMetrics& metrics,
                          const results::WantedKeys& wanted) {
  if (wanted.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto recorded, store->ExperimentKeys(experiment));
  for (int i = 0; i < wanted.size(); ++i) {
    const bool is_recorded = std::any_of(recorded.begin(), recorded.end(),
                                         [&](const auto& one) { return one.first == wanted[i]; });
    if (is_recorded || metrics.Has(wanted[i])) continue;
    return results::NoSuchKey(store, absl::StrCat("keys[", i, "]"), wanted[i], experiment);
  }
  return absl::OkStatus();
}

// Holds some hundred cells and one chunk at a time, whatever the experiment's size.
class ExportReactor final : public rpc::PullStream<v1::FileChunk> {
 public:
  // `context` and `request` outlive the call.
  ExportReactor(Backend* backend, grpc::CallbackServerContext* context,
                const v1::ExportRequest* request);

 private:
  absl::StatusOr<bool> Fill(std::deque<v1::FileChunk>* batch) override;
  absl::Status Open();
  // Moves to the next cell and its keys; returns false if there is none.
  absl::StatusOr<bool> NextCell();
  // Ends a batch if there is no next cell.
  absl::StatusOr<bool> End(const std::deque<v1::FileChunk>& batch) const;
  absl::Status ReadSeries(std::deque<v1::FileChunk>* batch);
  void Encode(absl::Span<const uint32_t> steps, absl::Span<const double> values,
              std::deque<v1::FileChunk>* batch);
  // Returns the chunk for bytes of `path`: the last one if it is of that file and not full.
  std::string* ChunkOf(const std::string& path, std::deque<v1::FileChunk>* batch) const;
  absl::Status ReadStartTime();

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::ExportRequest* const request_;
  std::string experiment_;
  std::unique_ptr<report::Encoder> encoder_;  // null until it is open
  std::vector<storage::CellRecord> cells_;    // a page of them
  size_t cell_ = 0;                           // index in that page
  uint32_t next_index_ = 0;                   // first index of the next page
  report::ExportedCell current_;
  std::string path_;    // of the current cell
  bool begun_ = false;  // the current cell has bytes
  bool at_end_ = false;
  results::Damages damages_;
  analysis::AnalysisMetrics metrics_;
  results::SeriesCursor series_;  // of the current cell
};

ExportReactor::ExportReactor(Backend* backend, grpc::CallbackServerContext* context,
                             const v1::ExportRequest* request)
    : PullStream(backend->Stream(context, &backend->exports)),
      backend_(backend),
      context_(context),
      request_(request),
      series_(backend->store, &damages_) {}

absl::Status ExportReactor::Open() {
  RETURN_IF_ERROR(results::CheckKeys(request_->keys()));
  ASSIGN_OR_RETURN(const auto view, backend_->FindView(context_));
  ASSIGN_OR_RETURN(experiment_, lookup::FindExperiment(view, request_->experiment(), "experiment"));
  ASSIGN_OR_RETURN(metrics_, analysis::AnalysisMetrics::Load(
                                 backend_->store, experiment_,
                                 {request_->keys().begin(), request_->keys().end()}));
  RETURN_IF_ERROR(CheckPresent(backend_->store, experiment_, metrics_, request_->keys()));
  series_.Add(&metrics_);
  ASSIGN_OR_RETURN(auto cells, backend_->store->ListCells(experiment_, 0, kCellsAtOnce));
  ASSIGN_OR_RETURN(auto encoder, EncoderOf(request_->format(), AxesOf(cells)));
  cells_ = std::move(cells);
  next_index_ = static_cast<uint32_t>(cells_.size());
  encoder_ = std::move(encoder);
  return absl::OkStatus();
}

absl::Status ExportReactor::ReadStartTime() {
  ASSIGN_OR_RETURN(const auto run, backend_->store->GetRun(cells_[cell_].run));
  current_.start_time = static_cast<double>(run.start_time) / kMicros;
  return absl::OkStatus();
}

absl::StatusOr<bool> ExportReactor::NextCell() {
  if (cell_ == cells_.size()) {
    ASSIGN_OR_RETURN(auto page, backend_->store->ListCells(experiment_, next_index_, kCellsAtOnce));
    if (page.empty()) return false;
    next_index_ += static_cast<uint32_t>(page.size());
    cells_ = std::move(page);
    cell_ = 0;
  }
  const storage::CellRecord& cell = cells_[cell_];
  current_ = {cell.index, cell.name, {}, cell.seed, lookup::RunName(cell.run), 0};
  for (const auto& [axis, label] : cell.labels) current_.labels.push_back(label);
  RETURN_IF_ERROR(ReadStartTime());
  RETURN_IF_ERROR(series_.OpenRun(cell.run, request_->keys()));
  path_ = encoder_->Path(current_);
  begun_ = false;
  return true;
}

std::string* ExportReactor::ChunkOf(const std::string& path,
                                    std::deque<v1::FileChunk>* batch) const {
  const bool fits = !batch->empty() && batch->back().path() == path &&
                    batch->back().data().size() < lookup::kMessageBytes;
  if (!fits) batch->emplace_back().set_path(path);
  return batch->back().mutable_data();
}

absl::StatusOr<bool> ExportReactor::Fill(std::deque<v1::FileChunk>* batch) {
  const absl::Duration end = MonotonicNow() + kExportSlice;
  if (encoder_ == nullptr) {
    RETURN_IF_ERROR(Open());
    const std::string head = encoder_->Head();
    if (!head.empty()) ChunkOf("", batch)->append(head);
    const auto first = NextCell();
    if (!first.ok()) return first;
    at_end_ = !*first;
  }
  if (at_end_) return End(*batch);
  // Files of many small cells make many small chunks, so their number also ends a batch.
  while (MonotonicNow() < end && batch->size() < 2 && !ended()) {
    if (series_.has_series()) {
      RETURN_IF_ERROR(ReadSeries(batch));
      continue;
    }
    ++cell_;
    const auto next = NextCell();
    if (!next.ok()) return next;
    at_end_ = !*next;
    if (at_end_) return End(*batch);
  }
  return true;
}

absl::StatusOr<bool> ExportReactor::End(const std::deque<v1::FileChunk>& batch) const {
  if (damages_.empty()) return false;
  // Send what was read first.
  if (!batch.empty()) return true;
  return damages_.ToStatus();
}

void ExportReactor::Encode(absl::Span<const uint32_t> steps, absl::Span<const double> values,
                           std::deque<v1::FileChunk>* batch) {
  for (size_t at = 0; at < steps.size(); at += kPointsAtOnce) {
    std::string* bytes = ChunkOf(path_, batch);
    if (!begun_) encoder_->Begin(current_, bytes);
    begun_ = true;
    encoder_->Add(series_.key(), steps.subspan(at, kPointsAtOnce),
                  values.subspan(at, kPointsAtOnce), bytes);
  }
}

absl::Status ExportReactor::ReadSeries(std::deque<v1::FileChunk>* batch) {
  return series_
      .Read([this, batch](const std::vector<uint32_t>& steps, const std::vector<double>& values) {
        Encode(steps, values, batch);
        return batch->size() < 2 && !ended();
      })
      .status();
}

}  // namespace

grpc::ServerWriteReactor<v1::FileChunk>* StartExport(Backend* backend,
                                                     grpc::CallbackServerContext* context,
                                                     const v1::ExportRequest* request) {
  return (new ExportReactor(backend, context, request))->Begin();
}

}  // namespace ablate::service
