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
  // Wide ones scroll where the window is narrow.
  if (figure.wide) {
    OpenScroll("div", "picture", absl::StrCat("Figure: ", figure.title), out);
  } else {
    out->Open("div", {{"class", "picture"}});
  }
  out->Finished(figure.svg).Close();
}

void OneFigure(const Figure& figure, const std::string& prefix, size_t number, Markup* out) {
  const std::string id = absl::StrCat(prefix, "figure-", figure.name);
  out->Open("figure", {{"id", id}, {"class", figure.wide ? "wide" : "narrow"}});
  Picture(figure, out);
  out->Open("figcaption");
  out->Element("strong", absl::StrCat("Figure ", number, ". ", figure.title, "."));
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

}  // namespace

void FiguresSection(const Place& place, const Experiment& experiment, Markup* out) {
  if (experiment.figures.empty()) return;
  OpenSection(place, "figures", "Figures", out);
  out->Open("div", {{"class", "gallery"}});
  for (size_t i = 0; i < experiment.figures.size(); ++i) {
    OneFigure(experiment.figures[i], place.prefix, i + 1, out);
  }
  out->Close().Close();
}

}  // namespace ablate::html
