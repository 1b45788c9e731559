// Export: the points of an experiment, cell by cell, as files for other programs.
#include "server/service/export.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/schedule/clock.h"
#include "server/service/errors.h"
#include "server/service/grid_values.h"
#include "server/service/metric_keys.h"
#include "server/service/names.h"

namespace ablate::service {
namespace {

constexpr absl::Duration kSlice = absl::Milliseconds(20);
constexpr uint32_t kCellsAtOnce = 200;
constexpr size_t kPointsAtOnce = 250;  // so that no chunk grows far beyond kBatchBytes
constexpr double kMicros = 1e6;

std::vector<std::string> AxesOf(const std::vector<storage::CellRecord>& cells) {
  std::vector<std::string> axes;
  if (cells.empty()) return axes;
  for (const auto& [axis, label] : cells[0].labels) axes.push_back(axis);
  return axes;
}

absl::StatusOr<std::unique_ptr<report::Encoder>> EncoderOf(v1::ExportFormat::Value format,
                                                           const std::vector<std::string>& axes) {
  switch (format) {
    case v1::ExportFormat::csv:
      return report::MakeCsvEncoder(axes);
    case v1::ExportFormat::jsonl:
      return report::MakeJsonLinesEncoder(axes);
    case v1::ExportFormat::tensorboard:
      return report::MakeTensorBoardEncoder();
    default:
      return InvalidField("format",
                          format == v1::ExportFormat::unspecified
                              ? "it is missing"
                              : absl::StrCat(static_cast<int>(format), " is no format"),
                          "csv, jsonl or tensorboard");
  }
}

// That each wanted key has points somewhere in the experiment.
absl::Status CheckPresent(storage::Store* store, const std::string& experiment,
                          const WantedKeys& wanted) {
  if (wanted.empty()) return absl::OkStatus();
  const auto keys = KeysOf(store, experiment);
  if (!keys.ok()) return keys.status();
  for (int i = 0; i < wanted.size(); ++i) {
    if (std::binary_search(keys->begin(), keys->end(), wanted[i])) continue;
    return NoSuchKey(absl::StrCat("keys[", i, "]"), wanted[i], experiment, *keys);
  }
  return absl::OkStatus();
}

}  // namespace

ExportReactor::ExportReactor(Backend* backend, grpc::CallbackServerContext* context,
                             const v1::ExportRequest* request)
    : PullStream(backend->Stream(context, &backend->reads)), backend_(backend), request_(request) {}

absl::Status ExportReactor::Open() {
  if (const absl::Status keys = CheckKeys(request_->keys()); !keys.ok()) return keys;
  auto experiment = FindExperiment(backend_->store, request_->experiment(), "experiment");
  if (!experiment.ok()) return experiment.status();
  experiment_ = *std::move(experiment);
  const absl::Status present = CheckPresent(backend_->store, experiment_, request_->keys());
  if (!present.ok()) return present;
  auto cells = backend_->store->ListCells(experiment_, 0, kCellsAtOnce);
  if (!cells.ok()) return cells.status();
  auto encoder = EncoderOf(request_->format(), AxesOf(*cells));
  if (!encoder.ok()) return encoder.status();
  cells_ = *std::move(cells);
  next_index_ = static_cast<uint32_t>(cells_.size());
  encoder_ = *std::move(encoder);
  return absl::OkStatus();
}

absl::Status ExportReactor::ReadStartTime() {
  const auto run = backend_->store->GetRun(cells_[cell_].run);
  if (!run.ok()) return run.status();
  current_.start_time = static_cast<double>(run->start_time) / kMicros;
  return absl::OkStatus();
}

absl::StatusOr<bool> ExportReactor::NextCell() {
  if (cell_ == cells_.size()) {
    auto page = backend_->store->ListCells(experiment_, next_index_, kCellsAtOnce);
    if (!page.ok()) return page.status();
    if (page->empty()) return false;
    next_index_ += static_cast<uint32_t>(page->size());
    cells_ = *std::move(page);
    cell_ = 0;
  }
  const storage::CellRecord& cell = cells_[cell_];
  current_ = {cell.index, cell.name, {}, cell.seed, RunName(cell.run), 0};
  for (const auto& [axis, label] : cell.labels) current_.labels.push_back(label);
  if (const absl::Status start = ReadStartTime(); !start.ok()) return start;
  auto keys = KeysToRead(backend_->store, cell.run, request_->keys());
  if (!keys.ok() && !absl::IsDataLoss(keys.status())) return keys.status();
  if (!keys.ok()) damages_.Add(keys.status());
  keys_ = keys.ok() ? *std::move(keys) : std::vector<std::string>();
  path_ = encoder_->Path(current_);
  key_ = 0;
  next_step_ = 0;
  begun_ = false;
  return true;
}

std::string* ExportReactor::ChunkOf(const std::string& path,
                                    std::deque<v1::FileChunk>* batch) const {
  const bool fits =
      !batch->empty() && batch->back().path() == path && batch->back().data().size() < kBatchBytes;
  if (!fits) batch->emplace_back().set_path(path);
  return batch->back().mutable_data();
}

absl::StatusOr<bool> ExportReactor::Fill(std::deque<v1::FileChunk>* batch) {
  const absl::Duration end = schedule::SteadyClock().Now() + kSlice;
  if (encoder_ == nullptr) {
    if (const absl::Status opened = Open(); !opened.ok()) return opened;
    const std::string head = encoder_->Head();
    if (!head.empty()) ChunkOf("", batch)->append(head);
    const auto first = NextCell();
    if (!first.ok()) return first;
    at_end_ = !*first;
  }
  if (at_end_) return End(*batch);
  // Files of many small cells make many small chunks, so their number ends a batch, too.
  while (schedule::SteadyClock().Now() < end && batch->size() < 2 && !ended()) {
    if (key_ < keys_.size()) {
      const absl::Status read = ReadSeries(batch);
      if (!read.ok()) return read;
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
  // What was read goes out first.
  if (!batch.empty()) return true;
  return damages_.ToStatus();
}

void ExportReactor::Encode(absl::Span<const uint32_t> steps, absl::Span<const double> values,
                           std::deque<v1::FileChunk>* batch) {
  for (size_t at = 0; at < steps.size(); at += kPointsAtOnce) {
    std::string* bytes = ChunkOf(path_, batch);
    if (!begun_) encoder_->Begin(current_, bytes);
    begun_ = true;
    encoder_->Add(keys_[key_], steps.subspan(at, kPointsAtOnce), values.subspan(at, kPointsAtOnce),
                  bytes);
  }
}

absl::Status ExportReactor::ReadSeries(std::deque<v1::FileChunk>* batch) {
  const auto first = static_cast<uint32_t>(next_step_);
  const absl::Status read = backend_->store->ReadSeries(
      {cells_[cell_].run, keys_[key_], first, UINT32_MAX},
      [this, batch](const std::vector<uint32_t>& steps, const std::vector<double>& values) {
        Encode(steps, values, batch);
        next_step_ = uint64_t{steps.back()} + 1;
        return batch->size() < 2 && next_step_ <= UINT32_MAX && !ended();
      });
  if (absl::IsCancelled(read) && next_step_ <= UINT32_MAX) return absl::OkStatus();
  if (absl::IsDataLoss(read)) {
    damages_.Add(read);
  } else if (!read.ok() && !absl::IsCancelled(read)) {
    return read;
  }
  ++key_;
  next_step_ = 0;
  return absl::OkStatus();
}

}  // namespace ablate::service
