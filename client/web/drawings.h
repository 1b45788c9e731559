// Draws columns of tables as SVG. Every mark links to its row and is titled.
#ifndef ABLATE_CLIENT_WEB_DRAWINGS_H_
#define ABLATE_CLIENT_WEB_DRAWINGS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/markup.h"

namespace ablate::web {

// A row of a table: its numbers, NaN for those that it lacks.
struct DrawnRow {
  std::string name, link;
  std::vector<double> values;
};

// Draws the second value over the first. Rows without both are left out. Each column has a number.
html::Html Scatter(const std::string& x, const std::string& y, const std::vector<DrawnRow>& rows);

// Draws a line per row through parallel axes, one per column; at least two.
html::Html ParallelAxes(const std::vector<std::string>& columns, const std::vector<DrawnRow>& rows);

}  // namespace ablate::web

#endif  // ABLATE_CLIENT_WEB_DRAWINGS_H_
