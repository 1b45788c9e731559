// Fits a plane to points in parameter space: through the last point, along the two principal axes
// of the other points' differences from it, which aren't centred (Li et al. 2018).
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_CHECKPOINT_PLANE_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_CHECKPOINT_PLANE_H_

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace ablate::engine {

// Adds to row `row` of `gram` [K − 1, K − 1], float64, for K points [P]: the inner products of the
// differences of point `row` and of the points up to it, over elements first … first + count.
void AddProducts(const std::vector<at::Tensor>& points, int64_t row, int64_t first, int64_t count,
                 const at::Tensor& gram);

// The plane that the inner products determine. Only the lower triangle of `gram` is read.
struct CheckpointPlane {
  // True if every inner product is finite; if not, nothing else is set.
  bool finite = true;
  double squares = 0;  // the sum of squared distances from the last point
  // The part of `squares` along each axis; 0, up to rounding, for a missing axis.
  std::array<double, 2> along = {};
  at::Tensor weights;             // [2, K − 1]: each axis as a combination of the differences
  at::Tensor coordinates;         // [K, 2], float64
  std::vector<double> distances;  // from each point to the next; K − 1
  double displacement = 0;        // distance of the first point from the last
};
CheckpointPlane PlaneOf(const at::Tensor& gram);

// Returns the axes [2, P], float64, orthogonal and of norm 1; 0 for a missing axis. The largest
// element of each is positive: if it isn't, the signs of the axis, of its `weights` and of its
// coordinates are flipped. Calls `check` now and then, which may throw.
at::Tensor MakeAxes(const std::vector<at::Tensor>& points, const std::function<void()>& check,
                    CheckpointPlane* plane);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_CHECKPOINT_PLANE_H_
