#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/comparison.pb.h"
#include "ablate/v1/report.pb.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "proto/reflect/text.h"
#include "server/experiment/experiment_analyses.h"
#include "server/lookup/cancelled.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/lookup/names.h"
#include "server/report/compare/wording.h"
#include "server/report/figure/render.h"
#include "server/report/html/page.h"
#include "server/report/table/comparison_tables.h"
#include "server/report/table/headline_table.h"
#include "server/report/table/table.h"
#include "server/results/analysis_tables.h"
#include "server/results/compare.h"
#include "server/results/figures.h"
#include "server/results/report.h"
#include "server/results/trained_grid.h"
#include "server/rpc/call.h"
#include "server/rpc/streams.h"
#include "server/service/methods.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

struct TableFormat {
  v1::TableFormat::Value value;
  report::Table (*make)(const report::Comparison& comparison);
  std::string (*render)(const report::Table& table);
};

constexpr TableFormat kTableFormats[] = {
    {v1::TableFormat::text, report::MainTable, report::RenderText},
    {v1::TableFormat::csv, report::DataTable, report::RenderCsv},
    {v1::TableFormat::latex, report::MainTable, report::RenderLatex},
};

struct FigureFormat {
  v1::FigureFormat::Value value;
  figure::Format format;
};

constexpr FigureFormat kFigureFormats[] = {
    {v1::FigureFormat::svg, figure::Format::kSvg},
    {v1::FigureFormat::pdf, figure::Format::kPdf},
    {v1::FigureFormat::png, figure::Format::kPng},
};

// Returns the row of `table` with this value, or null.
template <class Row, size_t rows, class Value>
const Row* FindRow(const Row (&table)[rows], Value value) {
  for (const Row& row : table) {
    if (row.value == value) return &row;
  }
  return nullptr;
}

absl::Status CheckColumns(const std::vector<std::string>& columns, v1::TableFormat::Value format) {
  if (columns.empty()) return absl::OkStatus();
  if (format == v1::TableFormat::csv) {
    return lookup::InvalidField("columns", "csv has columns of its own",
                                "none, or format text or latex");
  }
  for (const std::string& column : columns) {
    if (std::count(columns.begin(), columns.end(), column) > 1) {
      return lookup::InvalidField("columns", absl::StrCat(reflect::Quoted(column), " occurs twice"),
                                  "each column once");
    }
    if (std::count(std::begin(report::kMainColumns), std::end(report::kMainColumns), column) > 0) {
      continue;
    }
    return lookup::InvalidField("columns", absl::StrCat(reflect::Quoted(column), " is unknown"),
                                absl::StrJoin(report::kMainColumns, ", "));
  }
  return absl::OkStatus();
}

// Returns INVALID_ARGUMENT for what doesn't go with the table of an analysis.
absl::Status CheckAnalysisTable(const v1::RenderTableRequest& request) {
  const v1::CompareRequest& comparison = request.comparison();
  if (request.format() == v1::TableFormat::csv) {
    return lookup::InvalidField("format", "csv has no table of an analysis",
                                "text or latex; Export has the numbers of each run");
  }
  const char* const extra = request.columns_size() > 0     ? "columns"
                            : !comparison.key().empty()    ? "comparison.key"
                            : comparison.has_at()          ? "comparison.at"
                            : comparison.others_size() > 0 ? "comparison.others"
                                                           : nullptr;
  if (extra == nullptr) return absl::OkStatus();
  return lookup::InvalidField(extra, "doesn't apply to the table of an analysis", "none");
}

// Returns the table of the analysis with the request's label.
absl::StatusOr<report::Table> AnalysisTable(const lookup::View& view,
                                            const v1::RenderTableRequest& request,
                                            const lookup::Cancelled& cancelled) {
  RETURN_IF_ERROR(CheckAnalysisTable(request));
  ASSIGN_OR_RETURN(const auto compared,
                   results::CompareGrid(view, request.comparison(), {cancelled, 0, false},
                                        results::AnalysisNumbers::kAll));
  if (!compared.operands.empty()) {
    return lookup::InvalidField("comparison.experiment", "is a part of an experiment",
                                "a whole one for the table of an analysis");
  }
  std::vector<std::string> labels;
  for (const spec::AskedAnalysis& asked : spec::AskedAnalyses(compared.grid.spec)) {
    labels.push_back(asked.label);
  }
  if (std::find(labels.begin(), labels.end(), request.label()) == labels.end()) {
    return lookup::InvalidField("label",
                                absl::StrCat(reflect::Quoted(request.label()),
                                             " isn't an analysis of ", compared.grid.record.id),
                                labels.empty() ? "none, because the experiment asks for no analyses"
                                               : reflect::AnyOf(labels));
  }
  ASSIGN_OR_RETURN(const auto tables, results::AnalysisTables(view.store, compared, cancelled));
  const auto analysis = std::find_if(
      tables.begin(), tables.end(),
      [&request](const report::HeadlineNumbers& one) { return one.label == request.label(); });
  if (!analysis->own.empty()) return report::OwnNumbersTable(*analysis);
  if (!analysis->numbers.empty() || !analysis->constants.empty()) {
    report::Table table = report::NumbersTable(*analysis);
    table.legend =
        report::Together({report::NumbersLegend(tables), report::ConstantsText(*analysis)}, " ");
    return table;
  }
  if (analysis->done == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("label: no analysis ", request.label(), " of ", compared.grid.record.id,
                     " is done", analysis->failure.empty() ? "" : ": ", analysis->failure));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("label: ", request.label(), " has no headline numbers; `ablate metrics ",
                   compared.grid.record.id, "` lists all numbers"));
}

absl::StatusOr<report::Table> MainTable(const lookup::View& view,
                                        const v1::RenderTableRequest& request,
                                        const TableFormat& format,
                                        const lookup::Cancelled& cancelled) {
  const std::vector<std::string> columns(request.columns().begin(), request.columns().end());
  RETURN_IF_ERROR(CheckColumns(columns, format.value));
  ASSIGN_OR_RETURN(const auto compared,
                   results::CompareGrid(view, request.comparison(), {cancelled},
                                        results::AnalysisNumbers::kOfComparison));
  report::Table table = format.make(compared.comparison);
  return columns.empty() ? table : report::WithColumns(table, columns);
}

// Renders a table as a file. RESOURCE_EXHAUSTED if it is larger than kPageBytes.
absl::Status RenderTable(const lookup::View& view, const v1::RenderTableRequest& request,
                         const lookup::Cancelled& cancelled, v1::RenderTableResponse* response) {
  const TableFormat* format = FindRow(kTableFormats, request.format());
  if (format == nullptr) return lookup::UnknownFormat(request.format(), "text, csv or latex");
  ASSIGN_OR_RETURN(const auto table, request.label().empty()
                                         ? MainTable(view, request, *format, cancelled)
                                         : AnalysisTable(view, request, cancelled));
  std::string data = format->render(table);
  if (data.size() > lookup::kPageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "format: the table of ", table.columns[0].cells.size(), " rows has ", data.size(),
        " bytes; expected at most ", lookup::kPageBytes, ". Compare fewer settings"));
  }
  response->set_data(std::move(data));
  return absl::OkStatus();
}

// Returns the comparison of the request; for kinds without a key, `key` is the compared metric.
v1::CompareRequest ComparisonOf(const v1::RenderFigureRequest& request, const figure::Kind& kind) {
  v1::CompareRequest comparison = request.comparison();
  if (kind.key.empty() && !request.key().empty()) comparison.set_key(request.key());
  return comparison;
}

absl::Status CheckWidth(const v1::RenderFigureRequest& request) {
  const double width = request.width();
  const bool fits = width >= figure::kMinWidth && width <= figure::kMaxWidth;
  if (!request.has_width() || fits) return absl::OkStatus();
  return lookup::InvalidField(
      "width", absl::StrCat(width, " is out of range"),
      absl::StrCat("inches from ", figure::kMinWidth, " to ", figure::kMaxWidth));
}

// Returns the step for kinds that draw one; nothing for the last one.
absl::StatusOr<std::optional<uint32_t>> StepOf(const v1::RenderFigureRequest& request,
                                               const figure::Kind& kind) {
  constexpr int32_t kLast = -1;
  if (!request.has_step()) return std::nullopt;
  if (!figure::AlongOf(kind).has_value() && kind.reads != figure::Reads::kAnalysis) {
    return lookup::InvalidField("step",
                                absl::StrCat("figure kind ", kind.name, " doesn't take a step"),
                                "none. Only depth, levels and kinds of analyses take a step");
  }
  if (request.step() < kLast) {
    return lookup::InvalidField("step", absl::StrCat(request.step(), " is out of range"),
                                "a step from 0 on, or -1 for the last one");
  }
  if (request.step() == kLast) return std::nullopt;
  return static_cast<uint32_t>(request.step());
}

absl::Status DrawAndRender(const lookup::View& view, const v1::RenderFigureRequest& request,
                           const lookup::Cancelled& cancelled, v1::RenderFigureResponse* response) {
  const figure::Kind* kind = figure::FindKind(request.kind());
  if (kind == nullptr) {
    return lookup::InvalidField(
        "kind",
        request.kind().empty()
            ? "missing"
            : absl::StrCat(reflect::Quoted(request.kind()), " isn't a kind of figure"),
        figure::KindNames());
  }
  RETURN_IF_ERROR(CheckWidth(request));
  const FigureFormat* format = FindRow(kFigureFormats, request.format());
  if (format == nullptr) return lookup::UnknownFormat(request.format(), "svg, pdf or png");
  ASSIGN_OR_RETURN(const auto step, StepOf(request, *kind));
  ASSIGN_OR_RETURN(auto compared,
                   results::CompareGrid(view, ComparisonOf(request, *kind), {cancelled, 0},
                                        results::AnalysisNumbers::kAll));
  if (kind->reads == figure::Reads::kWindows) {
    RETURN_IF_ERROR(results::AddWindows(view.store, cancelled, &compared));
  }
  results::FigureOptions options;
  options.key = request.key();
  options.step = step;
  if (request.has_width()) options.width = request.width();
  ASSIGN_OR_RETURN(const auto drawing,
                   results::DrawFigure(view.store, compared, *kind, options, cancelled));
  ASSIGN_OR_RETURN(auto data, figure::Render(drawing.figure, format->format));
  if (data.size() > lookup::kPageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("format: the picture has ", data.size(), " bytes; expected at most ",
                     lookup::kPageBytes, ". Use png, which is smaller"));
  }
  if (data.size() + drawing.csv.size() <= lookup::kPageBytes) response->set_csv(drawing.csv);
  response->set_media_type(std::string(figure::MediaType(format->format)));
  response->set_data(std::move(data));
  return absl::OkStatus();
}

void AddChunks(absl::string_view text, std::deque<v1::FileChunk>* batch) {
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), lookup::kMessageBytes))) {
    batch->emplace_back().set_data(std::string(text.substr(0, lookup::kMessageBytes)));
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

// Makes and sends one HTML page about some experiments, one experiment at a time.
class RenderReportReactor final : public rpc::PullStream<v1::FileChunk> {
 public:
  // `context` and `request` outlive the call.
  RenderReportReactor(Backend* backend, grpc::CallbackServerContext* context,
                      const v1::RenderReportRequest* request);

 private:
  absl::StatusOr<bool> Fill(std::deque<v1::FileChunk>* batch) override;
  // Finds every experiment before the first byte; a key, an axis or a step that one of them lacks
  // ends the page at that experiment.
  absl::Status Open();
  absl::StatusOr<std::string> Section(size_t index);
  // Loads an experiment by id; it may have been deleted since it was found.
  absl::StatusOr<results::StoredExperiment> LoadAgain(const std::string& id) const;

  Backend* const backend_;
  grpc::CallbackServerContext* const context_;
  const v1::RenderReportRequest* const request_;
  html::Page page_;
  // The others are loaded again in their turn: a spec may be large, and only one is held at a time.
  results::StoredExperiment first_;
  size_t next_ = 0;  // index of the experiment, the first with the head; then the foot
};

RenderReportReactor::RenderReportReactor(Backend* backend, grpc::CallbackServerContext* context,
                                         const v1::RenderReportRequest* request)
    : PullStream(backend->Stream(context, &backend->reports)),
      backend_(backend),
      context_(context),
      request_(request) {}

absl::Status RenderReportReactor::Open() {
  if (request_->experiments().empty()) {
    return lookup::InvalidField(
        "experiments", "missing",
        absl::StrCat("1 to ", lookup::kMaxReportExperiments, " experiments"));
  }
  if (request_->experiments_size() > lookup::kMaxReportExperiments) {
    return lookup::TooMany("experiments", request_->experiments_size(),
                           lookup::kMaxReportExperiments);
  }
  ASSIGN_OR_RETURN(const auto view, backend_->FindView(context_));
  std::set<std::string> seen;
  for (int i = 0; i < request_->experiments_size(); ++i) {
    const std::string field = absl::StrCat("experiments[", i, "]");
    ASSIGN_OR_RETURN(const auto id, lookup::FindExperiment(view, request_->experiments(i), field));
    if (!seen.insert(id).second) {
      return lookup::InvalidField(field, absl::StrCat(reflect::Quoted(id), " is repeated"),
                                  "distinct experiments");
    }
    ASSIGN_OR_RETURN(auto experiment, results::LoadExperiment(backend_->store, id));
    page_.experiments.push_back({id, experiment.spec.question()});
    if (i == 0) first_ = std::move(experiment);
  }
  std::vector<std::string> ids;
  for (const auto& [id, question] : page_.experiments) ids.push_back(id);
  page_.command = results::ReportCommand(ids, RequestOf(*request_, ""), request_->output());
  page_.version = ABLATE_VERSION;
  page_.made = absl::FormatTime("%Y-%m-%d at %H:%M UTC", absl::Now(), absl::UTCTimeZone());
  return absl::OkStatus();
}

absl::StatusOr<results::StoredExperiment> RenderReportReactor::LoadAgain(
    const std::string& id) const {
  ASSIGN_OR_RETURN(const auto view, backend_->FindView(*context_));
  ASSIGN_OR_RETURN(const auto found, lookup::FindExperiment(view, id, "experiment"));
  return results::LoadExperiment(backend_->store, found);
}

absl::StatusOr<std::string> RenderReportReactor::Section(size_t index) {
  const lookup::Cancelled cancelled = [this] { return ended(); };
  const v1::CompareRequest request = RequestOf(*request_, page_.experiments[index].first);
  ASSIGN_OR_RETURN(results::StoredExperiment stored,
                   index == 0 ? std::move(first_) : LoadAgain(page_.experiments[index].first));
  const results::ReportSources sources{backend_->store, &backend_->scheduler->analyses()};
  ASSIGN_OR_RETURN(
      const auto experiment,
      results::DescribeExperiment(sources, std::move(stored), request, request_->output(),
                                  absl::StrCat("e", index + 1, "-"), cancelled));
  return html::ExperimentSection(page_, index, experiment);
}

absl::StatusOr<bool> RenderReportReactor::Fill(std::deque<v1::FileChunk>* batch) {
  const size_t piece = next_++;
  if (piece == 0) {
    if (const absl::Status opened = Open(); !opened.ok()) return opened;
  }
  if (piece < page_.experiments.size()) {
    ASSIGN_OR_RETURN(const auto section, Section(piece));
    // Only now, so that a missing key or axis of the first experiment is reported before the first
    // byte.
    if (piece == 0) AddChunks(html::PageHead(page_), batch);
    AddChunks(section, batch);
    return true;
  }
  AddChunks(html::PageFoot(page_), batch);
  return false;
}

grpc::ServerUnaryReactor* AnswerFigure(Backend* backend, grpc::CallbackServerContext* context,
                                       const v1::RenderFigureRequest* request,
                                       v1::RenderFigureResponse* response) {
  return backend->Answer(context, [=](const lookup::View& view) {
    return RenderFigure(backend, view, context, *request, response);
  });
}

grpc::ServerWriteReactor<v1::FileChunk>* StartReport(Backend* backend,
                                                     grpc::CallbackServerContext* context,
                                                     const v1::RenderReportRequest* request) {
  return (new RenderReportReactor(backend, context, request))->Begin();
}

}  // namespace

absl::Status RenderFigure(Backend* backend, const lookup::View& view,
                          grpc::CallbackServerContext* context,
                          const v1::RenderFigureRequest& request,
                          v1::RenderFigureResponse* response) {
  rpc::LiveCall call(&backend->reports, context);
  if (!call.accepted().ok()) return call.accepted();
  const absl::Status rendered = DrawAndRender(
      view, request, [&call] { return call.ended(); }, response);
  return call.stopped() ? rpc::ServerEnds() : rendered;
}

std::unique_ptr<grpc::Service> MakeReportsService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Reports", backend);
  methods->Compare(RenderTable);
  methods->Begin(AnswerFigure);
  methods->Stream(StartReport);
  methods->Stream(StartExport);
  return methods;
}

}  // namespace ablate::service
