// Numbers beside the rows of a dot figure.
#ifndef ABLATE_SERVER_REPORT_FIGURE_DOT_TEXT_H_
#define ABLATE_SERVER_REPORT_FIGURE_DOT_TEXT_H_

#include <string>

#include "server/report/number.h"

namespace ablate::figure {

// "+0.031 [+0.024, +0.038]", with `sign` for differences; "−0.021, no interval"; why there is none.
std::string ValueText(const report::Number& mean, const report::Interval& interval, bool sign);

// "+0.031 ± 0.007" for a narrow figure.
std::string ShortValueText(const report::Number& mean, const report::Interval& interval, bool sign);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_DOT_TEXT_H_
