#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

std::string Percent(const std::optional<double>& share) {
  return share.has_value() ? absl::StrCat(std::llround(*share * 100), " %") : "";
}

report::Table Shares(const Samples& samples) {
  report::Table table = {
      {{"setting"}, {"samples", true}, {"distinct", true}, {"in the training data", true}}};
  for (const Samples::Setting& setting : samples.settings) {
    table.columns[0].cells.push_back({setting.label});
    table.columns[1].cells.push_back({absl::StrCat(setting.texts.size())});
    table.columns[2].cells.push_back({Percent(setting.distinct)});
    table.columns[3].cells.push_back({Percent(setting.in_training)});
  }
  return table;
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
  OpenFolded(place, "samples", "Samples from the models", out);
  out->Element("p", samples.how);
  bool any = false;
  for (const Samples::Setting& setting : samples.settings) any = any || !setting.texts.empty();
  if (any) {
    WriteTable(Shares(samples), "Shares of samples",
               "Fraction of each setting's samples that are distinct, and fraction that are a "
               "whole document of the training data, whether or not the run read it.",
               out);
  }
  out->Open("div", {{"class", "writers"}});
  for (const Samples::Setting& setting : samples.settings) Texts(place, setting, out);
  out->Close();
  CloseFolded(out);
}

}  // namespace ablate::html
