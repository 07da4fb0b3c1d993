// The linear relation between the changes of a contact's impulse and velocity in its state, on the CPU and on GPUs.
#pragma once

#include <Eigen/Core>
#include <cmath>
#include <cstdint>

namespace lcp::friction {

enum class State : std::int8_t {
  kApart = 0,  ///< h_n <= u_n and h_t = 0, up to round-off
  kStick = 1,  ///< |h_t - u_t| <= mu h_n, and mu h_n > 0
  kSlide = 2,  ///< neither of the others
};

/// A contact whose normal impulse may be round-off has friction only where mu is large. It slides if its friction is
/// more than this multiple of possible round-off.
inline constexpr double kJammed = 1e3;

/// The state of a contact with the impulse h and the velocity u, [3], in units in which contacts are alike.
///   zero: the possible round-off of h_n and u_n. Redundant contacts without an impulse have u_n = 0 but for round-off,
///     whose sign must not decide.
EIGEN_DEVICE_FUNC inline State state_of(const double* h, const double* u, double mu, double zero) {
  if (h[2] - u[2] <= zero && std::hypot(h[0], h[1]) <= kJammed * zero) return State::kApart;
  const bool sticks = mu * h[2] > 0 && std::hypot(h[0] - u[0], h[1] - u[1]) <= mu * h[2];
  return sticks ? State::kStick : State::kSlide;
}

/// The linear law C du + D dh = E dmu of a contact that is not apart. With t = u_t / |u_t|:
///
///   stick   C = I, D = 0
///   slide   du_n = 0,  dh_t + mu t dh_n + (mu h_n / |u_t|) (I - t t') du_t = -h_n t dmu,
///           the part along t times 1 / max(1, mu), so that a large mu does not hide the part across
struct LinearLaw {
  double C[3][3] = {}, D[3][3] = {}, E[3] = {};

  EIGEN_DEVICE_FUNC LinearLaw() {}  // NOLINT(modernize-use-equals-default): a GPU takes no default
  EIGEN_DEVICE_FUNC LinearLaw(bool sticks, const double* h, const double* u, double mu) {
    C[2][2] = 1;
    const double slip = std::hypot(u[0], u[1]);
    const double t[2] = {slip > 0 ? u[0] / slip : 0, slip > 0 ? u[1] / slip : 0};
    const double along = mu > 1 ? 1 / mu : 1;
    for (int i = 0; i < 2; ++i) {
      if (sticks) {
        C[i][i] = 1;
        continue;
      }
      D[i][2] = along * mu * t[i];
      E[i] = -along * h[2] * t[i];
      for (int j = 0; j < 2; ++j) {
        const double same = i == j ? 1 : 0;
        D[i][j] = same - (1 - along) * t[i] * t[j];
        if (slip > 0) C[i][j] = mu * h[2] / slip * (same - t[i] * t[j]);
      }
    }
  }
};

}  // namespace lcp::friction
