// Widths of texts, and layout that figures share: texts cut to fit, titles of axes, labels at the
// ends of lines, footnotes. Pure functions.
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

// Returns `text` cleaned, with an ellipsis in its middle if it is wider than `max_width`.
std::string ElideMiddle(absl::string_view text, double max_width, double size, bool bold = false);

// Breaks `text` at spaces into at most `lines` lines of at most `max_width`; the last one is
// elided.
std::vector<std::string> Wrap(absl::string_view text, double max_width, double size, size_t lines);

// Returns the lines of a setting's name, at most `most` (1 or 2). A name wider than `max_width` is
// broken after one of its commas. A line that is still too wide is elided.
std::vector<std::string> NameLines(absl::string_view name, double max_width, double size,
                                   size_t most = 2, bool bold = false);

// Inches.
inline constexpr double kColumnWidth = 3.25, kDoubleWidth = 6.75;
inline constexpr double kEdge = 0.06;    // margin around everything
inline constexpr double kLeft = 0.52;    // for an axis with usual numbers and a title; see LeftRoom
inline constexpr double kBottom = 0.42;  // for an axis with numbers and a title
inline constexpr double kFootnoteLine = 0.115;
inline constexpr double kTitleLine = 0.2;  // for a panel's title
// Points.
inline constexpr double kTitleSize = 8, kLabelSize = 7, kSmallSize = 6;
inline constexpr double kLineHeight = 1.12;  // fraction of a text's size: nearer lines would touch
inline constexpr double kYNumbers = 4.4;     // from an axis to the end of its numbers
inline constexpr double kXNumbers = 7.7;     // from an axis to the middle of its numbers

// Returns the room at the left of a panel for the axis's numbers and a title: at least kLeft.
double LeftRoom(const Axis& y);

// Return the position in inches of a value on an axis.
double XInches(const Panel& panel, double value);
double YInches(const Panel& panel, double value);

// Returns positions as near as possible to the wanted ones, in their order of height, at least
// `gap` apart, and within [low, high] if there is room.
std::vector<double> PushApart(const std::vector<double>& wanted, double gap, double low,
                              double high);

struct EndLabel {
  std::string text;
  double x = 0, y = 0;  // end of the line, in the panel's data coordinates
  Color line, color;
  Dash dash{};  // of the leader: not solid if it distinguishes lines of one colour
};

// Returns the room that the labels need at the right of a panel in a figure of that width.
double EndLabelRoom(const std::vector<std::string>& labels, double figure_width);

// Adds labels at the right of the panel, pushed apart, each with a leader to its line's end. Long
// names have two lines.
void AddEndLabels(const Panel& panel, const std::vector<EndLabel>& labels, double room,
                  Figure* figure);

// Add titles of axes: centred below an area, at a height, and centred at the figure's left edge.
void AddXTitle(double left, double right, double y, const std::string& title, Figure* figure);
void AddYTitle(double bottom, double top, const std::string& title, Figure* figure);

// Adds a bold title above the panel, followed by a remark in grey.
void AddPanelTitle(double left, double right, double top, const std::string& title,
                   const std::string& remark, Figure* figure);

// Return the footnote's lines in a figure of that width, and add them at the bottom.
std::vector<std::string> FootnoteLines(const std::string& footnote, double figure_width);
void AddFootnote(const std::vector<std::string>& lines, Figure* figure);

}  // namespace ablate::figure

#endif  // ABLATE_SERVER_REPORT_FIGURE_LAYOUT_H_
