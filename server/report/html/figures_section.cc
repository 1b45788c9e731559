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
                           {{"class", "csv"},
                            {"download", absl::StrCat(prefix, figure.name, ".csv")},
                            {"href", DataUri("text/csv", figure.csv)},
                            {"aria-label", absl::StrCat("Numbers of figure ", number, " as CSV")}},
                           "CSV");
  }
  out->Close().Close();
}

namespace {

// Writes the figures that are `folded`, or the others, in order.
void Gallery(const Place& place, const Experiment& experiment, bool folded, size_t* number,
             Markup* out) {
  out->Open("div", {{"class", "gallery"}});
  for (size_t i = 0; i < experiment.figures.size(); ++i) {
    if (experiment.decisive == i || experiment.figures[i].folded != folded) continue;
    OneFigure(experiment.figures[i], place.prefix, ++*number, out);
  }
  out->Close();
}

}  // namespace

void FiguresSection(const Place& place, const Experiment& experiment, Markup* out) {
  size_t shown = 0, folded = 0;
  for (size_t i = 0; i < experiment.figures.size(); ++i) {
    if (experiment.decisive != i) ++(experiment.figures[i].folded ? folded : shown);
  }
  size_t number = experiment.decisive.has_value() ? 1 : 0;
  if (shown > 0) {
    OpenSection(place, "figures", "Figures", out);
    Gallery(place, experiment, false, &number, out);
    out->Close();
  }
  if (folded > 0) {
    OpenFolded(place, "more-figures", "More figures", out);
    Gallery(place, experiment, true, &number, out);
    CloseFolded(out);
  }
}

}  // namespace ablate::html
