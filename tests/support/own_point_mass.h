// A system of the library as users would write it, see lcp/step.h.
#pragma once

#include <lcp/step.h>

#include <array>

namespace lcp::testing {

/// The point mass of csrc/systems/point_mass.h with contacts at velocities.
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

}  // namespace lcp::testing
