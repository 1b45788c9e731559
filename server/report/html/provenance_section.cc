#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/decimal.h"
#include "server/report/compare/wording.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

using report::Counted;

void Fact(Literal name, absl::string_view value, Markup* out) {
  if (value.empty()) return;
  out->Element("dt", name.text()).Element("dd", value);
}

void Code(Literal name, absl::string_view value, Markup* out) {
  out->Element("dt", name.text()).Open("dd").Element("code", value).Close();
}

// Returns "torch (180 cells)"; the count only if there are several.
std::string Recorded(const std::map<std::string, size_t>& values) {
  std::vector<std::string> parts;
  for (const auto& [value, cells] : values) {
    const std::string name = value.empty() ? "not recorded" : value;
    parts.push_back(values.size() == 1 ? name
                                       : absl::StrCat(name, " (", Counted(cells, "cell"), ")"));
  }
  return absl::StrJoin(parts, "; ");
}

std::string RunsText(const Provenance& provenance) {
  std::string text =
      absl::StrCat(Counted(provenance.cells, "cell"), ", ", Counted(provenance.runs, "run"));
  if (provenance.reused > 0) {
    absl::StrAppend(&text, "; ", provenance.reused, " trained before this experiment and reused");
  }
  for (const auto& [step, runs] : provenance.continued) {
    absl::StrAppend(&text, "; ", Counted(runs, "run"), " continued from step ", text::Grouped(step),
                    runs == 1 ? " of a shorter run" : " of shorter runs");
  }
  if (provenance.device_seconds > 0) {
    const auto seconds = static_cast<size_t>(std::llround(provenance.device_seconds));
    absl::StrAppend(&text, "; ",
                    seconds == 0 ? "less than 1 device-second" : Counted(seconds, "device-second"));
  }
  return text;
}

std::string DataText(const DataSet& data) {
  std::string text =
      absl::StrCat(data.name, ", ", text::Grouped(static_cast<int64_t>(data.bytes)), " bytes");
  if (data.documents > 0) absl::StrAppend(&text, ", ", Counted(data.documents, "document"));
  return text;
}

void Facts(const Experiment& experiment, Markup* out) {
  const Provenance& provenance = experiment.provenance;
  out->Open("dl");
  Code("Experiment", experiment.id, out);
  if (!provenance.extends.empty()) Code("Extends", provenance.extends, out);
  Fact("Owner", provenance.owner, out);
  Fact("Created", provenance.created, out);
  Fact("Ended", provenance.ended.empty() ? "not yet" : provenance.ended, out);
  Fact("Runs", RunsText(provenance), out);
  Fact("Version", Recorded(provenance.versions), out);
  Fact("Trainer", Recorded(provenance.trainers), out);
  Fact("Device", Recorded(provenance.devices), out);
  if (!provenance.environments.empty()) {
    Fact("Environment", Recorded(provenance.environments), out);
  }
  for (const DataSet& data : provenance.data_sets) {
    Fact("Data set", DataText(data), out);
    Code("Data set SHA-256", data.sha256, out);
  }
  Code("SHA-256 of the spec below", provenance.spec_sha256, out);
  out->Close();
}

void Again(const Place& place, const Provenance& provenance, Markup* out) {
  Subheading(place, "Reproduce this page", out);
  out->Open("p").Text("The whole spec, saved as ");
  out->Element("a",
               {{"download", provenance.spec_file},
                {"href", DataUri("application/yaml", provenance.spec_yaml)}},
               provenance.spec_file);
  out->Text(absl::StrCat(
      ", includes all changes by --set and --seeds. It gives the same runs: on a CPU, with the "
      "version, trainer and environment above, the same numbers bit for bit. Runs that the server "
      "still has are not trained again.",
      provenance.data_sets.empty()
          ? ""
          : " On another server, first run ablate data add FILE with the file of the SHA-256 "
            "above, and put the name that it prints into the spec.",
      " EXPERIMENT is the ID that submit prints."));
  out->Close();
  OpenScroll("pre", "commands", "Commands", out);
  out->Open("code");
  out->Lines(absl::StrCat(provenance.submit_command, "\n", provenance.report_command));
  out->Close().Close();
  // Open, so that it is printed.
  out->Open("details", {{"open", ""}}).Element("summary", "The whole spec");
  OpenScroll("pre", "spec", "The whole spec", out);
  out->Open("code").Lines(provenance.spec_yaml);
  out->Close().Close().Close();
}

}  // namespace

void ProvenanceSection(const Place& place, const Experiment& experiment, Markup* out) {
  OpenFolded(place, "provenance", "Provenance", out);
  Facts(experiment, out);
  Again(place, experiment.provenance, out);
  CloseFolded(out);
}

}  // namespace ablate::html
