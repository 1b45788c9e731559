// Tests colours, dashes and markers of settings, of one axis and of crossed ones.
#include "server/report/figure/style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/report/figure/example_grids.h"

namespace ablate::figure {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<size_t> IndicesOf(const report::ComparisonInput& grid) {
  const auto comparison = report::Compare(grid);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return StyleIndices(*comparison);
}

TEST(PaletteTest, GivesEverySettingOfAnAxisAnotherLook) {
  for (size_t a = 0; a < kHues; ++a) {
    for (size_t b = a + 1; b < kHues; ++b) {
      EXPECT_NE(StyleOf(a).line.rgb, StyleOf(b).line.rgb) << a << b;
      EXPECT_NE(StyleOf(a).dash, StyleOf(b).dash) << a << b;
    }
  }
}

TEST(PaletteTest, TellsCrossedSettingsApartByHueAndDash) {
  std::set<std::pair<uint32_t, Dash>> looks;
  for (size_t hue = 0; hue < kHues; ++hue) {
    for (size_t dash = 0; dash < kHues; ++dash) {
      const Style style = StyleOf(CrossedStyle(hue, dash));
      EXPECT_EQ(style.line.rgb, StyleOf(hue).line.rgb);
      EXPECT_EQ(style.marker, StyleOf(hue).marker);
      EXPECT_EQ(style.dash, StyleOf(CrossedStyle(0, dash)).dash);
      EXPECT_EQ(CrossedStyle(hue, dash) % kHues, hue) << "as the page's chips have it";
      looks.insert({style.line.rgb, style.dash});
    }
  }
  EXPECT_EQ(looks.size(), kHues * kHues);
}

using Triple = std::array<double, 3>;

Triple Times(const std::array<Triple, 3>& matrix, const Triple& of) {
  Triple result{};
  for (size_t row = 0; row < 3; ++row) {
    for (size_t i = 0; i < 3; ++i) result[row] += matrix[row][i] * of[i];
  }
  return result;
}

// Returns linear sRGB (IEC 61966-2-1).
Triple Linear(Color color) {
  Triple linear;
  for (size_t i = 0; i < 3; ++i) {
    const double c = ((color.rgb >> (16 - 8 * i)) & 0xFF) / 255.0;
    linear[i] = c <= .04045 ? c / 12.92 : std::pow((c + .055) / 1.055, 2.4);
  }
  return linear;
}

double Contrast(Color a, Color b) {
  const auto light = [](Color color) {
    const Triple linear = Linear(color);
    return .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2] + .05;
  };
  return std::max(light(a) / light(b), light(b) / light(a));
}

// Returns CIELAB of a colour as somebody sees it.
Triple Seen(Color color, const std::array<Triple, 3>& vision) {
  Triple xyz = Times({{{.4124, .3576, .1805}, {.2126, .7152, .0722}, {.0193, .1192, .9505}}},
                     Times(vision, Linear(color)));
  const Triple white = {.95047, 1, 1.08883};
  for (size_t i = 0; i < 3; ++i) xyz[i] = std::cbrt(std::max(xyz[i] / white[i], 0.0));
  return {116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])};
}

TEST(PaletteTest, HasVerdictsInColoursThatNoSettingHas) {
  // Full colour vision, protanopia and deuteranopia (Machado et al. 2009, table 1).
  const std::array<Triple, 3> visions[] = {
      {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
      {{{.152286, 1.052583, -.204868},
        {.114503, .786281, .099216},
        {-.003882, -.048116, 1.051998}}},
      {{{.367322, .860646, -.227968}, {.280085, .672501, .047413}, {-.011820, .042940, .968881}}}};
  const auto expect_apart = [&visions](Color a, Color b) {
    for (const auto& vision : visions) {
      const Triple one = Seen(a, vision), other = Seen(b, vision);
      EXPECT_GT(std::hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]), 15)
          << absl::StrCat(absl::Hex(a.rgb), " ", absl::Hex(b.rgb));
    }
  };
  expect_apart(kBetterColor.light, kWorseColor.light);
  expect_apart(kBetterColor.dark, kWorseColor.dark);
  for (const DarkColor& verdict : {kBetterColor, kWorseColor}) {
    EXPECT_GT(Contrast(verdict.light, {0xF4F4F4}), 4.5);
    EXPECT_GT(Contrast(verdict.dark, {0x212428}), 4.5);
    for (size_t i = 0; i < kHues; ++i) {
      const Style style = StyleOf(i);
      for (const Color color : {style.line, style.text}) {
        expect_apart(verdict.light, color);
        for (const DarkColor& dark : DarkPalette()) {
          if (dark.light.rgb == color.rgb) expect_apart(verdict.dark, dark.dark);
        }
      }
    }
  }
}

TEST(StyleIndicesTest, GoByTheRowOfOneAxisTheBaselineFirst) {
  report::ComparisonInput grid = NormsGrid(2);
  EXPECT_THAT(IndicesOf(grid), ElementsAre(0, 1, 2));
  grid.baseline = {{"placement", "post"}};
  EXPECT_THAT(IndicesOf(grid), ElementsAre(1, 0, 2));
}

TEST(StyleIndicesTest, GoByTheFirstAxisInHueAndByTheOthersInDash) {
  report::ComparisonInput grid = Crossed("", {"pre", "post", "none"}, {"on", "off"}, true).grid;
  EXPECT_THAT(IndicesOf(grid),
              ElementsAre(0, CrossedStyle(0, 1), CrossedStyle(1, 0), CrossedStyle(1, 1),
                          CrossedStyle(2, 0), CrossedStyle(2, 1)));
  grid.baseline = {{"norm.placement", "post"}, {"residual", "off"}};
  EXPECT_THAT(IndicesOf(grid),
              ElementsAre(CrossedStyle(1, 1), CrossedStyle(1, 0), CrossedStyle(0, 1), 0,
                          CrossedStyle(2, 1), CrossedStyle(2, 0)));
}

TEST(StyleIndicesTest, GoByTheRowWhereTheSecondAxisHasOneSetting) {
  EXPECT_THAT(IndicesOf(Crossed("", {"pre", "post", "none"}, {"on"}, false).grid),
              ElementsAre(0, 1, 2));
}

TEST(StyleIndicesTest, AreInkWhereThereAreMoreSettingsThanHues) {
  std::vector<size_t> indices = IndicesOf(Outlier().grid);
  EXPECT_EQ(indices[0], 0u);
  indices.erase(indices.begin());
  EXPECT_THAT(indices, Each(kPlainStyle));
  EXPECT_EQ(StyleOf(kPlainStyle).line.rgb, kInk.rgb);
}

TEST(StyleIndicesTest, AreInkWhereCrossedAxesHaveMoreSettingsThanThereAreDashes) {
  std::vector<std::string> second;
  for (int i = 0; i < 8; ++i) second.push_back(absl::StrCat("s", i));
  EXPECT_EQ(IndicesOf(Crossed("", {"pre", "post"}, second, false).grid)[9], kPlainStyle);
}

}  // namespace
}  // namespace ablate::figure
