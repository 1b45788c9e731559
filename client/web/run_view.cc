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

// Adds the fields in which two runs differ.
void Differences(Connection* connection, const std::string& left, const std::string& right,
                 absl::string_view caption, Markup* out) {
  v1::DiffExperimentsRequest diff;
  diff.set_left(left);
  diff.set_right(right);
  const auto answer = connection->Call(client::kDiffExperiments, diff);
  OpenSection("differences-title", "Differences", out);
  if (answer.ok()) {
    std::vector<std::vector<Cell>> rows;
    for (const v1::FieldDifference& field : answer->fields()) {
      rows.push_back({{field.path()},
                      {absl::StrJoin(field.left(), ", ")},
                      {absl::StrJoin(field.right(), ", ")}});
    }
    out->Add(Table(caption, {{"Field"}, {"There"}, {"Here"}}, rows));
  } else {
    out->Add(Paragraph(std::string(answer.status().message())));
  }
  out->Close();
}

// Returns the row of the first setting's run with this seed, or an error.
absl::StatusOr<v1::RunRow> FirstSetting(Connection* connection, const std::string& experiment,
                                        uint32_t seed) {
  v1::ListRunsRequest list;
  list.set_experiment(experiment);
  list.set_filter(absl::StrCat("seed = ", seed));
  list.set_page_size(1);
  ASSIGN_OR_RETURN(const auto first, connection->Call(client::kListRuns, list));
  if (first.rows().empty()) return absl::NotFoundError("no run has this seed");
  return first.rows(0);
}

// Adds the curve of a run, or of two.
void CurveSection(const std::string& key, const std::string& points, Markup* out) {
  OpenSection("curves-title", key, out);
  AddChart(key, points, out);
  out->Close();
}

// Returns the key that is drawn: the one that was asked for, or the training loss, or the first.
std::string DrawnKey(const Request& request, const v1::Run& run) {
  if (!request.Query("key").empty()) return request.Query("key");
  for (const v1::Summary& one : run.summaries()) {
    if (one.key() == "train/loss") return one.key();
  }
  return run.summaries().empty() ? "" : run.summaries(0).key();
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
  const std::string drawn = DrawnKey(request, run), path = PathOfRun(run.name());
  if (!drawn.empty()) CurveSection(drawn, Address(path + "/points", {{"key", drawn}}), &out);
  if (!program && !run.resolved_spec().spec().has_imported()) {
    out.Open("p");
    Link(path + "/samples", "Samples", &out);
    out.Close();
  }
  out.Open("form", {{"action", path + "/with"}, {"class", "controls"}});
  Input("other", "Compare with EXP/CELL or a run", "", "text", &out);
  out.Element("button", "Compare").Close();
  if (program) {
    OpenSection("log-title", "Log", &out);
    const auto log = LogOf(connection.get(), run.name());
    out.Open("pre", {{"id", "log"}, {"tabindex", "0"}});
    out.Lines(log.ok() ? *log : std::string(log.status().message())).Close().Close();
  }
  Metrics(run, &out);
  if (!sharers.empty()) {
    const auto first =
        FirstSetting(connection.get(), sharers[0].experiment, run.resolved_spec().seed());
    if (first.ok() && first->run() != run.name()) {
      Differences(connection.get(), first->run(), run.name(),
                  absl::StrCat("Compared with ", first->cell(), " of the first setting"), &out);
    }
  }
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

absl::StatusOr<Response> PairView(Site& site, const Request& request) {
  const auto connection = site.pool.Borrow();
  ASSIGN_OR_RETURN(const v1::Run left, ReadRun(connection.get(), request.parts[0]));
  ASSIGN_OR_RETURN(const std::string name,
                   client::FindRun(connection.get(), request.Query("other")));
  ASSIGN_OR_RETURN(const v1::Run right, ReadRun(connection.get(), Id(name)));
  std::map<std::string, std::pair<std::string, std::string>> last;
  for (const v1::Summary& one : left.summaries()) {
    if (one.has_last()) last[one.key()].first = client::Short(one.last());
  }
  for (const v1::Summary& one : right.summaries()) {
    if (one.has_last()) last[one.key()].second = client::Short(one.last());
  }
  const std::string path = PathOfRun(left.name()), drawn = DrawnKey(request, left);
  std::vector<std::vector<Cell>> rows;
  for (const auto& [key, values] : last) {
    rows.push_back({{key, Address(path + "/with", {{"other", name}, {"key", key}})},
                    {values.first},
                    {values.second}});
  }
  Markup out;
  out.Element("h1", "Two runs");
  out.Open("p").Text("There: ");
  Link(path, request.parts[0], &out);
  out.Text(", here: ");
  Link(PathOfRun(name), request.Query("other"), &out);
  out.Close();
  CurveSection(drawn, Address(path + "/points", {{"key", drawn}, {"other", Id(name)}}), &out);
  out.Add(Table("Last values", {{"Key"}, {"There", true}, {"Here", true}}, rows));
  Differences(connection.get(), left.name(), name, "Fields of the resolved specs", &out);
  return PageOf(site, {.title = "Two runs", .active = "", .curves = true}, out.TakeHtml());
}

absl::StatusOr<Response> SamplesView(Site& site, const Request& request) {
  const std::string given = request.Query("temperature"), temperature = given.empty() ? "1" : given;
  const std::string path = absl::StrCat("/r/", Encoded(request.parts[0]));
  Markup out;
  out.Open("p", {{"class", "kicker"}});
  Link(path, absl::StrCat("run ", request.parts[0]), &out);
  out.Close().Element("h1", "Samples of the last checkpoint");
  out.Open("form", {{"class", "controls"}});
  Input("temperature", "Temperature", temperature, "text", &out);
  out.Element("button", "Draw").Close();
  const Outcome outcome = RunCommand(site, {"generate", absl::StrCat("runs/", request.parts[0]),
                                            absl::StrCat("--temperature=", temperature)});
  out.Open("pre").Lines(outcome.out).Close().Add(Paragraph(outcome.err));
  return PageOf(site, {.title = "Samples", .active = ""}, out.TakeHtml());
}

absl::StatusOr<Response> RunPoints(Site& site, const Request& request) {
  const auto connection = site.pool.Borrow();
  ASSIGN_OR_RETURN(const v1::Run run, ReadRun(connection.get(), request.parts[0]));
  v1::QueryMetricsRequest query;
  query.add_runs(run.name());
  std::vector<CurveTable::Curve> wanted = {{request.Query("key"), 1, {run.name()}}};
  if (const std::string other = request.Query("other"); !other.empty()) {
    query.add_runs(absl::StrCat("runs/", other));
    wanted[0].label = "there";
    wanted.push_back({"here", 2, {query.runs(1)}});
  }
  CurveTable curves(std::move(wanted), run.steps());
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
  response.headers.emplace_back(
      "Content-Disposition", absl::StrCat("attachment; filename=\"", Encoded(request.parts[0]), "-",
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
