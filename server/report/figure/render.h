// A figure as our SVG, and as a file's bytes: that, or the PDF and PNG that librsvg makes of it.
#ifndef ABLATE_SERVER_REPORT_FIGURE_RENDER_H_
#define ABLATE_SERVER_REPORT_FIGURE_RENDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/report/figure/figure.h"

namespace ablate::figure {

// One <svg> element in UTF-8, without a declaration, so that it can stand in a page as it is: its
// ids begin with the figure's name, and title and description are what a screen reader reads. One
// unit is a point. Texts are data, whatever bytes they have; the same figure gives the same bytes.
// Pure, safe from any thread.
std::string Svg(const Figure& figure);

enum class Format { kSvg, kPdf, kPng };

// "image/svg+xml", "application/pdf", "image/png".
absl::string_view MediaType(Format format);

// The same figure gives the same bytes; the three formats are one picture. A PNG has 192 pixels to
// the inch. An SVG takes its fonts where it is shown; for the other two FAILED_PRECONDITION, naming
// what to install, where this machine has no font. Some milliseconds; thread-safe.
absl::StatusOr<std::string> Render(const Figure& figure, Format format);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_RENDER_H_
