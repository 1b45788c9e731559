#include "client/web/drawings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/output/format.h"

namespace ablate::web {
namespace {

constexpr double kLeft = 70, kRight = 790, kTop = 14, kBottom = 330;

// The values of a column, and where they are drawn between two places.
struct Scale {
  Scale(const std::vector<DrawnRow>& rows, size_t column, double start, double stop)
      : from(start), to(stop) {
    for (const DrawnRow& row : rows) {
      if (!std::isfinite(row.values[column])) continue;
      low = std::min(low, row.values[column]);
      high = std::max(high, row.values[column]);
    }
  }
  bool empty() const { return low > high; }
  double At(double value) const {
    return high > low ? from + (to - from) * (value - low) / (high - low) : (from + to) / 2;
  }

  double from, to;
  double low = std::numeric_limits<double>::infinity(), high = -low;
};

std::string Place(double value) { return absl::StrFormat("%.1f", value); }

void Label(double x, double y, const char* anchor, absl::string_view text, html::Markup* out) {
  out->Element("text", {{"x", Place(x)}, {"y", Place(y)}, {"text-anchor", anchor}}, text);
}

void Axis(double x1, double y1, double x2, double y2, html::Markup* out) {
  out->Open("line", {{"class", "axis"},
                     {"x1", Place(x1)},
                     {"y1", Place(y1)},
                     {"x2", Place(x2)},
                     {"y2", Place(y2)}})
      .Close();
}

void Begin(absl::string_view title, html::Markup* out) {
  out->Open("svg", {{"class", "drawing"}, {"viewBox", "0 0 800 370"}, {"role", "img"}});
  out->Element("title", absl::StrCat(title, "; the table below has the same numbers"));
}

}  // namespace

html::Html Scatter(const std::string& x, const std::string& y, const std::vector<DrawnRow>& rows) {
  const Scale across(rows, 0, kLeft, kRight), up(rows, 1, kBottom, kTop);
  if (across.empty() || up.empty()) return {};
  html::Markup out;
  Begin(absl::StrCat(y, " over ", x), &out);
  Axis(kLeft, kBottom, kRight, kBottom, &out);
  Axis(kLeft, kBottom, kLeft, kTop, &out);
  Label(kLeft, kBottom + 16, "start", client::Short(across.low), &out);
  Label(kRight, kBottom + 16, "end", client::Short(across.high), &out);
  Label((kLeft + kRight) / 2, kBottom + 32, "middle", x, &out);
  Label(kLeft - 6, kBottom, "end", client::Short(up.low), &out);
  Label(kLeft - 6, kTop + 8, "end", client::Short(up.high), &out);
  Label(kLeft + 6, kTop, "start", y, &out);
  for (const DrawnRow& row : rows) {
    if (!std::isfinite(row.values[0]) || !std::isfinite(row.values[1])) continue;
    out.Open("a", {{"href", row.link}});
    out.Open(
        "circle",
        {{"cx", Place(across.At(row.values[0]))}, {"cy", Place(up.At(row.values[1]))}, {"r", "4"}});
    out.Element("title", absl::StrCat(row.name, ": ", client::Short(row.values[0]), ", ",
                                      client::Short(row.values[1])));
    out.Close().Close();
  }
  out.Close();
  return out.TakeHtml();
}

html::Html ParallelAxes(const std::vector<std::string>& columns,
                        const std::vector<DrawnRow>& rows) {
  std::vector<Scale> scales;
  for (size_t i = 0; i < columns.size(); ++i) scales.emplace_back(rows, i, kBottom, kTop + 20);
  const auto x = [&](size_t i) {
    return kLeft + (kRight - 60 - kLeft) * i / (columns.size() - 1.0);
  };
  html::Markup out;
  Begin("Parallel axes", &out);
  for (size_t i = 0; i < columns.size(); ++i) {
    Axis(x(i), kBottom, x(i), kTop + 20, &out);
    Label(x(i), kTop + (i % 2 == 0 ? 0 : 12), "middle", columns[i], &out);
    Label(x(i), kBottom + 16, "middle", client::Short(scales[i].low), &out);
    Label(x(i) + 4, kTop + 28, "start", client::Short(scales[i].high), &out);
  }
  for (const DrawnRow& row : rows) {
    std::string points;
    for (size_t i = 0; i < columns.size(); ++i) {
      const double value = row.values[i];
      if (!std::isfinite(value)) continue;
      absl::StrAppend(&points, Place(x(i)), ",", Place(scales[i].At(value)), " ");
    }
    out.Open("a", {{"href", row.link}}).Open("polyline", {{"points", points}});
    out.Element("title", row.name).Close().Close();
  }
  out.Close();
  return out.TakeHtml();
}

}  // namespace ablate::web
