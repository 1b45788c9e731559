// Figures of an experiment: their choices, the drawing, and its files.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "client/names.h"
#include "client/web/page.h"
#include "proto/reflect/text.h"

namespace ablate::web {
namespace {

constexpr const char* kKinds[] = {
    "loss",  "forest", "difference", "sensitivity", "axis",        "summary", "windows",   "curves",
    "depth", "levels", "landscape",  "eigenvalues", "reliability", "matrix",  "trajectory"};
constexpr double kScreenWidth = 6.75;  // inches: two columns of a journal

// Reads a whole number, -1 or more, of a field of the address; absent if it is empty.
absl::StatusOr<std::optional<int32_t>> StepOf(const Request& request, const std::string& name) {
  const std::string text = request.Query(name);
  int32_t step = 0;
  if (text.empty()) return std::optional<int32_t>();
  if (absl::SimpleAtoi(text, &step) && step >= -1) return std::optional(step);
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": ", reflect::Quoted(text),
                   " is not a step; expected a whole number from 0 on, or -1 for the last"));
}

absl::StatusOr<v1::RenderFigureRequest> FigureOf(const Request& request,
                                                 v1::FigureFormat::Value format) {
  v1::RenderFigureRequest figure;
  figure.mutable_comparison()->set_experiment(client::ExperimentName(request.parts[0]));
  figure.mutable_comparison()->set_by(request.Query("by"));
  ASSIGN_OR_RETURN(const auto at, StepOf(request, "at"));
  if (at) figure.mutable_comparison()->set_at(*at);
  ASSIGN_OR_RETURN(const auto step, StepOf(request, "step"));
  if (step) figure.set_step(*step);
  const std::string kind = request.Query("kind");
  figure.set_kind(kind.empty() ? "loss" : kind);
  figure.set_key(request.Query("key"));
  figure.set_width(kScreenWidth);
  figure.set_format(format);
  return figure;
}

}  // namespace

absl::StatusOr<Response> FigureView(Site& site, const Request& request) {
  const auto connection = site.pool.Borrow();
  ASSIGN_OR_RETURN(const auto wanted, FigureOf(request, v1::FigureFormat::svg));
  const std::string path = PathOfExperiment(wanted.comparison().experiment());
  Markup out;
  out.Open("p", {{"class", "kicker"}});
  Link(path, client::Id(wanted.comparison().experiment()), &out);
  out.Close().Element("h1", absl::StrCat("Figure: ", wanted.kind()));
  out.Open("form", {{"class", "controls"}});
  std::vector<std::pair<std::string, std::string>> kinds;
  for (const char* kind : kKinds) kinds.emplace_back(kind, kind);
  Select("kind", "Kind", kinds, wanted.kind(), &out);
  Input("key", "Metric", request.Query("key"), "text", &out);
  Input("by", "By axis", request.Query("by"), "text", &out);
  Input("at", "Read at step", request.Query("at"), "number", &out);
  Input("step", "Draw step", request.Query("step"), "number", &out);
  out.Element("button", "Draw").Close();
  const auto figure = connection->Call(client::kRenderFigure, wanted);
  if (figure.ok()) {
    out.Open("div", {{"class", "drawn"}}).Add(Html::Drawn(figure->data())).Close();
    out.Open("p", {{"class", "actions"}});
    for (const char* format : {"svg", "pdf", "png", "csv"}) {
      Link(Address(absl::StrCat(path, "/figure.", format), request.query), format, &out);
    }
    out.Close();
  } else {
    out.Element("p", {{"role", "alert"}}, std::string(figure.status().message()));
  }
  return PageOf(site, {.title = wanted.kind(), .active = ""}, out.TakeHtml());
}

absl::StatusOr<Response> FigureFile(Site& site, const Request& request) {
  const absl::string_view ending = absl::StripPrefix(request.parts[1], "figure.");
  v1::FigureFormat::Value format = v1::FigureFormat::svg;
  const bool csv = ending == "csv";
  if (!csv && (!v1::FigureFormat::Value_Parse(std::string(ending), &format) ||
               format == v1::FigureFormat::unspecified)) {
    return absl::NotFoundError(
        absl::StrCat(reflect::Quoted(request.parts[1]),
                     ": no such file; expected figure.svg, .pdf, .png or .csv"));
  }
  ASSIGN_OR_RETURN(const auto wanted, FigureOf(request, format));
  const auto connection = site.pool.Borrow();
  ASSIGN_OR_RETURN(auto figure, connection->Call(client::kRenderFigure, wanted));
  Response response;
  AddPolicy("", &response);
  response.type = csv ? "text/csv; charset=utf-8" : figure.media_type();
  response.body = csv ? figure.csv() : std::move(*figure.mutable_data());
  return response;
}

}  // namespace ablate::web
