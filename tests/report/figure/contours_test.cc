// Tests contours: positions in closed form, joins at a saddle, and holes.
#include "server/report/figure/contours.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ablate::figure {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

ValueGrid GridOf(size_t side, double reach, const std::function<double(double, double)>& value) {
  ValueGrid grid;
  for (size_t i = 0; i < side; ++i) {
    grid.x.push_back(reach * (2.0 * static_cast<double>(i) / static_cast<double>(side - 1) - 1));
  }
  grid.y = grid.x;
  for (const double y : grid.y) {
    for (const double x : grid.x) grid.values.push_back(value(x, y));
  }
  return grid;
}

double LengthOf(const Strokes& strokes) {
  double length = 0;
  for (size_t i = 0; i < strokes.x.size(); ++i) {
    length += std::hypot(strokes.dx[i], strokes.dy[i]);
  }
  return length;
}

TEST(ContoursTest, AreStraightOnASlope) {
  const Strokes strokes =
      ContourAt(GridOf(5, 1, [](double x, double y) { return 2 * x + y; }), 0.3);
  for (size_t i = 0; i < strokes.x.size(); ++i) {
    EXPECT_NEAR(2 * strokes.x[i] + strokes.y[i], 0.3, 1e-12);
    EXPECT_NEAR(2 * strokes.dx[i] + strokes.dy[i], 0, 1e-12);
  }
  EXPECT_NEAR(LengthOf(strokes), std::hypot(1.0, 2.0), 1e-12) << "from edge to edge, once";
}

TEST(ContoursTest, AreCirclesAroundAMinimum) {
  const Strokes strokes =
      ContourAt(GridOf(201, 1, [](double x, double y) { return x * x + y * y; }), 0.49);
  for (size_t i = 0; i < strokes.x.size(); ++i) {
    EXPECT_NEAR(std::hypot(strokes.x[i], strokes.y[i]), 0.7, 1e-4);
  }
  EXPECT_NEAR(LengthOf(strokes), 2 * M_PI * 0.7, 1e-3);
}

// Corners −1, 1, −1, 1 around the square: at a level below the middle the high ones are joined.
TEST(ContoursTest, JoinTheCornersOfASaddleThatAreLikeItsMiddle) {
  const ValueGrid saddle = {{0, 1}, {0, 1}, {-1, 1, 1, -1}};
  for (const double level : {-0.5, 0.5}) {
    const Strokes strokes = ContourAt(saddle, level);
    ASSERT_THAT(strokes.x, SizeIs(2));
    for (size_t i = 0; i < 2; ++i) {
      const double x = strokes.x[i] + strokes.dx[i] / 2, y = strokes.y[i] + strokes.dy[i] / 2;
      // Low corners (0, 0) and (1, 1) are cut off below the middle, high ones above it.
      const bool low_corner = std::abs(x - y) < 1e-12;
      EXPECT_EQ(low_corner, level < 0) << x << ", " << y;
    }
  }
}

TEST(ContoursTest, LeaveOutSquaresAroundHoles) {
  ValueGrid grid = GridOf(5, 2, [](double x, double) { return x; });
  const size_t whole = ContourAt(grid, 0.5).x.size();
  EXPECT_EQ(whole, 4u);
  for (const double hole :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    grid.values[2 * 5 + 2] = hole;  // in the middle
    const Strokes strokes = ContourAt(grid, 0.5);
    EXPECT_THAT(strokes.x, SizeIs(2));
    for (size_t i = 0; i < strokes.x.size(); ++i) {
      EXPECT_EQ(strokes.x[i], 0.5);
      EXPECT_GE(std::abs(strokes.y[i] + strokes.dy[i] / 2), 1);
    }
  }
}

TEST(ContoursTest, AreNoneBeyondTheValuesAndOnePerPlaceAtAValue) {
  const ValueGrid grid = GridOf(3, 1, [](double x, double) { return x; });
  EXPECT_THAT(ContourAt(grid, 1.5).x, IsEmpty());
  EXPECT_THAT(ContourAt(grid, -1.5).x, IsEmpty());
  EXPECT_THAT(ContourAt(grid, 0).x, SizeIs(2)) << "through points of the grid";
  EXPECT_THAT(ContourAt({{0, 1}, {0, 1}, {1, 1, 1, 1}}, 1).x, IsEmpty()) << "no slope, no line";
  EXPECT_THAT(ContourAt({{0}, {0, 1}, {1, 2}}, 1.5).x, IsEmpty()) << "no square";
}

}  // namespace
}  // namespace ablate::figure
