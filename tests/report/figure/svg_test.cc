// Tests the SVG of a figure: labels are data, layers are at their values, and values without a
// position are left out. Also tests the files made of it.
#include <fontconfig/fontconfig.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/report/compare/paired.h"
#include "server/report/figure/render.h"

namespace ablate::figure {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A figure of one panel of 1 by 1 inches from 0 to 72 in both directions, so that a unit is a
// point: the value (x, y) is at (72 + x, 144 - y).
Figure WithLayers(std::vector<Layer> layers) {
  Figure figure;
  figure.name = "test";
  figure.width = figure.height = 3;
  Panel panel;
  panel.left = panel.bottom = 1;
  panel.right = panel.top = 2;
  panel.x.high = panel.y.high = 72;
  panel.x.line = panel.y.line = false;
  panel.layers = std::move(layers);
  figure.panels.push_back(panel);
  return figure;
}

// Returns the lines of the SVG with a path, without the clip's name.
std::vector<std::string> Paths(const Figure& figure) {
  std::vector<std::string> paths;
  for (const absl::string_view line : absl::StrSplit(Svg(figure), '\n')) {
    if (absl::StartsWith(line, "<path")) paths.emplace_back(line);
  }
  return paths;
}

TEST(SvgTest, TellsViewersTheStepsOfALongRun) {
  Figure figure = WithLayers({});
  figure.steps = true;
  figure.panels[0].x.low = 123;
  figure.panels[0].x.high = 2'500'000;
  EXPECT_THAT(Svg(figure), HasSubstr(" data-steps=\"72 144 123 2500000\""));
}

TEST(SvgTest, PutsLinesWhereTheirValuesStandAndBreaksThemAtGaps) {
  const Figure figure = WithLayers(
      {Line{{0, 36, 40, 50, 72}, {0, 72, kNone, 18, 18.255}, {0x0072B2}, 1.2, {7.2, 1.8}}});
  // The data grow upwards, the picture's units downwards: y = (3 - 1) * 72 - value.
  EXPECT_THAT(Paths(figure),
              ElementsAre("<path stroke=\"#0072B2\" stroke-width=\"1.2\" stroke-dasharray=\"7.2 "
                          "1.8\" clip-path=\"url(#test-panel0)\" "
                          "d=\"M72 144L108 72M122 126L144 125.75\"/>"));
}

TEST(SvgTest, MakesOneBoxOfNeighbouringCellsOfAColourAndLeavesHoles) {
  const Color red{0xFF0000}, blue{0x0000FF};
  const Figure figure = WithLayers(
      {Cells{{0, 10, 20, 30}, {0, 20, 40}, {red, red, blue, {0xFFFFFF, 255}, blue, red}}});
  const std::string rest = " shape-rendering=\"crispEdges\" clip-path=\"url(#test-panel0)\" d=\"";
  EXPECT_THAT(Paths(figure),
              ElementsAre(absl::StrCat("<path fill=\"#0000FF\"", rest,
                                       "M92 124h10.3v20.3h-10.3zM82 104h10.3v20.3h-10.3z\"/>"),
                          absl::StrCat("<path fill=\"#FF0000\"", rest,
                                       "M72 124h20.3v20.3h-20.3zM92 104h10.3v20.3h-10.3z\"/>")));
}

TEST(SvgTest, ClosesEachStretchOfABandForItself) {
  const Figure figure = WithLayers({Band{
      {0, 10, 20, 30, 40, 50}, {0, 0, kNone, 0, 0, kNone}, {9, 9, 9, 9, 9, 9}, {0x0072B2, 0xC0}}});
  EXPECT_THAT(Paths(figure), ElementsAre(HasSubstr("d=\"M72 144L82 144L82 135L72 135z"
                                                   "M102 144L112 144L112 135L102 135z\"")));
  EXPECT_THAT(Paths(figure), Each(HasSubstr("fill=\"#0072B2\" fill-opacity=\".25\"")));
}

TEST(SvgTest, DrawsEachKindOfMarker) {
  const auto path = [](Marker marker, bool open) {
    return Paths(WithLayers({Points{{36}, {36}, {0x222222}, marker, open, 2}}))[0];
  };
  EXPECT_THAT(path(Marker::kCircle, false),
              HasSubstr("fill=\"#222222\" d=\"M106 108a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z\""));
  EXPECT_THAT(path(Marker::kSquare, false), HasSubstr("d=\"M106 106L110 106L110 110L106 110z\""));
  EXPECT_THAT(path(Marker::kTriangle, false),
              HasSubstr("d=\"M108 105.34L105.34 109.34L110.66 109.34z\""));
  EXPECT_THAT(path(Marker::kTriangleDown, false),
              HasSubstr("d=\"M108 110.66L110.66 106.66L105.34 106.66z\""));
  EXPECT_THAT(path(Marker::kDiamond, false),
              HasSubstr("d=\"M108 105.18L110.82 108L108 110.82L105.18 108z\""));
  EXPECT_THAT(path(Marker::kCross, false),
              HasSubstr("stroke=\"#222222\" stroke-width=\".8\" d=\"M106 106L110 110M106 110L110 "
                        "106\""));
  EXPECT_THAT(path(Marker::kSquare, true), HasSubstr("fill=\"#FFFFFF\" stroke=\"#222222\""));
}

TEST(SvgTest, LeavesOutMarkersBeyondThePanelAndCutsNoneAtItsEdge) {
  const std::string path =
      Paths(WithLayers({Points{{0, 72, 73, 36, kNone}, {0, 72, 36, -1, 36}, {}}}))[0];
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 2);
  EXPECT_THAT(path, Not(HasSubstr("clip-path")));
}

TEST(SvgTest, DrawsStrokesFromTheirBeginningByTheirLength) {
  EXPECT_THAT(Paths(WithLayers({Strokes{{10, kNone}, {20, 1}, {0, 0}, {5, 5}, {}, .9}})),
              ElementsAre(HasSubstr("d=\"M82 124L82 119\"")));
}

TEST(SvgTest, HasNothingOfLayersWithoutAPlace) {
  EXPECT_THAT(Paths(WithLayers({Line{}, Band{}, Points{}, Strokes{}})), IsEmpty());
  EXPECT_THAT(Paths(WithLayers({Line{{1, 2}, {kNone, kInfinity}, {}}, Points{{1}, {kNone}, {}},
                                Band{{1}, {1}, {2}, {}}, Strokes{{kInfinity}, {1}, {0}, {1}, {}}})),
              IsEmpty());
  Figure log = WithLayers({Line{{1, 2}, {0, -1}, {}}});
  log.panels[0].y = {1, 10, true, false, false, {}};
  EXPECT_THAT(Paths(log), IsEmpty()) << "0 and -1 on a logarithmic axis";
}

TEST(SvgTest, BoundsNumbersOfValuesThatAreFarTooLarge) {
  EXPECT_THAT(Paths(WithLayers({Line{{0, 1, 2}, {0, 1e300, -1e300}, {}}})),
              ElementsAre(HasSubstr("d=\"M72 144L73 -100000L74 100000\"")));
}

TEST(SvgTest, DrawsAxesTicksAndGrid) {
  Figure figure = WithLayers({});
  Panel& panel = figure.panels[0];
  panel.x.line = panel.y.line = panel.y.grid = true;
  panel.x.ticks = {{36, "36"}};
  panel.y.ticks = {{18, "50% & %d"}};
  EXPECT_THAT(
      Paths(figure),
      ElementsAre(
          HasSubstr("stroke=\"#DEDEDE\" stroke-width=\".5\" d=\"M72 126L144 126\""),
          HasSubstr(
              "stroke=\"#4D4D4D\" stroke-width=\".6\" d=\"M72 72L72 144L144 144M108 144L108 146.7"
              "M72 126L69.3 126\"")));
  const std::string svg = Svg(figure);
  EXPECT_THAT(svg, HasSubstr("text-anchor=\"middle\" fill=\"#222222\">36</text>"));
  EXPECT_THAT(svg, HasSubstr("text-anchor=\"end\" fill=\"#222222\">50% &amp; %d</text>"));
}

TEST(SvgTest, TellsItsTitleAndDescriptionUnderIdsOfItsOwn) {
  Figure figure = WithLayers({});
  figure.name = "e1-loss";
  figure.title = "loss & <more>";
  EXPECT_THAT(Svg(figure), HasSubstr("role=\"img\" aria-labelledby=\"e1-loss-title\""));
  EXPECT_THAT(Svg(figure),
              HasSubstr("<title id=\"e1-loss-title\">loss &amp; &lt;more&gt;</title>"));
  figure.description = "It falls.";
  EXPECT_THAT(Svg(figure),
              HasSubstr("aria-labelledby=\"e1-loss-title\" aria-describedby=\"e1-loss-desc\""));
  EXPECT_THAT(Svg(figure), HasSubstr("<desc id=\"e1-loss-desc\">It falls.</desc>"));
  EXPECT_THAT(Svg(figure), HasSubstr("<clipPath id=\"e1-loss-panel0\">"));
}

TEST(SvgTest, KeepsSpacesThatFollowEachOther) {
  Figure figure = WithLayers({});
  figure.texts.push_back({1, 1, "a  b", 7, {}});
  EXPECT_THAT(Svg(figure), HasSubstr("xml:space=\"preserve\""));
  EXPECT_THAT(Svg(figure), HasSubstr(">a  b</text>"));
}

TEST(SvgTest, HasNoNumberThatIsNone) {
  Figure figure = WithLayers({});
  figure.rules.push_back({kNone, 1, 2, kNone, {}});
  EXPECT_THAT(Paths(figure), ElementsAre(HasSubstr("d=\"M0 144L144 0\"")));
}

TEST(SvgTest, WritesUprightTextsFromBottomToTop) {
  Figure figure = WithLayers({});
  figure.texts.push_back({1, 1, "up", 10, {}, Align::kCenter, true, true});
  EXPECT_THAT(Svg(figure), HasSubstr("<text transform=\"translate(72 144) rotate(-90)\" y=\"3.26\" "
                                     "font-size=\"10\" font-weight=\"bold\" text-anchor=\"middle\" "
                                     "fill=\"#000000\">up</text>"));
}

// Returns random bytes, with frequent special characters of markup and UTF-8.
std::string RandomText(report::RandomStream* random) {
  std::vector<std::string> pieces = absl::StrSplit(
      "< & > ]]> </text> <script> <!-- --> \" ' \\ \n \t \x80 \xE2\x80\xAE é − {} ` &amp;", ' ');
  pieces.insert(pieces.end(), {" ", std::string(1, '\0')});
  std::string text = "x";  // a text that is empty has no element
  const uint32_t length = random->Below(12);
  for (uint32_t i = 0; i < length; ++i) {
    if (random->Below(2) == 0) {
      text += pieces[random->Below(static_cast<uint32_t>(pieces.size()))];
    } else {
      text.push_back(static_cast<char>(random->Below(256)));
    }
  }
  return text;
}

// Returns an SVG without the content between an opening tag and </text>, </title> or </desc>.
std::string WithoutTexts(const Figure& figure) {
  std::vector<std::string> kept;
  for (const absl::string_view line : absl::StrSplit(Svg(figure), '\n')) {
    const size_t tag = line.find('>');
    const size_t end = line.rfind("</");
    const bool text = end != absl::string_view::npos && tag < end &&
                      (absl::StartsWith(line, "<text") || absl::StartsWith(line, "<title") ||
                       absl::StartsWith(line, "<desc"));
    const absl::string_view inside = text ? line.substr(tag + 1, end - tag - 1) : "";
    EXPECT_EQ(inside.find_first_of("<>"), absl::string_view::npos) << line;
    kept.push_back(text ? absl::StrCat(line.substr(0, tag + 1), line.substr(end))
                        : std::string(line));
  }
  return absl::StrJoin(kept, "\n");
}

TEST(SvgTest, KeepsTenThousandHostileTextsTexts) {
  report::RandomStream random(7);
  Figure hostile = WithLayers({}), harmless = WithLayers({});
  for (int i = 0; i < 10000; ++i) {
    const bool tick = i % 2 == 0;
    for (Figure* figure : {&hostile, &harmless}) {
      const std::string text = figure == &hostile ? RandomText(&random) : "label";
      if (tick) figure->panels[0].x.ticks.push_back({36, text});
      if (!tick) figure->texts.push_back({1, 1, text, 7, {}});
      figure->title = figure->description = text;
    }
  }
  EXPECT_TRUE(WithoutTexts(hostile) == WithoutTexts(harmless));
}

TEST(RenderTest, GivesEachFormatItsSizeInInches) {
  Figure figure;
  figure.width = 3.25;
  figure.height = 2;
  figure.texts.push_back({1, 1, "text", 8, {}});
  EXPECT_THAT(*Render(figure, Format::kSvg), HasSubstr("width=\"3.25in\" height=\"2in\""));
  const std::string pdf = *Render(figure, Format::kPdf);
  EXPECT_THAT(pdf, StartsWith("%PDF"));
  EXPECT_THAT(pdf, HasSubstr("/MediaBox [ 0 0 234 144 ]"));
  // PNG: width and height, big-endian, at byte 16.
  EXPECT_EQ(Render(figure, Format::kPng)->substr(16, 8),
            std::string("\0\0\x02\x70\0\0\x01\x80", 8));
}

TEST(RenderTest, DrawsTextsInTheFilesToo) {
  Figure empty, written;
  written.texts.push_back({1, 1, "text", 8, {}});
  EXPECT_THAT(*Render(written, Format::kPdf), HasSubstr("/BaseFont"));
  EXPECT_GT(Render(written, Format::kPng)->size(), Render(empty, Format::kPng)->size());
}

TEST(RenderTest, SaysWhatToInstallWhereThereIsNoFont) {
  FcConfig* none = FcConfigCreate();
  ASSERT_TRUE(FcConfigSetCurrent(none));
  FcConfigDestroy(none);  // ours; it is still the current one
  for (const Format format : {Format::kPdf, Format::kPng}) {
    const auto rendered = Render(Figure(), format);
    EXPECT_EQ(rendered.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(rendered.status().message(), HasSubstr("fonts-liberation"));
  }
  EXPECT_TRUE(Render(Figure(), Format::kSvg).ok()) << "needs none";
  ASSERT_TRUE(FcInitReinitialize());
}

}  // namespace
}  // namespace ablate::figure
