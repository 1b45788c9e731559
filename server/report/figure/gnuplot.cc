// Figures drawn by gnuplot.
#include "server/report/figure/gnuplot.h"

#include <unistd.h>

#include <array>
#include <utility>

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

absl::StatusOr<std::string> Render(const Figure& figure, Format format, const std::string& gnuplot,
                                   const ProcessLimits& limits) {
  if (gnuplot.empty()) return NoGnuplot(gnuplot);
  absl::StatusOr<std::string> drawn =
      RunProcess(gnuplot, {"-d", "-"}, {"LC_ALL=C.UTF-8"}, GnuplotScript(figure, format), limits);
  if (absl::IsNotFound(drawn.status())) return NoGnuplot(gnuplot);
  if (!drawn.ok()) return drawn.status();
  if (drawn->empty()) {
    return absl::InternalError(absl::StrCat(gnuplot, " drew nothing, without an error"));
  }
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
