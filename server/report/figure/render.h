// A figure as a file's bytes: our SVG, and the PDF and PNG that librsvg makes of it.
#ifndef ABLATE_SERVER_REPORT_FIGURE_RENDER_H_
#define ABLATE_SERVER_REPORT_FIGURE_RENDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

enum class Format { kSvg, kPdf, kPng };

// "image/svg+xml", "application/pdf", "image/png".
absl::string_view MediaType(Format format);

// The same figure gives the same bytes; the three formats are one picture. A PNG has 192 pixels to
// the inch. An SVG takes its fonts where it is shown; for the other two FAILED_PRECONDITION, naming
// what to install, where this machine has no font. Some milliseconds; thread-safe.
absl::StatusOr<std::string> Render(const Figure& figure, Format format);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_RENDER_H_
