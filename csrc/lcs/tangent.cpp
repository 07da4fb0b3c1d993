#include "lcs/tangent.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "batch/elements.h"
#include "interrupt/checkpoint.h"
#include "lcs/blocks.h"
#include "solver/find_pair_states.h"

namespace lcp::lcs {
namespace {

// A matrix or vector of each trajectory, nullptr where all of them are 0.
template <class T>
struct Entries {
  const T* data;
  bool shared;
  int size;

  Entries(const BatchView<T>& view, int numbers)
      : data(view.shared && is_zero(view.data, numbers) ? nullptr : view.data), shared(view.shared), size(numbers) {}

  explicit operator bool() const { return data != nullptr; }
  const T* of(std::int64_t b) const { return shared ? data : data + b * size; }

 private:
  static bool is_zero(const T* x, int numbers) {
    return std::all_of(x, x + numbers, [](T number) { return number == 0; });
  }
};

// y += A x for the matrix of trajectory b, with so many rows and columns.
template <class T>
void add_product(const Entries<T>& A, std::int64_t b, int rows, int columns, const T* x, double* y) {
  if (!A) return;
  const T* row = A.of(b);
  for (int i = 0; i < rows; ++i, row += columns) {
    for (int j = 0; j < columns; ++j) y[i] += double{row[j]} * double{x[j]};
  }
}

// The same with a vector.
template <class T>
void add_vector(const Entries<T>& d, std::int64_t b, int rows, double* y) {
  if (!d) return;
  for (int i = 0; i < rows; ++i) y[i] += d.of(b)[i];
}

template <class T>
struct SystemEntries {
  Entries<T> A, B, D, G, d, E, H, M, q;

  SystemEntries(const System<T>& system, const Size& size)
      : A(system.A, size.k * size.k),
        B(system.B, size.k * size.m),
        D(system.D, size.k * size.n),
        G(system.G, size.k * size.n),
        d(system.d, size.k),
        E(system.E, size.n * size.k),
        H(system.H, size.n * size.m),
        M(system.M, size.n * size.n),
        q(system.q, size.n) {}
};

template <class T>
bool is_any(const T* x, std::int64_t count) {
  return std::any_of(x, x + count, [](T number) { return number != 0; });
}

}  // namespace

template <class T>
Tangent<T>::Tangent(const Size& size, Cone cone, Ties ties, double kappa)
    : size_(size),
      cone_(std::move(cone)),
      derivative_(size.n, ties),
      of_pairs_(size.n),
      of_state_(size.k),
      moving_w_(size.n),
      moving_dw_(size.n) {
  if (kappa > 0) path_.emplace(size.n, kappa);
}

template <class T>
void Tangent<T>::run_block(std::int64_t count, std::int64_t steps, const Given<T>& given, const WalkedSteps<T>& walked,
                           const Given<T>& change, const Changes<T>& to) {
  const auto [k, m, n] = size_;
  const SystemEntries<T> system(given.system, size_), d(change.system, size_);
  const std::int64_t matrices = system.M.shared ? 1 : count;
  for (std::int64_t b = 0; b < matrices; ++b) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) M_[(b * n + j) * n + i] = batch::from(given.system.M, b, n * n).data[i * n + j];
    }
  }
  for (std::int64_t b = 0; b < count; ++b) {
    has_change_[b] = is_any(batch::from(change.x, b, k).data, k);
    for (const Entries<T>& each : {d.A, d.B, d.D, d.G, d.d, d.E, d.H, d.M, d.q}) {
      has_change_[b] = has_change_[b] || (each && is_any(each.of(b), each.size));
    }
  }
  std::vector<double>&r = of_pairs_, &dx = of_state_;
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    pace.spend(count * (n + k) * (n + k));
    const std::int64_t first = s * to.batch;
    const BatchView<T> x = s == 0 ? given.x : step_of(walked.x_next, s - 1), u = step_of(given.u, s),
                       z = step_of(walked.z, s), w = step_of(walked.w, s), du = step_of(change.u, s);
    const BatchView<T> before = s == 0 ? change.x : BatchView<T>{to.x_next + (first - to.batch) * k, false};
    const BatchView<std::int8_t> states = step_of(walked.states, s), status = step_of(walked.status, s);
    const auto of = [](const auto& view, std::int64_t b, int size) { return batch::from(view, b, size).data; };
    for (std::int64_t b = 0; b < count && path_; ++b) {
      std::fill(r.begin(), r.end(), 0.0);
      add_product(system.E, b, n, k, of(x, b, k), r.data());
      add_product(system.H, b, n, m, of(u, b, m), r.data());
      add_vector(system.q, b, n, r.data());
      for (int i = 0; i < n; ++i) r_[b * n + i] = static_cast<T>(r[i]);
    }
    if (path_) path_->find(count, given.system.M, {r_.data(), false}, z);
    for (std::int64_t b = 0; b < count; ++b) {
      std::fill(r.begin(), r.end(), 0.0);
      add_product(d.E, b, n, k, of(x, b, k), r.data());
      add_product(system.E, b, n, k, of(before, b, k), r.data());
      add_product(d.H, b, n, m, of(u, b, m), r.data());
      add_product(system.H, b, n, m, of(du, b, m), r.data());
      add_product(d.M, b, n, n, of(path_ ? path_->z() : z, b, n), r.data());
      add_vector(d.q, b, n, r.data());
      for (int i = 0; i < n; ++i) r_[b * n + i] = static_cast<T>(r[i]);
    }
    T *const dz = to.z + first * n, *const dw = to.w + first * n, *const dx_next = to.x_next + first * k;
    if (path_) {
      path_->tangent(0, count, r_.data(), dz);
    } else {
      derivative_.adjoint(count, {M_.data(), system.M.shared}, states.data, r_.data(), none_.data(), dz);
    }
    for (std::int64_t b = 0; b < count; ++b) {
      has_change_[b] = has_change_[b] || is_any(of(du, b, m), m);
      if (*of(status, b, 1) != 0) {
        const T failed = has_change_[b] ? std::numeric_limits<T>::quiet_NaN() : T(0);
        std::fill_n(dz + b * n, n, failed);
        std::fill_n(dw + b * n, n, failed);
        std::fill_n(dx_next + b * k, k, failed);
        continue;
      }
      for (int i = 0; i < n; ++i) r[i] = r_[b * n + i];
      add_product(system.M, b, n, n, dz + b * n, r.data());
      for (int i = 0; i < n; ++i) {
        T& change_of_w = dw[b * n + i];
        change_of_w = !path_ && states.data[b * n + i] == solver::kBasic ? T(0) : static_cast<T>(r[i]);
        const bool held = sticks(cone_, i, of(z, b, n), of(w, b, n));
        moving_w_[i] = held ? T(0) : of(w, b, n)[i];
        moving_dw_[i] = !path_ && held ? T(0) : change_of_w;
      }
      std::fill(dx.begin(), dx.end(), 0.0);
      add_product(d.A, b, k, k, of(x, b, k), dx.data());
      add_product(system.A, b, k, k, of(before, b, k), dx.data());
      add_product(d.B, b, k, m, of(u, b, m), dx.data());
      add_product(system.B, b, k, m, of(du, b, m), dx.data());
      add_product(d.D, b, k, n, of(z, b, n), dx.data());
      add_product(system.D, b, k, n, dz + b * n, dx.data());
      add_product(d.G, b, k, n, moving_w_.data(), dx.data());
      add_product(system.G, b, k, n, moving_dw_.data(), dx.data());
      add_vector(d.d, b, k, dx.data());
      for (int i = 0; i < k; ++i) dx_next[b * k + i] = static_cast<T>(dx[i]);
    }
  }
}

template <class T>
void Tangent<T>::run(std::int64_t count, std::int64_t steps, const Given<T>& given, const WalkedSteps<T>& walked,
                     const Given<T>& change, const Changes<T>& to) {
  const auto [k, m, n] = size_;
  const std::int64_t most = block_of(std::int64_t{n} * n + 4 * n + 2 * k + 2 * m);
  const std::int64_t largest = std::min(most, count);
  M_.resize(largest * n * n);
  for (std::vector<T>* x : {&r_, &none_}) x->resize(largest * n);
  has_change_.resize(largest);
  for (std::int64_t b = 0; b < count; b += most) {
    run_block(std::min(most, count - b), steps, from(given, b, size_), from(walked, b, size_), from(change, b, size_),
              from(to, b, size_));
  }
}

template class Tangent<double>;
template class Tangent<float>;

}  // namespace lcp::lcs
