// Figures drawn by gnuplot: the only file that knows it.
#ifndef ABLATE_SERVER_REPORT_FIGURE_GNUPLOT_H_
#define ABLATE_SERVER_REPORT_FIGURE_GNUPLOT_H_

#include <atomic>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/process.h"

namespace ablate::figure {

enum class Format { kSvg, kPdf, kPng };

// Commands hold only numbers and indices: every text stands in one data block, on a line that
// begins with "|", where gnuplot reads nothing into it. The picture goes to stdout.
std::string GnuplotScript(const Figure& figure, Format format);

// The program called `name` on `search_path` (folders with colons between them, as in PATH);
// a name with a slash is itself. Empty if there is none.
std::string FindProgram(absl::string_view name, absl::string_view search_path);

// Thread-safe.
class Gnuplot {
 public:
  // `program` is a path, empty if there is none.
  explicit Gnuplot(std::string program) : program_(std::move(program)) {}

  // The picture's bytes: the same figure gives the same. FAILED_PRECONDITION, naming what to
  // install, without a program or a font; else errors as RunProcess. Blocks some tenths of a
  // second.
  absl::StatusOr<std::string> Render(const Figure& figure, Format format,
                                     const ProcessLimits& limits = {});

 private:
  absl::StatusOr<std::string> Run(const Figure& figure, Format format,
                                  const ProcessLimits& limits) const;
  // Without any font gnuplot draws no text and reports no error: a PDF shows it.
  absl::Status CheckFonts(const ProcessLimits& limits);

  const std::string program_;
  std::atomic<bool> has_fonts_{false};  // once seen; they are not looked for again
};

// "image/svg+xml", "application/pdf", "image/png".
absl::string_view MediaType(Format format);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_GNUPLOT_H_
