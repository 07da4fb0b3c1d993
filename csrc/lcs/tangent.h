// Walks linear complementarity systems in forward mode: the changes of their trajectories.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batch/batch_path.h"
#include "lcp/ties.h"
#include "lcs/blocks.h"
#include "lcs/cone.h"
#include "lcs/system.h"
#include "lcs/tied_derivative.h"

namespace lcp::lcs {

/// A system, a first state and inputs, or the changes of all these.
template <class T>
struct Given {
  System<T> system;
  BatchView<T> x;
  StepsView<T> u;
};

/// The steps that a walk forward has written.
template <class T>
struct WalkedSteps {
  StepsView<T> x_next, z, w;
  StepsView<std::int8_t> status, states;
};

/// The changes of the results. Step s of trajectory b is element s * batch + b.
template <class T>
struct Changes {
  T *x_next, *z, *w;
  std::int64_t batch;
};

// The same from trajectory b on.
template <class T>
Given<T> from(const Given<T>& given, std::int64_t b, const Size& size) {
  return {from(given.system, b, size), batch::from(given.x, b, size.k), from(given.u, b, size.m)};
}

template <class T>
WalkedSteps<T> from(const WalkedSteps<T>& walked, std::int64_t b, const Size& size) {
  return {from(walked.x_next, b, size.k), from(walked.z, b, size.n), from(walked.w, b, size.n),
          from(walked.status, b, 1), from(walked.states, b, size.n)};
}

template <class T>
Changes<T> from(const Changes<T>& to, std::int64_t b, const Size& size) {
  return {to.x_next + b * size.k, to.z + b * size.n, to.w + b * size.n, to.batch};
}

/// With the change r of E x + H u + M z + q at constant z, z and w change by (dz, dw) = J r, see solver/active_set.h,
/// and x_next by the product rule; the w of a contact that sticks does not change. Smoothed, the changes are those that
/// Adjoint says. Where a step is not solved, all
/// changes are NaN if what it starts from changes, else 0.
///
/// T is the type of the numbers in memory, double or float. Allocates for the longest run, and as TiedDerivative does.
template <class T>
class Tangent {
 public:
  /// kappa: > 0 where derivatives are smoothed, which have no ties.
  Tangent(const Size& size, Cone cone, Ties ties, double kappa = 0);

  void run(std::int64_t count, std::int64_t steps, const Given<T>& given, const WalkedSteps<T>& walked,
           const Given<T>& change, const Changes<T>& to);

 private:
  void run_block(std::int64_t count, std::int64_t steps, const Given<T>& given, const WalkedSteps<T>& walked,
                 const Given<T>& change, const Changes<T>& to);

  Size size_;
  Cone cone_;
  TiedDerivative<T> derivative_;
  std::optional<batch::BatchPath<T>> path_;  // where derivatives are smoothed
  std::vector<T> M_, r_, none_;              // M_: the transposes, since the vector kernels have J' alone
  std::vector<char> has_change_;
  std::vector<double> of_pairs_, of_state_;  // sums of one trajectory
  std::vector<T> moving_w_, moving_dw_;      // w and its change, 0 for a contact that sticks
};

}  // namespace lcp::lcs
