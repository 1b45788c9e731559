// A figure as SVG.
#ifndef ABLATE_SERVER_REPORT_FIGURE_SVG_H_
#define ABLATE_SERVER_REPORT_FIGURE_SVG_H_

#include <string>

#include "server/report/figure/figure.h"

namespace ablate::figure {

// One <svg> element in UTF-8, without a declaration, so that it can stand in a page as it is: its
// ids begin with the figure's name, and title and description are what a screen reader reads. One
// unit is a point. Texts are data, whatever bytes they have; the same figure gives the same bytes.
// Pure, safe from any thread.
std::string Svg(const Figure& figure);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_SVG_H_
