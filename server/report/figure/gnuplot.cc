// Figures drawn by gnuplot.
#include "server/report/figure/gnuplot.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/report/figure/svg.h"

namespace ablate::figure {
namespace {

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
