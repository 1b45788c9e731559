#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

std::string Percent(const std::optional<double>& share) {
  if (!share.has_value()) return "—";
  return absl::StrCat(std::llround(*share * 100), " %");
}

void Shares(const Samples& samples, Markup* out) {
  OpenScroll("Shares of samples", out);
  out->Open("table");
  Caption(
      "Of each setting's samples: the share that is distinct, and the share that is a whole "
      "document "
      "in the training part of its data, read by the run or not.",
      out);
  out->Open("thead");
  HeadRow({"setting", "samples", "distinct", "in the training data"}, out);
  out->Close().Open("tbody");
  for (const Samples::Setting& setting : samples.settings) {
    out->Open("tr").Element("th", {{"scope", "row"}}, setting.label);
    out->Element("td", absl::StrCat(setting.texts.size()));
    out->Element("td", Percent(setting.distinct));
    out->Element("td", Percent(setting.in_training));
    out->Close();
  }
  out->Close().Close().Close();
}

void Texts(const Place& place, const Samples::Setting& setting, Markup* out) {
  out->Open("div", {{"class", "writer"}});
  Subheading(place, setting.label, out);
  if (setting.texts.empty()) {
    out->Element("p", {{"class", "missing"}},
                 setting.missing.empty() ? "There are no samples." : setting.missing);
    out->Close();
    return;
  }
  out->Open("ul", {{"class", "texts"}});
  for (const std::string& text : setting.texts) {
    out->Open("li", {{"dir", "auto"}}).Lines(text.empty() ? "(empty)" : text).Close();
  }
  out->Close().Close();
}

}  // namespace

void SamplesSection(const Place& place, const Experiment& experiment, Markup* out) {
  if (!experiment.samples.has_value()) return;
  const Samples& samples = *experiment.samples;
  OpenFolded(place, "samples", "What the models write", out);
  out->Element("p", samples.how);
  bool any = false;
  for (const Samples::Setting& setting : samples.settings) any = any || !setting.texts.empty();
  if (any) Shares(samples, out);
  out->Open("div", {{"class", "writers"}});
  for (const Samples::Setting& setting : samples.settings) Texts(place, setting, out);
  out->Close();
  CloseFolded(out);
}

}  // namespace ablate::html
