#include "server/report/figure/style.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/palette.h"

namespace ablate::figure {

Style StyleOf(size_t index) {
  static const std::vector<Style> kStyles = {
      {{palette::kHues[0]}, {0x222222}, {}, Marker::kCircle},
      {{palette::kHues[1]}, {0x0072B2}, {7.2, 1.8}, Marker::kSquare},
      {{palette::kHues[2]}, {0xC25600}, {2.4, 1.2}, Marker::kTriangle},
      {{palette::kHues[3]}, {0x008662}, {7.2, 1.5, 1.2, 1.5}, Marker::kDiamond},
      {{palette::kHues[4]}, {0xA36186}, {1.2, 1}, Marker::kTriangleDown},
      {{palette::kHues[5]}, {0x9C6C00}, {10.8, 1.8}, Marker::kCircle},
      {{palette::kHues[6]}, {0x3B7CA1}, {3.6, 1.2, 1.2, 1.2, 1.2, 1.2}, Marker::kSquare},
  };
  // Dashes for crossed axes: first those visible in the short leader of a label.
  static constexpr std::array<size_t, kHues> kDashes = {0, 2, 4, 6, 3, 1, 5};
  Style style = kStyles[index % kHues];
  if (index >= kHues) style.dash = kStyles[kDashes[(index / kHues - 1) % kHues]].dash;
  return style;
}

size_t CrossedStyle(size_t hue, size_t dash) {
  return hue == 0 && dash == 0 ? 0 : kHues * (dash + 1) + hue;
}

bool IsCrossedStyle(size_t index) { return index > kPlainStyle; }

Dash LeaderDash(size_t index) { return IsCrossedStyle(index) ? StyleOf(index).dash : Dash(); }

namespace {

constexpr Color kDarkPaper{palette::kDarkPaper}, kDarkInk{palette::kDarkInk};

Color Mixed(Color from, Color to, double share) {
  return {palette::Mixed(from.rgb, to.rgb, share)};
}

}  // namespace

Color Tint(Color color) { return Mixed({color.rgb}, kWhite, 0.45); }

std::vector<DarkColor> DarkPalette() {
  // Texts are lighter than lines: 4.5 to 1 on the dark paper, lines 3 to 1.
  constexpr double kText = .45, kTint = .45;
  std::vector<DarkColor> palette = {{kWhite, kDarkPaper},     {kInk, kDarkInk},
                                    {kSecondary, {0xA8A8A8}}, {kAxisInk, {0xB4B4B4}},
                                    {kGridInk, {0x3A3D41}},   {kOthers, {0x5C6066}},
                                    {Tint(kInk), {0x85878A}}};
  for (size_t i = 1; i < kHues; ++i) {
    const Style style = StyleOf(i);
    const Color line = {palette::LineOf(i).dark};
    palette.push_back({style.line, line});
    palette.push_back({Tint(style.line), Mixed(line, kDarkPaper, kTint)});
    if (style.text.rgb != style.line.rgb) {
      palette.push_back({style.text, Mixed(style.text, kWhite, kText)});
    }
  }
  return palette;
}

Color BandOf(Color color) { return {color.rgb, 0xC0}; }

Color SeedLineOf(Color color) { return {color.rgb, 0xD0}; }

namespace {

// Returns the colour at a fraction of a scale of evenly spaced colours; invisible for NaN.
Color Interpolated(absl::Span<const uint32_t> colors, double share) {
  // As many as an eye can distinguish, so that a map has few of them.
  constexpr double kColors = 128;
  if (std::isnan(share)) return kInvisible;
  const double place = std::round(std::clamp(share, 0.0, 1.0) * kColors) / kColors *
                       static_cast<double>(colors.size() - 1);
  const size_t low = std::min(static_cast<size_t>(place), colors.size() - 2);
  return Mixed({colors[low]}, {colors[low + 1]}, place - static_cast<double>(low));
}

}  // namespace

Color MapColor(double share) {
  static constexpr uint32_t kViridis[] = {0x440154, 0x482878, 0x3E4A89, 0x31688E, 0x26828E,
                                          0x1F9E89, 0x35B779, 0x6DCD59, 0xB4DE2C, 0xFDE725};
  return Interpolated(kViridis, share);
}

Color DivergingColor(double share) {
  // RdBu of ColorBrewer, reversed.
  static constexpr uint32_t kBlueRed[] = {0x2166AC, 0x4393C3, 0x92C5DE, 0xD1E5F0, 0xF7F7F7,
                                          0xFDDBC7, 0xF4A582, 0xD6604D, 0xB2182B};
  return Interpolated(kBlueRed, share);
}

namespace {

// Numbers objects in the order of their first request.
class Numbers {
 public:
  size_t Of(const std::vector<std::string>& labels) {
    return numbers_.try_emplace(labels, numbers_.size()).first->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  std::map<std::vector<std::string>, size_t> numbers_;
};

// Returns style indices; `first` is the row whose hue and dash are 0. Nothing if the axes aren't
// crossed, or have more settings than there are hues or dashes.
std::optional<std::vector<size_t>> CrossedIndices(const std::vector<report::ComparisonRow>& rows,
                                                  size_t first) {
  Numbers hues, dashes;
  const auto number = [&](const report::ComparisonRow& row) {
    if (row.labels.empty()) return size_t{0};
    const size_t hue = hues.Of({row.labels[0]});
    return CrossedStyle(hue, dashes.Of({row.labels.begin() + 1, row.labels.end()}));
  };
  number(rows[first]);
  std::vector<size_t> indices;
  for (const report::ComparisonRow& row : rows) indices.push_back(number(row));
  const bool crossed = hues.size() > 1 && dashes.size() > 1;
  if (!crossed || hues.size() > kHues || dashes.size() > kHues) return std::nullopt;
  return indices;
}

}  // namespace

bool HasManySettings(const report::Comparison& comparison) {
  return comparison.rows.size() > kHues;
}

std::vector<size_t> StyleIndices(size_t settings, size_t baseline) {
  std::vector<size_t> indices(settings, kPlainStyle);
  const size_t first = baseline < settings ? baseline : settings;
  // Those before the baseline move by one.
  for (size_t i = 0; i < settings && settings <= kHues; ++i) {
    indices[i] = first < settings && i < first ? i + 1 : i;
  }
  if (first < settings) indices[first] = 0;
  return indices;
}

std::vector<size_t> StyleIndices(const report::Comparison& comparison) {
  const size_t rows = comparison.rows.size();
  size_t baseline = 0;
  while (baseline < rows && !comparison.rows[baseline].is_baseline) ++baseline;
  const size_t first = baseline < rows ? baseline : 0;
  if (rows > 0) {
    if (auto crossed = CrossedIndices(comparison.rows, first)) return *std::move(crossed);
  }
  return StyleIndices(rows, first);
}

bool HasOneBaseline(const report::Comparison& comparison) {
  return std::count_if(comparison.rows.begin(), comparison.rows.end(),
                       [](const report::ComparisonRow& row) { return row.is_baseline; }) == 1;
}

}  // namespace ablate::figure
