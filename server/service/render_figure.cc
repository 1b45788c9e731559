// RenderFigure: a figure of a comparison, and drawing one from stored curves.
#include "server/service/render_figure.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/reflect/text.h"
#include "server/service/errors.h"
#include "server/service/limits.h"

namespace ablate::service {
namespace {

absl::Status ReadSettings(storage::Store* store, const ComparedGrid& compared,
                          const figure::Kind& kind, const Cancelled& cancelled,
                          figure::Input* input) {
  for (size_t row = 0; row < compared.rows.size(); ++row) {
    auto setting = ReadSetting(store, compared, row, input->key, cancelled);
    if (!setting.ok()) return setting.status();
    input->settings.push_back(figure::ReduceSetting(kind, *setting, input->curves));
  }
  return absl::OkStatus();
}

// The comparison that the request asks for; `key` is the compared metric of kinds without curves.
v1::CompareRequest ComparisonOf(const v1::RenderFigureRequest& request, const figure::Kind& kind) {
  v1::CompareRequest comparison = request.comparison();
  if (kind.reduce == nullptr && !request.key().empty()) comparison.set_key(request.key());
  return comparison;
}

absl::StatusOr<figure::Format> FormatOf(v1::FigureFormat::Value format) {
  switch (format) {
    case v1::FigureFormat::svg:
      return figure::Format::kSvg;
    case v1::FigureFormat::pdf:
      return figure::Format::kPdf;
    case v1::FigureFormat::png:
      return figure::Format::kPng;
    default:
      return InvalidField(
          "format",
          format == 0 ? "it is missing" : absl::StrCat(static_cast<int>(format), " is no format"),
          "svg, pdf, png");
  }
}

absl::Status CheckWidth(const v1::RenderFigureRequest& request) {
  const double width = request.width();
  const bool fits = width >= figure::kMinWidth && width <= figure::kMaxWidth;
  if (!request.has_width() || fits) return absl::OkStatus();
  return InvalidField("width", absl::StrCat(width, " is out of range"),
                      absl::StrCat("inches from ", figure::kMinWidth, " to ", figure::kMaxWidth));
}

absl::Status TooManyPoints(const std::string& setting, const std::string& key) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the runs of ", reflect::Quoted(setting), " have more than ", kMostCurvePoints,
                   " points of ", reflect::Quoted(key), ", the most that a figure is made of"));
}

}  // namespace

figure::Input InputOf(const ComparedGrid& compared, const figure::Kind& kind) {
  figure::Input input;
  input.comparison = &compared.comparison;
  input.axes = compared.grid.input.axes;
  input.windows = &compared.windows;
  input.key = std::string(kind.key);
  input.title = compared.grid.spec.name();
  const v1::ReportSpec& report = compared.grid.spec.report();
  if (report.has_smooth()) input.curves.smooth = report.smooth();
  return input;
}

absl::StatusOr<figure::SettingCurves> ReadSetting(storage::Store* store,
                                                  const ComparedGrid& compared, size_t row,
                                                  const std::string& key,
                                                  const Cancelled& cancelled) {
  const report::ComparisonRow& of = compared.comparison.rows[row];
  figure::SettingCurves setting{of.label, figure::StyleIndices(compared.comparison)[row], {}};
  const std::vector<size_t>& cells = compared.rows[row];
  setting.seeds.resize(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    setting.seeds[i].seed = of.runs[i].seed;
    setting.seeds[i].diverged = of.runs[i].diverged;
  }
  size_t held = 0;
  const auto keep = [&](size_t cell, const Points& points) -> absl::Status {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i] != cell) continue;
      held += points.steps.size();
      if (held > kMostCurvePoints) return TooManyPoints(of.label, key);
      setting.seeds[i].steps = points.steps;
      setting.seeds[i].values = points.values;
    }
    return absl::OkStatus();
  };
  const absl::Status read = VisitCurves(store, compared.grid, key, cells, cancelled, keep);
  if (!read.ok()) return read;
  return setting;
}

absl::StatusOr<figure::Drawing> DrawFigure(storage::Store* store, const ComparedGrid& compared,
                                           const figure::Kind& kind, const FigureOptions& options,
                                           const Cancelled& cancelled) {
  figure::Input input = InputOf(compared, kind);
  input.width = options.width;
  if (kind.reduce != nullptr) {
    if (!options.key.empty()) input.key = options.key;
    const absl::Status read = ReadSettings(store, compared, kind, cancelled, &input);
    if (!read.ok()) return read;
  }
  return figure::Draw(kind, input);
}

namespace {

absl::Status Render(const Backend& backend, const v1::RenderFigureRequest& request,
                    const Cancelled& cancelled, v1::RenderFigureResponse* response) {
  const figure::Kind* kind = figure::FindKind(request.kind());
  if (kind == nullptr) {
    return InvalidField("kind",
                        request.kind().empty()
                            ? "it is missing"
                            : absl::StrCat(reflect::Quoted(request.kind()), " is no kind"),
                        figure::KindNames());
  }
  if (const absl::Status width = CheckWidth(request); !width.ok()) return width;
  const auto format = FormatOf(request.format());
  if (!format.ok()) return format.status();
  auto compared = CompareGrid(backend.store, ComparisonOf(request, *kind), {cancelled, 0});
  if (!compared.ok()) return compared.status();
  if (kind->row_windows) {
    const absl::Status windows = AddWindows(backend.store, cancelled, &*compared);
    if (!windows.ok()) return windows;
  }
  FigureOptions options;
  options.key = request.key();
  if (request.has_width()) options.width = request.width();
  const auto drawing = DrawFigure(backend.store, *compared, *kind, options, cancelled);
  if (!drawing.ok()) return drawing.status();
  figure::ProcessLimits limits;
  limits.cancelled = cancelled;
  auto data = backend.gnuplot->Render(drawing->figure, *format, limits);
  if (!data.ok()) return data.status();
  if (data->size() > kPageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the picture has ", data->size(),
                                                     " bytes; at most ", kPageBytes,
                                                     " fit into an answer: a png is smaller"));
  }
  if (data->size() + drawing->csv.size() <= kPageBytes) response->set_csv(drawing->csv);
  response->set_media_type(std::string(figure::MediaType(*format)));
  response->set_data(*std::move(data));
  return absl::OkStatus();
}

}  // namespace

absl::Status RenderFigure(Backend* backend, const v1::RenderFigureRequest& request,
                          const Cancelled& cancelled, v1::RenderFigureResponse* response) {
  LiveCall call(&backend->reports);
  if (!call.accepted().ok()) return call.accepted();
  const absl::Status rendered = Render(
      *backend, request, [&] { return call.stopped() || cancelled(); }, response);
  return call.stopped() ? ServerEnds() : rendered;
}

}  // namespace ablate::service
