// What gnuplot's SVG needs before it can stand in a page.
#ifndef ABLATE_SERVER_REPORT_FIGURE_SVG_H_
#define ABLATE_SERVER_REPORT_FIGURE_SVG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "server/report/figure/description.h"

namespace ablate::figure {

// Sizes in inches, a font stack, bold as a weight, the figure's title instead of the program's
// name, and ids with the figure's name in front: several figures may stand in one page. Of texts
// only the > that gnuplot leaves is escaped.
std::string FinishSvg(absl::string_view svg, const Figure& figure);

// `pdf` with a fixed creation date: the only bytes that vary.
std::string FinishPdf(std::string pdf);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_SVG_H_
