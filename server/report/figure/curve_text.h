// The words and the CSV of figures with curves.
#ifndef ABLATE_SERVER_REPORT_FIGURE_CURVE_TEXT_H_
#define ABLATE_SERVER_REPORT_FIGURE_CURVE_TEXT_H_

#include <string>
#include <vector>

#include "server/report/figure/curve_panels.h"
#include "server/report/figure/input.h"

namespace ablate::figure {

// "20-step average"; empty where nothing was averaged.
std::string SmoothingText(const Input& input, size_t track);

// What the colours of small multiples mean.
std::string MultiplesText(const report::Comparison& comparison);

// What is drawn: means of how many seeds, the average (unless it is said in the panels), the band,
// who diverged; with `multiples`, what the colours mean.
std::string CurveFootnote(const Input& input, bool average_in_titles, bool multiples);

std::string CurveTitle(const Input& input);

// panel,setting,seed,step,value,low,high: means without a seed, seeds' lines without an interval;
// thinned as drawn.
std::string CurveCsv(const Input& input, const std::vector<CurvePanel>& panels);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_CURVE_TEXT_H_
