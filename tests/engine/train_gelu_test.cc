// Tests GELU of large tensors against LibTorch's.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "server/engine/torch/model/gelu.h"

namespace ablate::engine {
namespace {

constexpr int64_t kRows = 40, kColumns = 2000;  // the last part isn't whole

struct Derivatives {
  at::Tensor value, slope;         // f(x), g·f′(x)
  std::vector<at::Tensor> second;  // of v·(g·f′(x)) with respect to g and x
};

template <typename Gelu>
Derivatives DerivativesOf(at::ScalarType type, const Gelu& gelu) {
  at::manual_seed(3);
  const at::TensorOptions options = at::TensorOptions().dtype(type);
  const at::Tensor x = (at::randn({kRows, kColumns}, options) * 4).requires_grad_();
  const at::Tensor g = at::randn({kColumns, kRows}, options).t().requires_grad_();
  const at::Tensor v = at::randn({kRows, kColumns}, options);
  Derivatives of;
  of.value = gelu(x);
  of.slope = torch::autograd::grad({of.value}, {x}, {g}, true, /*create_graph=*/true)[0];
  of.second = torch::autograd::grad({of.slope}, {g, x}, {v});
  return of;
}

TEST(GeluTest, HasLibTorchsValuesAndDerivatives) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Derivatives own = DerivativesOf(type, GeluTanh);
    const Derivatives expected =
        DerivativesOf(type, [](const at::Tensor& x) { return at::gelu(x, "tanh"); });
    EXPECT_TRUE(own.value.equal(expected.value));
    EXPECT_TRUE(own.slope.equal(expected.slope));
    EXPECT_TRUE(own.second[0].equal(expected.second[0]));
    const at::Tensor error = (own.second[1] - expected.second[1]).abs().max();
    EXPECT_LT(error.item<double>(), type == at::kFloat ? 1e-4 : 1e-12);
  }
}

TEST(GeluTest, HasTheSameBitsWithoutASecondDerivative) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({kRows, kColumns}).requires_grad_(), g = at::randn_like(x);
  const auto slope = [&](const at::Tensor& y) { return torch::autograd::grad({y}, {x}, {g})[0]; };
  EXPECT_TRUE(slope(GeluTanh(x)).equal(slope(at::gelu(x, "tanh"))));
}

TEST(GeluTest, RefusesAThirdDerivative) {
  const at::Tensor x = at::randn({kRows, kColumns}, at::kDouble).requires_grad_();
  const at::Tensor one = at::ones_like(x);
  const at::Tensor slope = torch::autograd::grad({GeluTanh(x)}, {x}, {one}, true, true)[0];
  EXPECT_THROW(torch::autograd::grad({slope}, {x}, {one}, true, true), c10::Error);
}

}  // namespace
}  // namespace ablate::engine
