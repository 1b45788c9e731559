// QueryMetrics: series of many runs and keys, read and written piece by piece.
#include "server/service/query_metrics.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/schedule/clock.h"
#include "server/service/errors.h"
#include "server/service/metric_keys.h"
#include "server/service/names.h"
#include "server/service/page.h"

namespace ablate::service {
namespace {

constexpr absl::Duration kSlice = absl::Milliseconds(20);
constexpr size_t kPointBytes = 12;  // a double and a step's varint, about

absl::Status CheckSubject(const v1::QueryMetricsRequest& request) {
  if (request.experiment().empty() == request.runs().empty()) {
    return InvalidField(
        "experiment",
        request.runs().empty() ? "neither it nor runs is given" : "runs are given, too",
        "either experiment or runs");
  }
  if (request.runs_size() > kMostQueryRuns) {
    return TooMany("runs", request.runs_size(), kMostQueryRuns);
  }
  return absl::OkStatus();
}

absl::Status CheckRequest(const v1::QueryMetricsRequest& request) {
  if (const absl::Status subject = CheckSubject(request); !subject.ok()) return subject;
  if (const absl::Status keys = CheckKeys(request.keys()); !keys.ok()) return keys;
  if (request.has_first_step() && request.has_last_step() &&
      request.first_step() > request.last_step()) {
    return InvalidField("first_step", absl::StrCat(request.first_step(), " is after last_step"),
                        absl::StrCat("at most last_step, ", request.last_step()));
  }
  const uint32_t most = request.max_points();
  if (most != 0 && (most < kLeastMaxPoints || most > kMostMaxPoints)) {
    return InvalidField(
        "max_points",
        absl::StrCat(most, most < kLeastMaxPoints ? " is too small" : " is too large"),
        absl::StrCat(kLeastMaxPoints, " to ", kMostMaxPoints, ", or 0 for all points"));
  }
  return absl::OkStatus();
}

}  // namespace

QueryMetricsReactor::QueryMetricsReactor(Backend* backend, grpc::CallbackServerContext* context,
                                         const v1::QueryMetricsRequest* request)
    : PullStream(backend->Stream(context, &backend->reads)), backend_(backend), request_(request) {}

absl::Status QueryMetricsReactor::Check() const { return CheckRequest(*request_); }

absl::Status QueryMetricsReactor::Open() {
  open_ = true;
  next_step_ = request_->first_step();
  return CollectSubjects();
}

absl::Status QueryMetricsReactor::CollectSubjects() {
  if (!request_->experiment().empty()) {
    const auto experiment = FindExperiment(backend_->store, request_->experiment(), "experiment");
    return experiment.ok() ? CollectCells(*experiment) : experiment.status();
  }
  std::set<std::string> seen;
  for (int i = 0; i < request_->runs_size() && !ended(); ++i) {
    const auto id = FindRun(backend_->store, request_->runs(i), absl::StrCat("runs[", i, "]"));
    if (!id.ok()) return id.status();
    if (!seen.insert(*id).second) continue;
    const auto run = backend_->store->GetRun(*id);
    if (!run.ok()) return run.status();
    subjects_.push_back({"", *id, run->step});
  }
  return absl::OkStatus();
}

absl::Status QueryMetricsReactor::CollectCells(const std::string& experiment) {
  while (!ended()) {
    const auto first = static_cast<uint32_t>(subjects_.size());
    const auto page = backend_->store->ListCells(experiment, first, kCellsAtOnce);
    if (!page.ok()) return page.status();
    for (const storage::CellRecord& cell : *page) {
      subjects_.push_back({cell.name, cell.run, cell.step});
    }
    if (page->size() < kCellsAtOnce) break;
  }
  return absl::OkStatus();
}

absl::Status QueryMetricsReactor::CollectKeys(const Subject& subject) {
  auto keys = KeysToRead(backend_->store, subject.run, request_->keys());
  if (!keys.ok()) return keys.status();
  keys_ = *std::move(keys);
  has_keys_ = true;
  key_ = 0;
  return absl::OkStatus();
}

void QueryMetricsReactor::NextSeries() {
  ++key_;
  next_step_ = request_->first_step();
}

void QueryMetricsReactor::NextSubject() {
  ++subject_;
  has_keys_ = false;
}

absl::StatusOr<bool> QueryMetricsReactor::Fill(std::deque<v1::Series>* batch) {
  const absl::Duration end = schedule::SteadyClock().Now() + kSlice;
  if (!open_) {
    const absl::Status opened = Open();
    if (!opened.ok()) return opened;
  }
  batch_bytes_ = 0;
  while (subject_ < subjects_.size()) {
    const bool slice_over = schedule::SteadyClock().Now() > end;
    if (batch_bytes_ >= kBatchBytes || slice_over || ended()) return true;
    const Subject& subject = subjects_[subject_];
    absl::Status status;
    if (!has_keys_) {
      status = CollectKeys(subject);
    } else if (key_ == keys_.size()) {
      NextSubject();
    } else if (request_->max_points() > 0) {
      status = ReadThinned(subject, batch);
    } else {
      status = ReadFull(subject, batch);
    }
    if (!status.ok()) status = PassOver(status);
    if (!status.ok()) return status;
  }
  if (damages_.empty()) return false;
  // What was read goes out first.
  if (!batch->empty()) return true;
  return damages_.ToStatus();
}

absl::Status QueryMetricsReactor::PassOver(const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  damages_.Add(status);
  if (has_keys_) {
    NextSeries();
  } else {
    NextSubject();
  }
  return absl::OkStatus();
}

absl::Status QueryMetricsReactor::ReadThinned(const Subject& subject,
                                              std::deque<v1::Series>* batch) {
  const uint32_t last = request_->has_last_step() ? request_->last_step() : UINT32_MAX;
  Downsampler downsampler(request_->max_points(), std::min(last, subject.last_step));
  const absl::Status read = backend_->store->ReadSeries(
      {subject.run, keys_[key_], request_->first_step(), last},
      [this, &downsampler](const std::vector<uint32_t>& steps, const std::vector<double>& values) {
        downsampler.Add(steps, values);
        return !ended();
      });
  if (!read.ok()) return read;
  const Points points = downsampler.Finish();
  Append(subject, points.steps, points.values, batch);
  NextSeries();
  return absl::OkStatus();
}

absl::Status QueryMetricsReactor::ReadFull(const Subject& subject, std::deque<v1::Series>* batch) {
  const uint32_t last = request_->has_last_step() ? request_->last_step() : UINT32_MAX;
  if (next_step_ > last) {
    NextSeries();
    return absl::OkStatus();
  }
  const absl::Status read = backend_->store->ReadSeries(
      {subject.run, keys_[key_], static_cast<uint32_t>(next_step_), last},
      [this, &subject, batch](const std::vector<uint32_t>& steps,
                              const std::vector<double>& values) {
        Append(subject, steps, values, batch);
        if (!steps.empty()) next_step_ = uint64_t{steps.back()} + 1;
        return batch_bytes_ < kBatchBytes && !ended();
      });
  if (read.ok()) NextSeries();
  // The batch is full: the next one goes on from here.
  return absl::IsCancelled(read) ? absl::OkStatus() : read;
}

void QueryMetricsReactor::Append(const Subject& subject, const std::vector<uint32_t>& steps,
                                 const std::vector<double>& values, std::deque<v1::Series>* batch) {
  size_t from = 0;
  while (from < steps.size()) {
    const bool goes_on = !batch->empty() && batch->back().run() == RunName(subject.run) &&
                         batch->back().key() == keys_[key_] &&
                         batch->back().cell() == subject.cell &&
                         static_cast<size_t>(batch->back().steps_size()) < kSeriesPoints;
    if (!goes_on) {
      v1::Series& series = batch->emplace_back();
      series.set_cell(subject.cell);
      series.set_run(RunName(subject.run));
      series.set_key(keys_[key_]);
      batch_bytes_ += subject.cell.size() + series.run().size() + keys_[key_].size();
    }
    v1::Series& series = batch->back();
    const size_t room = kSeriesPoints - static_cast<size_t>(series.steps_size());
    const size_t count = std::min(room, steps.size() - from);
    const auto begin = static_cast<std::ptrdiff_t>(from);
    const auto end = static_cast<std::ptrdiff_t>(from + count);
    series.mutable_steps()->Add(steps.begin() + begin, steps.begin() + end);
    series.mutable_values()->Add(values.begin() + begin, values.begin() + end);
    batch_bytes_ += count * kPointBytes;
    from += count;
  }
}

}  // namespace ablate::service
