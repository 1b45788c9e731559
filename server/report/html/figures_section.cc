#include <algorithm>
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

// Names the places of figures in the page's order.
enum class FigurePlace { kFirstScreen, kShown, kFolded, kAnalysis };

FigurePlace PlaceOf(const Experiment& experiment, size_t figure) {
  const Figure& of = experiment.figures[figure];
  if (experiment.decisive == figure) return FigurePlace::kFirstScreen;
  if (of.folded) return FigurePlace::kFolded;
  const bool analysed = std::any_of(
      experiment.analyses.begin(), experiment.analyses.end(),
      [&of](const report::HeadlineNumbers& analysis) { return analysis.label == of.label; });
  return analysed ? FigurePlace::kAnalysis : FigurePlace::kShown;
}

// Returns the figures there, by their indexes, in the page's order.
std::vector<size_t> FiguresAt(const Experiment& experiment, FigurePlace place) {
  std::vector<size_t> figures;
  const auto add = [&](absl::string_view label) {
    for (size_t i = 0; i < experiment.figures.size(); ++i) {
      if (PlaceOf(experiment, i) != place) continue;
      if (place == FigurePlace::kAnalysis && experiment.figures[i].label != label) continue;
      figures.push_back(i);
    }
  };
  if (place != FigurePlace::kAnalysis) add("");
  for (const report::HeadlineNumbers& analysis : experiment.analyses) {
    if (place == FigurePlace::kAnalysis) add(analysis.label);
  }
  return figures;
}

// Returns the figure's number on the page, from 1 on.
size_t NumberOf(const Experiment& experiment, size_t figure) {
  size_t number = 0;
  for (const FigurePlace place : {FigurePlace::kFirstScreen, FigurePlace::kShown,
                                  FigurePlace::kFolded, FigurePlace::kAnalysis}) {
    for (const size_t one : FiguresAt(experiment, place)) {
      ++number;
      if (one == figure) return number;
    }
  }
  return number;
}

void Gallery(const Place& place, const Experiment& experiment, const std::vector<size_t>& figures,
             Markup* out) {
  out->Open("div", {{"class", "gallery"}});
  for (const size_t figure : figures) {
    OneFigure(experiment.figures[figure], place.prefix, NumberOf(experiment, figure), out);
  }
  out->Close();
}

}  // namespace

void FiguresSection(const Place& place, const Experiment& experiment, Markup* out) {
  const std::vector<size_t> shown = FiguresAt(experiment, FigurePlace::kShown);
  if (!shown.empty()) {
    OpenSection(place, "figures", "Figures", out);
    Gallery(place, experiment, shown, out);
    out->Close();
  }
  const std::vector<size_t> folded = FiguresAt(experiment, FigurePlace::kFolded);
  if (!folded.empty()) {
    OpenFolded(place, "more-figures", "More figures", out);
    Gallery(place, experiment, folded, out);
    CloseFolded(out);
  }
}

void FiguresOf(const Place& place, const Experiment& experiment, absl::string_view label,
               Markup* out) {
  std::vector<size_t> figures = FiguresAt(experiment, FigurePlace::kAnalysis);
  figures.erase(
      std::remove_if(figures.begin(), figures.end(),
                     [&](size_t figure) { return experiment.figures[figure].label != label; }),
      figures.end());
  if (!figures.empty()) Gallery(place, experiment, figures, out);
}

}  // namespace ablate::html
