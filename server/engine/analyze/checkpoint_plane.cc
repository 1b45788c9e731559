#include "server/engine/analyze/checkpoint_plane.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ablate::engine {
namespace {

constexpr int64_t kElements = int64_t{1} << 20;  // elements of a point converted to float64 at a
                                                 // time

// Returns elements of the difference of two points.
at::Tensor Difference(const at::Tensor& point, const at::Tensor& from, int64_t first,
                      int64_t count) {
  const auto part = [&](const at::Tensor& of) {
    return of.narrow(0, first, count).to(at::kDouble);
  };
  return part(point).sub(part(from));
}

}  // namespace

void AddProducts(const std::vector<at::Tensor>& points, int64_t row, int64_t first, int64_t count,
                 const at::Tensor& gram) {
  double* const sums = gram.mutable_data_ptr<double>() + row * gram.size(1);
  const auto difference = [&](int64_t of, int64_t from, int64_t elements) {
    return Difference(points[static_cast<size_t>(of)], points.back(), from, elements);
  };
  for (int64_t from = first; from < first + count; from += kElements) {
    const int64_t elements = std::min(kElements, first + count - from);
    const at::Tensor own = difference(row, from, elements);
    for (int64_t other = 0; other < row; ++other) {
      sums[other] += own.dot(difference(other, from, elements)).item<double>();
    }
    sums[row] += own.dot(own).item<double>();
  }
}

CheckpointPlane PlaneOf(const at::Tensor& gram) {
  const int64_t count = gram.size(0);
  CheckpointPlane plane;
  plane.finite = gram.tril().isfinite().all().item<bool>();
  if (!plane.finite) return plane;
  const auto product = [&](int64_t a, int64_t b) {
    return a == count || b == count ? 0 : gram[std::max(a, b)][std::min(a, b)].item<double>();
  };
  for (int64_t k = 0; k < count; ++k) {
    plane.squares += product(k, k);
    const double squared = product(k, k) + product(k + 1, k + 1) - 2 * product(k + 1, k);
    plane.distances.push_back(std::sqrt(std::max(squared, 0.0)));
  }
  plane.displacement = std::sqrt(product(0, 0));
  plane.weights = at::zeros({2, count}, at::kDouble);
  plane.coordinates = at::zeros({count + 1, 2}, at::kDouble);
  const auto [squares, vectors] = at::linalg_eigh(gram, "L");  // ascending
  const double largest = squares[-1].item<double>();
  for (int64_t axis = 0; axis < std::min<int64_t>(2, count); ++axis) {
    const double squared = squares[count - 1 - axis].item<double>();
    const double rounding =
        static_cast<double>(count) * std::numeric_limits<double>::epsilon() * largest;
    if (squared <= rounding) break;
    const at::Tensor vector = vectors.select(1, count - 1 - axis);
    plane.along[static_cast<size_t>(axis)] = squared;
    plane.weights[axis].copy_(vector / std::sqrt(squared));
    plane.coordinates.select(1, axis).narrow(0, 0, count).copy_(vector * std::sqrt(squared));
  }
  return plane;
}

at::Tensor MakeAxes(const std::vector<at::Tensor>& points, const std::function<void()>& check,
                    CheckpointPlane* plane) {
  const int64_t size = points.back().numel();
  at::Tensor axes = at::zeros({2, size}, points.back().options().dtype(at::kDouble));
  for (int64_t from = 0; from < size; from += kElements) {
    const int64_t elements = std::min(kElements, size - from);
    for (size_t k = 0; k + 1 < points.size(); ++k) {
      check();
      const at::Tensor difference = Difference(points[k], points.back(), from, elements);
      for (int64_t axis = 0; axis < 2; ++axis) {
        axes[axis]
            .narrow(0, from, elements)
            .add_(difference, plane->weights[axis][static_cast<int64_t>(k)].item<double>());
      }
    }
  }
  for (int64_t axis = 0; axis < 2; ++axis) {
    at::Tensor own = axes[axis];
    if (plane->along[static_cast<size_t>(axis)] == 0) continue;
    check();
    // Removes rounding errors of the products, which the root of a small eigenvalue amplifies.
    if (axis == 1) own.sub_(axes[0], axes[0].dot(own).item<double>());
    own.div_(own.norm());
    if (own[own.abs().argmax()].item<double>() > 0) continue;
    own.neg_();
    plane->weights[axis].neg_();
    plane->coordinates.select(1, axis).neg_();
  }
  return axes;
}

}  // namespace ablate::engine
