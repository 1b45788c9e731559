// The first page: experiments, the queue, devices and lanes, kept up to date.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "base/status_macros.h"
#include "client/found_runs.h"
#include "client/names.h"
#include "client/output/experiment_text.h"
#include "client/output/format.h"
#include "client/output/owners.h"
#include "client/web/page.h"

namespace ablate::web {
namespace {

using client::Count;
using client::Id;

constexpr absl::Duration kHomeReadEvery = absl::Seconds(2);
constexpr uint32_t kHomeExperiments = 50;
constexpr uint32_t kHomeLanes = 200;

// One reading of the server. A list that fails, as that of an older server, has its error.
struct Reading {
  v1::ListExperimentsResponse experiments;
  absl::StatusOr<v1::ListQueueResponse> queue;
  absl::StatusOr<v1::ListWorkersResponse> workers;
  absl::StatusOr<v1::ListRunsResponse> runs;   // that lanes train
  std::map<std::string, absl::Duration> left;  // until all steps of an experiment are made
  bool owners = false;
};

// Estimates the time until all steps of each experiment are made, as if its queued runs had as many
// steps as those that lanes train, and kept their lanes.
void EstimateTimes(Reading* reading) {
  struct Work {
    double rate = 0, steps = 0, left = 0;
  };
  std::map<std::string, Work> works;
  std::map<std::string, double> rates;  // by run
  if (!reading->workers.ok() || !reading->runs.ok()) return;
  for (const v1::Worker& worker : reading->workers->workers()) {
    for (const v1::TrainingRun& run : worker.training()) rates[run.run()] = run.steps_per_second();
  }
  for (const v1::RunRow& row : reading->runs->rows()) {
    const auto rate = rates.find(row.run());
    if (rate == rates.end() || row.steps() < row.step()) continue;
    Work& work = works[row.experiment()];
    work.rate += rate->second;
    work.steps = row.steps();
    work.left += row.steps() - row.step();
  }
  for (const v1::Experiment& experiment : reading->experiments.experiments()) {
    const auto found = works.find(experiment.name());
    if (found == works.end() || found->second.rate <= 0) continue;
    const Work& work = found->second;
    reading->left[experiment.name()] =
        absl::Seconds((work.left + experiment.counts().queued() * work.steps) / work.rate);
  }
}

absl::StatusOr<Reading> ReadServer(Connection* connection, v1::ListExperimentsRequest request) {
  Reading reading;
  request.set_page_size(kHomeExperiments);
  ASSIGN_OR_RETURN(reading.experiments, connection->Call(client::kListExperiments, request));
  reading.queue = connection->Call(client::kListQueue, {});
  reading.workers = connection->Call(client::kListWorkers, {});
  v1::ListRunsRequest running;
  running.set_experiment("experiments/-");
  running.set_filter("state = running");
  running.set_page_size(kHomeLanes);
  reading.runs = connection->Call(client::kListRuns, running);
  EstimateTimes(&reading);
  reading.owners = client::ShowsOwners(*connection, reading.experiments.experiments());
  return reading;
}

// Says why a list is missing, in its place.
Html Missing(const absl::Status& status) {
  return Paragraph(absl::IsUnimplemented(status)
                       ? "The server is older than this page and has no such list."
                       : absl::StrCat("Not available: ", status.message()),
                   "muted");
}

// The disk is that of this machine; a server elsewhere reports a full one as a stall.
std::string DiskText(const Site& site) {
  std::error_code error;
  if (site.folder.empty()) return "";
  const std::filesystem::space_info space = std::filesystem::space(site.folder, error);
  if (error) return "";
  return absl::StrCat(client::Bytes(space.available), " of ", client::Bytes(space.capacity),
                      " free on disk");
}

Html Summary(const Site& site, const Reading& reading) {
  uint64_t lanes = 0, busy = 0, queued = 0, active = 0;
  std::string stalled;
  if (reading.workers.ok()) {
    for (const v1::Worker& worker : reading.workers->workers()) {
      const bool trains =
          worker.role() != v1::WorkerRole::analysis && worker.state() != v1::WorkerState::AWAY;
      if (trains) lanes += worker.lanes();
      busy += worker.busy_lanes();
      if (!worker.stalled().empty()) stalled = worker.stalled();
    }
  }
  for (const v1::Experiment& experiment : reading.experiments.experiments()) {
    queued += experiment.counts().queued();
    active += experiment.state() == v1::ExperimentState::ACTIVE ? 1 : 0;
    if (!experiment.stalled().empty()) stalled = experiment.stalled();
  }
  std::vector<std::string> facts = {absl::StrCat(busy, " of ", Count(lanes, "lane"), " training"),
                                    absl::StrCat(client::Count(queued, "run"), " queued"),
                                    absl::StrCat(Count(active, "experiment"), " active")};
  const std::string disk = DiskText(site);
  if (!disk.empty()) facts.push_back(disk);
  Markup out;
  out.Element("p", {{"class", "lead"}}, absl::StrJoin(facts, " · "));
  if (!stalled.empty()) out.Add(Paragraph("STALLED: " + stalled, "alarm"));
  return out.TakeHtml();
}

// The verdict of an ended experiment. Comparing costs the server time, so that one that isn't known
// yet comes after the page.
Cell Verdict(Site& site, const v1::Experiment& experiment) {
  if (experiment.state() == v1::ExperimentState::ACTIVE) return {"preliminary until it has ended"};
  if (experiment.state() != v1::ExperimentState::ENDED) return {};
  MutexLock lock(&site.mutex);
  const auto found = site.verdicts.find(experiment.name());
  if (found != site.verdicts.end()) return {found->second};
  const std::string path = PathOfExperiment(experiment.name()) + "/verdict";
  return {.text = "show", .link = path, .load = path};
}

// State of the runs, and the time left.
Cell RunsCell(const v1::Experiment& experiment, const v1::QueuedExperiment* queued,
              absl::Duration left) {
  const v1::RunCounts& counts = experiment.counts();
  if (experiment.state() != v1::ExperimentState::ACTIVE) return {client::CountsText(counts)};
  Cell cell{.notes = {client::CountsText(counts)}};
  Markup bar;
  bar.Open("progress", {{"max", absl::StrCat(client::AllRuns(counts))},
                        {"value", absl::StrCat(client::EndedRuns(counts))},
                        {"aria-label", "runs ended"}});
  cell.more = bar.Close().TakeHtml();
  if (left > absl::ZeroDuration())
    cell.notes.push_back("about " + client::Duration(left) + " left");
  if (queued != nullptr && queued->has_latest()) {
    cell.notes.push_back(absl::StrCat("next run begins within ",
                                      client::Duration(client::ToDuration(queued->latest()))));
  }
  return cell;
}

Html Experiments(Site& site, const Reading& reading, absl::Time now) {
  const auto& list = reading.experiments.experiments();
  if (list.empty()) return Paragraph("No experiments: `ablate submit FILE` creates one.");
  std::map<std::string, const v1::QueuedExperiment*> queued;
  if (reading.queue.ok()) {
    for (const auto& one : reading.queue->experiments()) queued.emplace(one.experiment(), &one);
  }
  std::vector<std::vector<Cell>> rows;
  for (const v1::Experiment& experiment : list) {
    const std::string id = Id(experiment.name());
    const std::string age = client::Ago(experiment.create_time(), now);
    const auto found = queued.find(experiment.name());
    const auto left = reading.left.find(experiment.name());
    Markup tags;
    for (const std::string& tag : experiment.tags()) {
      Link(Address("/", {{"tag", tag}}), tag, &tags);
      tags.Text(" ");
    }
    rows.push_back(
        {{.text = client::IsNamedAfter(experiment)
                      ? id
                      : absl::StrCat(experiment.spec().name(), " (", id, ")"),
          .link = PathOfExperiment(experiment.name()),
          .notes = {experiment.spec().question(),
                    reading.owners ? absl::StrCat("by ", client::OwnerText(experiment), ", ", age)
                                   : age}},
         {client::StateText(experiment)},
         RunsCell(experiment, found == queued.end() ? nullptr : found->second,
                  left == reading.left.end() ? absl::ZeroDuration() : left->second),
         Verdict(site, experiment),
         {.more = tags.TakeHtml()}});
  }
  Markup out;
  out.Add(Table("Newest first", {{"Experiment"}, {"State"}, {"Runs"}, {"Verdict"}, {"Tags"}}, rows,
                /*stacks=*/true));
  const std::string& next = reading.experiments.next_page_token();
  if (!next.empty()) Link(Address("/", {{"page", next}}), "Older experiments", &out);
  return out.TakeHtml();
}

Html Queue(const Reading& reading) {
  if (!reading.queue.ok()) return Missing(reading.queue.status());
  if (reading.queue->experiments().empty()) return Paragraph("The queue is empty: no run waits.");
  std::vector<std::vector<Cell>> rows;
  const auto time = [](const auto& message) {
    return client::Duration(client::ToDuration(message));
  };
  for (const v1::QueuedExperiment& one : reading.queue->experiments()) {
    const bool hidden = one.experiment().empty();
    const bool known = one.has_soonest() && one.has_latest();
    rows.push_back(
        {hidden ? Cell{"private"} : Cell{one.title(), PathOfExperiment(one.experiment())},
         {Id(one.owner())},
         {text::Grouped(one.queued())},
         {text::Grouped(one.running())},
         {one.paused() ? "paused" : one.waits()},
         {known ? absl::StrCat("in ", time(one.soonest()), " to ", time(one.latest()))
                : "unknown"}});
  }
  Markup out;
  out.Add(Table("In the order in which runs begin",
                {{"Experiment"},
                 {"Owner"},
                 {"Queued", true},
                 {"Training", true},
                 {"Why it waits"},
                 {"Next run begins"}},
                rows, /*stacks=*/true));
  if (reading.queue->left_out() > 0) {
    out.Element("p", absl::StrCat("and ", Count(reading.queue->left_out(), "other experiment")));
  }
  return out.TakeHtml();
}

std::string WorkerState(const v1::Worker& worker) {
  const std::string state = v1::WorkerState::Value_Name(worker.state());
  if (!worker.stalled().empty()) return absl::StrCat("STALLED: ", worker.stalled());
  if (worker.role() == v1::WorkerRole::analysis) return absl::StrCat(state, ", for analyses");
  return absl::StrCat(state, ", ", worker.busy_lanes(), " of ", Count(worker.lanes(), "lane"));
}

Html Devices(const Reading& reading) {
  if (!reading.workers.ok()) return Missing(reading.workers.status());
  std::map<std::string, const v1::RunRow*> cells;
  if (reading.runs.ok()) {
    for (const v1::RunRow& row : reading.runs->rows()) cells.emplace(row.run(), &row);
  }
  std::vector<std::vector<Cell>> workers, lanes;
  for (const v1::Worker& worker : reading.workers->workers()) {
    const v1::DeviceUse& use = worker.device_use();
    workers.push_back({{Id(worker.name())},
                       {WorkerState(worker)},
                       {worker.device()},
                       {worker.has_device_use() ? absl::StrCat(use.utilization(), " %, ",
                                                               client::Bytes(use.used_bytes()))
                                                : ""}});
    for (const v1::TrainingRun& run : worker.training()) {
      const auto found = cells.find(run.run());
      const v1::RunRow* const row = found == cells.end() ? nullptr : found->second;
      const double rate = run.steps_per_second();
      lanes.push_back(
          {{row == nullptr ? Id(run.run()) : absl::StrCat(Id(row->experiment()), "/", row->cell()),
            PathOfRun(run.run())},
           {row == nullptr ? "" : client::StepText(row->step(), row->steps())},
           {rate > 0 ? client::Short(rate) : ""},
           {.more = Sparkline(run.losses(), "training loss")}});
    }
  }
  Markup out;
  out.Add(Table("Workers", {{"Worker"}, {"State"}, {"Device"}, {"Use"}}, workers, /*stacks=*/true));
  if (!lanes.empty()) {
    out.Add(Table("Runs that lanes train",
                  {{"Run"}, {"Step", true}, {"Steps/s", true}, {"Training loss"}}, lanes));
  }
  return out.TakeHtml();
}

std::vector<std::pair<std::string, Html>> Parts(Site& site, const Reading& reading) {
  const absl::Time now = site.context.now();
  return {{"summary", Summary(site, reading)},
          {"experiments", Experiments(site, reading, now)},
          {"queue", Queue(reading)},
          {"devices", Devices(reading)}};
}

v1::ListExperimentsRequest RequestOf(const Request& request) {
  v1::ListExperimentsRequest list;
  list.set_page_token(request.Query("page"));
  list.set_owner(request.Query("owner"));
  list.set_tag(request.Query("tag"));
  list.set_archived(request.Query("archived") == "yes");
  return list;
}

}  // namespace

absl::StatusOr<Response> HomeView(Site& site, const Request& request) {
  const auto connection = site.pool.Borrow();
  ASSIGN_OR_RETURN(const Reading reading, ReadServer(connection.get(), RequestOf(request)));
  Fields query = {{"tag", request.Query("tag")},
                  {"owner", request.Query("owner")},
                  {"page", request.Query("page")},
                  {"archived", request.Query("archived")}};
  struct Titled {
    const char* title;
    html::Literal id;
  };
  constexpr Titled kTitles[] = {
      {"", "summary"}, {"Experiments", "experiments"}, {"Queue", "queue"}, {"Devices", "devices"}};
  Markup out;
  out.Element("h1", "Lab");
  const std::vector<std::pair<std::string, Html>> parts = Parts(site, reading);
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto& [title, id] = kTitles[i];
    out.Open("section");
    if (i > 0) out.Element("h2", title);
    if (i == 1) {
      out.Open("form", {{"class", "controls"}});
      Input("tag", "Tag", request.Query("tag"), "text", &out);
      Input("owner", "Owner", request.Query("owner"), "text", &out);
      Input("archived", "archived, too", request.Query("archived"), "checkbox", &out);
      out.Element("button", "Show").Close();
    }
    AddPart(id, parts[i].second, &out);
    out.Close();
  }
  return PageOf(site, {.title = "Lab", .active = "/", .events = Address("/events", query)},
                out.TakeHtml());
}

absl::StatusOr<Response> HomeEvents(Site& site, const Request& request) {
  const v1::ListExperimentsRequest list = RequestOf(request);
  const auto make = [&site, list]() -> Filler {
    return {.run = [&site, list](Feed* feed) {
      const std::unique_ptr<Connection> connection = site.connect();
      do {
        const absl::StatusOr<Reading> reading = ReadServer(connection.get(), list);
        feed->Set("away", reading.ok() ? "" : std::string(reading.status().message()));
        if (!reading.ok()) continue;
        for (const auto& part : Parts(site, *reading)) {
          feed->Set("parts-" + part.first, PartsJson({part}));
        }
      } while (!feed->ClosedWithin(kHomeReadEvery));
    }};
  };
  return EventsOf(site, Address("home", request.query), make, request.last_event_id);
}

absl::StatusOr<Response> VerdictView(Site& site, const Request& request) {
  const std::string name = client::ExperimentName(request.parts[0]);
  std::string text;
  {
    MutexLock lock(&site.mutex);
    const auto found = site.verdicts.find(name);
    if (found != site.verdicts.end()) text = found->second;
  }
  if (text.empty()) {
    const auto connection = site.pool.Borrow();
    v1::CompareRequest compare;
    compare.set_experiment(name);
    ASSIGN_OR_RETURN(const v1::Comparison comparison, connection->Call(client::kCompare, compare));
    text = comparison.verdict().text();
    MutexLock lock(&site.mutex);
    if (comparison.ended() == comparison.planned()) site.verdicts[name] = text;
  }
  Markup out;
  out.Text(text);
  return FragmentOf(out.TakeHtml());
}

}  // namespace ablate::web
