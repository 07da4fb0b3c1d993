// Newton's method of contact/newton.h, for v alone, one problem in each warp.
#pragma once

#include "contact/cuda/bodies.cuh"
#include "contact/newton.h"

namespace lcp::contact::cuda {

template <int size, class T>
class WarpNewton {
 public:
  __device__ WarpNewton(WarpBodies<size, T>& bodies, int n, double v_free, double v_hat)
      : bodies_(bodies), n_(n), v_free_(v_free), v_hat_(v_hat) {}

  // Returns whether A is positive definite and the problem not stiff, as solve requires.
  __device__ bool begin() {
    if (!bodies_.factor(Eigen::Matrix3d::Zero())) return false;
    const double diagonal = bodies_.diagonal();
    scale_ = lane() < n_ ? 1 / sqrt(diagonal) : 0.0;
    free_momentum_ = bodies_.multiply(v_free_);
    delassus_ = bodies_.of_contact(bodies_.J().row_squares(lane() < n_ ? 1 / diagonal : 0.0)).mean();
    soften(kStiff);
    return softness_ == 0;
  }

  // Returns whether the method found v from the start v.
  __device__ bool solve(double tolerance, std::int64_t max_iterations, double v) {
    v_ = v;
    softness_ = 0;
    bool softened = false;
    while (true) {
      evaluate();
      if (softness_ == 0) {
        if (relative_ <= tolerance || (relative_ <= kMaxBlur && is_rounding())) return true;
        if (iterations_ == max_iterations) return false;
      }
      const bool is_blurred = relative_ > kMaxBlur && is_rounding();
      if (is_blurred && softness_ == 0) return false;
      if (relative_ > kFarFromSolution && !is_blurred ? !softened : softness_ > 0) {
        const double before = softness_;
        soften(softened ? before * kSoftnessFactor : kSoftnessFactor);
        softened = true;
        if (softness_ != before) continue;
      }
      if (iterations_ == max_iterations) return false;
      if (!is_finite(absolute_) || !bodies_.factor(compliance())) return false;
      step_ = bodies_.solve(-gradient_);
      const double Jstep = bodies_.J().to_contacts(step_);
      const double length = step_length(bodies_.of_contact(Jstep), sum_of_lanes(step_ * momentum_),
                                        sum_of_lanes(step_ * bodies_.multiply(step_)));
      const double next = v_ + length * step_;
      if (!any_lane(next != v_)) return false;
      v_ = next;
      ++iterations_;
    }
  }

  __device__ double v() const { return v_; }
  __device__ double y() const { return bodies_.to_rows(y_); }
  __device__ double gamma() const { return bodies_.to_rows(at_.gamma); }
  __device__ std::int64_t iterations() const { return iterations_; }

 private:
  __device__ double norm(double x) const { return sqrt(sum_of_lanes(scale_ * x * (scale_ * x))); }

  __device__ Law law() const {
    const Law given = bodies_.law();
    const double lower = softness_ * delassus_;
    return {given.mu, stdx::max(given.tangent, lower), stdx::max(given.normal, lower)};
  }

  __device__ void soften(double softness) {
    const Law given = bodies_.law();
    const bool below = bodies_.is_contact() && softness * delassus_ > stdx::min(given.tangent, given.normal);
    softness_ = any_lane(below) ? softness : 0.0;
  }

  __device__ Eigen::Matrix3d compliance() const {
    if (!bodies_.is_contact()) return Eigen::Matrix3d::Zero();
    return projected_compliance(y_, at_, law());
  }

  __device__ void evaluate() {
    momentum_ = bodies_.multiply(v_ - v_free_);
    y_ = bodies_.of_contact(v_hat_ - bodies_.J().to_contacts(v_)).cwiseQuotient(law().R());
    at_ = project(y_, law());
    const double push = bodies_.J().to_bodies(gamma());
    gradient_ = momentum_ - push;
    absolute_ = norm(gradient_);
    const double change = stdx::max(norm(momentum_), norm(push));
    is_small_ = absolute_ <= kNearSolution * stdx::max(change, norm(free_momentum_));
    const bool is_zero = absolute_ == 0 || (is_small_ && absolute_ <= momentum_rounding());
    relative_ = is_zero ? 0.0 : absolute_ / change;
  }

  // The functions of the same names in contact::Newton.
  __device__ bool is_rounding() const { return relative_ == 0 || (is_small_ && absolute_ <= rounding()); }
  __device__ double momentum_rounding() const {
    const double all = bodies_.multiply_abs(stdx::abs(v_) + stdx::abs(v_free_));
    return (n_ + bodies_.rows() + 4) * kUnitRoundoff * norm(all);
  }

  __device__ double rounding() const {
    const double sizes = bodies_.J().to_contacts_abs(stdx::abs(v_)) + stdx::abs(v_hat_);
    const Eigen::Vector3d of_contact = bodies_.of_contact(sizes);
    const Eigen::Vector3d pushes = compliance().cwiseAbs() * of_contact + at_.gamma.cwiseAbs();
    const double pull = bodies_.J().to_bodies_abs(bodies_.to_rows(pushes));
    const double all = bodies_.multiply_abs(stdx::abs(v_) + stdx::abs(v_free_)) + pull;
    return (n_ + bodies_.rows() + 4) * kUnitRoundoff * norm(all);
  }

  // Does what Newton::step_length does.
  __device__ double step_length(const Eigen::Vector3d& along, double slope, double curvature) const {
    const double start = slope - sum_of_lanes(along.dot(at_.gamma));
    if (!(start < 0)) return 0;
    const Eigen::Vector3d change = along.cwiseQuotient(law().R());
    double low = 0, high = kMaxStepLength, length = 1;
    for (int k = 0; k < kMaxEvaluations; ++k) {
      const Eigen::Vector3d y = y_ - length * change;
      const Projection there = project(y, law());
      double push = 0, stiffness = 0;
      if (bodies_.is_contact()) {
        push = along.dot(there.gamma);
        stiffness = along.dot(projected_compliance(y, there, law()) * along);
      }
      const double value = slope + length * curvature - sum_of_lanes(push);
      const double rise = curvature + sum_of_lanes(stiffness);
      if (stdx::abs(value) <= kSlopeTolerance * stdx::abs(start)) return length;
      (value < 0 ? low : high) = length;
      if (value < 0 && length == kMaxStepLength) return length;
      if (high - low <= std::numeric_limits<double>::epsilon() * high) return low;
      const double next = length - value / rise;
      length = next > low && next < high                          ? next
               : next >= kMaxStepLength && high == kMaxStepLength ? kMaxStepLength
                                                                  : (low + high) / 2;
    }
    return length;
  }

  WarpBodies<size, T>& bodies_;
  int n_;
  double v_free_, v_hat_;
  double v_ = 0, scale_ = 0, free_momentum_ = 0, momentum_ = 0, gradient_ = 0, step_ = 0;
  double delassus_ = 0, softness_ = 0, absolute_ = 0, relative_ = 0;
  bool is_small_ = false;
  Eigen::Vector3d y_ = Eigen::Vector3d::Zero();
  Projection at_ = {Eigen::Vector3d::Zero(), Region::kSeparated};
  std::int64_t iterations_ = 0;
};

template <int size, class T>
__global__ void __launch_bounds__(kWarp* kWarps<size>)
    solve_in_warps(std::int64_t count, Problems<T> problems, BatchView<T> guess, double tolerance,
                   std::int64_t max_iterations, Solutions<T> solutions, std::int32_t* left) {
  __shared__ WarpMemory<size> A[kWarps<size>], H[kWarps<size>];
  const int warp = threadIdx.x / kWarp;
  const std::int64_t b = std::int64_t{blockIdx.x} * kWarps<size> + warp;
  if (b >= count) return;
  const int n = problems.n, rows = 3 * problems.contacts;
  WarpBodies<size, T> bodies(problems, b, A[warp], H[warp]);
  const double v_free = read(problems.v_free, b, n), v_hat = read(problems.v_hat, b, rows);
  double start = v_free;
  if (guess.data != nullptr) {
    start = read(guess, b, n);
    if (any_lane(!is_finite(start))) start = v_free;
  }
  WarpNewton<size, T> newton(bodies, n, v_free, v_hat);
  const bool solved = !any_lane(!is_finite(v_free) || !is_finite(v_hat)) &&
                      bodies.load(element(problems.A, b, n * n)) && newton.begin() &&
                      newton.solve(tolerance, max_iterations, start);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  write(solutions.v, b, n, solved ? newton.v() : nan);
  write(solutions.y, b, rows, solved ? newton.y() : nan);
  write(solutions.gamma, b, rows, solved ? newton.gamma() : nan);
  if (lane() == 0) {
    solutions.status[b] = solved ? 0 : kLeftOver;
    solutions.iterations[b] = newton.iterations();
    if (!solved && left != nullptr) atomicAdd(left, 1);
  }
}

}  // namespace lcp::contact::cuda
