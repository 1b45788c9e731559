// How wide texts are, and the places that figures share: texts cut to fit, titles of axes, labels
// at the ends of lines, footnotes. Pure functions.
#ifndef ABLATE_SERVER_REPORT_FIGURE_LAYOUT_H_
#define ABLATE_SERVER_REPORT_FIGURE_LAYOUT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/report/figure/figure.h"
#include "server/report/figure/style.h"

namespace ablate::figure {

// Widths are Helvetica's, which Arial and Liberation Sans share; in inches.

inline constexpr double kPoint = 1.0 / 72;  // inches

double TextWidth(absl::string_view text, double size, bool bold = false);

// `text` cleaned, and with an ellipsis in its middle if it is wider than `max_width`.
std::string ElideMiddle(absl::string_view text, double max_width, double size, bool bold = false);

// `text` in lines of at most `max_width`, broken at spaces; at most `lines`, the last one elided.
std::vector<std::string> Wrap(absl::string_view text, double max_width, double size, size_t lines);

// Inches.
inline constexpr double kColumnWidth = 3.25, kDoubleWidth = 6.75;
inline constexpr double kEdge = 0.06;    // around everything
inline constexpr double kLeft = 0.52;    // of an axis with numbers and a title
inline constexpr double kBottom = 0.42;  // of an axis with numbers and a title
inline constexpr double kFootnoteLine = 0.115;
inline constexpr double kTitleLine = 0.2;  // of a panel's title
// Points.
inline constexpr double kTitleSize = 8, kLabelSize = 7, kSmallSize = 6;

// The inch at which a value of an axis stands.
double XInches(const Panel& panel, double value);
double YInches(const Panel& panel, double value);

// Positions as near as can be to the wanted ones, in their order of height, at least `gap` apart
// and within [low, high] as far as that has room.
std::vector<double> PushApart(const std::vector<double>& wanted, double gap, double low,
                              double high);

struct EndLabel {
  std::string text;
  double x = 0, y = 0;  // where the line ends, in the panel's data
  Color line, color;
  Dash dash{};  // of the leader: not solid where it says what the colour does not
};

// Room that the labels need at the right of a panel in a figure of that width.
double EndLabelRoom(const std::vector<std::string>& labels, double figure_width);

// Writes labels at the right of the panel, pushed apart, each with a leader to its line's end.
void AddEndLabels(const Panel& panel, const std::vector<EndLabel>& labels, double room,
                  Figure* figure);

// Titles of axes, centred under and beside an area, at a height and at a distance from the left.
void AddXTitle(double left, double right, double y, const std::string& title, Figure* figure);
void AddYTitle(double x, double bottom, double top, const std::string& title, Figure* figure);

// Bold, above the panel, with a remark in grey behind it.
void AddPanelTitle(double left, double right, double top, const std::string& title,
                   const std::string& remark, Figure* figure);

// Lines that the footnote takes in a figure of that width, and their writing at the bottom.
std::vector<std::string> FootnoteLines(const std::string& footnote, double figure_width);
void AddFootnote(const std::vector<std::string>& lines, Figure* figure);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_LAYOUT_H_
