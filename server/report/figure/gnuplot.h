// Figures drawn by gnuplot.
#ifndef ABLATE_SERVER_REPORT_FIGURE_GNUPLOT_H_
#define ABLATE_SERVER_REPORT_FIGURE_GNUPLOT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/report/figure/description.h"
#include "server/report/figure/process.h"
#include "server/report/figure/script.h"

namespace ablate::figure {

// The program called `name` on `search_path` (folders with colons between them, as in PATH);
// a name with a slash is itself. Empty if there is none.
std::string FindProgram(absl::string_view name, absl::string_view search_path);

// The picture's bytes: the same figure gives the same. FAILED_PRECONDITION, naming what to install,
// if `gnuplot` (a path) is empty or can't be started; else errors as RunProcess. Blocks some tenths
// of a second; thread-safe.
absl::StatusOr<std::string> Render(const Figure& figure, Format format, const std::string& gnuplot,
                                   const ProcessLimits& limits = {});

// "image/svg+xml", "application/pdf", "image/png".
absl::string_view MediaType(Format format);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_GNUPLOT_H_
