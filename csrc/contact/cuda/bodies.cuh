// One problem of compliant contact in each warp. Numbers of contacts are in the lanes k, numbers of rows of contacts in
// the lanes 3 k + i, and numbers of velocities in the lanes j.
#pragma once

#include "contact/cone.h"
#include "contact/cuda/kernels.h"
#include "contact/cuda/system.cuh"

namespace lcp::contact::cuda {

template <int size>
inline constexpr int kWarps = kWarpsWith<size, 2>;  // the warps of a block

template <int size, class T>
class WarpBodies {
 public:
  // A, H: memory for these matrices.
  __device__ WarpBodies(const Problems<T>& problems, std::int64_t b, WarpMemory<size>& A, WarpMemory<size>& H)
      : n_(problems.n),
        contacts_(problems.contacts),
        A_memory_(A),
        A_(n_, A),
        H_(n_, H),
        J_data_(element(problems.J, b, rows() * n_)),
        J_(n_, rows(), J_data_, A) {
    R_[0] = R_[1] = R_[2] = 1;
    if (lane() < contacts_) {
      for (int i = 0; i < 3; ++i) R_[i] = double(element(problems.R, b, rows())[3 * lane() + i]);
      mu_ = double(element(problems.mu, b, contacts_)[lane()]);
    }
    law_ = law_of(R_, mu_);
  }

  __device__ int rows() const { return 3 * contacts_; }
  __device__ bool is_contact() const { return lane() < contacts_; }
  __device__ const Law& law() const { return law_; }
  __device__ const WarpJacobian<size, T>& J() const { return J_; }

  // Returns whether A, J, R and mu belong to a well-posed problem; the definiteness of A is not checked.
  __device__ bool load(const T* A) {
    const bool finite = is_finite(R_[0]) && is_finite(R_[1]) && is_finite(R_[2]) && is_finite(mu_);
    const bool valid = finite && is_valid_law(R_, mu_);
    return A_.load(A) && J_.is_finite() && !any_lane(!valid);
  }

  // A x.
  __device__ double multiply(double x) const {
    return sum(x, [](double entry) { return entry; });
  }
  // |A| x.
  __device__ double multiply_abs(double x) const {
    return sum(x, [](double entry) { return stdx::abs(entry); });
  }
  __device__ double diagonal() const { return lane() < n_ ? A_.at(lane(), lane()) : 1.0; }

  // H := A + J' blkdiag(K) J, factored. False where it is not positive definite.
  __device__ bool factor(const Eigen::Matrix3d& K) {
    __syncwarp();
    for (int j = 0; lane() < n_ && j <= lane(); ++j) H_.entry(lane(), j) = A_.at(lane(), j);
    for (int k = 0; k < contacts_; ++k) {
      double K_k[9], JK[3] = {0, 0, 0};
      for (int m = 0; m < 9; ++m) K_k[m] = from_lane(K.data()[m], k);
      const T* const rows = J_data_ + 3 * k * n_;
      for (int i = 0; lane() < n_ && i < 3; ++i) {
        const double entry = double(rows[i * n_ + lane()]);
        for (int j = 0; j < 3; ++j) JK[j] = multiply_add(entry, K_k[3 * i + j], JK[j]);
      }
      for (int j = 0; lane() < n_ && j <= lane(); ++j) {
        double sum = H_.entry(lane(), j);
        for (int i = 0; i < 3; ++i) sum = multiply_add(JK[i], double(rows[i * n_ + j]), sum);
        H_.entry(lane(), j) = sum;
      }
    }
    __syncwarp();
    return H_.factor();
  }
  // H^-1 x.
  __device__ double solve(double x) const { return H_.solve(x); }

  // Numbers of rows, moved to the lanes of their contacts and back.
  __device__ Eigen::Vector3d of_contact(double x) const {
    A_memory_.share(x);
    if (!is_contact()) return Eigen::Vector3d::Zero();
    const double* const x_k = A_memory_.vector + 3 * lane();
    return {x_k[0], x_k[1], x_k[2]};
  }
  __device__ double to_rows(const Eigen::Vector3d& x) const {
    __syncwarp();
    for (int i = 0; is_contact() && i < 3; ++i) A_memory_.vector[3 * lane() + i] = x[i];
    __syncwarp();
    return lane() < rows() ? A_memory_.vector[lane()] : 0.0;
  }

 private:
  template <class Entry>
  __device__ double sum(double x, const Entry& entry) const {
    A_memory_.share(x);
    double total = 0;
    for (int j = 0; lane() < n_ && j < n_; ++j) {
      total = multiply_add(entry(A_.at(lane(), j)), A_memory_.vector[j], total);
    }
    return total;
  }

  int n_, contacts_;
  WarpMemory<size>& A_memory_;
  WarpCholesky<size> A_, H_;
  const T* J_data_;
  WarpJacobian<size, T> J_;
  double R_[3], mu_ = 0;
  Law law_;
};

}  // namespace lcp::contact::cuda
