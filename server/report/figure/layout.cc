#include "server/report/figure/layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/clean.h"

namespace ablate::figure {
namespace {

// Thousandths of the size, for U+0020 to U+007E.
constexpr std::array<uint16_t, 95> kWidths = {
    278,  278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,  //
    556,  556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,  //
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,  //
    667,  778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,  //
    333,  556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,  //
    556,  556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584};

constexpr double kBold = 1.07;  // on average

// Inches from the figure's left to the middle of a y axis's title.
constexpr double kYTitleMiddle = 0.12;

double CharacterWidth(char32_t code) {
  if (code >= 0x20 && code < 0x20 + kWidths.size()) return kWidths[code - 0x20];
  if (code == U'−' || code == U'±' || code == U'×') return 584;
  if (code == U'…' || code == 0xFFFD || code >= 0x1100) return 1000;  // wide scripts, and arrows
  return code < 0x0250 ? 556 : 722;
}

// Returns the first or last `count` characters.
std::string Part(const std::vector<std::string>& characters, size_t first, size_t count) {
  return absl::StrJoin(absl::MakeConstSpan(characters).subspan(first, count), "");
}

}  // namespace

double TextWidth(absl::string_view text, double size, bool bold) {
  double width = 0;
  while (!text.empty()) width += CharacterWidth(text::TakeCharacter(&text));
  return width / 1000 * size * kPoint * (bold ? kBold : 1);
}

double LeftRoom(const Axis& y) {
  constexpr double kTitle = kYTitleMiddle + 0.08;  // with its descenders and a gap
  double widest = 0;
  for (const Tick& tick : y.ticks) widest = std::max(widest, TextWidth(tick.label, kLabelSize));
  return std::max(kLeft, kTitle + widest + kYNumbers * kPoint);
}

std::string ElideMiddle(absl::string_view text, double max_width, double size, bool bold) {
  const std::string clean = text::CleanText(text);
  if (TextWidth(clean, size, bold) <= max_width) return clean;
  std::vector<std::string> characters;
  for (absl::string_view rest = clean; !rest.empty();) {
    const absl::string_view before = rest;
    text::TakeCharacter(&rest);
    characters.emplace_back(before.substr(0, before.size() - rest.size()));
  }
  for (size_t kept = characters.size() - 1; kept > 1; --kept) {
    const size_t front = (kept + 1) / 2, back = kept - front;
    std::string elided = absl::StrCat(Part(characters, 0, front), "…",
                                      Part(characters, characters.size() - back, back));
    if (TextWidth(elided, size, bold) <= max_width) return elided;
  }
  return "…";
}

std::vector<std::string> Wrap(absl::string_view text, double max_width, double size, size_t lines) {
  std::vector<std::string> wrapped;
  std::string line;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::string longer = line.empty() ? std::string(word) : absl::StrCat(line, " ", word);
    const bool fits = line.empty() || TextWidth(longer, size) <= max_width;
    if (fits || wrapped.size() + 1 == lines) {
      line = longer;
    } else {
      wrapped.push_back(line);
      line = std::string(word);
    }
  }
  if (!line.empty()) wrapped.push_back(line);
  for (std::string& one : wrapped) one = ElideMiddle(one, max_width, size);
  return wrapped;
}

std::vector<std::string> NameLines(absl::string_view name, double max_width, double size,
                                   size_t most, bool bold) {
  const std::string clean = text::CleanText(name);
  const auto width = [size, bold](absl::string_view line) { return TextWidth(line, size, bold); };
  std::pair<absl::string_view, absl::string_view> best;
  for (size_t comma = clean.find(", "); comma != std::string::npos;
       comma = clean.find(", ", comma + 1)) {
    const absl::string_view whole = clean;
    const std::pair parts = {whole.substr(0, comma + 1), whole.substr(comma + 2)};
    const auto widest = [&width](const auto& lines) {
      return std::max(width(lines.first), width(lines.second));
    };
    if (best.first.empty() || widest(parts) < widest(best)) best = parts;
  }
  if (most < 2 || width(clean) <= max_width || best.first.empty()) {
    return {ElideMiddle(clean, max_width, size, bold)};
  }
  return {ElideMiddle(best.first, max_width, size, bold),
          ElideMiddle(best.second, max_width, size, bold)};
}

namespace {

constexpr double kLeader = 0.11;       // from the panel to a label
constexpr double kDashedLeader = 0.9;  // points, for a leader whose dash must be visible

double Share(const Axis& axis, double value) {
  if (!axis.log) return (value - axis.low) / (axis.high - axis.low);
  return std::log(value / axis.low) / std::log(axis.high / axis.low);
}

// Adjacent labels, the gap apart.
struct Cluster {
  double center = 0;
  size_t count = 0;
};

double Clamp(double center, double half, double low, double high) {
  return std::max(std::min(center, high - half), std::min(low + half, (low + high) / 2));
}

}  // namespace

double XInches(const Panel& panel, double value) {
  return panel.left + Share(panel.x, value) * (panel.right - panel.left);
}

double YInches(const Panel& panel, double value) {
  return panel.bottom + Share(panel.y, value) * (panel.top - panel.bottom);
}

std::vector<double> PushApart(const std::vector<double>& wanted, double gap, double low,
                              double high) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  std::vector<Cluster> clusters;
  const auto half = [&](const Cluster& c) { return (static_cast<double>(c.count) - 1) / 2 * gap; };
  for (const size_t i : order) {
    clusters.push_back({Clamp(wanted[i], 0, low, high), 1});
    while (clusters.size() > 1) {
      const Cluster above = clusters.back();
      Cluster& below = clusters[clusters.size() - 2];
      if (above.center - half(above) >= below.center + half(below) + gap) break;
      const auto all = static_cast<double>(above.count + below.count);
      below.center = (below.center * static_cast<double>(below.count) +
                      above.center * static_cast<double>(above.count)) /
                     all;
      below.count += above.count;
      below.center = Clamp(below.center, half(below), low, high);
      clusters.pop_back();
    }
  }
  std::vector<double> places(wanted.size());
  size_t next = 0;
  for (const Cluster& cluster : clusters) {
    for (size_t k = 0; k < cluster.count; ++k, ++next) {
      places[order[next]] = cluster.center - half(cluster) + static_cast<double>(k) * gap;
    }
  }
  return places;
}

double EndLabelRoom(const std::vector<std::string>& labels, double figure_width) {
  const double most = figure_width * 0.27;
  double widest = 0;
  for (const std::string& label : labels) {
    for (const std::string& line : NameLines(label, most - kLeader - kEdge, kLabelSize)) {
      widest = std::max(widest, TextWidth(line, kLabelSize));
    }
  }
  return std::clamp(widest + kLeader + kEdge, 0.3, most);
}

void AddEndLabels(const Panel& panel, const std::vector<EndLabel>& labels, double room,
                  Figure* figure) {
  std::vector<double> wanted;
  for (const EndLabel& label : labels) {
    // A value without a position, as below 0 on a logarithmic axis, has its label at the bottom.
    if (const double y = YInches(panel, label.y); std::isnan(y)) {
      wanted.push_back(panel.bottom);
      continue;
    }
    wanted.push_back(std::clamp(YInches(panel, label.y), panel.bottom, panel.top));
  }
  const double line = kLineHeight * kLabelSize * kPoint;
  std::vector<std::vector<std::string>> texts;
  size_t most = 1;  // lines of a label
  for (const EndLabel& label : labels) {
    texts.push_back(NameLines(label.text, room - kLeader - kEdge / 2, kLabelSize));
    most = std::max(most, texts.back().size());
  }
  // Labels of several lines are further apart than their lines.
  const double gap = line * (static_cast<double>(most) + (most > 1 ? 0.3 : 0));
  const std::vector<double> places = PushApart(wanted, gap, panel.bottom, panel.top + line / 2);
  for (size_t i = 0; i < labels.size(); ++i) {
    const double end = XInches(panel, labels[i].x);
    if (end < panel.right - 0.08) {
      figure->rules.push_back(
          {end + 0.06, wanted[i], panel.right, wanted[i], labels[i].line, 0.4, {0.6, 0.6}});
    }
    Rule leader{panel.right + 0.02, wanted[i], panel.right + kLeader - 0.025, places[i],
                labels[i].line};
    leader.dash = labels[i].dash;
    if (!leader.dash.empty()) leader.width = kDashedLeader;
    figure->rules.push_back(std::move(leader));
    double y = places[i] + line * (static_cast<double>(texts[i].size()) - 1) / 2;
    for (const std::string& text : texts[i]) {
      figure->texts.push_back({panel.right + kLeader, y, text, kLabelSize, labels[i].color});
      y -= line;
    }
  }
}

void AddXTitle(double left, double right, double y, const std::string& title, Figure* figure) {
  const double max_width = figure->width - 2 * kEdge;
  const std::string text = ElideMiddle(title, max_width, kTitleSize);
  const double half = TextWidth(text, kTitleSize) / 2;
  const double center = std::clamp((left + right) / 2, kEdge + half,
                                   std::max(kEdge + half, figure->width - kEdge - half));
  figure->texts.push_back({center, y, text, kTitleSize, kInk, Align::kCenter});
}

void AddYTitle(double bottom, double top, const std::string& title, Figure* figure) {
  const std::string text = ElideMiddle(title, figure->height - 2 * kEdge, kTitleSize);
  const double half = TextWidth(text, kTitleSize) / 2;
  const double center = std::clamp((bottom + top) / 2, kEdge + half,
                                   std::max(kEdge + half, figure->height - kEdge - half));
  figure->texts.push_back(
      {kYTitleMiddle, center, text, kTitleSize, kInk, Align::kCenter, false, true});
}

void AddPanelTitle(double left, double right, double top, const std::string& title,
                   const std::string& remark, Figure* figure) {
  const double y = top + 0.1;
  const std::string text = ElideMiddle(title, right - left, kTitleSize, true);
  figure->texts.push_back({left, y, text, kTitleSize, kInk, Align::kLeft, true});
  const double behind = left + TextWidth(text, kTitleSize, true) + 0.08;
  const std::string rest = ElideMiddle(remark, right - behind, kSmallSize);
  if (right > behind && rest.size() > 3) {
    figure->texts.push_back({behind, y - 0.005, rest, kSmallSize, kSecondary});
  }
}

std::vector<std::string> FootnoteLines(const std::string& footnote, double figure_width) {
  constexpr size_t kMostLines = 12;
  return Wrap(footnote, figure_width - 2 * kEdge, kSmallSize, kMostLines);
}

void AddFootnote(const std::vector<std::string>& lines, Figure* figure) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const double y = kEdge + kFootnoteLine * static_cast<double>(lines.size() - 1 - i);
    figure->texts.push_back({kEdge, y, lines[i], kSmallSize, kSecondary});
  }
}

}  // namespace ablate::figure
