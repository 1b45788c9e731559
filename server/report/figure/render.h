// Renders a figure as our SVG, or as the PDF and PNG that librsvg makes of it.
#ifndef ABLATE_SERVER_REPORT_FIGURE_RENDER_H_
#define ABLATE_SERVER_REPORT_FIGURE_RENDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// Returns one <svg> element in UTF-8, without a declaration, for use in a page: its ids begin with
// the figure's name, and screen readers read title and description. One unit is a point. Texts are
// data, whatever bytes they have; equal figures give equal bytes. Pure, safe from any thread.
std::string Svg(const Figure& figure);

enum class Format { kSvg, kPdf, kPng };

// Returns "image/svg+xml", "application/pdf", "image/png".
absl::string_view MediaType(Format format);

// Renders a file. Equal figures give equal bytes; the three formats are one picture. A PNG has 192
// pixels per inch. An SVG uses the viewer's fonts; for the other two FAILED_PRECONDITION, naming
// the package to install, if this machine has no font. Takes some milliseconds; thread-safe.
absl::StatusOr<std::string> Render(const Figure& figure, Format format);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_RENDER_H_
