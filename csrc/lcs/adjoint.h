// Walks linear complementarity systems backward in time: the gradients of their trajectories.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lcp/ties.h"
#include "lcs/cone.h"
#include "lcs/kernels.h"
#include "lcs/system.h"
#include "lcs/tied_derivative.h"
#include "linalg/aligned.h"
#include "solver/active_set.h"

namespace lcp::lcs {

/// With l the gradient of a step's x_next, its own and what the next step carries to it, and J' the adjoint of
/// solver/active_set.h,
///
///   t = J' (g_z + D' l, g_w + G' l)
///
/// (without G' l for the w of a contact that sticks) is the gradient of E x + H u + q. So x has A' l + E' t, u has B' l
/// + H' t, and the matrices have the products l x', l u', l z', l w' (A, B, D, G), t x', t u' and t z' (E, H, M). In
/// these products numbers that are not finite count as 0: they belong to steps that are not solved, whose l and t say
/// what their gradient is.
///
/// T is the type of the numbers in memory, double or float. Systems of few pairs are walked by the vector kernels, but
/// for the steps that these leave. Allocates once for a run, and as ActiveSet does.
template <class T>
class Adjoint {
 public:
  Adjoint(const Size& size, Cone cone, Ties ties);

  void run(std::int64_t count, std::int64_t steps, const System<T>& system, const WalkedPath<T>& path,
           const Gradients<T>& to);

 private:
  // Sums of the outer products of two vectors, each with as many numbers as its matrix has rows or columns.
  struct Product {
    T* to;
    int rows, columns;
    std::int64_t sum;  // the place of the sums of the first trajectory among sums_
  };

  // What solves the steps that the kernels leave, one by one.
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
  std::vector<T> g_z_, g_w_, t_, moving_w_;
  std::vector<double> l_, carried_, sums_, finite_;
};

}  // namespace lcp::lcs
