// Walks linear complementarity systems backward in time: the gradients of their trajectories.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batch/batch_path.h"
#include "lcp/ties.h"
#include "lcs/cone.h"
#include "lcs/kernels.h"
#include "lcs/system.h"
#include "lcs/tied_derivative.h"
#include "linalg/aligned.h"
#include "solver/active_set.h"

namespace lcp::lcs {

/// Let l be the gradient of a step's x_next: its own and that which the next step carries to it. With the adjoint J' of
/// solver/active_set.h,
///
///   t = J' (g_z + D' l, g_w + G' l)
///
/// is the gradient of E x + H u + q. (The w of a contact that sticks gets no G' l.) The gradient of x is A' l + E' t,
/// and that of u is B' l + H' t. The gradients of A, B, D, G are the products l x', l u', l z', l w', and those of E,
/// H, M are t x', t u', t z'. Numbers of these products that are not finite count as 0: they belong to unsolved steps,
/// whose l and t already have the right gradient.
///
/// Where derivatives are smoothed, t and z are those of points of the central path, see batch/batch_path.h, but the z
/// in D z, and contacts that stick have the derivative of w.
///
/// T is the type of the numbers in memory, double or float. Systems of few pairs are walked by the vector kernels, but
/// for the steps that these leave, and for smoothed derivatives. Allocates once for a run, and as ActiveSet does.
template <class T>
class Adjoint {
 public:
  /// kappa: > 0 where derivatives are smoothed, which have no ties.
  Adjoint(const Size& size, Cone cone, Ties ties, double kappa = 0);

  void run(std::int64_t count, std::int64_t steps, const System<T>& system, const WalkedPath<T>& path,
           const Gradients<T>& to);

 private:
  // Sums of the outer products of two vectors, each with as many numbers as its matrix has rows or columns.
  struct Product {
    T* to;
    int rows, columns;
    std::int64_t sum;  // the place of the sums of the first trajectory among sums_
  };

  // The solver, one by one, of the steps that the kernels leave.
  struct OneByOne {
    OneByOne(int n, bool single_precision)
        : M(std::int64_t{n} * n), inactive(n, single_precision, false), active(n, single_precision, true) {}

    batch::ElementReader<T> M;
    solver::ActiveSet inactive, active;
  };

  void run_kernel(std::int64_t count, std::int64_t steps, const System<T>& system, const WalkedPath<T>& path,
                  const Gradients<T>& to);
  void run_block(std::int64_t count, std::int64_t steps, const System<T>& system, const WalkedPath<T>& path,
                 const Gradients<T>& to);

  Size size_;
  Cone cone_;
  Ties ties_;
  linalg::AlignedVector<double> workspace_;
  std::optional<OneByOne> one_by_one_;  // where there are kernels
  TiedDerivative<T> derivative_;
  std::optional<batch::BatchPath<T>> path_;  // where derivatives are smoothed
  std::vector<T> g_z_, g_w_, t_, moving_w_, q_;
  std::vector<double> l_, carried_, sums_, finite_;
};

}  // namespace lcp::lcs
