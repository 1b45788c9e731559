#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/report/html/sections.h"
#include "text/clean.h"

namespace ablate::html {
namespace {

// The element without the declaration before it, marked as one picture that title and description
// stand for; "" unless there is one.
std::string AsPicture(const Figure& figure, const std::string& id) {
  const size_t begin = figure.svg.find("<svg");
  const size_t end = begin == std::string::npos ? begin : figure.svg.find('>', begin);
  if (end == std::string::npos || figure.svg[end - 1] == '/') return "";
  absl::string_view body = absl::string_view(figure.svg).substr(end + 1);
  // A title or role of the drawing's own would stand there twice.
  const size_t open = body.find("<title"), close = body.find("</title>");
  std::string without_title;
  if (open != absl::string_view::npos && close != absl::string_view::npos && open < close) {
    constexpr size_t kLength = sizeof("</title>") - 1;
    without_title = absl::StrCat(body.substr(0, open), body.substr(close + kLength));
    body = without_title;
  }
  const auto escaped = [](const std::string& text) {
    return text::EscapeMarkup(text::CleanText(text));
  };
  const std::string tag =
      absl::StrReplaceAll(figure.svg.substr(begin, end - begin), {{" role=\"img\"", ""}});
  return absl::StrCat(tag, " role=\"img\" aria-labelledby=\"", id, "-title ", id,
                      "-desc\"><title id=\"", id, "-title\">", escaped(figure.title),
                      "</title><desc id=\"", id, "-desc\">", escaped(figure.description), "</desc>",
                      body);
}

void Picture(const Figure& figure, const std::string& id, Markup* out) {
  const std::string svg = AsPicture(figure, id);
  if (svg.empty()) {
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
  out->Finished(svg).Close();
}

void OneFigure(const Figure& figure, const std::string& prefix, size_t number, Markup* out) {
  const std::string id = absl::StrCat(prefix, "figure-", figure.name);
  out->Open("figure", {{"id", id}, {"class", figure.wide ? "wide" : "narrow"}});
  Picture(figure, id, out);
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
