#include "server/report/figure/contours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace ablate::figure {
namespace {

struct Place {
  double x = 0, y = 0;
};

struct Corner {
  Place at;
  double value = 0;
};

// Corners in the order around the square; side i is from corner i to the next.
using CellCorners = std::array<Corner, 4>;

CellCorners SquareAt(const ValueGrid& grid, size_t column, size_t row) {
  const auto corner = [&](size_t c, size_t r) {
    return Corner{{grid.x[c], grid.y[r]}, grid.values[r * grid.x.size() + c]};
  };
  return {corner(column, row), corner(column + 1, row), corner(column + 1, row + 1),
          corner(column, row + 1)};
}

// Returns where the level crosses a side whose corners are on either side of it.
Place Crossing(const CellCorners& square, size_t side, double level) {
  const Corner &a = square[side], &b = square[(side + 1) % 4];
  const double share = (level - a.value) / (b.value - a.value);
  return {a.at.x + share * (b.at.x - a.at.x), a.at.y + share * (b.at.y - a.at.y)};
}

void AddStroke(const Place& from, const Place& to, Strokes* strokes) {
  strokes->x.push_back(from.x);
  strokes->y.push_back(from.y);
  strokes->dx.push_back(to.x - from.x);
  strokes->dy.push_back(to.y - from.y);
}

void AddSquare(const CellCorners& square, double level, Strokes* strokes) {
  double sum = 0;
  std::vector<size_t> crossed;  // sides: none, two, or all four of a saddle
  for (size_t side = 0; side < 4; ++side) {
    const bool above = square[side].value >= level;
    if (above != (square[(side + 1) % 4].value >= level)) crossed.push_back(side);
    sum += square[side].value;
  }
  if (!std::isfinite(sum) || crossed.empty()) return;
  // A stroke cuts off one corner: those unlike the middle.
  const bool first_is_like_middle = (square[0].value >= level) == (sum / 4 >= level);
  if (crossed.size() == 4 && !first_is_like_middle) {
    std::rotate(crossed.begin(), crossed.end() - 1, crossed.end());
  }
  for (size_t i = 0; i + 1 < crossed.size(); i += 2) {
    AddStroke(Crossing(square, crossed[i], level), Crossing(square, crossed[i + 1], level),
              strokes);
  }
}

}  // namespace

Strokes ContourAt(const ValueGrid& grid, double level) {
  Strokes strokes;
  for (size_t row = 0; row + 1 < grid.y.size(); ++row) {
    for (size_t column = 0; column + 1 < grid.x.size(); ++column) {
      AddSquare(SquareAt(grid, column, row), level, &strokes);
    }
  }
  return strokes;
}

}  // namespace ablate::figure
