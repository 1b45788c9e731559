// Changes experiments by the commands that would be typed. Each is shown before it runs. None
// removes anything.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/tool.h"
#include "client/names.h"
#include "client/web/page.h"
#include "proto/reflect/text.h"

namespace ablate::web {
namespace {

// An action: its command is `command`, the experiment, and `option` with the value at its end.
struct Act {
  const char* name;
  const char* title;
  const char* effect;
  const char* command;
  const char* option = "";
  const char* value = nullptr;  // title of the field that it asks for; null: none
};

constexpr Act kActs[] = {
    {"cancel", "Cancel", "Its queued and training runs stop, unless another experiment has them.",
     "cancel"},
    {"retry", "Retry", "A new experiment has the same runs; those that failed train again.",
     "submit --again"},
    {"seeds", "Add seeds", "A new experiment keeps all of its runs and adds those of the seeds.",
     "submit --extend", "--seeds=", "All seeds, such as 42..61"},
    {"pause", "Pause", "No more of its runs begin; those that train go on.", "queue pause"},
    {"resume", "Resume", "Its queued runs begin again.", "queue resume"},
    {"tag", "Add a tag", "Lists can be limited to its tag.", "edit", "--tag=", "Tag"},
    {"untag", "Remove a tag", "The experiment loses the tag.", "edit", "--untag=", "Tag"},
    {"note", "Change the note", "The note replaces the one that it has.", "edit",
     "--note=", "Note"},
    {"archive", "Archive", "Lists leave it out; nothing is removed.", "edit", "--archive"},
    {"restore", "Restore", "Lists show it again.", "edit", "--restore"}};

absl::StatusOr<const Act*> FindAct(const std::string& name) {
  for (const Act& act : kActs) {
    if (act.name == name) return &act;
  }
  return absl::NotFoundError(absl::StrCat("There is no action ", reflect::Quoted(name), "."));
}

std::vector<std::string> ArgumentsOf(const Act& act, const std::string& id,
                                     const std::string& value) {
  std::vector<std::string> arguments = absl::StrSplit(act.command, ' ');
  arguments.push_back(id);
  // One argument, so that a value that begins with '-' stays a value.
  const bool clears = value.empty() && act.name == std::string("note");
  const std::string option = clears ? "--no-note" : act.option;
  if (!option.empty()) arguments.push_back(option + (act.value == nullptr ? "" : value));
  return arguments;
}

// Returns a command as a shell takes it.
std::string CommandText(const std::vector<std::string>& arguments) {
  std::string text = "ablate";
  for (const std::string& argument : arguments) {
    const bool plain = std::all_of(argument.begin(), argument.end(), [](char c) {
      return absl::ascii_isalnum(c) || absl::StrContains("-_=./,:+@", std::string(1, c));
    });
    absl::StrAppend(&text, " ", plain ? argument : process::ShellWord(argument));
  }
  return text;
}

}  // namespace

Outcome RunCommand(const Site& site, const std::vector<std::string>& arguments) {
  std::istringstream in;
  std::ostringstream out, err;
  client::Context context = site.context;
  context.console = {};
  context.console.in = &in;
  context.console.out = &out;
  context.console.err = &err;
  const int code = site.run(arguments, context);
  return {code, out.str(), err.str()};
}

void Actions(Connection* connection, const v1::Experiment& experiment, Markup* out) {
  const std::string path = PathOfExperiment(experiment.name());
  out->Open("nav", {{"aria-label", "This experiment"}, {"class", "actions"}});
  Link(Address("/runs", {{"experiment", client::Id(experiment.name())}}), "Runs", out);
  Link(path + "/figure", "Figures", out);
  Link(path + "/report", "Report", out);
  // The server refuses what a user may not do; a reader may do nothing.
  const auto who = connection->Call(client::kWhoAmI, {});
  if (!who.ok() || who->role() != v1::Role::reader) {
    const bool active = experiment.state() == v1::ExperimentState::ACTIVE;
    const bool lost = experiment.counts().failed() + experiment.counts().cancelled() > 0;
    for (const Act& act : kActs) {
      const std::string name = act.name;
      const bool fits = name == "cancel"    ? active
                        : name == "pause"   ? active && !experiment.paused()
                        : name == "resume"  ? active && experiment.paused()
                        : name == "retry"   ? !active && lost
                        : name == "untag"   ? experiment.tags_size() > 0
                        : name == "archive" ? !experiment.archived()
                        : name == "restore" ? experiment.archived()
                                            : true;
      if (fits) Link(absl::StrCat(path, "/do/", act.name), act.title, out);
    }
  }
  out->Close();
}

absl::StatusOr<Response> ActView(Site& site, const Request& request) {
  ASSIGN_OR_RETURN(const Act* act, FindAct(request.parts[1]));
  v1::GetExperimentRequest get;
  get.set_name(client::ExperimentName(request.parts[0]));
  ASSIGN_OR_RETURN(const v1::Experiment experiment,
                   site.pool.Borrow()->Call(client::kGetExperiment, get));
  const std::string id = client::Id(experiment.name());
  const bool acts = request.method == "POST";
  // A browser sends line breaks as two characters.
  const std::string value =
      absl::StrReplaceAll(acts ? request.Form("value") : request.Query("value"), {{"\r\n", "\n"}});
  const std::vector<std::string> command = ArgumentsOf(*act, id, value);
  Markup out;
  out.Open("p", {{"class", "kicker"}});
  Link(PathOfExperiment(experiment.name()), id, &out);
  out.Close().Element("h1", act->title).Element("p", act->effect);
  if (acts) {
    const Outcome outcome = RunCommand(site, command);
    out.Element("pre", CommandText(command));
    out.Element("p", {{"role", "status"}}, outcome.code == 0 ? "Done." : "That didn't work.");
    out.Open("pre").Lines(outcome.out + outcome.err).Close();
  } else if (act->value != nullptr && request.query.count("value") == 0) {
    out.Open("form", {{"class", "controls"}});
    // A note has several lines, which the other field would join.
    if (act->name == std::string("note")) {
      out.Open("label", {{"class", "wide"}}).Text("Note ");
      out.Open("textarea", {{"name", "value"}, {"rows", "5"}}).Lines(experiment.note());
      out.Close().Close();
    } else {
      Input("value", act->value, "", "text", &out);
    }
    out.Element("button", "Continue").Close();
  } else {
    out.Element("p", "This runs:").Element("pre", CommandText(command));
    out.Open("form", {{"method", "post"}, {"class", "controls"}});
    out.Void("input", {{"type", "hidden"}, {"name", "form"}, {"value", site.secrets.form}});
    out.Void("input", {{"type", "hidden"}, {"name", "value"}, {"value", value}});
    out.Element("button", act->title).Close();
  }
  out.Open("p");
  Link(PathOfExperiment(experiment.name()), "Back to the experiment", &out);
  out.Close();
  return PageOf(site, {.title = act->title, .active = ""}, out.TakeHtml());
}

}  // namespace ablate::web
