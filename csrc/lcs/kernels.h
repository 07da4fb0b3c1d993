// Vector kernels that walk many systems of few pairs through all their steps, one trajectory in each lane, compiled for
// each instruction set.
#pragma once

#include <cstdint>

#include "batch/kernels.h"
#include "lcs/system.h"

namespace lcp::lcs {

/// A walk forward of `count` trajectories.
template <class T>
struct ForwardWalk {
  Size size;
  const int* cone;  ///< see cone.h; nullptr where there are no contacts
  std::int64_t count, steps;
  System<T> system;
  BatchView<T> x;
  StepsView<T> u;
  Path<T> to;
  double tolerance;   ///< at least batch::TypedKernels::min_tolerance
  double* workspace;  ///< as many numbers as Simulator counts, 64-byte aligned

  /// Solves the problem of a trajectory that the kernel does not solve to full accuracy. states may be nullptr.
  void (*solve)(void* self, std::int64_t trajectory, const T* q, T* z, T* w, std::int8_t* status, std::int8_t* states);
  void* self;
};

/// A walk backward of `count` trajectories.
template <class T>
struct BackwardWalk {
  Size size;
  const int* cone;
  std::int64_t count, steps;
  System<T> system;  ///< without d and q
  WalkedPath<T> path;
  Gradients<T> to;
  bool tied_active, midpoint;  ///< whether tied pairs count as w_i = 0; whether the mean of both derivatives is taken
  double* workspace;           ///< as many numbers as Adjoint counts, 64-byte aligned

  /// t = J' (g_z, g_w), see solver/active_set.h, for a trajectory whose M_aa the kernel finds nearly singular.
  void (*solve)(void* self, std::int64_t trajectory, const std::int8_t* states, bool tied_active, const double* g_z,
                const double* g_w, double* t);
  void* self;
};

/// A walk in forward mode of `count` trajectories.
template <class T>
struct TangentWalk {
  Size size;
  const int* cone;
  std::int64_t count, steps;
  Given<T> given, change;
  WalkedSteps<T> walked;
  Changes<T> to;
  bool tied_active, midpoint;  ///< as those of BackwardWalk
  bool is_smoothed;            ///< whether points of the central path are differentiated
  double* workspace;           ///< as many numbers as Tangent counts, 64-byte aligned
  T *r_buffer, *z_buffer;      ///< for kWidest trajectories

  /// Fills z_buffer with the z of the points for the q in r_buffer, of `count` trajectories from `first` on at step s.
  void (*find_points)(void* self, std::int64_t s, std::int64_t first, std::int64_t count);
  /// Fills z_buffer with the part dz of J r, see solver/active_set.h, for the r in r_buffer. Where derivatives are
  /// smoothed, K of solver/path_derivative.h takes the place of J, for the points that were found last.
  void (*solve)(void* self, std::int64_t s, std::int64_t first, std::int64_t count);
  void* self;
};

/// The numbers for each pair that a walk in forward mode needs for one vector.
inline constexpr int kVectorsOfPairs = 8;

/// The most trajectories in a vector.
inline constexpr std::int64_t kWidest = 16;

/// The number of vectors that are enumerated, and then verified and stepped, together: the processor overlaps the turns
/// of two short loops better than those of one long loop.
inline constexpr int kTogether = 8;

template <class T>
struct WalkKernels {
  void (*forward)(const ForwardWalk<T>& walk);
  void (*backward)(const BackwardWalk<T>& walk);
  void (*tangent)(const TangentWalk<T>& walk);
};

struct Kernels {
  /// For n = 1, 2, ..., kSmall; the first is for any other n, and has only a tangent.
  WalkKernels<double> doubles[batch::kSmall + 1];
  WalkKernels<float> floats[batch::kSmall + 1];

  template <class T>
  const WalkKernels<T>& of(int n) const {
    const int k = n <= batch::kSmall ? n : 0;
    if constexpr (sizeof(T) == sizeof(double)) {
      return doubles[k];
    } else {
      return floats[k];
    }
  }
};

/// The kernels of the instruction set in use.
const Kernels& kernels();

}  // namespace lcp::lcs
