// Impulses, see friction/impulse_problem.h, of one problem in each warp.
#pragma once

#include "contact/cuda/system.cuh"
#include "friction/cuda/kernels.h"
#include "friction/law_error.h"

namespace lcp::friction::cuda {

using namespace contact::cuda;

// u = W h + q. Lane 3 k + i holds entry i of contact k. Numbers of contacts are in the lanes k. Members named _of_row
// hold in lane t the number of contact t / 3.
template <int size>
class WarpImpulses {
 public:
  // W: J A^-1 J' on entry, brought to the units of the contacts. free: J v_free + b. sizes: |J| |v_free| + |b|. other:
  // a second memory, for its vector.
  __device__ WarpImpulses(int contacts, double free, double sizes, double mu, WarpMemory<size>& W,
                          WarpMemory<size>& other)
      : contacts_(contacts), W_(W), other_(other), mu_(stdx::min(mu, kLargestFriction)), given_mu_(mu) {
    const double largest = largest_of_lanes(exists() ? stdx::abs(free) : 0.0);
    unit_ = largest > 0 ? largest : 1.0;
    rounding_ = kRounding * largest_of_lanes(exists() ? sizes : 0.0) / unit_;
    W_.share(exists() ? W_.at(lane(), lane()) : 0.0);
    const int first = exists() ? lane() - lane() % 3 : 0;
    const double trace = W_.vector[first] + W_.vector[first + 1] + W_.vector[first + 2];
    weight_of_row_ = exists() && trace > 0 ? sqrt(trace / 3) : 1.0;  // as in impulse_problem.cpp
    weight_ = from_lane(weight_of_row_, lane() < contacts ? 3 * lane() : 0);
    q_ = exists() ? free / (weight_of_row_ * unit_) : 0.0;
    const double inverse = 1 / weight_of_row_;
    W_.share(inverse);
    for (int j = 0; exists() && j < rows(); ++j) W_.entry(lane(), j) *= inverse * W_.vector[j];
    __syncwarp();
  }

  __device__ int contacts() const { return contacts_; }
  __device__ int rows() const { return 3 * contacts_; }
  __device__ bool exists() const { return lane() < rows(); }
  __device__ double q() const { return q_; }
  __device__ double mu() const { return mu_; }
  __device__ double rounding() const { return rounding_; }  // as ImpulseProblem::rounding
  __device__ bool is_limited() const { return mu_ != given_mu_; }
  __device__ double weight() const { return weight_; }
  __device__ double W(int i, int j) const { return W_.at(i, j); }
  __device__ double length_of_row() const { return weight_of_row_ * unit_; }  // the unit of u
  __device__ double push_of_row() const { return unit_ / weight_of_row_; }    // the unit of gamma

  __device__ double velocities(double h) const {
    W_.share(h);
    double u = q_;
    for (int j = 0; exists() && j < rows(); ++j) u = multiply_add(W_.at(lane(), j), W_.vector[j], u);
    return u;
  }

  // Calls of_contact(h, u) in the lane of each contact, with its [3] impulses and velocities.
  template <class OfContact>
  __device__ void for_contacts(double h, double u, const OfContact& of_contact) const {
    W_.share(h);
    other_.share(u);
    if (lane() < contacts_) of_contact(W_.vector + 3 * lane(), other_.vector + 3 * lane());
  }

  // The residual; not finite where a number is not finite.
  __device__ double residual(double h, double u) const {
    double error = 0;
    for_contacts(h, u, [&](const double* h_k, const double* u_k) { error = weight_ * law_error(h_k, u_k, given_mu_); });
    const double largest = largest_of_lanes(error);
    return any_lane(!is_finite(error)) ? std::numeric_limits<double>::infinity() : largest;
  }

 private:
  int contacts_;
  WarpMemory<size>&W_, &other_;
  double mu_, given_mu_, weight_, weight_of_row_, unit_, rounding_, q_;
};

}  // namespace lcp::friction::cuda
