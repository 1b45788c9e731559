// The plane in which points in the space of parameters lie, nearly: through the last of them, along
// the two principal axes of the others' differences from it, which are not centred (Li et al.
// 2018).
#ifndef ABLATE_SERVER_ENGINE_ANALYZE_CHECKPOINT_PLANE_H_
#define ABLATE_SERVER_ENGINE_ANALYZE_CHECKPOINT_PLANE_H_

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace ablate::engine {

// Adds to row `row` of `gram` [K − 1, K − 1], float64, of K points [P]: the inner products of the
// differences of point `row` and of those up to it, over elements first … first + count.
void AddProducts(const std::vector<at::Tensor>& points, int64_t row, int64_t first, int64_t count,
                 const at::Tensor& gram);

// What the inner products say of the plane; only the lower triangle of `gram` is read.
struct CheckpointPlane {
  // Whether every inner product is finite; nothing else is set where one is not.
  bool finite = true;
  double squares = 0;  // the sum of squared distances from the last point
  // The part of them along each axis; 0 where there is no such axis, up to rounding.
  std::array<double, 2> along = {};
  at::Tensor weights;             // [2, K − 1]: an axis is that combination of the differences
  at::Tensor coordinates;         // [K, 2], float64
  std::vector<double> distances;  // of each point from the next; K − 1
  double displacement = 0;        // of the first point from the last
};
CheckpointPlane PlaneOf(const at::Tensor& gram);

// The axes [2, P], float64, of norm 1 and orthogonal, or 0 where there is none. Of either its
// largest element is positive: where that of `weights` is not, they and the coordinates change
// their signs. Calls `check` now and then, which may throw.
at::Tensor MakeAxes(const std::vector<at::Tensor>& points, const std::function<void()>& check,
                    CheckpointPlane* plane);

}  // namespace ablate::engine

#endif  // ABLATE_SERVER_ENGINE_ANALYZE_CHECKPOINT_PLANE_H_
