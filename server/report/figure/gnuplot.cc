#include "server/report/figure/gnuplot.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "server/report/figure/style.h"
#include "text/clean.h"

namespace ablate::figure {
namespace {

std::string ColorText(Color color) {
  return absl::StrFormat("rgb '#%02X%06X'", color.transparency, color.rgb);
}

std::string DashText(const Dash& dash) {
  if (dash.empty()) return "dt solid";
  return absl::StrCat("dt (", absl::StrJoin(dash, ","), ")");
}

// gnuplot's numbers of the markers: filled, open.
int MarkerNumber(Marker marker, bool open) {
  static constexpr std::array<std::pair<int, int>, 6> kNumbers = {
      {{7, 6}, {5, 4}, {9, 8}, {11, 10}, {13, 12}, {2, 2}}};
  const auto& [filled, hollow] = kNumbers[static_cast<size_t>(marker)];
  return open ? hollow : filled;
}

// One unit is one point in each terminal; sizes are the figure's, fonts relative to 8 points.
std::string Terminal(const Figure& figure, Format format) {
  const double w = figure.width, h = figure.height;
  const auto size = [&](double unit) {
    return absl::StrFormat("size %d,%d", std::lround(w * unit), std::lround(h * unit));
  };
  constexpr char kEnd[] = "noenhanced butt background 'white'";
  switch (format) {
    case Format::kSvg:
      return absl::StrCat("svg ", size(72), " font 'Arial,8' ", kEnd);
    case Format::kPdf:
      return absl::StrFormat(
          "pdfcairo size %.6gin,%.6gin font 'Liberation Sans,8' fontscale .75 linewidth 2 "
          "dashlength 1.818 %s",
          w, h, kEnd);
    case Format::kPng:
      return absl::StrCat("pngcairo ", size(192),
                          " font 'Liberation Sans,8' fontscale 2 linewidth 2.6667 pointscale "
                          "2.6667 dashlength 2 ",
                          kEnd);
  }
  return "";
}

// Writes one script, front to back.
class Writer {
 public:
  Writer(const Figure& figure, Format format) : figure_(figure), format_(format) {}

  std::string Write() {
    for (const Panel& panel : figure_.panels) WritePanel(panel);
    WriteFront();
    std::string texts = "set encoding utf8\n$L <<ABLATE_EOD\n";
    for (const std::string& text : texts_) absl::StrAppend(&texts, "|", text, "\n");
    return absl::StrCat(texts, "ABLATE_EOD\nS(i)=$L[i][2:*]\n", data_, "set term ",
                        Terminal(figure_, format_), "\nset multiplot\n", commands_,
                        "unset multiplot\nunset output\n");
  }

 private:
  template <typename... Args>
  void Command(const absl::FormatSpec<Args...>& format, const Args&... args) {
    absl::StrAppendFormat(&commands_, format, args...);
  }

  // The expression that gives `text`.
  std::string Label(const std::string& text) {
    const auto [entry, is_new] = index_.try_emplace(text, texts_.size() + 1);
    if (is_new) texts_.push_back(text::CleanText(text));
    return absl::StrCat("S(", entry->second, ")");
  }

  std::string Font(double size, bool bold) const {
    return absl::StrFormat("font '%s%s,%.4g'",
                           format_ == Format::kSvg ? "Arial" : "Liberation Sans",
                           bold ? ":Bold" : "", size);
  }

  void WriteReset() {
    Command("reset\nset encoding utf8; set datafile commentschars ''; unset key\n");
  }

  void WritePanel(const Panel& panel) {
    WriteReset();
    Command("set lmargin at screen %.6f; set rmargin at screen %.6f\n", panel.left / figure_.width,
            panel.right / figure_.width);
    Command("set bmargin at screen %.6f; set tmargin at screen %.6f\n",
            panel.bottom / figure_.height, panel.top / figure_.height);
    Command("set border %d lw .6 lc %s\n", (panel.x.line ? 1 : 0) + (panel.y.line ? 2 : 0),
            ColorText(kAxisInk));
    Command("set style fill solid 1 noborder\nset tics out nomirror scale .45,.25 %s tc %s\n",
            Font(7, false), ColorText(kInk));
    Command("set xtics offset 0,.35 noenhanced; set ytics offset .55,0 noenhanced\n");
    WriteAxis('x', panel.x);
    WriteAxis('y', panel.y);
    for (const Rule& rule : panel.rules) WriteRule(rule, "back");
    std::vector<std::string> plots;
    for (const Layer& layer : panel.layers) {
      std::visit([&](const auto& one) { AddPlots(one, &plots); }, layer);
    }
    if (plots.empty()) plots.push_back("NaN notitle");
    Command("plot %s\n", absl::StrJoin(plots, ", \\\n  "));
  }

  void WriteAxis(char name, const Axis& axis) {
    Command("set %crange [%.10g:%.10g]\n", name, axis.low, axis.high);
    if (axis.log) Command("set logscale %c\n", name);
    std::vector<std::string> ticks;
    for (const Tick& tick : axis.ticks) {
      // gnuplot takes a tick's label for a format of its number.
      const std::string label = absl::StrReplaceAll(tick.label, {{"%", "%%"}});
      ticks.push_back(absl::StrFormat("%s %.10g", Label(label), tick.at));
    }
    if (ticks.empty()) {
      Command("unset %ctics\n", name);
      return;
    }
    Command("set %ctics (%s)\n", name, absl::StrJoin(ticks, ", "));
    if (axis.grid) {
      Command("set grid %ctics back lt 1 dt solid lw .5 lc %s\n", name, ColorText(kGridInk));
    }
  }

  // Texts and rules are drawn by a last plot that covers the whole figure and is otherwise empty.
  void WriteFront() {
    WriteReset();
    Command("set lmargin at screen 0; set rmargin at screen 1\n");
    Command("set bmargin at screen 0; set tmargin at screen 1\n");
    Command("set xrange [0:1]; set yrange [0:1]; unset border; unset xtics; unset ytics\n");
    for (const Rule& rule : figure_.rules) WriteRule(rule, "front");
    for (const Text& text : figure_.texts) WriteText(text);
    Command("plot NaN notitle\n");
  }

  void WriteRule(const Rule& rule, const char* place) {
    Command("set arrow from screen %.6f,%.6f to screen %.6f,%.6f nohead lw %.4g %s lc %s %s\n",
            rule.x0 / figure_.width, rule.y0 / figure_.height, rule.x1 / figure_.width,
            rule.y1 / figure_.height, rule.width, DashText(rule.dash), ColorText(rule.color),
            place);
  }

  void WriteText(const Text& text) {
    static constexpr std::array<const char*, 3> kAligns = {"left", "center", "right"};
    Command("set label %s at screen %.6f,%.6f %s%s %s tc %s noenhanced front\n", Label(text.text),
            text.x / figure_.width, text.y / figure_.height,
            kAligns[static_cast<size_t>(text.align)], text.upright ? " rotate by 90" : "",
            Font(text.size, text.bold), ColorText(text.color));
  }

  // A block of rows; columns must have one length. An empty line, where a value is NaN, breaks.
  std::string Data(const std::vector<const std::vector<double>*>& columns, size_t first,
                   size_t last) {
    absl::StrAppend(&data_, "$D", ++blocks_, " <<ABLATE_EOD\n");
    for (size_t i = first; i < last; ++i) {
      bool finite = true;
      for (const auto* column : columns) finite = finite && std::isfinite((*column)[i]);
      for (size_t c = 0; finite && c < columns.size(); ++c) {
        if (c > 0) data_.push_back(' ');
        absl::StrAppendFormat(&data_, "%.7g", (*columns[c])[i]);
      }
      data_.push_back('\n');
    }
    data_.append("ABLATE_EOD\n");
    return absl::StrCat("$D", blocks_);
  }

  void AddPlots(const Line& line, std::vector<std::string>* plots) {
    if (line.x.empty()) return;
    plots->push_back(absl::StrFormat("%s u 1:2 w l lw %.4g %s lc %s notitle",
                                     Data({&line.x, &line.y}, 0, line.x.size()), line.width,
                                     DashText(line.dash), ColorText(line.color)));
  }

  // gnuplot would close a band over a gap: each stretch is one of its own.
  void AddPlots(const Band& band, std::vector<std::string>* plots) {
    const auto finite = [&](size_t i) {
      return std::isfinite(band.x[i]) && std::isfinite(band.low[i]) && std::isfinite(band.high[i]);
    };
    for (size_t first = 0; first < band.x.size(); ++first) {
      size_t last = first;
      while (last < band.x.size() && finite(last)) ++last;
      if (last - first >= 2) {
        plots->push_back(absl::StrFormat("%s u 1:2:3 w filledcurves lc %s notitle",
                                         Data({&band.x, &band.low, &band.high}, first, last),
                                         ColorText(band.color)));
      }
      first = last;
    }
  }

  void AddPlots(const Points& points, std::vector<std::string>* plots) {
    if (points.x.empty()) return;
    plots->push_back(absl::StrFormat("%s u 1:2 w p pt %d ps %.4g lw .8 lc %s notitle",
                                     Data({&points.x, &points.y}, 0, points.x.size()),
                                     MarkerNumber(points.marker, points.open), points.size,
                                     ColorText(points.color)));
  }

  void AddPlots(const Strokes& strokes, std::vector<std::string>* plots) {
    if (strokes.x.empty()) return;
    plots->push_back(absl::StrFormat(
        "%s u 1:2:3:4 w vectors nohead lw %.4g dt solid lc %s notitle",
        Data({&strokes.x, &strokes.y, &strokes.dx, &strokes.dy}, 0, strokes.x.size()),
        strokes.width, ColorText(strokes.color)));
  }

  const Figure& figure_;
  const Format format_;
  std::vector<std::string> texts_;       // cleaned, one a line
  std::map<std::string, size_t> index_;  // of each text, from 1
  std::string data_, commands_;
  size_t blocks_ = 0;
};

}  // namespace

std::string GnuplotScript(const Figure& figure, Format format) {
  return Writer(figure, format).Write();
}

namespace {

constexpr absl::string_view kFonts = "'Liberation Sans', Arial, Helvetica, sans-serif";

// The opening tag of the whole: our size, and a picture to screen readers.
std::string OpenSvg(absl::string_view tag, const Figure& figure) {
  const size_t box = tag.find("viewBox=");
  const absl::string_view rest = box == absl::string_view::npos ? ">" : tag.substr(box);
  return absl::StrFormat("<svg role=\"img\" width=\"%.6gin\" height=\"%.6gin\"\n %s", figure.width,
                         figure.height, std::string(rest));
}

std::string FinishTag(absl::string_view tag, const std::string& name) {
  return absl::StrReplaceAll(
      tag, {{"font-family=\"Arial\"", absl::StrCat("font-family=\"", kFonts, "\"")},
            {"font-family=\"Arial:Bold\"",
             absl::StrCat("font-family=\"", kFonts, "\" font-weight=\"bold\"")},
            {" id=\"", absl::StrCat(" id=\"", name, "-")},
            {" id='", absl::StrCat(" id='", name, "-")},
            {"href='#", absl::StrCat("href='#", name, "-")},
            {"url(#", absl::StrCat("url(#", name, "-")}});
}

// Sizes in inches, a font stack, bold as a weight, the figure's title instead of the program's
// name, and ids with the figure's name in front: several figures may stand in one page. Of texts
// only the > that gnuplot leaves is escaped.
std::string FinishSvg(absl::string_view svg, const Figure& figure) {
  std::string out;
  bool titled = false;
  while (!svg.empty()) {
    const size_t open = std::min(svg.find('<'), svg.size());
    // gnuplot leaves > as it is, which is no XML behind ]].
    absl::StrAppend(&out, absl::StrReplaceAll(svg.substr(0, open), {{">", "&gt;"}}));
    svg.remove_prefix(open);
    // Texts are escaped, so that a < begins a tag, and no attribute holds a >.
    const size_t length = std::min(svg.find('>'), svg.size() - 1) + 1;
    if (svg.empty()) break;
    absl::string_view tag = svg.substr(0, length);
    svg.remove_prefix(length);
    const bool title = tag == "<title>";
    if (title || tag == "<desc>") {
      const absl::string_view close = title ? "</title>" : "</desc>";
      const size_t end = svg.find(close);
      if (end != absl::string_view::npos) svg.remove_prefix(end + close.size());
      if (title && !titled) {
        absl::StrAppend(&out, "<title>", text::EscapeMarkup(text::CleanText(figure.title)),
                        "</title>");
        titled = true;
      }
      continue;
    }
    out += absl::StartsWith(tag, "<svg") ? OpenSvg(tag, figure) : FinishTag(tag, figure.name);
  }
  return out;
}

// `pdf` with a fixed creation date: the only bytes that vary.
std::string FinishPdf(std::string pdf) {
  constexpr char kKey[] = "/CreationDate (";
  constexpr absl::string_view kDate = "D:20000101000000Z00'00";
  for (size_t at = pdf.find(kKey); at != std::string::npos; at = pdf.find(kKey, at)) {
    at += sizeof(kKey) - 1;
    const size_t end = pdf.find(')', at);
    for (size_t i = at; i < std::min(end, pdf.size()); ++i) {
      pdf[i] = i - at < kDate.size() ? kDate[i - at] : ' ';
    }
  }
  return pdf;
}

absl::Status NoGnuplot(absl::string_view gnuplot) {
  return absl::FailedPreconditionError(absl::StrCat(
      "figures are drawn by gnuplot, which ",
      gnuplot.empty() ? "the server did not find" : absl::StrCat("is not at ", gnuplot),
      "; install the Debian packages gnuplot-nox and fonts-liberation, or start ablated with "
      "--gnuplot PATH"));
}

}  // namespace

std::string FindProgram(absl::string_view name, absl::string_view search_path) {
  const auto usable = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  if (absl::StrContains(name, '/')) return usable(std::string(name)) ? std::string(name) : "";
  for (const absl::string_view folder : absl::StrSplit(search_path, ':', absl::SkipEmpty())) {
    std::string path = absl::StrCat(folder, "/", name);
    if (usable(path)) return path;
  }
  return "";
}

absl::StatusOr<std::string> Gnuplot::Run(const Figure& figure, Format format,
                                         const ProcessLimits& limits) const {
  if (program_.empty()) return NoGnuplot(program_);
  absl::StatusOr<std::string> drawn =
      RunProcess(program_, {"-d", "-"}, {"LC_ALL=C.UTF-8"}, GnuplotScript(figure, format), limits);
  if (absl::IsNotFound(drawn.status())) return NoGnuplot(program_);
  if (drawn.ok() && drawn->empty()) {
    return absl::InternalError(absl::StrCat(program_, " drew nothing, without an error"));
  }
  return drawn;
}

absl::Status Gnuplot::CheckFonts(const ProcessLimits& limits) {
  if (has_fonts_) return absl::OkStatus();
  Figure figure;
  figure.texts.push_back({1, 1, "text", 8, {}});
  const absl::StatusOr<std::string> pdf = Run(figure, Format::kPdf, limits);
  if (!pdf.ok()) return pdf.status();
  if (!absl::StrContains(*pdf, "/BaseFont")) {
    return absl::FailedPreconditionError(
        "figures need a font, and gnuplot finds none; install the Debian package fonts-liberation");
  }
  has_fonts_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Gnuplot::Render(const Figure& figure, Format format,
                                            const ProcessLimits& limits) {
  if (const absl::Status fonts = CheckFonts(limits); !fonts.ok()) return fonts;
  absl::StatusOr<std::string> drawn = Run(figure, format, limits);
  if (!drawn.ok()) return drawn.status();
  if (format == Format::kSvg) return FinishSvg(*drawn, figure);
  if (format == Format::kPdf) return FinishPdf(*std::move(drawn));
  return drawn;
}

absl::string_view MediaType(Format format) {
  static constexpr std::array<absl::string_view, 3> kTypes = {"image/svg+xml", "application/pdf",
                                                              "image/png"};
  return kTypes[static_cast<size_t>(format)];
}

}  // namespace ablate::figure
