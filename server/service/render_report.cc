// RenderReport: one HTML page about some experiments, made and sent one at a time.
#include "server/service/render_report.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/reflect/text.h"
#include "server/service/compare.h"
#include "server/service/errors.h"
#include "server/service/names.h"
#include "server/service/report_contents.h"
#include "server/service/report_figures.h"
#include "server/service/report_samples.h"

namespace ablate::service {
namespace {

void AddChunks(absl::string_view text, std::deque<v1::FileChunk>* batch) {
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kBatchBytes))) {
    batch->emplace_back().set_data(std::string(text.substr(0, kBatchBytes)));
  }
}

v1::CompareRequest RequestOf(const v1::RenderReportRequest& request, const std::string& id) {
  v1::CompareRequest compare;
  compare.set_experiment(id);
  compare.set_key(request.key());
  compare.set_by(request.by());
  *compare.mutable_baseline() = request.baseline();
  if (request.has_at()) compare.set_at(request.at());
  return compare;
}

}  // namespace

absl::StatusOr<html::Experiment> DescribeExperiment(const Backend& backend,
                                                    const v1::CompareRequest& request,
                                                    const std::string& prefix,
                                                    const Cancelled& cancelled) {
  auto compared = CompareGrid(backend.store, request, {cancelled, 0});
  if (!compared.ok()) return compared.status();
  const absl::Status windows = AddWindows(backend.store, cancelled, &*compared);
  if (!windows.ok()) return windows;
  auto experiment = ReportContents(backend.store, *compared, request);
  if (!experiment.ok()) return experiment.status();
  auto figures = ReportFigures(backend.store, *compared, {backend.gnuplot, prefix}, cancelled);
  if (!figures.ok()) return figures.status();
  experiment->figures = *std::move(figures);
  experiment->samples = ReportSamples(backend, *compared, cancelled);
  return experiment;
}

RenderReportReactor::RenderReportReactor(Backend* backend, grpc::CallbackServerContext* context,
                                         const v1::RenderReportRequest* request)
    : PullStream(backend->Stream(context, &backend->reports)),
      backend_(backend),
      request_(request) {}

absl::Status RenderReportReactor::Open() {
  if (request_->experiments().empty()) {
    return InvalidField("experiments", "it is missing",
                        absl::StrCat("1 to ", kMostReportExperiments, " experiments"));
  }
  if (request_->experiments_size() > kMostReportExperiments) {
    return TooMany("experiments", request_->experiments_size(), kMostReportExperiments);
  }
  std::set<std::string> seen;
  for (int i = 0; i < request_->experiments_size(); ++i) {
    const std::string field = absl::StrCat("experiments[", i, "]");
    const auto id = FindExperiment(backend_->store, request_->experiments(i), field);
    if (!id.ok()) return id.status();
    if (!seen.insert(*id).second) {
      return InvalidField(field, absl::StrCat(reflect::Quoted(*id), " is named twice"),
                          "distinct experiments");
    }
    const auto record = backend_->store->GetExperiment(*id);
    if (!record.ok()) return record.status();
    v1::ExperimentSpec spec;
    if (!spec.ParseFromString(record->spec)) {
      return absl::DataLossError(absl::StrCat("the spec of ", *id, " can't be read"));
    }
    page_.experiments.push_back({*id, spec.question()});
  }
  page_.version = ABLATE_VERSION;
  page_.made = absl::FormatTime("%Y-%m-%d at %H:%M UTC", absl::Now(), absl::UTCTimeZone());
  return absl::OkStatus();
}

absl::StatusOr<std::string> RenderReportReactor::Section(size_t index) {
  const Cancelled cancelled = [this] { return ended(); };
  const v1::CompareRequest request = RequestOf(*request_, page_.experiments[index].first);
  const auto experiment =
      DescribeExperiment(*backend_, request, absl::StrCat("e", index + 1, "-"), cancelled);
  if (!experiment.ok()) return experiment.status();
  return html::ExperimentSection(page_, index, *experiment);
}

absl::StatusOr<bool> RenderReportReactor::Fill(std::deque<v1::FileChunk>* batch) {
  const size_t piece = next_++;
  if (piece == 0) {
    if (const absl::Status opened = Open(); !opened.ok()) return opened;
  }
  if (piece < page_.experiments.size()) {
    const auto section = Section(piece);
    if (!section.ok()) return section.status();
    // Only now: what the first experiment's key or axes lack is said before the first byte.
    if (piece == 0) AddChunks(html::PageHead(page_), batch);
    AddChunks(*section, batch);
    return true;
  }
  AddChunks(html::PageFoot(page_), batch);
  return false;
}

}  // namespace ablate::service
