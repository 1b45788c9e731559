#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/run.pb.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/clean.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "server/analysis/metrics.h"
#include "server/experiment/experiment_analyses.h"
#include "server/lookup/cancelled.h"
#include "server/lookup/errors.h"
#include "server/lookup/limits.h"
#include "server/lookup/names.h"
#include "server/lookup/page.h"
#include "server/report/compare/statistics.h"
#include "server/results/part_cells.h"
#include "server/results/trained_grid.h"
#include "server/rpc/call.h"
#include "server/service/convert.h"
#include "server/service/methods.h"
#include "server/service/run_names.h"
#include "server/service/run_page.h"
#include "server/service/services.h"

namespace ablate::service {
namespace {

constexpr uint32_t kDefaultRunsPage = 500;
constexpr size_t kMaxEvents = 1'000;
constexpr absl::string_view kAllExperiments = "experiments/-";

absl::Status GetRun(const Backend& backend, const lookup::View& view,
                    const v1::GetRunRequest& request, v1::Run* response) {
  ASSIGN_OR_RETURN(const auto id, lookup::FindRun(view, request.name(), "name"));
  ASSIGN_OR_RETURN(const auto record, backend.store->GetRun(id));
  ASSIGN_OR_RETURN(const auto summaries, backend.store->Summaries({id}));
  *response = ToProto(record, summaries.front(), backend.store->stalled());
  return absl::OkStatus();
}

// The primary metric if it is a number of an analysis, which no run's summaries have.
struct PrimaryNumber {
  std::string key;  // empty: training records the primary metric
  analysis::AnalysisMetrics metrics;
};

absl::StatusOr<PrimaryNumber> ReadPrimaryNumber(storage::Store* store,
                                                const std::string& experiment) {
  PrimaryNumber primary;
  ASSIGN_OR_RETURN(const auto stored, results::LoadExperiment(store, experiment));
  const std::string key = results::PrimaryMetric(stored.spec);
  const std::string label = key.substr(0, key.find('/'));
  if (!spec::EntryWithNumbers(stored.spec, label).has_value()) return primary;
  ASSIGN_OR_RETURN(auto metrics, analysis::AnalysisMetrics::Load(store, experiment, {key}));
  return PrimaryNumber{key, std::move(metrics)};
}

void AddPrimaryNumber(const PrimaryNumber& primary, const std::string& run, v1::RunRow* row) {
  if (primary.key.empty()) return;
  const analysis::Points* const points = primary.metrics.Find(run, primary.key);
  if (points == nullptr) return;
  const std::vector<double>& values = points->values;
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  v1::Summary& summary = *row->add_summaries();
  summary.set_key(primary.key);
  summary.set_count(values.size());
  summary.set_first(values.front());
  summary.set_last(values.back());
  summary.set_min(*least);
  summary.set_max(*largest);
  summary.set_mean(report::Mean(values).value);
}

// Adds rows for `cells` of an experiment while they fit; returns their number.
absl::StatusOr<size_t> AddRows(storage::Store* store, const std::string& experiment,
                               const std::vector<storage::CellRecord>& cells,
                               v1::ListRunsResponse* response) {
  std::vector<std::string> runs;
  for (const storage::CellRecord& cell : cells) runs.push_back(cell.run);
  ASSIGN_OR_RETURN(const auto summaries, store->Summaries(runs));
  ASSIGN_OR_RETURN(const auto primary, ReadPrimaryNumber(store, experiment));
  lookup::Room room(lookup::kPageBytes);
  for (size_t i = 0; i < cells.size(); ++i) {
    v1::RunRow row = ToRow(cells[i], summaries[i]);
    row.set_experiment(lookup::ExperimentName(experiment));
    AddPrimaryNumber(primary, cells[i].run, &row);
    if (!room.Take(row.ByteSizeLong())) return i;
    *response->add_rows() = std::move(row);
  }
  return cells.size();
}

// Returns at most `count` cells of a list, from the place `first` on.
using ReadCells =
    std::function<absl::StatusOr<std::vector<storage::CellRecord>>(uint32_t first, uint32_t count)>;

// Lists a page of cells of one experiment, in grid order. `list` names the list in page tokens.
absl::Status ListInGridOrder(const Backend& backend, const std::string& experiment,
                             const std::string& list, const v1::ListRunsRequest& request,
                             const ReadCells& read, v1::ListRunsResponse* response) {
  ASSIGN_OR_RETURN(const auto page, lookup::ReadPage(request, list, kDefaultRunsPage));
  uint32_t first = 0;
  if (!page.position.empty() && !absl::SimpleAtoi(page.position, &first)) {
    return lookup::NotAPageToken(request.page_token());
  }
  ASSIGN_OR_RETURN(auto cells, read(first, page.size + 1));
  const bool more = cells.size() > page.size;
  if (more) cells.pop_back();
  ASSIGN_OR_RETURN(const auto added, AddRows(backend.store, experiment, cells, response));
  if (more || added < cells.size()) {
    response->set_next_page_token(lookup::PageToken(list, absl::StrCat(first + added)));
  }
  return absl::OkStatus();
}

// Lists all cells of one experiment.
absl::Status ListGrid(const Backend& backend, const lookup::View& view,
                      const v1::ListRunsRequest& request, v1::ListRunsResponse* response) {
  ASSIGN_OR_RETURN(const auto experiment,
                   lookup::FindExperiment(view, request.experiment(), "experiment"));
  const auto read = [&](uint32_t first, uint32_t count) {
    return backend.store->ListCells(experiment, first, count);
  };
  return ListInGridOrder(backend, experiment, absl::StrCat("runs of ", experiment), request, read,
                         response);
}

absl::Status ListPart(const Backend& backend, const lookup::View& view,
                      const std::string& experiment, const v1::ListRunsRequest& request,
                      const lookup::Cancelled& cancelled, v1::ListRunsResponse* response) {
  if (!request.filter().empty() || !request.order_by().empty() || !request.columns().empty()) {
    return lookup::InvalidField(
        "part", "a part (EXP/SETTING, EXP/@best, EXP/@chosen) has no filter, order or columns",
        "a part alone, or a filter on the experiment");
  }
  ASSIGN_OR_RETURN(const auto stored, results::LoadExperiment(backend.store, experiment));
  const ReadCells read = [&](uint32_t first, uint32_t count) {
    auto cells = results::CellsOfPart(view, stored, request.part(), "part", cancelled);
    if (!cells.ok()) return cells;
    const auto begin = cells->begin() + std::min<ptrdiff_t>(first, std::ssize(*cells));
    cells->erase(cells->begin(), begin);
    cells->resize(std::min<size_t>(cells->size(), count));
    return cells;
  };
  return ListInGridOrder(backend, experiment,
                         absl::StrCat("runs of ", experiment, "/", request.part()), request, read,
                         response);
}

// Sets the parts of the query that the request's texts describe.
absl::Status ReadNames(const RunNames& names, const v1::ListRunsRequest& request,
                       storage::RunQuery* query) {
  if (!request.order_by().empty()) {
    ASSIGN_OR_RETURN(auto order, names.Order("order_by", request.order_by()));
    query->order_by = std::move(order.key);
    query->descending = order.descending;
  }
  ASSIGN_OR_RETURN(query->where, names.Filter("filter", request.filter()));
  if (request.columns_size() > lookup::kMaxColumns) {
    return lookup::TooMany("columns", request.columns_size(), lookup::kMaxColumns);
  }
  for (int i = 0; i < request.columns_size(); ++i) {
    ASSIGN_OR_RETURN(auto column,
                     names.Column(absl::StrCat("columns[", i, "]"), request.columns(i)));
    query->columns.push_back(std::move(column));
  }
  return absl::OkStatus();
}

v1::RunRow ToFoundRow(const storage::RunQuery& query, const storage::FoundCell& found,
                      const storage::RunSummaries& summaries) {
  v1::RunRow row = ToRow(found.cell, summaries);
  row.set_experiment(lookup::ExperimentName(found.experiment));
  for (size_t i = 0; i < query.columns.size(); ++i) {
    *row.add_values() = ToColumn(query.columns[i], found.values[i]);
  }
  return row;
}

// Adds rows while they fit; returns their number.
absl::StatusOr<size_t> AddFound(storage::Store* store, const storage::RunQuery& query,
                                const std::vector<storage::FoundCell>& cells,
                                v1::ListRunsResponse* response) {
  std::vector<std::string> runs;
  for (const storage::FoundCell& found : cells) runs.push_back(found.cell.run);
  ASSIGN_OR_RETURN(const auto summaries, store->Summaries(runs));
  PrimaryNumber primary;
  if (!query.experiment.empty()) {
    ASSIGN_OR_RETURN(primary, ReadPrimaryNumber(store, query.experiment));
  }
  lookup::Room room(lookup::kPageBytes);
  for (size_t i = 0; i < cells.size(); ++i) {
    v1::RunRow row = ToFoundRow(query, cells[i], summaries[i]);
    AddPrimaryNumber(primary, cells[i].cell.run, &row);
    if (!room.Take(row.ByteSizeLong())) return i;
    *response->add_rows() = std::move(row);
  }
  return cells.size();
}

// Returns the names of the visible data sets that have this ID or file name.
std::vector<std::string> DatasetsCalled(const lookup::View& view, absl::string_view name) {
  constexpr uint32_t kPage = 1'000;
  absl::ConsumePrefix(&name, "datasets/");
  std::vector<std::string> called;
  std::string after;
  while (true) {
    const auto page = view.store->ListDatasets(view.viewer, after, kPage);
    if (!page.ok()) return called;
    for (const storage::DatasetRecord& dataset : *page) {
      if (dataset.id != name && dataset.display_name != name) continue;
      called.push_back(lookup::DatasetName(dataset.id));
    }
    if (page->size() < kPage) return called;
    after = page->back().id;
  }
}

// Lists the cells that match the filter, of one experiment, or of all if that is empty.
absl::Status ListMatching(const Backend& backend, const lookup::View& view,
                          const std::string& experiment, const v1::ListRunsRequest& request,
                          v1::ListRunsResponse* response) {
  const std::string list = absl::StrCat(
      "runs of ", experiment, " by ",
      Sha256Hex(absl::StrCat(request.filter(), "\n", request.order_by())).substr(0, 16),
      request.archived() ? " with archived ones" : "");
  ASSIGN_OR_RETURN(const auto page, lookup::ReadPage(request, list, kDefaultRunsPage));
  storage::RunQuery query;
  query.viewer = view.viewer;
  query.experiment = experiment;
  query.archived = request.archived();
  query.limit = page.size + 1;
  RunPagePosition position{absl::Now(), {}};
  if (!page.position.empty()) {
    if (!DecodePosition(page.position, &position)) {
      return lookup::NotAPageToken(request.page_token());
    }
    query.after = position.after;
  }
  ASSIGN_OR_RETURN(auto names, backend.store->ListQueryNames(view.viewer));
  const auto labels = [&](absl::string_view axis) {
    return backend.store->ListLabels(view.viewer, axis).value_or(std::vector<std::string>());
  };
  const auto datasets = [&](absl::string_view name) { return DatasetsCalled(view, name); };
  RETURN_IF_ERROR(
      ReadNames(RunNames(std::move(names), labels, datasets, position.now), request, &query));
  auto cells = backend.store->FindCells(query);
  // The experiment itself was found.
  if (absl::IsNotFound(cells.status())) return lookup::NotAPageToken(request.page_token());
  if (!cells.ok()) return cells.status();
  const bool more = cells->size() > page.size;
  if (more) cells->pop_back();
  ASSIGN_OR_RETURN(const auto added, AddFound(backend.store, query, *cells, response));
  if (more || added < cells->size()) {
    position.after = (*cells)[added - 1].position;
    response->set_next_page_token(lookup::PageToken(list, EncodePosition(position)));
  }
  return absl::OkStatus();
}

// Returns false for a list that may take seconds, also because a part needs a comparison.
bool ListsGrid(const v1::ListRunsRequest& request) {
  return request.experiment() != kAllExperiments && request.filter().empty() &&
         request.order_by().empty() && request.columns().empty() && request.part().empty();
}

absl::Status ListSelected(const Backend& backend, const lookup::View& view,
                          const v1::ListRunsRequest& request, const lookup::Cancelled& cancelled,
                          v1::ListRunsResponse* response) {
  if (request.experiment() == kAllExperiments) {
    if (request.part().empty()) return ListMatching(backend, view, "", request, response);
    return lookup::InvalidField("part", "it is given for all experiments", "one experiment");
  }
  ASSIGN_OR_RETURN(const auto experiment,
                   lookup::FindExperiment(view, request.experiment(), "experiment"));
  if (!request.part().empty()) {
    return ListPart(backend, view, experiment, request, cancelled, response);
  }
  return ListMatching(backend, view, experiment, request, response);
}

absl::Status ListRunEvents(const Backend& backend, const lookup::View& view,
                           const v1::ListRunEventsRequest& request,
                           v1::ListRunEventsResponse* response) {
  ASSIGN_OR_RETURN(const auto id, lookup::FindRun(view, request.run(), "run"));
  ASSIGN_OR_RETURN(const auto events, backend.store->RunEvents(id));
  // The newest ones that fit, in order of time.
  lookup::Room room(lookup::kPageBytes);
  size_t first = events.size();
  while (first > 0 && events.size() - first < kMaxEvents &&
         room.Take(ToProto(events[first - 1]).ByteSizeLong() + 8)) {
    --first;
  }
  for (size_t i = first; i < events.size(); ++i) *response->add_events() = ToProto(events[i]);
  return absl::OkStatus();
}

// Returns the text with U+FFFD for each byte that isn't UTF-8.
std::string AsUtf8(absl::string_view text) {
  std::string clean;
  while (!text.empty()) clean += text::EncodeUtf8(text::TakeCharacter(&text));
  return clean;
}

absl::Status ReadRunLog(const Backend& backend, const lookup::View& view,
                        const v1::ReadRunLogRequest& request, v1::ReadRunLogResponse* response) {
  ASSIGN_OR_RETURN(const auto id, lookup::FindRun(view, request.run(), "run"));
  ASSIGN_OR_RETURN(const auto log, backend.store->ReadRunLog(id, request.position()));
  response->set_text(AsUtf8(log.text));
  response->set_next(log.next);
  response->set_complete(log.complete);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ListRuns(Backend* backend, grpc::CallbackServerContext* context,
                                   const v1::ListRunsRequest* request,
                                   v1::ListRunsResponse* response) {
  if (ListsGrid(*request)) {
    return backend->Answer(context, [=](const lookup::View& view) {
      return ListGrid(*backend, view, *request, response);
    });
  }
  return backend->AnswerByComparing(
      context, [=](const lookup::View& view, const lookup::Cancelled& cancelled) {
        return ListSelected(*backend, view, *request, cancelled, response);
      });
}

}  // namespace

std::unique_ptr<grpc::Service> MakeRunsService(Backend* backend) {
  auto methods = std::make_unique<Methods>("Runs", backend);
  methods->Answer(GetRun);
  methods->Begin(ListRuns);
  methods->Answer(ListRunEvents);
  methods->Answer(ReadRunLog);
  return methods;
}

}  // namespace ablate::service
