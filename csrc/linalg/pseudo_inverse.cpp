#include "linalg/pseudo_inverse.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace lcp::linalg {
namespace {

double dot(const double* a, const double* b, int k) { return std::inner_product(a, a + k, b, 0.0); }

void subtract(double factor, const double* a, int k, double* x) {
  for (int i = 0; i < k; ++i) x[i] -= factor * a[i];
}

// x_i <- 2^-exponent_i x_i.
void scale(const std::vector<int>& exponents, double* x) {
  for (std::size_t i = 0; i < exponents.size(); ++i) {
    if (exponents[i] != 0) x[i] = std::ldexp(x[i], -exponents[i]);
  }
}

}  // namespace

void PseudoInverse::set(const Lu& lu, const int* r, const int* c) {
  k_ = lu.size();
  r_.assign(r, r + k_);
  c_.assign(c, c + k_);
  set_null_spaces(lu);
}

void PseudoInverse::set(const Lu& lu) {
  k_ = lu.size();
  r_.assign(k_, 0);
  c_.assign(k_, 0);
  set_null_spaces(lu);
}

void PseudoInverse::set_null_spaces(const Lu& lu) {
  const std::size_t numbers = static_cast<std::size_t>(k_ - lu.pivots()) * k_;
  left_.resize(numbers);
  right_.resize(numbers);
  b_.resize(k_);
  lu.null_space_of_transpose(left_.data());
  lu.null_space(right_.data());
  for (std::size_t first = 0; first < numbers; first += k_) {
    scale(r_, left_.data() + first);
    scale(c_, right_.data() + first);
  }
  make_orthonormal(left_);
  make_orthonormal(right_);
}

// The Gram-Schmidt method, with each vector made orthogonal twice, since the first time may cancel most of it.
void PseudoInverse::make_orthonormal(std::vector<double>& vectors) const {
  for (double* x = vectors.data(); x != vectors.data() + vectors.size(); x += k_) {
    const double largest =
        std::abs(*std::max_element(x, x + k_, [](double a, double b) { return std::abs(a) < std::abs(b); }));
    for (int i = 0; i < k_; ++i) x[i] /= largest;  // its square might overflow
    for (int pass = 0; pass < 2; ++pass) {
      for (const double* before = vectors.data(); before != x; before += k_)
        subtract(dot(before, x, k_), before, k_, x);
      const double length = std::sqrt(dot(x, x, k_));
      for (int i = 0; i < k_; ++i) x[i] /= length;
    }
  }
}

void PseudoInverse::remove(const std::vector<double>& vectors, double* x) const {
  for (const double* each = vectors.data(); each != vectors.data() + vectors.size(); each += k_) {
    subtract(dot(each, x, k_), each, k_, x);
  }
}

void PseudoInverse::solve(const Lu& lu, double* x) {
  remove(left_, x);
  std::copy_n(x, k_, b_.data());
  scale(r_, b_.data());
  std::fill_n(x, k_, 0.0);
  lu.solve_near(b_.data(), x);
  scale(c_, x);
  remove(right_, x);
}

void PseudoInverse::solve_transposed(const Lu& lu, double* x) {
  remove(right_, x);
  std::copy_n(x, k_, b_.data());
  scale(c_, b_.data());
  std::fill_n(x, k_, 0.0);
  lu.solve_near_transposed(b_.data(), x);
  scale(r_, x);
  remove(left_, x);
}

}  // namespace lcp::linalg
