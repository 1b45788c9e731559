// How wide texts are, and texts cut to fit. Widths are Helvetica's, which Arial and Liberation Sans
// share; in inches.
#ifndef ABLATE_SERVER_REPORT_FIGURE_MEASURE_H_
#define ABLATE_SERVER_REPORT_FIGURE_MEASURE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ablate::figure {

inline constexpr double kPoint = 1.0 / 72;  // inches

double TextWidth(absl::string_view text, double size, bool bold = false);

// `text` cleaned, and with an ellipsis in its middle if it is wider than `most`.
std::string ElideMiddle(absl::string_view text, double most, double size, bool bold = false);

// `text` in lines of at most `most`, broken at spaces; at most `lines`, the last one elided.
std::vector<std::string> Wrap(absl::string_view text, double most, double size, size_t lines);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_MEASURE_H_
