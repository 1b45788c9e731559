#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/report/html/sections.h"

namespace ablate::html {
namespace {

void Picture(const Figure& figure, Markup* out) {
  if (figure.svg.empty()) {
    out->Element("p", {{"class", "missing"}},
                 figure.missing.empty() ? "This figure could not be drawn." : figure.missing);
    return;
  }
  // Wide ones scroll in a narrow window.
  if (figure.wide) {
    OpenScroll("div", "picture", absl::StrCat("Figure: ", figure.title), out);
  } else {
    out->Open("div", {{"class", "picture"}});
  }
  out->Finished(figure.svg).Close();
}

}  // namespace

void OneFigure(const Figure& figure, const std::string& prefix, size_t number, Markup* out) {
  const std::string id = absl::StrCat(prefix, "figure-", figure.name);
  const std::string title = absl::StrCat(id, "-title");
  out->Open("figure",
            {{"id", id}, {"class", figure.wide ? "wide" : "narrow"}, {"aria-labelledby", title}});
  Picture(figure, out);
  out->Open("figcaption");
  out->Element("strong", {{"id", title}}, absl::StrCat("Figure ", number, ". ", figure.title, "."));
  out->Text(absl::StrCat(" ", figure.caption));
  if (!figure.csv.empty()) {
    out->Text(" ").Element("a",
                           {{"class", "file"},
                            {"download", absl::StrCat(prefix, figure.name, ".csv")},
                            {"href", DataUri("text/csv", figure.csv)},
                            {"aria-label", absl::StrCat("Numbers of figure ", number, " as CSV")}},
                           "CSV");
  }
  out->Close().Close();
}

namespace {

// The parts of the page that have figures, in its order.
enum class Part { kFirstScreen, kFigures, kMoreFigures, kAnalyses };

// A part, and in kAnalyses the index of the analysis.
using FigurePlace = std::pair<Part, size_t>;

FigurePlace PlaceOf(const Experiment& experiment, size_t figure) {
  const Figure& of = experiment.figures[figure];
  if (experiment.decisive == figure) return {Part::kFirstScreen, 0};
  if (of.folded) return {Part::kMoreFigures, 0};
  for (size_t i = 0; i < experiment.analyses.size(); ++i) {
    if (experiment.analyses[i].label == of.label) return {Part::kAnalyses, i};
  }
  return {Part::kFigures, 0};
}

// Returns the figures there, by their indexes, in order.
std::vector<size_t> FiguresAt(const Experiment& experiment, const FigurePlace& place) {
  std::vector<size_t> figures;
  for (size_t i = 0; i < experiment.figures.size(); ++i) {
    if (PlaceOf(experiment, i) == place) figures.push_back(i);
  }
  return figures;
}

// Writes the figures there, with their numbers on the page.
void Gallery(const Place& place, const Experiment& experiment, const FigurePlace& there,
             Markup* out) {
  size_t number = 1;
  for (size_t i = 0; i < experiment.figures.size(); ++i) {
    number += PlaceOf(experiment, i) < there;
  }
  out->Open("div", {{"class", "gallery"}});
  for (const size_t figure : FiguresAt(experiment, there)) {
    OneFigure(experiment.figures[figure], place.prefix, number++, out);
  }
  out->Close();
}

}  // namespace

void FiguresSection(const Place& place, const Experiment& experiment, Markup* out) {
  const FigurePlace shown = {Part::kFigures, 0}, folded = {Part::kMoreFigures, 0};
  if (!FiguresAt(experiment, shown).empty()) {
    OpenSection(place, "figures", "Figures", out);
    Gallery(place, experiment, shown, out);
    out->Close();
  }
  if (!FiguresAt(experiment, folded).empty()) {
    OpenFolded(place, "more-figures", "More figures", out);
    Gallery(place, experiment, folded, out);
    CloseFolded(out);
  }
}

void FiguresOf(const Place& place, const Experiment& experiment, size_t analysis, Markup* out) {
  const FigurePlace there = {Part::kAnalyses, analysis};
  if (!FiguresAt(experiment, there).empty()) Gallery(place, experiment, there, out);
}

}  // namespace ablate::html
