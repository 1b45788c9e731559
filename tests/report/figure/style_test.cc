// Tests colours, dashes and markers of settings, of one axis and of crossed ones.
#include "server/report/figure/style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
