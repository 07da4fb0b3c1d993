// Steps that are registered as users register theirs, for test_rollout.py and test_own_step.py. Some are systems of the
// library, to which they are compared.
#include <lcp/step.h>

#include <array>

namespace {

// The point mass of csrc/systems/point_mass.h with contacts at velocities.
struct PointMass {
  static constexpr std::array kParameters = {"mass", "dt", "mu", "gravity", "restitution"};
  static constexpr std::array kStates = {"x", "y", "v_x", "v_y"};
  static constexpr std::array kInputs = {"u_x", "u_y"};
  static constexpr std::array kPairs = {"lambda_n", "lambda_plus", "lambda_minus", "gamma"};

  template <class R>
  struct Start {
    R free_x, free_y, c;

    Start(const std::array<R, 5>& parameters, const std::array<R, 4>& state, const std::array<R, 2>& u) {
      const auto& [mass, dt, mu, gravity, restitution] = parameters;
      const auto& [x, y, v_x, v_y] = state;
      free_x = v_x + dt / mass * u[0];
      free_y = v_y + dt * (u[1] / mass - gravity);
      const R out_of_reach = lcp::where(free_y <= 0, -free_y, 0) + 1;
      c = lcp::where(y <= 0, restitution * lcp::where(v_y <= 0, v_y, 0), out_of_reach);
    }
  };

  template <class R>
  static std::array<R, 4> pairs(const std::array<R, 5>& parameters, const std::array<R, 4>& state,
                                const std::array<R, 2>& u, const std::array<R, 4>& z) {
    const auto& [lambda_n, lambda_plus, lambda_minus, gamma] = z;
    const R& mass = parameters[0];
    const Start<R> start(parameters, state, u);
    const R slide = start.free_x + (lambda_plus - lambda_minus) / mass;
    return {start.free_y + start.c + lambda_n / mass, slide + gamma, gamma - slide,
            parameters[2] * lambda_n - (lambda_plus + lambda_minus)};
  }

  template <class R>
  static std::array<R, 4> next(const std::array<R, 5>& parameters, const std::array<R, 4>& state,
                               const std::array<R, 2>& u, const std::array<R, 4>& z, const std::array<R, 4>& w) {
    const auto& [lambda_n, lambda_plus, lambda_minus, gamma] = z;
    const R &mass = parameters[0], &dt = parameters[1];
    const Start<R> start(parameters, state, u);
    const R slides = 0.5 * (w[1] - w[2]);
    const R held = lcp::where(w[3] > 0, 0, lcp::where(lambda_plus > 0, 0, lcp::where(lambda_minus > 0, 0, slides)));
    const R slid = lcp::where(gamma <= 0, held, slides);
    const R v_x = lcp::where(lambda_n > 0, slid, lcp::where(w[0] > 0, start.free_x, slid));
    const R v_y = lcp::where(lambda_n > 0, w[0] - start.c, start.free_y + lambda_n / mass);
    return {state[0] + dt * v_x, state[1] + dt * v_y, v_x, v_y};
  }
};

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

const bool registered = lcp::register_step<PointMass>("test::point_mass") &&
                        lcp::register_step<Spring>("test::spring") && lcp::register_step<Decay>("test::decay") &&
                        lcp::register_step<NotAffine>("test::not_affine") &&
                        lcp::register_step<Branches>("test::branches") && lcp::register_step<Decay>("test::twice") &&
                        lcp::register_step<Spring>("test::twice") && lcp::register_step<Decay>("test::a name");

}  // namespace
