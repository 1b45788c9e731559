// The page of an experiment: its answer so far, learning curves, lanes and failures while it
// trains, and the report when it has ended.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/palette.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/owners.h"
#include "client/web/board.h"
#include "client/web/curves.h"
#include "client/web/page.h"

namespace ablate::web {
namespace {

using client::Id;

constexpr absl::Duration kAskAgain = absl::Milliseconds(500);
constexpr absl::Duration kCompareEvery = absl::Seconds(2);
constexpr int kShownFailures = 20;
constexpr int kOfferedKeys = 400;
// Points of a series, and of all, that curves are made of at first; the server thins longer ones.
constexpr uint32_t kPointsOfCurve = 4000, kPointsOfCurves = 2'000'000;
constexpr int kMaxCurveRuns = 10'000;       // that the server takes in a query
constexpr uint64_t kComparedAtOnce = 2000;  // runs; a larger comparison comes after the page

absl::StatusOr<v1::Experiment> ReadExperiment(Connection* connection, const std::string& id) {
  v1::GetExperimentRequest request;
  request.set_name(client::ExperimentName(id));
  return connection->Call(client::kGetExperiment, request);
}

absl::StatusOr<v1::Comparison> Compare(Connection* connection, const v1::Experiment& experiment) {
  v1::CompareRequest request;
  request.set_experiment(experiment.name());
  return connection->Call(client::kCompare, request);
}

absl::StatusOr<v1::ListRunsResponse> Failed(Connection* connection,
                                            const v1::Experiment& experiment) {
  v1::ListRunsResponse none;
  if (experiment.counts().failed() == 0) return none;
  v1::ListRunsRequest request;
  request.set_experiment(experiment.name());
  request.set_filter("state = failed");
  request.set_page_size(kShownFailures);
  return connection->Call(client::kListRuns, request);
}

// Returns the analyses that an experiment's file asks for, the newest first.
Html AnalysesPart(Connection* connection, const v1::Experiment& experiment) {
  if (!experiment.has_analyses()) return {};
  v1::ListAnalysesRequest request;
  request.set_parent(experiment.name());
  const auto list = connection->Call(client::kListAnalyses, request);
  if (!list.ok() || list->analyses().empty()) return {};
  std::vector<std::vector<Cell>> rows;
  for (const v1::Analysis& one : list->analyses()) {
    const std::string state = v1::AnalysisState::Value_Name(one.state());
    const bool runs = one.state() == v1::AnalysisState::RUNNING;
    rows.push_back({{one.labels().empty() ? Id(one.name()) : absl::StrJoin(one.labels(), ", ")},
                    {runs ? absl::StrCat(state, ", ", int(one.progress() * 100), " %") : state},
                    {one.failure()}});
  }
  Markup out;
  out.Element("h2", "Analyses");
  out.Add(Table("Of the experiment's file", {{"Analysis"}, {"State"}, {"Failure"}}, rows));
  return out.TakeHtml();
}

// Returns the figure of the tuned axis so far, as the server draws it.
Html SensitivityPart(const v1::Experiment& experiment, const v1::Comparison& comparison) {
  const auto has = [](const v1::ComparisonRow& row) { return row.has_mean(); };
  const auto& rows = comparison.rows();
  if (comparison.tuned_axes().empty() || std::none_of(rows.begin(), rows.end(), has)) return {};
  Markup out;
  out.Element("h2", absl::StrCat("Sensitivity to ", absl::StrJoin(comparison.tuned_axes(), ", "),
                                 " so far"));
  out.Void("img",
           {{"class", "figure"},
            {"src", Address(PathOfExperiment(experiment.name()) + "/figure.svg",
                            {{"kind", "sensitivity"}, {"n", absl::StrCat(comparison.ended())}})},
            {"alt", "Metric over the tuned values, by setting; `ablate compare` has its numbers"}});
  return out.TakeHtml();
}

// Returns the event that a watch would begin with, of what the experiment itself says.
v1::ExperimentEvent EventOf(const v1::Experiment& experiment) {
  v1::ExperimentEvent event;
  *event.mutable_counts() = experiment.counts();
  if (experiment.has_analyses()) *event.mutable_analyses() = experiment.analyses();
  event.set_stalled(experiment.stalled());
  return event;
}

// Which curves a page shows.
struct CurveChoice {
  std::string key;
  bool by_seed = false;
};

CurveChoice ChoiceOf(const Request& request) {
  const std::string key = request.Query("key");
  return {key.empty() ? "train/loss" : key, request.Query("by") == "seed"};
}

struct CurvesInput {
  std::vector<CurveTable::Curve> curves;
  uint32_t steps = 0;
};

// Returns a curve per combination of settings, or per cell if there are few enough. Settings of
// tuned axes have the hue of the setting that they are tuned for.
CurvesInput CurvesOf(const v1::Experiment& experiment, const v1::ListRunsResponse& runs,
                     bool by_seed) {
  CurvesInput input;
  std::map<std::string, size_t> hues, places;
  const bool seeds = by_seed && runs.rows_size() <= static_cast<int>(CurveTable::kMaxCurves);
  for (const v1::RunRow& row : runs.rows()) {
    const std::map<std::string, std::string> labels(row.labels().begin(), row.labels().end());
    const std::string setting = client::SettingText(experiment.spec(), labels, /*tuned=*/false);
    const std::string tuned = client::SettingText(experiment.spec(), labels, /*tuned=*/true);
    const size_t hue = hues.emplace(setting, hues.size()).first->second;
    const std::string label = seeds           ? row.cell()
                              : tuned.empty() ? setting
                                              : absl::StrCat(setting, ", ", tuned);
    const auto [place, added] = places.emplace(label, input.curves.size());
    if (added) {
      if (input.curves.size() == CurveTable::kMaxCurves) continue;
      input.curves.push_back({label, hue % palette::kHueCount, {}});
    }
    if (place->second < input.curves.size()) {
      input.curves[place->second].runs.push_back(row.run());
    }
    input.steps = std::max(input.steps, row.steps());
  }
  return input;
}

// Follows an experiment and fills the feed of its page.
class Follower {
 public:
  Follower(Site& site, std::string id, CurveChoice choice)
      : site_(site),
        id_(std::move(id)),
        choice_(std::move(choice)),
        watching_(site.connect()),
        asking_(site.connect()) {}

  void Run(Feed* feed) {
    while (!feed->closed()) {
      const absl::Status status = FollowOnce(feed);
      if (status.ok()) {
        feed->Set("end", "");  // the page loads itself again, with the report
        while (!feed->ClosedWithin(absl::Hours(1))) continue;
        return;
      }
      if (feed->closed()) return;
      feed->Set("away", std::string(status.message()));
      feed->ClosedWithin(kAskAgain);
    }
  }
  // From another thread.
  void Stop() { watching_->Cancel(), asking_->Cancel(); }

 private:
  absl::Status FollowOnce(Feed* feed);
  absl::Status Begin(Feed* feed);
  absl::Status ReadCurves(v1::QueryMetricsRequest request, CurveTable* curves);
  // Asks for the points that some runs have made since the last time.
  absl::Status ReadNewPoints(const std::set<std::string>& runs, Feed* feed);
  absl::Status Take(const v1::ExperimentEvent& event, Feed* feed);

  Site& site_;
  const std::string id_;
  const CurveChoice choice_;
  const std::unique_ptr<Connection> watching_, asking_;
  v1::Experiment experiment_;
  std::shared_ptr<CurveTable> curves_;
  std::set<std::string> trained_;  // by lanes, at the last event
  absl::Time compared_ = absl::InfinitePast();
  std::string ended_;  // runs and analyses, at the last comparison
};

absl::Status Follower::Begin(Feed* feed) {
  ASSIGN_OR_RETURN(experiment_, ReadExperiment(asking_.get(), id_));
  if (curves_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto runs, client::ListAllRuns(asking_.get(), experiment_.name()));
  CurvesInput input = CurvesOf(experiment_, runs, choice_.by_seed);
  v1::QueryMetricsRequest request;
  for (const CurveTable::Curve& curve : input.curves) {
    for (const std::string& run : curve.runs) {
      if (request.runs_size() < kMaxCurveRuns) request.add_runs(run);
    }
  }
  auto curves = std::make_shared<CurveTable>(std::move(input.curves), input.steps);
  if (request.runs_size() > 0) {
    const uint32_t fair = kPointsOfCurves / static_cast<uint32_t>(request.runs_size());
    request.set_max_points(std::clamp(fair, 50u, kPointsOfCurve));
    RETURN_IF_ERROR(ReadCurves(std::move(request), curves.get()));
  }
  curves->TakeChanges();  // the whole has them
  curves_ = curves;
  feed->SetWhole([curves] { return curves->Whole(); });
  return absl::OkStatus();
}

absl::Status Follower::ReadCurves(v1::QueryMetricsRequest request, CurveTable* curves) {
  request.add_keys(choice_.key);
  return asking_->Stream(client::kQueryMetrics, request, [&](const v1::Series& series) {
    curves->Add(series);
    return absl::OkStatus();
  });
}

absl::Status Follower::ReadNewPoints(const std::set<std::string>& runs, Feed* feed) {
  if (runs.empty()) return absl::OkStatus();
  v1::QueryMetricsRequest request;
  uint32_t first = ~uint32_t{0};
  for (const std::string& run : runs) {
    request.add_runs(run);
    first = std::min(first, curves_->NextStep(run));
  }
  request.set_first_step(first);
  RETURN_IF_ERROR(ReadCurves(std::move(request), curves_.get()));
  std::string changes = curves_->TakeChanges();
  if (!changes.empty()) feed->Add("curves", std::move(changes));
  return absl::OkStatus();
}

absl::Status Follower::Take(const v1::ExperimentEvent& event, Feed* feed) {
  if (feed->closed()) return absl::CancelledError();
  feed->Set("away", "");
  feed->Set("parts-progress", PartsJson({{"progress", ProgressPart(experiment_, event)}}));
  feed->Set("parts-lanes", PartsJson({{"lanes", LanesPart(event)}}));
  // Runs that have just left a lane have last points, too.
  std::set<std::string> now;
  for (const v1::Lane& lane : event.snapshot().lanes()) now.insert(lane.training().run());
  std::set<std::string> asked = now;
  asked.insert(trained_.begin(), trained_.end());
  trained_ = std::move(now);
  RETURN_IF_ERROR(ReadNewPoints(asked, feed));
  const std::string ended =
      absl::StrCat(client::EndedRuns(event.counts()), " ", client::AnalysesText(event.analyses()));
  const absl::Time time = site_.context.now();
  if (ended == ended_ || time - compared_ < kCompareEvery) return absl::OkStatus();
  ended_ = ended;
  *experiment_.mutable_counts() = event.counts();
  ASSIGN_OR_RETURN(const auto comparison, Compare(asking_.get(), experiment_));
  feed->Set("parts-board", PartsJson({{"board", BoardPart(comparison)},
                                      {"sensitivity", SensitivityPart(experiment_, comparison)},
                                      {"analyses", AnalysesPart(asking_.get(), experiment_)}}));
  ASSIGN_OR_RETURN(const auto failed, Failed(asking_.get(), experiment_));
  feed->Set("parts-failures", PartsJson({{"failures", FailuresPart(failed)}}));
  compared_ = site_.context.now();
  return absl::OkStatus();
}

absl::Status Follower::FollowOnce(Feed* feed) {
  RETURN_IF_ERROR(Begin(feed));
  feed->Set("away", "");
  if (experiment_.state() != v1::ExperimentState::ACTIVE) return absl::OkStatus();
  v1::WatchExperimentRequest request;
  request.set_name(experiment_.name());
  request.set_snapshots(true);
  RETURN_IF_ERROR(
      watching_->Stream(client::kWatchExperiment, request,
                        [&](const v1::ExperimentEvent& event) { return Take(event, feed); }));
  ASSIGN_OR_RETURN(experiment_, ReadExperiment(asking_.get(), id_));
  if (experiment_.state() != v1::ExperimentState::ACTIVE) return absl::OkStatus();
  return absl::UnavailableError("The server ended the watch; asking again.");
}

void Heading(Site& site, const v1::Experiment& experiment, bool owner, Markup* out) {
  const std::string& question = experiment.spec().question();
  const std::string id = Id(experiment.name());
  out->Open("p", {{"class", "kicker"}});
  std::vector<std::string> facts = {id, client::StateText(experiment)};
  if (owner) facts.push_back(absl::StrCat("by ", client::OwnerText(experiment)));
  facts.push_back(
      absl::StrCat("created ", client::Ago(experiment.create_time(), site.context.now())));
  if (!client::IsNamedAfter(experiment)) facts.push_back("named " + experiment.spec().name());
  if (!experiment.extends().empty()) facts.push_back("extends " + Id(experiment.extends()));
  if (experiment.archived()) facts.push_back("archived");
  out->Text(absl::StrJoin(facts, " · ")).Close();
  out->Element("h1", question.empty() ? id : question);
  if (!experiment.tags().empty()) {
    out->Open("p").Text("Tags: ");
    for (const std::string& tag : experiment.tags()) {
      Link(Address("/", {{"tag", tag}}), tag, out);
      out->Text(" ");
    }
    out->Close();
  }
  if (!experiment.note().empty())
    out->Open("p", {{"class", "note"}}).Lines(experiment.note()).Close();
}

// Adds the choice of curves, and the place of their drawing. Without script, the server's figure.
void CurvesSection(const v1::Experiment& experiment, const CurveChoice& choice,
                   const std::vector<std::string>& keys, Markup* out) {
  const std::string path = PathOfExperiment(experiment.name());
  OpenSection("curves-title", "Learning curves", out);
  out->Open("form", {{"class", "controls"}, {"id", "curve-controls"}});
  std::vector<std::pair<std::string, std::string>> offered;
  for (const std::string& key : keys) offered.emplace_back(key, key);
  Select("key", "Metric", offered, choice.key, out);
  Select("by", "Curves", {{"setting", "by setting, with the range of seeds"}, {"seed", "by run"}},
         choice.by_seed ? "seed" : "setting", out);
  out->Open("span", {{"class", "controls scripted"}, {"hidden", ""}});
  Select("smooth", "Smoothing", {{"1", "none"}, {"5", "5 buckets"}, {"15", "15"}, {"41", "41"}},
         "1", out);
  Input("log-y", "log values", "", "checkbox", out);
  Input("log-x", "log steps", "", "checkbox", out);
  out->Close().Element("button", "Show").Close();
  out->Open("noscript");
  out->Void("img", {{"class", "figure"},
                    {"src", Address(path + "/figure.svg", {{"kind", "loss"}, {"key", choice.key}})},
                    {"alt", absl::StrCat("Learning curves of ", choice.key)}});
  out->Close();
  AddChart(choice.key, "", out);
  out->Open("p");
  Link(Address(path + "/figure.csv", {{"kind", "loss"}, {"key", choice.key}}), "Numbers as CSV",
       out);
  out->Close();
  out->Element(
      "p", {{"class", "muted"}},
      "A curve of several seeds is the mean of those that have reached a step, between the "
      "least and the largest. Drag to zoom, double-click to return.");
  out->Close();
}

std::vector<std::string> KeysOf(Connection* connection, const v1::Experiment& experiment,
                                const std::string& chosen) {
  v1::ListMetricsRequest request;
  request.set_parent(experiment.name());
  request.set_page_size(kOfferedKeys);
  std::vector<std::string> keys;
  const auto metrics = connection->Call(client::kListMetrics, request);
  if (metrics.ok()) {
    for (const v1::MetricInfo& metric : metrics->metrics()) {
      if (!metric.of_analysis()) keys.push_back(metric.key());
    }
  }
  if (std::count(keys.begin(), keys.end(), chosen) == 0) keys.push_back(chosen);
  return keys;
}

// Returns the part of a text between two marks; "" if it lacks one.
std::string Between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const size_t start = from + begin.size();
  const size_t to =
      end == "</main>" || end == "</script>" ? text.rfind(end) : text.find(end, start);
  return to == std::string::npos || to < start ? "" : text.substr(start, to - start);
}

// Returns the sections of the server's report, its style limited to them. `nonce` marks style and
// script, which the policy of this page forbids otherwise.
absl::StatusOr<Html> ReportPart(Connection* connection, const std::string& name,
                                const std::string& nonce) {
  v1::RenderReportRequest request;
  request.add_experiments(name);
  std::string page;
  RETURN_IF_ERROR(
      connection->Stream(client::kRenderReport, request, [&](const v1::FileChunk& chunk) {
        page += chunk.data();
        return absl::OkStatus();
      }));
  const std::string style = Between(page, "<style>", "</style>");
  const std::string sections = Between(page, "<main>", "</main>");
  const std::string script = Between(page, "<script>", "</script>");
  if (sections.empty()) return absl::InternalError("the server's report has no sections");
  Markup out;
  out.Open("style", {{"nonce", nonce}})
      .Add(Html::Drawn(absl::StrCat(".report {", style, "}")))
      .Close();
  out.Open("div", {{"class", "report"}}).Add(Html::Drawn(sections)).Close();
  if (!script.empty()) {
    out.Open("script", {{"nonce", nonce}}).Add(Html::Drawn(script)).Close();
  }
  return out.TakeHtml();
}

}  // namespace

absl::StatusOr<Response> ExperimentView(Site& site, const Request& request) {
  auto connection = std::make_shared<Pool::Lease>(site.pool.Borrow());
  ASSIGN_OR_RETURN(const v1::Experiment experiment,
                   ReadExperiment(connection->get(), request.parts[0]));
  const bool active = experiment.state() == v1::ExperimentState::ACTIVE;
  const CurveChoice choice = ChoiceOf(request);
  const std::string path = PathOfExperiment(experiment.name());
  const Frame frame = {
      .title = Id(experiment.name()),
      .active = "",
      .events = Address(path + "/events", {{"key", choice.key}, {"by", request.Query("by")}}),
      .curves = true,
      .reloads = active,
      .nonce = process::RandomId()};
  Markup out;
  Heading(site, experiment, (*connection)->is_elsewhere() || experiment.private_(), &out);
  Actions(connection->get(), experiment, &out);
  AddPart("progress", ProgressPart(experiment, EventOf(experiment)), &out);
  absl::StatusOr<v1::Comparison> comparison = absl::NotFoundError("");
  if (active) {
    comparison = client::AllRuns(experiment.counts()) > kComparedAtOnce
                     ? absl::UnavailableError("The comparison follows in a moment.")
                     : Compare(connection->get(), experiment);
    OpenSection("board-title", "Settings so far", &out);
    AddPart("board",
            comparison.ok() ? BoardPart(*comparison)
                            : Paragraph(std::string(comparison.status().message()), "muted"),
            &out);
    out.Close();
  }
  const auto failed = Failed(connection->get(), experiment);
  AddPart("failures", failed.ok() ? FailuresPart(*failed) : Html(), &out);
  Markup curves;
  CurvesSection(experiment, choice, KeysOf(connection->get(), experiment, choice.key), &curves);
  const Html curves_section = curves.TakeHtml();
  const bool ended = experiment.state() == v1::ExperimentState::ENDED;
  if (!ended) out.Add(curves_section);
  if (active) {
    OpenSection("lanes-title", "Lanes", &out);
    // Only events say which lanes train.
    AddPart(
        "lanes",
        Paragraph("The home page lists all lanes. With script, those of this experiment are here.",
                  "muted"),
        &out);
    out.Close();
    AddPart("sensitivity", comparison.ok() ? SensitivityPart(experiment, *comparison) : Html(),
            &out);
    AddPart("analyses", AnalysesPart(connection->get(), experiment), &out);
  }
  Response response;
  AddPolicy(frame.nonce, &response);
  if (!ended) {
    response.body = absl::StrCat(PageHead(site, frame).text(), out.Take(), PageFoot().text());
    return response;
  }
  // The report takes the server a while: what is above it is sent first.
  response.stream = [&site, frame, connection, name = experiment.name(), above = out.Take(),
                     curves_section](const Write& write) {
    if (!write(PageHead(site, frame).text()) || !write(above)) return;
    const auto report = ReportPart(connection->get(), name, frame.nonce);
    if (report.ok()) {
      write(report->text());
    } else {
      Markup error;
      error.Element("p", {{"role", "alert"}},
                    absl::StrCat("No report: ", report.status().message()));
      write(error.Take());
    }
    write(curves_section.text());
    write(PageFoot().text());
  };
  return response;
}

absl::StatusOr<Response> ExperimentEvents(Site& site, const Request& request) {
  const std::string id = request.parts[0];
  const CurveChoice choice = ChoiceOf(request);
  const auto make = [&site, id, choice]() -> Filler {
    const auto follower = std::make_shared<Follower>(site, id, choice);
    return {.run = [follower](Feed* feed) { follower->Run(feed); },
            .on_close = [follower] { follower->Stop(); }};
  };
  return EventsOf(site, absl::StrCat("experiment ", id, " ", choice.by_seed, " ", choice.key), make,
                  request.last_event_id);
}

absl::StatusOr<Response> ReportView(Site& site, const Request& request) {
  const auto connection = site.pool.Borrow();
  const std::string nonce = process::RandomId();
  ASSIGN_OR_RETURN(const Html report,
                   ReportPart(connection.get(), client::ExperimentName(request.parts[0]), nonce));
  return PageOf(site, {.title = "Report", .active = "", .nonce = nonce}, report);
}

}  // namespace ablate::web
