// Steps that are registered as users register theirs, for test_rollout.py and test_own_step.py. Some are systems of the
// library, to which they are compared.
#include "support/own_point_mass.h"

namespace {

// A ball on a spring in a plane, which a wall stops: functions and branches.
struct Spring {
  static constexpr std::array kParameters = {"stiffness", "length", "wall", "dt"};
  static constexpr std::array kStates = {"x", "y", "v_x", "v_y"};
  static constexpr std::array kInputs = {"force"};
  static constexpr std::array kPairs = {"impulse"};

  template <class R>
  static std::array<R, 2> free(const std::array<R, 4>& parameters, const std::array<R, 4>& state, const R& force) {
    const auto& [stiffness, length, wall, dt] = parameters;
    const auto& [x, y, v_x, v_y] = state;
    const R distance = lcp::sqrt(x * x + y * y), angle = lcp::atan2(y, x);
    const R tension = stiffness * lcp::max(distance - length, 0) + 0.1 * lcp::tanh(v_x) * lcp::exp(-lcp::abs(v_y));
    return {v_x + dt * (force - tension * lcp::cos(angle)), v_y - dt * tension * lcp::sin(angle)};
  }

  template <class R>
  static std::array<R, 1> pairs(const std::array<R, 4>& parameters, const std::array<R, 4>& state,
                                const std::array<R, 1>& force, const std::array<R, 1>& z) {
    return {(parameters[2] - state[0]) / parameters[3] - free(parameters, state, force[0])[0] + z[0]};
  }

  template <class R>
  static std::array<R, 4> next(const std::array<R, 4>& parameters, const std::array<R, 4>& state,
                               const std::array<R, 1>& force, const std::array<R, 1>& z, const std::array<R, 1>&) {
    const auto [v_x, v_y] = free(parameters, state, force[0]);
    const R& dt = parameters[3];
    return {state[0] + dt * (v_x - z[0]), state[1] + dt * v_y, v_x - z[0], v_y};
  }
};

// A step without an LCP and without an input.
struct Decay {
  static constexpr std::array kParameters = {"rate"};
  static constexpr std::array kStates = {"x"};
  static constexpr std::array<const char*, 0> kInputs = {};
  static constexpr std::array<const char*, 0> kPairs = {};

  template <class R>
  static std::array<R, 0> pairs(const std::array<R, 1>&, const std::array<R, 1>&, const std::array<R, 0>&,
                                const std::array<R, 0>&) {
    return {};
  }
  template <class R>
  static std::array<R, 1> next(const std::array<R, 1>& rate, const std::array<R, 1>& x, const std::array<R, 0>&,
                               const std::array<R, 0>&, const std::array<R, 0>&) {
    return {lcp::pow(x[0], 2) * lcp::log(rate[0]) / lcp::tan(rate[0])};
  }
};

// All functions that formulas may use.
struct Functions {
  static constexpr std::array kParameters = {"a"};
  static constexpr std::array kStates = {"smooth", "angles", "kinks"};
  static constexpr std::array<const char*, 0> kInputs = {};
  static constexpr std::array<const char*, 0> kPairs = {};

  template <class R>
  static std::array<R, 0> pairs(const std::array<R, 1>&, const std::array<R, 3>&, const std::array<R, 0>&,
                                const std::array<R, 0>&) {
    return {};
  }
  template <class R>
  static std::array<R, 3> next(const std::array<R, 1>& parameters, const std::array<R, 3>& state,
                               const std::array<R, 0>&, const std::array<R, 0>&, const std::array<R, 0>&) {
    const R& a = parameters[0];
    const auto& [x, y, z] = state;
    R smooth = lcp::sqrt(a) + lcp::exp(-x) * lcp::log(a);
    smooth += lcp::pow(a, 1.5) / (1 + x * x) - lcp::tanh(y);
    smooth -= 2 / a;
    R angles = lcp::sin(x) * lcp::cos(y) + lcp::tan(z) - lcp::asin(0.5 * x) * lcp::acos(0.3 * y);
    angles *= lcp::atan(z) - lcp::atan2(y, a);
    R kinks = lcp::abs(x) + lcp::min(y, z) - 3 * lcp::max(y, 0.1) + lcp::where(x <= y, a, lcp::where(y >= z, 1 - z, 2));
    kinks /= 1 + lcp::where(z < 0, z * z, 0.0) + lcp::where(z > 0.5, 1.0, x * x);
    return {smooth, angles, kinks};
  }
};

// Steps that are wrong: w is no affine function of z, and a formula branches.
struct NotAffine : Decay {
  static constexpr std::array kPairs = {"z"};

  template <class R>
  static std::array<R, 1> pairs(const std::array<R, 1>&, const std::array<R, 1>& x, const std::array<R, 0>&,
                                const std::array<R, 1>& z) {
    return {z[0] * z[0] - x[0]};
  }
  template <class R>
  static std::array<R, 1> next(const std::array<R, 1>&, const std::array<R, 1>&, const std::array<R, 0>&,
                               const std::array<R, 1>& z, const std::array<R, 1>&) {
    return z;
  }
};
struct Branches : Decay {
  template <class R>
  static std::array<R, 1> next(const std::array<R, 1>& rate, const std::array<R, 1>& x, const std::array<R, 0>&,
                               const std::array<R, 0>&, const std::array<R, 0>&) {
    if (x[0] > 0) return {rate[0] * x[0]};
    return {x[0]};
  }
};

const bool registered =
    lcp::register_step<lcp::testing::PointMass>("test::point_mass") && lcp::register_step<Spring>("test::spring") &&
    lcp::register_step<Decay>("test::decay") && lcp::register_step<Functions>("test::functions") &&
    lcp::register_step<NotAffine>("test::not_affine") && lcp::register_step<Branches>("test::branches") &&
    lcp::register_step<Decay>("test::twice") && lcp::register_step<Spring>("test::twice") &&
    lcp::register_step<Decay>("test::a name") && lcp::register_step<Decay>("tripod");

}  // namespace
