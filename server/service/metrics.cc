#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/metric.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/lookup/cancelled.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/results/compare.h"
#include "server/results/series.h"
#include "server/rpc/call.h"
#include "server/rpc/streams.h"
#include "server/service/comparison_message.h"
#include "server/service/methods.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

constexpr absl::Duration kQuerySlice = absl::Milliseconds(20);
constexpr size_t kPointBytes = 12;  // about a double and a step's varint

absl::Status CheckSubject(const v1::QueryMetricsRequest& request) {
  if (request.experiment().empty() == request.runs().empty()) {
    return lookup::InvalidField("experiment",
                                request.runs().empty() ? "neither experiment nor runs is given"
                                                       : "experiment and runs are both given",
                                "either experiment or runs");
  }
  if (!request.cell().empty() && request.experiment().empty()) {
    return lookup::InvalidField("cell", "given without experiment",
                                "a cell together with its experiment");
  }
  if (request.runs_size() > lookup::kMaxQueryRuns) {
    return lookup::TooMany("runs", request.runs_size(), lookup::kMaxQueryRuns);
  }
  return absl::OkStatus();
}

absl::Status CheckRequest(const v1::QueryMetricsRequest& request) {
  RETURN_IF_ERROR(CheckSubject(request));
  RETURN_IF_ERROR(results::CheckKeys(request.keys()));
  if (request.has_first_step() && request.has_last_step() &&
      request.first_step() > request.last_step()) {
    return lookup::InvalidField("first_step",
                                absl::StrCat(request.first_step(), " is after last_step"),
                                absl::StrCat("at most ", request.last_step()));
  }
  const uint32_t points = request.max_points();
  if (points != 0 && (points < lookup::kMinThinnedPoints || points > lookup::kMaxThinnedPoints)) {
    return lookup::InvalidField(
        "max_points",
        absl::StrCat(points,
                     points < lookup::kMinThinnedPoints ? " is too small" : " is too large"),
        absl::StrCat(lookup::kMinThinnedPoints, " to ", lookup::kMaxThinnedPoints,
                     ", or 0 for all points"));
  }
  return absl::OkStatus();
}

uint32_t LastStep(const v1::QueryMetricsRequest& request) {
  return request.has_last_step() ? request.last_step() : UINT32_MAX;
}

// Reads and writes series of many runs and keys, in pieces.
class QueryMetricsReactor final : public rpc::PullStream<v1::Series> {
 public:
  // `context` and `request` outlive the call.
  QueryMetricsReactor(Backend* backend, grpc::CallbackServerContext* context,
                      const v1::QueryMetricsRequest* request);

 private:
  struct Subject {  // a run whose series are wanted
    std::string cell;
    std::string run;
    uint32_t last_step = 0;  // end of its series
  };

  absl::Status Check() const override;
  absl::StatusOr<bool> Fill(std::deque<v1::Series>* batch) override;
  absl::Status Open();
  absl::Status CollectSubjects();
  absl::Status CollectCells(const std::string& experiment);
  absl::Status CollectCell(const std::string& experiment);
  // Each moves to the next series when this one is read to its end.
  absl::Status ReadThinned(const Subject& subject, std::deque<v1::Series>* batch);
  absl::Status ReadFull(const Subject& subject, std::deque<v1::Series>* batch);
  void Append(const Subject& subject, const std::string& key, const std::vector<uint32_t>& steps,
              const std::vector<double>& values, std::deque<v1::Series>* batch);

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::QueryMetricsRequest* const request_;
  bool open_ = false;
  std::vector<Subject> subjects_;
  size_t subject_ = 0;
  bool in_subject_ = false;  // reading the series of a subject
  size_t batch_bytes_ = 0;
  results::Damages damages_;
  analysis::AnalysisMetrics metrics_;  // the experiment's, if one is requested
  results::SeriesCursor series_;
};

QueryMetricsReactor::QueryMetricsReactor(Backend* backend, grpc::CallbackServerContext* context,
                                         const v1::QueryMetricsRequest* request)
    : PullStream(backend->Stream(context, &backend->queries)),
      backend_(backend),
      context_(context),
      request_(request),
      series_(backend->store, &damages_, request->first_step(), LastStep(*request)) {}

absl::Status QueryMetricsReactor::Check() const { return CheckRequest(*request_); }

absl::Status QueryMetricsReactor::Open() {
  open_ = true;
  return CollectSubjects();
}

absl::Status QueryMetricsReactor::CollectSubjects() {
  ASSIGN_OR_RETURN(const auto view, backend_->FindView(context_));
  if (!request_->experiment().empty()) {
    const auto experiment = lookup::FindExperiment(view, request_->experiment(), "experiment");
    return experiment.ok() ? CollectCells(*experiment) : experiment.status();
  }
  std::set<std::string> seen;
  for (int i = 0; i < request_->runs_size() && !ended(); ++i) {
    ASSIGN_OR_RETURN(const auto id,
                     lookup::FindRun(view, request_->runs(i), absl::StrCat("runs[", i, "]")));
    if (!seen.insert(id).second) continue;
    ASSIGN_OR_RETURN(const auto run, backend_->store->GetRun(id));
    subjects_.push_back({"", id, run.step});
  }
  return absl::OkStatus();
}

absl::Status QueryMetricsReactor::CollectCells(const std::string& experiment) {
  ASSIGN_OR_RETURN(metrics_, analysis::AnalysisMetrics::Load(
                                 backend_->store, experiment,
                                 {request_->keys().begin(), request_->keys().end()}));
  series_.Add(&metrics_);
  if (!request_->cell().empty()) return CollectCell(experiment);
  return lookup::VisitCells(backend_->store, experiment,
                            [this](const std::vector<storage::CellRecord>& page) {
                              for (const storage::CellRecord& cell : page) {
                                subjects_.push_back({cell.name, cell.run, cell.step});
                              }
                              return !ended();
                            });
}

absl::Status QueryMetricsReactor::CollectCell(const std::string& experiment) {
  ASSIGN_OR_RETURN(const auto id,
                   lookup::FindCellRun(backend_->store, experiment, request_->cell(), "cell"));
  ASSIGN_OR_RETURN(const auto run, backend_->store->GetRun(id));
  subjects_.push_back({request_->cell(), id, run.step});
  return absl::OkStatus();
}

absl::StatusOr<bool> QueryMetricsReactor::Fill(std::deque<v1::Series>* batch) {
  const absl::Duration end = MonotonicNow() + kQuerySlice;
  if (!open_) {
    RETURN_IF_ERROR(Open());
  }
  batch_bytes_ = 0;
  while (subject_ < subjects_.size()) {
    const bool slice_over = MonotonicNow() > end;
    if (batch_bytes_ >= lookup::kBatchBytes || slice_over || ended()) return true;
    const Subject& subject = subjects_[subject_];
    absl::Status status;
    if (!in_subject_) {
      status = series_.OpenRun(subject.run, request_->keys());
      in_subject_ = true;
    } else if (!series_.has_series()) {
      ++subject_;
      in_subject_ = false;
    } else if (request_->max_points() > 0) {
      status = ReadThinned(subject, batch);
    } else {
      status = ReadFull(subject, batch);
    }
    if (!status.ok()) return status;
  }
  if (damages_.empty()) return false;
  // Send what was read first.
  if (!batch->empty()) return true;
  return damages_.ToStatus();
}

absl::Status QueryMetricsReactor::ReadThinned(const Subject& subject,
                                              std::deque<v1::Series>* batch) {
  const std::string key = series_.key();
  results::Downsampler downsampler(request_->max_points(),
                                   std::min(LastStep(*request_), subject.last_step));
  ASSIGN_OR_RETURN(const auto end,
                   series_.Read([this, &downsampler](const std::vector<uint32_t>& steps,
                                                     const std::vector<double>& values) {
                     downsampler.Add(steps, values);
                     return !ended();
                   }));
  if (end != results::SeriesEnd::kComplete) return absl::OkStatus();
  const analysis::Points points = downsampler.Finish();
  Append(subject, key, points.steps, points.values, batch);
  return absl::OkStatus();
}

absl::Status QueryMetricsReactor::ReadFull(const Subject& subject, std::deque<v1::Series>* batch) {
  return series_
      .Read([this, &subject, batch](const std::vector<uint32_t>& steps,
                                    const std::vector<double>& values) {
        Append(subject, series_.key(), steps, values, batch);
        return batch_bytes_ < lookup::kBatchBytes && !ended();
      })
      .status();
}

void QueryMetricsReactor::Append(const Subject& subject, const std::string& key,
                                 const std::vector<uint32_t>& steps,
                                 const std::vector<double>& values, std::deque<v1::Series>* batch) {
  size_t from = 0;
  while (from < steps.size()) {
    const bool goes_on = !batch->empty() && batch->back().run() == lookup::RunName(subject.run) &&
                         batch->back().key() == key && batch->back().cell() == subject.cell &&
                         static_cast<size_t>(batch->back().steps_size()) < lookup::kSeriesPoints;
    if (!goes_on) {
      v1::Series& series = batch->emplace_back();
      series.set_cell(subject.cell);
      series.set_run(lookup::RunName(subject.run));
      series.set_key(key);
      batch_bytes_ += subject.cell.size() + series.run().size() + key.size();
    }
    v1::Series& series = batch->back();
    const size_t room = lookup::kSeriesPoints - static_cast<size_t>(series.steps_size());
    const size_t count = std::min(room, steps.size() - from);
    const auto begin = static_cast<std::ptrdiff_t>(from);
    const auto end = static_cast<std::ptrdiff_t>(from + count);
    series.mutable_steps()->Add(steps.begin() + begin, steps.begin() + end);
    series.mutable_values()->Add(values.begin() + begin, values.begin() + end);
    batch_bytes_ += count * kPointBytes;
    from += count;
  }
}

using Keys =
    absl::StatusOr<std::vector<std::pair<std::string, uint64_t>>>;  // with their numbers of points

v1::MetricInfo MetricOf(const std::string& key, uint64_t count, bool of_analysis) {
  v1::MetricInfo metric;
  metric.set_key(key);
  metric.set_count(count);
  metric.set_of_analysis(of_analysis);
  return metric;
}

// Returns the metrics recorded by training, of the run if one is given, and the numbers of the
// experiment's analyses.
absl::StatusOr<std::vector<v1::MetricInfo>> MetricsOf(storage::Store* store,
                                                      const std::string& experiment,
                                                      const std::string& run) {
  std::vector<v1::MetricInfo> all;
  const Keys keys = run.empty() ? store->ExperimentKeys(experiment) : store->RunKeys(run);
  if (!keys.ok()) return keys.status();
  for (const auto& [key, count] : *keys) all.push_back(MetricOf(key, count, false));
  if (experiment.empty()) return all;
  ASSIGN_OR_RETURN(const auto metrics, analysis::AnalysisMetrics::Load(store, experiment));
  if (run.empty()) {
    for (const auto& [key, count] : metrics.Keys()) all.push_back(MetricOf(key, count, true));
    return all;
  }
  for (const std::string& key : metrics.KeysOf(run)) {
    all.push_back(MetricOf(key, metrics.Find(run, key)->steps.size(), true));
  }
  return all;
}

absl::StatusOr<std::vector<v1::MetricInfo>> MetricsOf(const lookup::View& view,
                                                      const v1::ListMetricsRequest& request) {
  storage::Store* const store = view.store;
  const std::string& parent = request.parent();
  if (absl::StartsWith(parent, "runs/")) {
    if (!request.cell().empty()) {
      return lookup::InvalidField("cell", "it is given with a run", "a cell of an experiment");
    }
    ASSIGN_OR_RETURN(const auto run, lookup::FindRun(view, parent, "parent"));
    return MetricsOf(store, "", run);
  }
  ASSIGN_OR_RETURN(const auto experiment, lookup::FindExperiment(view, parent, "parent"));
  if (request.cell().empty()) return MetricsOf(store, experiment, "");
  ASSIGN_OR_RETURN(const auto run, lookup::FindCellRun(store, experiment, request.cell(), "cell"));
  return MetricsOf(store, experiment, run);
}

absl::Status ListMetrics(const Backend&, const lookup::View& view,
                         const v1::ListMetricsRequest& request, v1::ListMetricsResponse* response) {
  ASSIGN_OR_RETURN(auto metrics, MetricsOf(view, request));
  std::sort(metrics.begin(), metrics.end(),
            [](const v1::MetricInfo& a, const v1::MetricInfo& b) { return a.key() < b.key(); });
  const std::string list = absl::StrCat("metrics of ", request.parent(), "/", request.cell());
  ASSIGN_OR_RETURN(const auto page,
                   lookup::ReadPage(request, list, std::numeric_limits<int32_t>::max()));
  lookup::Room room(lookup::kPageBytes);
  std::string last;
  for (v1::MetricInfo& metric : metrics) {
    if (metric.key() <= page.position) continue;
    const bool full = static_cast<uint32_t>(response->metrics_size()) == page.size;
    if (full || !room.Take(metric.ByteSizeLong() + 8)) {
      response->set_next_page_token(lookup::PageToken(list, last));
      break;
    }
    last = metric.key();
    *response->add_metrics() = std::move(metric);
  }
  return absl::OkStatus();
}

absl::Status CompareSettings(const lookup::View& view, const v1::CompareRequest& request,
                             const lookup::Cancelled& cancelled, v1::Comparison* response) {
  ASSIGN_OR_RETURN(auto compared, results::CompareGrid(view, request, {cancelled},
                                                       results::AnalysisNumbers::kOfComparison));
  RETURN_IF_ERROR(results::AddWindows(view.store, cancelled, &compared));
  if (request.has_gate()) {
    ASSIGN_OR_RETURN(*response, ToMessage(compared, request.gate()));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(*response, ToMessage(compared));
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::Series>* StartQuery(Backend* backend,
                                                 grpc::CallbackServerContext* context,
                                                 const v1::QueryMetricsRequest* request) {
  return (new QueryMetricsReactor(backend, context, request))->Begin();
}

}  // namespace

std::unique_ptr<grpc::Service> MakeMetricsService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Metrics", backend);
  methods->Answer(ListMetrics);
  methods->Stream(StartQuery);
  methods->Stream(StartSql);
  methods->Compare(CompareSettings);
  return methods;
}

}  // namespace ablate::service
