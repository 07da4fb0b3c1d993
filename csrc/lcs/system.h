// Linear complementarity systems, and their trajectories, in memory.
#pragma once

#include <cstdint>

#include "batch/kernels.h"

namespace lcp::lcs {

using batch::BatchView;

/// The numbers of states, inputs and pairs.
struct Size {
  int k, m, n;
};

/// The matrices, row-major, and vectors of the system of each trajectory:
///   w = E x + H u + M z + q,   0 <= z  perp  w >= 0,   x_next = A x + B u + D z + G w + d.
/// In G w, the w of a contact that sticks counts as 0, see cone.h.
template <class T>
struct System {
  BatchView<T> A, B, D, G, d, E, H, M, q;
};

/// The numbers of the trajectories at each step. Those of step s begin at data + s * stride; trajectories lie one
/// behind another, or all share a single one.
template <class T>
struct StepsView {
  const T* data;
  std::int64_t stride;
  bool shared;
};

/// The results of a walk forward. Step s of trajectory b is element s * batch + b.
template <class T>
struct Path {
  T *x_next, *z, *w;  ///< NaN from the first step on that is not solved
  T* residual;        ///< max_i |min(z_i, (M z + q)_i)|
  std::int8_t* status;
  std::int8_t* states;  ///< the states of the pairs, see solver/pair_states.h; nullptr where they are not wanted
  std::int64_t batch;
};

/// The inputs of a walk backward: the trajectories, and the gradients of x_next, z and w.
template <class T>
struct WalkedPath {
  BatchView<T> x;
  StepsView<T> u, x_next, z, w;
  StepsView<std::int8_t> states;
  StepsView<T> g_x_next, g_z, g_w;
};

/// The gradients that a walk backward writes: one for each trajectory, summed over its steps. The gradient of u is not
/// summed; step s of trajectory b is its element s * batch + b. A gradient that is not wanted is nullptr.
template <class T>
struct Gradients {
  T *A, *B, *D, *G, *d, *E, *H, *M, *q, *x, *u;
  std::int64_t batch;
};

/// A system, a first state and inputs, or the changes of all these, for a walk in forward mode.
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

/// A component of x_next counts as 0 up to this multiple of the epsilon of the data, relative to the sum of the
/// magnitudes of its terms. Rows of w = M z + q have the same bound for round-off. So a body that comes to rest is
/// exactly at rest, and does not move by the rounding error of the forces that hold it.
inline constexpr double kAtRestInEpsilon = 64;

}  // namespace lcp::lcs
