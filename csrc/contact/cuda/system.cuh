// The linear algebra of contact problems, one in each warp; contact::DenseSystem is its counterpart for the CPU. Lane i
// holds entry i of a vector of velocities, and lane t holds entry t of a vector of contacts, 0 beyond the last.
#pragma once

#include <limits>

#include "contact/problem.h"
#include "linalg/batch_view.h"
#include "linalg/cuda/warp.cuh"

namespace lcp::contact::cuda {

using namespace linalg::cuda;

__device__ inline bool is_finite(double x) { return stdx::abs(x) <= std::numeric_limits<double>::max(); }

// Element b of a batch of `size` numbers each.
template <class T>
__device__ const T* element(const linalg::BatchView<T>& view, std::int64_t b, int size) {
  return view.data + (view.shared ? 0 : b * size);
}

// A vector of `count` numbers of element b, one in each lane; 0 beyond.
template <class T>
__device__ double read(const linalg::BatchView<T>& view, std::int64_t b, int count) {
  return lane() < count ? double(element(view, b, count)[lane()]) : 0.0;
}
template <class T>
__device__ void write(T* to, std::int64_t b, int count, double x) {
  if (lane() < count) to[b * count + lane()] = T(x);
}

// A symmetric positive definite matrix of order n in the memory of a warp, and its Cholesky factor in its place.
template <int size>
class WarpCholesky {
 public:
  __device__ WarpCholesky(int n, WarpMemory<size>& memory) : n_(n), H_(memory) {}

  // H := (A + A') / 2. Returns false where a number is not finite or A is not symmetric, by the rule of
  // contact::symmetric.
  template <class T>
  __device__ bool load(const T* A) {
    H_.load(n_, A);
    double largest = 0;
    double difference = 0;
    bool finite = true;
    for (int j = 0; lane() < n_ && j < n_; ++j) {
      const double entry = H_.at(lane(), j);
      finite = finite && is_finite(entry);
      largest = stdx::max(largest, stdx::abs(entry));
      difference = stdx::max(difference, stdx::abs(entry - H_.at(j, lane())));
    }
    if (any_lane(!finite)) return false;
    __syncwarp();
    for (int j = 0; lane() < n_ && j < lane(); ++j) {  // the lower triangle
      H_.entry(lane(), j) = (H_.at(lane(), j) + H_.at(j, lane())) / 2;
    }
    __syncwarp();
    return largest_of_lanes(difference) <= kMaxAsymmetry * largest_of_lanes(largest);
  }

  // Factors the lower triangle; false where the matrix is not positive definite.
  __device__ bool factor() {
    for (int k = 0; k < n_; ++k) {
      const double pivot = H_.at(k, k);
      if (!(pivot > 0)) return false;
      const double root = sqrt(pivot);
      const bool below = lane() > k && lane() < n_;
      const double entry = below ? H_.at(lane(), k) / root : 0.0;
      __syncwarp();
      if (below) H_.entry(lane(), k) = entry;
      if (lane() == k) {
        H_.entry(k, k) = root;
        inverse_ = 1 / root;
      }
      __syncwarp();
      for (int j = k + 1; below && j <= lane(); ++j) {
        H_.entry(lane(), j) = subtract_product(entry, H_.at(j, k), H_.at(lane(), j));
      }
      __syncwarp();
    }
    return true;
  }

  // H^-1 x, after factor.
  __device__ double solve(double x) const {
    for (int k = 0; k < n_; ++k) {
      const double found = from_lane(x * inverse_, k);
      if (lane() > k && lane() < n_) x = subtract_product(H_.at(lane(), k), found, x);
      if (lane() == k) x = found;
    }
    for (int k = n_ - 1; k >= 0; --k) {
      const double found = from_lane(x * inverse_, k);
      if (lane() < k) x = subtract_product(H_.at(k, lane()), found, x);
      if (lane() == k) x = found;
    }
    return x;
  }

  // W := J H^-1 J', rows x rows, symmetric to the last bit. Row t of J belongs to lane t.
  template <class T>
  __device__ void compliance(int rows, const T* J, WarpMemory<size>& W) const {
    double half[size];  // column t of L^-1 J'
#pragma unroll
    for (int i = 0; i < size; ++i) {
      half[i] = 0;
      if (i < n_) {
        double sum = lane() < rows ? double(J[lane() * n_ + i]) : 0.0;
#pragma unroll
        for (int j = 0; j < i; ++j) sum = subtract_product(H_.at(i, j), half[j], sum);
        half[i] = sum * from_lane(inverse_, i);
      }
    }
    __syncwarp();
    for (int s = 0; s < rows; ++s) {
      double sum = 0;
#pragma unroll
      for (int i = 0; i < size; ++i) {
        if (i < n_) sum = multiply_add(half[i], from_lane(half[i], s), sum);
      }
      if (lane() < rows) W.entry(lane(), s) = sum;
    }
    __syncwarp();
  }

  __device__ double at(int i, int j) const { return i > j ? H_.at(i, j) : H_.at(j, i); }  // before factor
  __device__ double& entry(int i, int j) { return H_.entry(i, j); }

 private:
  int n_;
  WarpMemory<size>& H_;
  double inverse_ = 0;  // 1 / this lane's entry of the factor's diagonal
};

// Products with J, [rows, n], in the memory of the GPU. `memory` passes vectors between the lanes.
template <int size, class T>
class WarpJacobian {
 public:
  __device__ WarpJacobian(int n, int rows, const T* J, WarpMemory<size>& memory)
      : n_(n), rows_(rows), J_(J), memory_(memory) {}

  __device__ bool is_finite() const {
    bool finite = true;
    for (int k = lane(); k < n_ * rows_; k += kWarp) finite = finite && cuda::is_finite(double(J_[k]));
    return !any_lane(!finite);
  }
  // J v.
  __device__ double to_contacts(double v) const {
    return sum_over_bodies(v, [](double x) { return x; });
  }
  // |J| v.
  __device__ double to_contacts_abs(double v) const {
    return sum_over_bodies(v, [](double x) { return stdx::abs(x); });
  }
  // The diagonal of J diag(weights) J'.
  __device__ double row_squares(double weights) const {
    return sum_over_bodies(weights, [](double x) { return x * x; });
  }
  // J' gamma.
  __device__ double to_bodies(double gamma) const {
    return sum_over_contacts(gamma, [](double x) { return x; });
  }
  // |J|' gamma.
  __device__ double to_bodies_abs(double gamma) const {
    return sum_over_contacts(gamma, [](double x) { return stdx::abs(x); });
  }

 private:
  template <class Entry>
  __device__ double sum_over_bodies(double v, const Entry& entry) const {
    memory_.share(v);
    double sum = 0;
    for (int j = 0; lane() < rows_ && j < n_; ++j) {
      sum = multiply_add(entry(double(J_[lane() * n_ + j])), memory_.vector[j], sum);
    }
    return sum;
  }
  template <class Entry>
  __device__ double sum_over_contacts(double gamma, const Entry& entry) const {
    memory_.share(gamma);
    double sum = 0;
    for (int t = 0; lane() < n_ && t < rows_; ++t) {
      sum = multiply_add(entry(double(J_[t * n_ + lane()])), memory_.vector[t], sum);
    }
    return sum;
  }

  int n_, rows_;
  const T* J_;
  WarpMemory<size>& memory_;
};

}  // namespace lcp::contact::cuda
