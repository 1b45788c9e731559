// The page of a run: state, metrics, differences from the baseline, log, files, and the cells that
// share it.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/web/curves.h"
#include "client/web/page.h"

namespace ablate::web {
namespace {

using client::Id;

constexpr absl::Duration kLogEvery = absl::Milliseconds(500);
constexpr int kShownSharers = 20;
constexpr uint32_t kPointsOfRun = 600;

// A cell that has the run.
struct Sharer {
  std::string experiment, cell;  // experiments/ID
};

// Returns the cells that the caller may see, the newest experiment first. None if the server can't
// answer SQL.
std::vector<Sharer> SharersOf(Connection* connection, const std::string& run) {
  std::vector<Sharer> sharers;
  const bool plain =
      std::all_of(run.begin(), run.end(), [](char c) { return absl::ascii_isalnum(c); });
  if (!plain) return sharers;  // not an ID: it must not end the statement's text
  v1::SqlRequest request;
  request.set_statement(absl::StrCat(
      "SELECT cells.experiment, cell FROM cells JOIN experiments USING (experiment) WHERE run = '",
      run, "' ORDER BY created DESC LIMIT ", kShownSharers));
  connection
      ->Stream(
          client::kSql, request,
          [&](const v1::SqlRows& part) {
            for (const v1::SqlRow& row : part.rows()) {
              if (row.values_size() == 2) {
                sharers.push_back({"experiments/" + row.values(0).text(), row.values(1).text()});
              }
            }
            return absl::OkStatus();
          })
      .IgnoreError();
  return sharers;
}

// Adds the fields in which the run differs from the baseline with its seed.
void Differences(Connection* connection, const v1::Run& run, const Sharer& sharer, Markup* out) {
  v1::ListRunsRequest list;
  list.set_experiment(sharer.experiment);
  list.set_filter(absl::StrCat("seed = ", run.resolved_spec().seed()));
  list.set_page_size(1);
  const auto first = connection->Call(client::kListRuns, list);
  if (!first.ok() || first->rows().empty()) return;
  const v1::RunRow& baseline = first->rows(0);
  OpenSection("differences-title", "Differences from the first setting", out);
  if (baseline.run() == run.name()) {
    out->Element("p", "This run is of the first setting.").Close();
    return;
  }
  v1::DiffExperimentsRequest diff;
  diff.set_left(baseline.run());
  diff.set_right(run.name());
  const auto answer = connection->Call(client::kDiffExperiments, diff);
  if (!answer.ok()) {
    out->Element("p", std::string(answer.status().message())).Close();
    return;
  }
  std::vector<std::vector<Cell>> rows;
  for (const v1::FieldDifference& field : answer->fields()) {
    rows.push_back({{field.path()},
                    {absl::StrJoin(field.left(), ", ")},
                    {absl::StrJoin(field.right(), ", ")}});
  }
  out->Add(Table(absl::StrCat("Compared with ", baseline.cell()), {{"Field"}, {"There"}, {"Here"}},
                 rows));
  out->Close();
}

void Metrics(const v1::Run& run, Markup* out) {
  const auto number = [](bool known, double value) { return known ? client::Short(value) : "—"; };
  std::vector<std::vector<Cell>> rows;
  for (const v1::Summary& one : run.summaries()) {
    rows.push_back({{one.key(), Address(PathOfRun(run.name()), {{"key", one.key()}})},
                    {number(one.has_last(), one.last())},
                    {number(one.has_min(), one.min())},
                    {number(one.has_max(), one.max())},
                    {one.nonfinite() > 0 ? absl::StrCat(text::Grouped(one.count()), ", ",
                                                        one.nonfinite(), " not finite")
                                         : text::Grouped(one.count())}});
  }
  OpenSection("metrics-title", "Metrics", out);
  out->Add(Table("Summaries of all keys; a key's link draws it above",
                 {{"Key"}, {"Last", true}, {"Least", true}, {"Largest", true}, {"Points", true}},
                 rows));
  out->Close();
}

void History(Connection* connection, const std::string& run, Markup* out) {
  v1::ListRunEventsRequest request;
  request.set_run(run);
  const auto events = connection->Call(client::kListRunEvents, request);
  if (!events.ok()) return;
  std::vector<std::vector<Cell>> rows;
  for (const v1::RunEvent& event : events->events()) {
    rows.push_back(
        {{absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixSeconds(event.time().seconds()),
                           absl::UTCTimeZone())},
         {event.kind()},
         {absl::StrCat(event.step())},
         {Id(event.worker())},
         {event.message()}});
  }
  OpenSection("history-title", "History", out);
  out->Add(Table("Oldest first", {{"Time, UTC"}, {"What"}, {"Step", true}, {"Worker"}, {"Message"}},
                 rows));
  out->Close();
}

void Files(Connection* connection, const v1::Run& run, Markup* out) {
  v1::ListArtifactsRequest request;
  request.set_run(run.name());
  const auto files = connection->Call(client::kListArtifacts, request);
  if (!files.ok() || files->artifacts().empty()) return;
  std::vector<std::vector<Cell>> rows;
  for (const v1::Artifact& file : files->artifacts()) {
    rows.push_back(
        {{file.kind(), Address(PathOfRun(run.name()) + "/file", {{"name", file.name()}})},
         {text::Grouped(file.step())},
         {client::Bytes(file.bytes())},
         {file.sha256().substr(0, 16) + "…"}});
  }
  OpenSection("files-title", "Files", out);
  out->Add(Table("Checkpoints and outputs", {{"File"}, {"Step", true}, {"Size", true}, {"SHA-256"}},
                 rows));
  out->Close();
}

absl::StatusOr<v1::Run> ReadRun(Connection* connection, const std::string& id) {
  v1::GetRunRequest request;
  request.set_name(absl::StrCat("runs/", id));
  return connection->Call(client::kGetRun, request);
}

// Returns the newest part of a log.
absl::StatusOr<std::string> LogOf(Connection* connection, const std::string& run) {
  std::string log;
  v1::ReadRunLogRequest request;
  request.set_run(run);
  while (true) {
    ASSIGN_OR_RETURN(const auto part, connection->Call(client::kReadRunLog, request));
    log += part.text();
    if (part.text().empty() || part.complete()) return log;
    request.set_position(part.next());
  }
}

std::string FailureOrStall(const v1::Run& run) {
  if (!run.failure().empty()) return run.failure();
  return run.stalled().empty() ? "" : absl::StrCat("STALLED: ", run.stalled());
}

}  // namespace

absl::StatusOr<Response> RunView(Site& site, const Request& request) {
  const auto connection = site.pool.Borrow();
  ASSIGN_OR_RETURN(const v1::Run run, ReadRun(connection.get(), request.parts[0]));
  const std::vector<Sharer> sharers = SharersOf(connection.get(), Id(run.name()));
  const bool program = run.resolved_spec().spec().has_program();
  Markup out;
  out.Element("p", {{"class", "kicker"}},
              absl::StrCat("run ", Id(run.name()), " · ", v1::RunState::Value_Name(run.state()),
                           " · step ", client::StepText(run.step(), run.steps())));
  out.Element("h1", sharers.empty()
                        ? Id(run.name())
                        : absl::StrCat(Id(sharers[0].experiment), "/", sharers[0].cell));
  const std::string failure = FailureOrStall(run);
  if (!failure.empty()) {
    out.Open("pre", {{"class", "alarm"}, {"role", "alert"}}).Lines(failure).Close();
  }
  out.Open("p").Text(sharers.size() > 1 ? "Cells that share it: " : "Cell: ");
  for (const Sharer& one : sharers) {
    Link(PathOfExperiment(one.experiment), absl::StrCat(Id(one.experiment), "/", one.cell), &out);
    out.Text(" ");
  }
  out.Close();
  const std::string key = request.Query("key");
  const std::string drawn = !key.empty()              ? key
                            : run.summaries().empty() ? ""
                                                      : run.summaries(0).key();
  const std::string path = PathOfRun(run.name());
  if (!drawn.empty()) {
    OpenSection("curves-title", drawn, &out);
    out.Open("div", {{"id", "curves"},
                     {"class", "chart"},
                     {"role", "img"},
                     {"data-points", Address(path + "/points", {{"key", drawn}})},
                     {"aria-label", absl::StrCat("Curve of ", drawn)}})
        .Close();
    out.Element("p", {{"id", "readout"}, {"class", "muted"}, {"role", "status"}}, "");
    out.Open("details").Element("summary", "The same as a table");
    out.Open("div", {{"id", "curve-table"}, {"class", "scroll"}, {"tabindex", "0"}}).Close();
    out.Close().Close();
  }
  if (program) {
    OpenSection("log-title", "Log", &out);
    const auto log = LogOf(connection.get(), run.name());
    out.Open("pre", {{"id", "log"}, {"tabindex", "0"}});
    out.Lines(log.ok() ? *log : std::string(log.status().message())).Close().Close();
  }
  Metrics(run, &out);
  if (!sharers.empty()) Differences(connection.get(), run, sharers[0], &out);
  Files(connection.get(), run, &out);
  History(connection.get(), run.name(), &out);
  const bool follows = program && !client::HasEnded(run.state());
  return PageOf(site,
                {.title = Id(run.name()),
                 .active = "",
                 .events = follows ? path + "/log" : "",
                 .curves = !drawn.empty()},
                out.TakeHtml());
}

absl::StatusOr<Response> RunPoints(Site& site, const Request& request) {
  const auto connection = site.pool.Borrow();
  ASSIGN_OR_RETURN(const v1::Run run, ReadRun(connection.get(), request.parts[0]));
  CurveTable curves({{request.Query("key"), 1, {run.name()}}}, run.steps());
  v1::QueryMetricsRequest query;
  query.add_runs(run.name());
  query.add_keys(request.Query("key"));
  query.set_max_points(kPointsOfRun);
  RETURN_IF_ERROR(connection->Stream(client::kQueryMetrics, query, [&](const v1::Series& series) {
    curves.Add(series);
    return absl::OkStatus();
  }));
  Response response = {.type = "application/json", .body = curves.Whole()};
  AddPolicy("", &response);
  return response;
}

absl::StatusOr<Response> RunLog(Site& site, const Request& request) {
  const std::string run = absl::StrCat("runs/", request.parts[0]);
  const auto make = [&site, run]() -> Filler {
    return {.run = [&site, run](Feed* feed) {
      const std::unique_ptr<Connection> connection = site.connect();
      do {
        const auto log = LogOf(connection.get(), run);
        feed->Set("away", log.ok() ? "" : std::string(log.status().message()));
        Markup out;
        if (log.ok()) feed->Set("parts-log", PartsJson({{"log", out.Lines(*log).TakeHtml()}}));
      } while (!feed->ClosedWithin(kLogEvery));
    }};
  };
  return EventsOf(site, absl::StrCat("log ", run), make, request.last_event_id);
}

absl::StatusOr<Response> RunFile(Site& site, const Request& request) {
  const std::string name = request.Query("name");
  if (name.rfind(absl::StrCat("runs/", request.parts[0], "/"), 0) != 0) {
    return absl::NotFoundError("name: not a file of this run");
  }
  const auto connection = std::make_shared<Pool::Lease>(site.pool.Borrow());
  Response response = {.type = "application/octet-stream"};
  AddPolicy("", &response);
  response.headers.emplace_back("Content-Disposition",
                                absl::StrCat("attachment; filename=\"", request.parts[0], "-",
                                             Encoded(name.substr(name.rfind('/') + 1)), "\""));
  response.stream = [connection, name](const Write& write) {
    v1::ReadArtifactRequest read;
    read.set_name(name);
    (*connection)
        ->Stream(client::kReadArtifact, read,
                 [&](const v1::ArtifactChunk& chunk) {
                   return write(chunk.data()) ? absl::OkStatus() : absl::CancelledError();
                 })
        .IgnoreError();
  };
  return response;
}

}  // namespace ablate::web
