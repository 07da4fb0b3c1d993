#include "lcs/adjoint.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "batch/elements.h"
#include "interrupt/checkpoint.h"
#include "lcs/blocks.h"

namespace lcp::lcs {
namespace {

template <class T>
const T* element(const BatchView<T>& view, std::int64_t b, std::int64_t size) {
  return batch::from(view, b, size).data;
}

// y += A'x for A with so many rows and columns.
template <class T, class X, class Y>
void add_transposed(int rows, int columns, const T* A, const X* x, Y* y) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) y[j] += double{A[i * columns + j]} * double{x[i]};
  }
}

// q := E x + H u + q of trajectory b.
template <class T>
void pose(const System<T>& system, std::int64_t b, const Size& size, const T* x, const T* u, T* q) {
  const auto [k, m, n] = size;
  const T *const E = element(system.E, b, n * k), *const H = element(system.H, b, n * m),
                 *const given = element(system.q, b, n);
  for (int i = 0; i < n; ++i) {
    double sum = given[i];
    for (int j = 0; j < k; ++j) sum += double{E[i * k + j]} * double{x[j]};
    for (int j = 0; j < m; ++j) sum += double{H[i * m + j]} * double{u[j]};
    q[i] = static_cast<T>(sum);
  }
}

// sum += x y'.
template <class X>
void add_product(int rows, int columns, const X* x, const double* y, double* sum) {
  for (int i = 0; i < rows; ++i) {
    const double x_i = x[i];
    for (int j = 0; j < columns; ++j) sum[i * columns + j] += x_i * y[j];
  }
}

// Copies numbers, with 0 for those that are not finite; returns the end of the copy.
template <class T>
double* copy_finite(int count, const T* from, double* to) {
  for (int i = 0; i < count; ++i) to[i] = std::isfinite(from[i]) ? double{from[i]} : 0.0;
  return to + count;
}

// The memory of the kernel: the system, the sums of the gradients, the numbers that it carries from step to step, and
// numbers of one vector.
template <class T>
Footprint backward_footprint(const System<T>& system, const Gradients<T>& to, const Size& size) {
  const auto [k, m, n] = size;
  Footprint all = footprint(system, size);
  all.add(system.M.shared, n * n);
  const auto sum = [&all](const T* target, std::int64_t numbers) { all.add(false, target == nullptr ? 0 : numbers); };
  sum(to.A, k * k);
  sum(to.B, k * m);
  sum(to.D, k * n);
  sum(to.G, k * n);
  sum(to.d, k);
  sum(to.E, n * k);
  sum(to.H, n * m);
  sum(to.M, n * n);
  sum(to.q, n);
  all.add(false, k);
  all.add(true, 2 * (k + m));
  return all;
}

}  // namespace

template <class T>
Adjoint<T>::Adjoint(const Size& size, Cone cone, Ties ties, double kappa)
    : size_(size), cone_(std::move(cone)), ties_(ties), derivative_(size.n, ties) {
  if (kappa > 0) {
    path_.emplace(size.n, kappa);
  } else if (size.n >= 1 && size.n <= batch::kSmall) {
    one_by_one_.emplace(size.n, sizeof(T) == sizeof(float));
  }
}

template <class T>
void Adjoint<T>::run_kernel(std::int64_t count, std::int64_t steps, const System<T>& system, const WalkedPath<T>& path,
                            const Gradients<T>& to) {
  struct Rest {
    OneByOne& one_by_one;
    BatchView<T> M;
  };
  Rest rest = {*one_by_one_, system.M};
  const auto solve = [](void* self, std::int64_t b, const std::int8_t* states, bool tied_active, const double* g_z,
                        const double* g_w, double* t) {
    auto& [one_by_one, M] = *static_cast<Rest*>(self);
    solver::ActiveSet& active_set = tied_active ? one_by_one.active : one_by_one.inactive;
    active_set.set(one_by_one.M(M, b), states);
    active_set.adjoint(g_z, g_w, t);
  };
  kernels().of<T>(size_.n).backward({size_, cone_.empty() ? nullptr : cone_.data(), count, steps, system, path, to,
                                     ties_ == Ties::kActive, ties_ == Ties::kMidpoint, workspace_.data(), solve,
                                     &rest});
}

template <class T>
void Adjoint<T>::run_block(std::int64_t count, std::int64_t steps, const System<T>& system, const WalkedPath<T>& path,
                           const Gradients<T>& to) {
  const auto [k, m, n] = size_;
  std::fill_n(carried_.begin(), count * k, 0.0);
  std::int64_t sums = 0;
  const auto sum = [&](T* target, int rows, int columns) -> Product {
    const Product product = {target, rows, columns, sums};
    if (target != nullptr) sums += count * rows * columns;
    return product;
  };
  const Product A = sum(to.A, k, k), B = sum(to.B, k, m), D = sum(to.D, k, n), G = sum(to.G, k, n), d = sum(to.d, k, 1),
                E = sum(to.E, n, k), H = sum(to.H, n, m), M = sum(to.M, n, n), q = sum(to.q, n, 1);
  sums_.assign(sums, 0.0);
  interrupt::Pace pace;
  for (std::int64_t s = steps - 1; s >= 0; --s) {
    pace.spend(count * (n + k) * (n + k));
    const BatchView<T> x = s == 0 ? path.x : step_of(path.x_next, s - 1);
    const BatchView<T> u = step_of(path.u, s), z = step_of(path.z, s), w = step_of(path.w, s);
    const BatchView<T> g_x_next = step_of(path.g_x_next, s), g_z = step_of(path.g_z, s), g_w = step_of(path.g_w, s);
    for (std::int64_t b = 0; b < count; ++b) {
      double* const l = l_.data() + b * k;
      for (int i = 0; i < k; ++i) l[i] = carried_[b * k + i] + double{element(g_x_next, b, k)[i]};
      for (int i = 0; i < n; ++i) {
        double of_z = element(g_z, b, n)[i], of_w = element(g_w, b, n)[i];
        const bool held = sticks(cone_, i, element(z, b, n), element(w, b, n));
        moving_w_[b * n + i] = held ? T(0) : element(w, b, n)[i];
        for (int j = 0; j < k; ++j) {
          of_z += double{element(system.D, b, k * n)[j * n + i]} * l[j];
          if (path_ || !held) of_w += double{element(system.G, b, k * n)[j * n + i]} * l[j];
        }
        g_z_[b * n + i] = static_cast<T>(of_z);
        g_w_[b * n + i] = static_cast<T>(of_w);
      }
    }
    if (path_) {
      for (std::int64_t b = 0; b < count; ++b) {
        pose(system, b, size_, element(x, b, k), element(u, b, m), q_.data() + b * n);
      }
      path_->find(count, system.M, {q_.data(), false}, z);
      path_->adjoint(0, count, g_z_.data(), g_w_.data(), t_.data());
    } else {
      derivative_.adjoint(count, system.M, step_of(path.states, s).data, g_z_.data(), g_w_.data(), t_.data());
    }
    for (std::int64_t b = 0; b < count; ++b) {
      const double* const l = l_.data() + b * k;
      const T* const t = t_.data() + b * n;
      double* const finite_x = finite_.data();
      double* const finite_u = copy_finite(k, element(x, b, k), finite_x);
      double* const finite_z = copy_finite(m, element(u, b, m), finite_u);
      double* const finite_w = copy_finite(n, element(z, b, n), finite_z);
      copy_finite(n, moving_w_.data() + b * n, finite_w);
      constexpr double one = 1;
      const auto add = [&](const Product& product, const auto* left, const double* right) {
        if (product.to == nullptr) return;
        add_product(product.rows, product.columns, left, right,
                    sums_.data() + product.sum + b * product.rows * product.columns);
      };
      add(A, l, finite_x);
      add(B, l, finite_u);
      add(D, l, finite_z);
      add(G, l, finite_w);
      add(d, l, &one);
      add(E, t, finite_x);
      add(H, t, finite_u);
      if (path_) copy_finite(n, element(path_->z(), b, n), finite_z);
      add(M, t, finite_z);
      add(q, t, &one);
      if (to.u != nullptr) {
        T* const g_u = to.u + (s * to.batch + b) * m;
        for (int j = 0; j < m; ++j) {
          double of_u = 0;
          for (int i = 0; i < k; ++i) of_u += double{element(system.B, b, k * m)[i * m + j]} * l[i];
          for (int i = 0; i < n; ++i) of_u += double{element(system.H, b, n * m)[i * m + j]} * double{t[i]};
          g_u[j] = static_cast<T>(of_u);
        }
      }
      double* const carried = carried_.data() + b * k;
      std::fill_n(carried, k, 0.0);
      add_transposed(k, k, element(system.A, b, k * k), l, carried);
      add_transposed(n, k, element(system.E, b, n * k), t, carried);
    }
  }
  for (const Product& product : {A, B, D, G, d, E, H, M, q}) {
    if (product.to == nullptr) continue;
    std::copy_n(sums_.data() + product.sum, count * product.rows * product.columns, product.to);
  }
  if (to.x != nullptr) std::copy_n(carried_.data(), count * k, to.x);
}

template <class T>
void Adjoint<T>::run(std::int64_t count, std::int64_t steps, const System<T>& system, const WalkedPath<T>& path,
                     const Gradients<T>& to) {
  const Footprint all = backward_footprint(system, to, size_);
  const std::int64_t most = block_of(all.each);
  const std::int64_t largest = std::min(most, count);
  if (one_by_one_) {
    workspace_.resize(all.size(largest));
  } else {
    for (std::vector<T>* x : {&g_z_, &g_w_, &t_, &moving_w_, &q_}) x->resize(largest * size_.n);
    for (std::vector<double>* x : {&l_, &carried_}) x->resize(largest * size_.k);
    finite_.resize(size_.k + size_.m + 2 * size_.n);
  }
  for (std::int64_t b = 0; b < count; b += most) {
    interrupt::checkpoint();
    const auto run_some = one_by_one_ ? &Adjoint::run_kernel : &Adjoint::run_block;
    (this->*run_some)(std::min(most, count - b), steps, from(system, b, size_), from(path, b, size_),
                      from(to, b, size_));
  }
}

template class Adjoint<double>;
template class Adjoint<float>;

}  // namespace lcp::lcs
