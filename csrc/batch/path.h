// Points of the central path and their derivatives for small problems, one in each lane.
//
// The method is that of solver/central_path.h and solver/path_derivative.h, which are written for one problem and take
// what is left here; a test compares both. Here no lane waits for a branch of another: a lane that has arrived, or has
// failed, keeps its numbers while the others go on.
#pragma once

#include <cstdint>
#include <limits>

#include "batch/interleave.h"
#include "batch/path_kernels.h"
#include "simd/lanes.h"
#include "simd/square_root.h"

namespace lcp::batch::path::LCP_ISA {

using namespace simd::LCP_ISA;
using batch::LCP_ISA::broadcast_interleaved;
using batch::LCP_ISA::load_interleaved;
using batch::LCP_ISA::store_interleaved;
using V = Lanes<double>;

constexpr int kWidth = kLanes<double>;

LCP_INLINE inline V choose(const Mask<V>& mask, const V& a, const V& b) {
  V chosen = b;
  stdx::where(mask, chosen) = a;
  return chosen;
}

LCP_INLINE inline Mask<V> is_finite(const V& x) { return stdx::abs(x) <= V(std::numeric_limits<double>::max()); }

// Powers of two near 1 / x and 1 / sqrt(x), from the exponent of x; 1 where x is 0.
LCP_INLINE inline V power_near(const V& x, bool of_root) {
  using Bits = SignBits<V>;
  constexpr int kMantissa = 52, kBias = 1023;
  const typename Bits::Bits exponent = (Bits::of(x) >> kMantissa) - kBias;
  const typename Bits::Bits power = of_root ? (exponent + 1) >> 1 : exponent;
  return choose(x > V(0), Bits::from((kBias - power) << kMantissa), V(1));
}

// Solves A x = b in place by elimination with row pivoting; A: n x n row-major. Where A is singular, x is not finite.
LCP_NOINLINE inline void solve(int n, V* A, V* b) {
  for (int c = 0; c < n; ++c) {
    V* const pivot = A + c * n;
    for (int r = c + 1; r < n; ++r) {
      V* const row = A + r * n;
      const Mask<V> larger = stdx::abs(row[c]) > stdx::abs(pivot[c]);
      if (stdx::none_of(larger)) continue;
      for (int j = c; j < n; ++j) {
        const V kept = pivot[j];
        stdx::where(larger, pivot[j]) = row[j];
        stdx::where(larger, row[j]) = kept;
      }
      const V kept = b[c];
      stdx::where(larger, b[c]) = b[r];
      stdx::where(larger, b[r]) = kept;
    }
    const V inverse = 1.0 / pivot[c];
    for (int r = c + 1; r < n; ++r) {
      V* const row = A + r * n;
      const V factor = row[c] * inverse;
      for (int j = c + 1; j < n; ++j) row[j] = subtract_product(factor, pivot[j], row[j]);
      b[r] = subtract_product(factor, b[c], b[r]);
    }
    pivot[c] = inverse;
  }
  for (int c = n - 1; c >= 0; --c) {
    for (int j = c + 1; j < n; ++j) b[c] = subtract_product(A[c * n + j], b[j], b[c]);
    b[c] = b[c] * A[c * n + c];
  }
}

template <class T>
LCP_INLINE inline void read(BatchView<T> view, std::int64_t b, int problems, int size, V* out) {
  auto* const numbers = reinterpret_cast<double*>(out);
  if (view.shared) {
    broadcast_interleaved(size, view.data, numbers);
  } else if (problems == kWidth && 2 * size > kWidth) {
    load_interleaved(problems, size, view.data + b * size, numbers);
  } else {
    for (int l = 0; l < kWidth; ++l) {
      const T* const from = view.data + (b + (l < problems ? l : problems - 1)) * size;
      for (int c = 0; c < size; ++c) numbers[c * kWidth + l] = static_cast<double>(from[c]);
    }
  }
}

template <class T>
LCP_INLINE inline void write(const V* in, std::int64_t b, int problems, int size, T* p) {
  const auto* const numbers = reinterpret_cast<const double*>(in);
  if (problems == kWidth && 2 * size > kWidth) {
    store_interleaved(problems, size, numbers, p + b * size);
  } else {
    for (int l = 0; l < problems; ++l) {
      for (int c = 0; c < size; ++c) p[(b + l) * size + c] = static_cast<T>(numbers[c * kWidth + l]);
    }
  }
}

// Calls work(b, problems) for a vector of problems after another.
template <class Work>
LCP_INLINE inline void by_vectors(std::int64_t count, const Work& work) {
  for (std::int64_t b = 0; b < count; b += kWidth) {
    work(b, static_cast<int>(count - b < kWidth ? count - b : kWidth));
  }
}

LCP_INLINE inline void mark(const Mask<V>& good, std::int64_t b, int problems, std::int8_t* status) {
  for (int l = 0; l < problems; ++l) status[b + l] = good[l] ? std::int8_t{0} : kLeftOver;
}

// Newton's method of solver::CentralPath for a vector of problems.
class Points {
 public:
  Points(int n, double* workspace)
      : n_(n),
        M_(reinterpret_cast<V*>(workspace)),
        A_(M_ + n * n),
        q_(A_ + n * n),
        z_(q_ + n),
        w_(z_ + n),
        weight_(w_ + n),
        f_(weight_ + n),
        root_(f_ + n),
        d_(root_ + n),
        trial_z_(d_ + n),
        trial_w_(trial_z_ + n),
        trial_f_(trial_w_ + n),
        trial_root_(trial_f_ + n),
        row_(trial_root_ + n),
        column_(row_ + n) {}

  // The problems, and then the points; column_scale and row_scale are the powers of two that scale z and w.
  V* M() { return M_; }
  V* q() { return q_; }
  V* z() { return z_; }
  V* w() { return w_; }

  // Returns the lanes with a point.
  Mask<V> find(double kappa) {
    scale(kappa);
    V value = merit(z_, w_, f_, root_);
    V least = weight_[0];
    for (int i = 1; i < n_; ++i) least = stdx::min(least, weight_[i]);
    Mask<V> active = is_finite(value);
    for (int k = 0; k < kStepsToPoint && stdx::any_of(active); ++k) {
      const Mask<V> is_near = value <= V(kNear * kNear) * least;
      active = active && step(active, is_near, value) && !is_near;
    }
    return finish(kappa);
  }

 private:
  static constexpr int kStepsToPoint = 60, kHalvings = 25, kSweeps = 8;  // as those of solver/central_path.cpp
  static constexpr double kNear = 1e-8;

  // Rows and columns of like size, as linalg::equilibrate makes them, and numbers of about unit size.
  void scale(double kappa) {
    V largest = 0;
    for (int k = 0; k < n_ * n_; ++k) largest = stdx::max(largest, stdx::abs(M_[k]));
    const V unit = power_near(largest, false);
    for (int k = 0; k < n_ * n_; ++k) M_[k] *= unit;
    for (int i = 0; i < n_; ++i) row_[i] = column_[i] = 1;
    const V target = largest * unit;
    Mask<V> changes(true);
    for (int sweep = 0; sweep < kSweeps && stdx::any_of(changes); ++sweep) {
      changes = Mask<V>(false);
      for (const bool rows : {true, false}) {
        const int along = rows ? 1 : n_, across = rows ? n_ : 1;
        for (int i = 0; i < n_; ++i) {
          V* const line = M_ + i * across;
          V most = 0;
          for (int j = 0; j < n_; ++j) most = stdx::max(most, stdx::abs(line[j * along]));
          const V factor = power_near(most / target, true);
          const Mask<V> scales = factor != V(1);
          if (stdx::none_of(scales)) continue;
          changes = changes || scales;
          (rows ? row_ : column_)[i] *= factor;
          for (int j = 0; j < n_; ++j) line[j * along] *= factor;
        }
      }
    }
    V most = 0;
    for (int i = 0; i < n_; ++i) {
      row_[i] *= unit;
      weight_[i] = V(kappa) * row_[i] / column_[i];
      q_[i] *= row_[i];
      z_[i] /= column_[i];
      most = stdx::max(stdx::max(most, square_root(weight_[i])), stdx::max(stdx::abs(q_[i]), stdx::abs(z_[i])));
    }
    size_ = power_near(most, false);
    for (int i = 0; i < n_; ++i) {
      weight_[i] *= size_ * size_;
      q_[i] *= size_;
      z_[i] *= size_;
    }
  }

  // Fills w = M z + q, f and the roots in f; returns |f|^2.
  LCP_INLINE V merit(const V* z, V* w, V* f, V* root) const {
    V sum = 0;
    for (int i = 0; i < n_; ++i) {
      V row = q_[i];
      for (int j = 0; j < n_; ++j) row = multiply_add(M_[i * n_ + j], z[j], row);
      const V apart = z[i] - row, total = z[i] + row;
      w[i] = row;
      root[i] = square_root(multiply_add(apart, apart, 4 * weight_[i]));
      f[i] = choose(total > V(0), 4 * (z[i] * row - weight_[i]) / (total + root[i]), total - root[i]);
      sum = multiply_add(f[i], f[i], sum);
    }
    return sum;
  }

  // One damped Newton step in the active lanes, not damped where is_near; returns those that lower the merit.
  LCP_NOINLINE Mask<V> step(const Mask<V>& active, const Mask<V>& is_near, V& value) {
    for (int i = 0; i < n_; ++i) {
      const V cosine = (z_[i] - w_[i]) / root_[i];
      for (int j = 0; j < n_; ++j) A_[i * n_ + j] = (1 + cosine) * M_[i * n_ + j];
      A_[i * n_ + i] += 1 - cosine;
      d_[i] = -f_[i];
    }
    solve(n_, A_, d_);
    Mask<V> lowers(false), tries = active;
    V length = 1;
    for (int k = 0; k < kHalvings && stdx::any_of(tries); ++k, length *= 0.5) {
      for (int i = 0; i < n_; ++i) trial_z_[i] = multiply_add(length, d_[i], z_[i]);
      const V trial = merit(trial_z_, trial_w_, trial_f_, trial_root_);
      const Mask<V> better = tries && trial < value * (1 - 1e-4 * length);
      stdx::where(better, value) = trial;
      for (int i = 0; i < n_; ++i) {
        stdx::where(better, z_[i]) = trial_z_[i];
        stdx::where(better, w_[i]) = trial_w_[i];
        stdx::where(better, f_[i]) = trial_f_[i];
        stdx::where(better, root_[i]) = trial_root_[i];
      }
      lowers = lowers || better;
      tries = tries && !better && !is_near;
    }
    return lowers;
  }

  // The points in the units of the problems.
  Mask<V> finish(double kappa) {
    Mask<V> found(true);
    for (int i = 0; i < n_; ++i) {
      found = found && stdx::abs(f_[i]) <= stdx::max(1e-9 * square_root(weight_[i]), V(1e-14));
      // The members of a pair have different units and are compared as they were scaled.
      const Mask<V> z_is_larger = z_[i] > w_[i];
      const V z = z_[i] * column_[i] / size_, w = w_[i] / (row_[i] * size_);
      z_[i] = choose(z_is_larger, z, V(kappa) / w);
      w_[i] = choose(z_is_larger, V(kappa) / z, w);
      found = found && z_[i] > V(0) && w_[i] > V(0) && is_finite(z_[i]) && is_finite(w_[i]);
    }
    return found;
  }

  int n_;
  V *M_, *A_, *q_, *z_, *w_, *weight_, *f_, *root_, *d_, *trial_z_, *trial_w_, *trial_f_, *trial_root_;
  V *row_, *column_;  // the powers of two that scale rows and columns
  V size_;            // and all numbers
};

template <class T>
void find(int n, std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> z_0, double kappa, double* workspace,
          double* z, double* w, std::int8_t* status) {
  Points points(n, workspace);
  by_vectors(count, [&](std::int64_t b, int problems) LCP_INLINE_LAMBDA {
    read(M, b, problems, n * n, points.M());
    read(q, b, problems, n, points.q());
    read(z_0, b, problems, n, points.z());
    const Mask<V> found = points.find(kappa);
    write(points.z(), b, problems, n, z);
    write(points.w(), b, problems, n, w);
    mark(found, b, problems, status);
  });
}

// The matrix of K, diag(w) + diag(z) M with rows scaled to max(z_i, w_i) = 1, or its transpose, and these scales.
struct Derivative {
  int n;
  V *M, *A, *z, *w, *unit, *x, *y;

  Derivative(int size, double* workspace)
      : n(size),
        M(reinterpret_cast<V*>(workspace)),
        A(M + n * n),
        z(A + n * n),
        w(z + n),
        unit(w + n),
        x(unit + n),
        y(x + n) {}

  template <class T>
  LCP_INLINE void set(BatchView<T> matrices, const double* all_z, const double* all_w, std::int64_t b, int problems,
                      bool transposed) {
    read(matrices, b, problems, n * n, M);
    read(BatchView<double>{all_z, false}, b, problems, n, z);
    read(BatchView<double>{all_w, false}, b, problems, n, w);
    for (int i = 0; i < n; ++i) {
      unit[i] = 1.0 / stdx::max(stdx::abs(w[i]), stdx::abs(z[i]));
      for (int j = 0; j < n; ++j) A[transposed ? j * n + i : i * n + j] = unit[i] * z[i] * M[i * n + j];
      A[i * n + i] += unit[i] * w[i];
    }
  }

  LCP_INLINE Mask<V> is_good(const V* result) const {
    Mask<V> good(true);
    for (int i = 0; i < n; ++i) good = good && is_finite(result[i]) && is_finite(w[i]);
    return good;
  }
};

template <class T>
void adjoint(int n, std::int64_t count, BatchView<T> M, const double* z, const double* w, const T* g_z, const T* g_w,
             double* workspace, T* t_r, std::int8_t* status) {
  Derivative derivative(n, workspace);
  V *const t = derivative.x, *const of_w = derivative.y;
  by_vectors(count, [&](std::int64_t b, int problems) LCP_INLINE_LAMBDA {
    derivative.set(M, z, w, b, problems, true);
    read(BatchView<T>{g_z, false}, b, problems, n, t);
    read(BatchView<T>{g_w, false}, b, problems, n, of_w);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) t[j] = multiply_add(derivative.M[i * n + j], of_w[i], t[j]);
    }
    solve(n, derivative.A, t);
    for (int i = 0; i < n; ++i) t[i] = of_w[i] - derivative.z[i] * derivative.unit[i] * t[i];
    write(t, b, problems, n, t_r);
    mark(derivative.is_good(t), b, problems, status);
  });
}

template <class T>
void tangent(int n, std::int64_t count, BatchView<T> M, const double* z, const double* w, const T* r, double* workspace,
             T* dz, std::int8_t* status) {
  Derivative derivative(n, workspace);
  V* const x = derivative.x;
  by_vectors(count, [&](std::int64_t b, int problems) LCP_INLINE_LAMBDA {
    derivative.set(M, z, w, b, problems, false);
    read(BatchView<T>{r, false}, b, problems, n, x);
    for (int i = 0; i < n; ++i) x[i] *= -(derivative.unit[i] * derivative.z[i]);
    solve(n, derivative.A, x);
    write(x, b, problems, n, dz);
    mark(derivative.is_good(x), b, problems, status);
  });
}

}  // namespace lcp::batch::path::LCP_ISA
