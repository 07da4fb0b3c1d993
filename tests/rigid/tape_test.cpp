#include "rigid/tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "rigid/rotation.h"

namespace lcp::rigid {
namespace {

// The derivatives of f(x) by a tape, and by central differences.
template <class F>
void expect_derivatives(const F& f, std::vector<double> x, double tolerance) {
  Tape tape;
  std::vector<Variable> variables;
  variables.reserve(x.size());
  for (const double number : x) variables.push_back(Variable::independent(tape, number));
  const Variable y = f(variables);
  EXPECT_DOUBLE_EQ(y.value, f(x));
  tape.begin_sweep();
  tape.add(y.node, 1);
  tape.reverse(tape.size(), 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    constexpr double h = 1e-6;
    const double number = x[i];
    x[i] = number + h;
    const double above = f(x);
    x[i] = number - h;
    const double below = f(x);
    x[i] = number;
    EXPECT_NEAR(tape.derivative(variables[i].node), (above - below) / (2 * h), tolerance) << i;
  }
}

TEST(TapeTest, OperationsHaveTheirDerivatives) {
  const auto f = [](const auto& x) {
    using std::cos;
    using std::sin;
    using std::sqrt;
    return (x[0] * x[1] - 2 / x[2]) / sqrt(x[1] + 3) - (-x[0]) * 0.5 + (4 - x[2]) * (x[2] - 1) + (1 + x[0]) +
           cos(2 * x[1]) * sin(x[2]);
  };
  expect_derivatives(f, {0.3, 1.7, -0.8}, 1e-8);
}

TEST(TapeTest, ConstantsTakeNoPlace) {
  Tape tape;
  const Variable x = Variable::independent(tape, 2);
  const int before = tape.size();
  const Variable constant = Variable(3) * Variable(4) + sqrt(Variable(2));
  EXPECT_EQ((x + constant).node, x.node);
  EXPECT_EQ(tape.size(), before);
  EXPECT_EQ((x * constant).node, before);
  tape.clear();
  EXPECT_EQ(Variable::independent(tape, 2).node, x.node);
}

TEST(TapeTest, TurnsHaveTheirDerivativesAlsoNearZero) {
  for (const double size : {0.0, 1e-5, 0.7, 1.9, 2.1, 5.0}) {  // the series ends at |theta| = 2
    const auto f = [](const auto& x) {
      const auto q = turned<std::decay_t<decltype(x[0])>>({x[0], x[1], x[2], x[3]}, {x[4], x[5], x[6]});
      return q.w + 2 * q.x - 3 * q.y + 0.5 * q.z;
    };
    expect_derivatives(f, {0.9, 0.2, -0.4, 0.3, 0.6 * size, -0.8 * size, 0}, 1e-8);
  }
}

TEST(TapeTest, FreeMotionHasTheDerivativeOfItsSolution) {
  const auto f = [](const auto& x) {
    using T = std::decay_t<decltype(x[0])>;
    const Matrix<T> inertia = {{{x[3], x[4], T(0)}, {x[4], x[5], T(0.1)}, {T(0), T(0.1), x[6]}}};
    const Vector<T> omega = gyroscopic({x[0], x[1], x[2]}, inertia, 0.1);
    return omega[0] + 2 * omega[1] - 3 * omega[2];
  };
  expect_derivatives(f, {3, -4, 2, 1, 0.2, 1.4, 0.7}, 1e-7);
}

}  // namespace
}  // namespace lcp::rigid
