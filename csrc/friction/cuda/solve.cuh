// Contact with Coulomb friction, one problem in each warp, by the first methods of friction/ladder.h.
#pragma once

#include "friction/cuda/newton.cuh"

namespace lcp::friction::cuda {

template <int size>
inline constexpr int kWarps = kWarpsWith<size, 3>;  // the warps of a block; the derivative has three matrices

struct Attempts {
  Attempt attempt[std::size(kAttempts)];
};

// One problem of a batch, in the units of its contacts.
template <int size, class T>
class WarpProblem {
 public:
  __device__ WarpProblem(const Problems<T>& problems, std::int64_t b, WarpMemory<size>& factor, WarpMemory<size>& W)
      : n_(problems.n),
        contacts_(problems.contacts),
        W_(W),
        factor_(factor),
        A_(n_, factor),
        J_data_(element(problems.J, b, rows() * n_)),
        J_(n_, rows(), J_data_, W),
        mu_(lane() < contacts_ ? double(element(problems.mu, b, contacts_)[lane()]) : 0.0) {}

  __device__ int rows() const { return 3 * contacts_; }
  // Returns whether A, J and mu belong to a well-posed problem; factors A.
  __device__ bool factor(const T* A) { return A_.load(A) && J_.is_finite() && !any_lane(!(mu_ >= 0)) && A_.factor(); }
  // The impulses for the velocities J v_free + b without contact. To be called after factor.
  __device__ WarpImpulses<size> impulses(double v_free, double b) {
    const double free = J_.to_contacts(v_free) + b, sizes = J_.to_contacts_abs(stdx::abs(v_free)) + stdx::abs(b);
    A_.compliance(rows(), J_data_, W_);
    return WarpImpulses<size>(contacts_, free, sizes, mu_, W_, factor_);
  }
  __device__ const WarpCholesky<size>& A() const { return A_; }
  __device__ const WarpJacobian<size, T>& J() const { return J_; }

 private:
  int n_, contacts_;
  WarpMemory<size>&W_, &factor_;
  WarpCholesky<size> A_;
  const T* J_data_;
  WarpJacobian<size, T> J_;
  double mu_;
};

template <int size, class T>
__global__ void __launch_bounds__(kWarp* kWarps<size>)
    solve_in_warps(std::int64_t count, Problems<T> problems, BatchView<T> guess, double tolerance, Attempts attempts,
                   Solutions<T> solutions, std::int32_t* left) {
  __shared__ WarpMemory<size> factors[kWarps<size>], compliances[kWarps<size>];
  const int warp = threadIdx.x / kWarp;
  const std::int64_t b = std::int64_t{blockIdx.x} * kWarps<size> + warp;
  if (b >= count) return;
  const int n = problems.n, rows = 3 * problems.contacts;
  WarpProblem<size, T> problem(problems, b, factors[warp], compliances[warp]);
  const double v_free = read(problems.v_free, b, n), offset = read(problems.b, b, rows);
  double v = 0, gamma = 0, u = 0;
  std::int64_t steps = 0;
  bool solved = false;
  if (!any_lane(!is_finite(v_free) || !is_finite(offset)) && problem.factor(element(problems.A, b, n * n))) {
    const WarpImpulses<size> impulses = problem.impulses(v_free, offset);
    tolerance = stdx::max(tolerance, impulses.rounding());
    const auto accepted = [&](double h) {
      if (!(impulses.residual(h, impulses.velocities(h)) <= tolerance)) return false;
      gamma = h * impulses.push_of_row();
      v = v_free + problem.A().solve(problem.J().to_bodies(gamma));
      u = problem.J().to_contacts(v) + offset;
      return impulses.residual(h, u / impulses.length_of_row()) <= tolerance;
    };
    double start = 0;
    if (guess.data != nullptr) {
      start = read(guess, b, rows) / impulses.push_of_row();
      if (any_lane(!is_finite(start))) start = 0;
    }
    solved = accepted(start);
    WarpNewton<size> newton(impulses);
    for (int k = 0; k < static_cast<int>(std::size(kAttempts)) && !solved; ++k) {
      const Attempt& attempt = attempts.attempt[k];
      const double swept = attempt.sweeps > 0 ? sweep(impulses, attempt.sweeps, start) : start;
      solved = accepted(newton.solve(attempt.newton, kGoal * tolerance, swept, steps));
    }
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  write(solutions.v, b, n, solved ? v : nan);
  write(solutions.gamma, b, rows, solved ? gamma : nan);
  write(solutions.u, b, rows, solved ? u : nan);
  if (lane() == 0) {
    solutions.status[b] = solved ? 0 : kLeftOver;
    solutions.iterations[b] = steps;
    if (!solved && left != nullptr) atomicAdd(left, 1);
  }
}

}  // namespace lcp::friction::cuda
