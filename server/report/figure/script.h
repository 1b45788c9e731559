// A figure as a script for gnuplot.
#ifndef ABLATE_SERVER_REPORT_FIGURE_SCRIPT_H_
#define ABLATE_SERVER_REPORT_FIGURE_SCRIPT_H_

#include <string>

#include "server/report/figure/description.h"

namespace ablate::figure {

enum class Format { kSvg, kPdf, kPng };

// Commands hold only numbers and indices: every text stands in one data block, on a line that
// begins with "|", where gnuplot reads nothing into it. The picture goes to stdout.
std::string GnuplotScript(const Figure& figure, Format format);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_SCRIPT_H_
