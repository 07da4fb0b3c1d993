#include "lcs/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "batch/elements.h"
#include "interrupt/checkpoint.h"
#include "lcs/blocks.h"

namespace lcp::lcs {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A sum, and the sum of the magnitudes of its terms.
struct Sum {
  double value, magnitude;

  // Adds a'x.
  template <class T>
  void add(int length, const T* a, const T* x) {
    for (int j = 0; j < length; ++j) {
      const double term = double{a[j]} * double{x[j]};
      value += term;
      magnitude += std::abs(term);
    }
  }
};

// The memory of the kernel: the system, the minors and bases of M (batch/enumerate.h), the states, and the inputs of
// the vectors that it takes together.
template <class T>
Footprint forward_footprint(const System<T>& system, const Size& size) {
  constexpr std::int64_t kBasesOf4 = 118;
  Footprint all = footprint(system, size);
  all.add(system.M.shared, kBasesOf4);
  all.add(system.d.shared, size.k);
  all.add(system.q.shared, size.n);
  all.add(false, size.k);
  all.add(true, size.k + kTogether * size.m);
  return all;
}

template <class T>
const T* element(const BatchView<T>& view, std::int64_t b, std::int64_t size) {
  return batch::from(view, b, size).data;
}

}  // namespace

template <class T>
Simulator<T>::Simulator(const Size& size, Cone cone, const solver::Settings& settings)
    : size_(size), cone_(std::move(cone)), tolerance_(settings.tolerance), solver_(size.n, settings) {
  if (size.n <= batch::kSmall && batch::BatchSolver<T>::has_kernel(size.n, settings, false)) {
    kernels_ = &kernels().of<T>(size.n);
  }
}

// The residual, and the state at the end of a step that was solved.
template <class T>
void Simulator<T>::advance(const System<T>& system, std::int64_t b, const T* x, const T* u, const T* q, const T* z,
                           const T* w, T* residual, T* x_next) const {
  const auto [k, m, n] = size_;
  const T* const M = element(system.M, b, n * n);
  double largest = 0;
  for (int i = 0; i < n; ++i) {
    Sum row = {double{q[i]}, 0};
    row.add(n, M + i * n, z);
    largest = std::max(largest, std::abs(std::min(double{z[i]}, row.value)));
  }
  *residual = static_cast<T>(largest);
  const T* const A = element(system.A, b, k * k);
  const T* const B = element(system.B, b, k * m);
  const T* const D = element(system.D, b, k * n);
  const T* const G = element(system.G, b, k * n);
  const T* const d = element(system.d, b, k);
  for (int i = 0; i < k; ++i) {
    Sum next = {double{d[i]}, std::abs(double{d[i]})};
    next.add(k, A + i * k, x);
    next.add(m, B + i * m, u);
    next.add(n, D + i * n, z);
    for (int j = 0; j < n; ++j) {
      if (!sticks(cone_, j, z, w)) next.add(1, G + i * n + j, w + j);
    }
    const bool at_rest =
        std::abs(next.value) <= kAtRestInEpsilon * double{std::numeric_limits<T>::epsilon()} * next.magnitude;
    x_next[i] = at_rest ? T(0) : static_cast<T>(next.value);
  }
}

template <class T>
void Simulator<T>::run_kernel(std::int64_t count, std::int64_t steps, const System<T>& system, BatchView<T> x,
                              StepsView<T> u, const Path<T>& to) {
  struct Rest {
    batch::BatchSolver<T>& solver;
    BatchView<T> M;
    int n;
  };
  Rest rest = {solver_, system.M, size_.n};
  const auto solve = [](void* self, std::int64_t b, const T* q, T* z, T* w, std::int8_t* status, std::int8_t* states) {
    auto& [solver, M, n] = *static_cast<Rest*>(self);
    solver.solve(1, batch::from(M, b, n * n), {q, false}, {nullptr, true}, {z, w, status, states});
  };
  kernels_->forward({size_, cone_.empty() ? nullptr : cone_.data(), count, steps, system, x, u, to, tolerance_,
                     workspace_.data(), solve, &rest});
}

template <class T>
void Simulator<T>::run_block(std::int64_t count, std::int64_t steps, const System<T>& system, BatchView<T> x,
                             StepsView<T> u, const Path<T>& to) {
  const auto [k, m, n] = size_;
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    pace.spend(count * n * (n + k + m));
    const std::int64_t first = s * to.batch;
    const BatchView<T> now = s == 0 ? x : BatchView<T>{to.x_next + (first - to.batch) * k, false};
    const BatchView<T> input = step_of(u, s);
    T* const z = to.z + first * n;
    T* const w = to.w + first * n;
    std::int8_t* const status = to.status + first;
    for (std::int64_t b = 0; b < count; ++b) {
      const T* const E = element(system.E, b, n * k);
      const T* const H = element(system.H, b, n * m);
      const T* const q = element(system.q, b, n);
      for (int i = 0; i < n; ++i) {
        Sum row = {0, 0};
        row.add(k, E + i * k, element(now, b, k));
        row.add(m, H + i * m, element(input, b, m));
        q_[b * n + i] = static_cast<T>(row.value + double{q[i]});
      }
    }
    solver_.solve(count, system.M, {q_.data(), false}, {nullptr, true},
                  {z, w, status, to.states == nullptr ? nullptr : to.states + first * n});
    for (std::int64_t b = 0; b < count; ++b) {
      T* const residual = to.residual + first + b;
      T* const x_next = to.x_next + (first + b) * k;
      if (status[b] == 0) {
        advance(system, b, element(now, b, k), element(input, b, m), q_.data() + b * n, z + b * n, w + b * n, residual,
                x_next);
      } else {
        *residual = static_cast<T>(kNaN);
        std::fill_n(x_next, k, static_cast<T>(kNaN));
      }
    }
  }
}

template <class T>
void Simulator<T>::run(std::int64_t count, std::int64_t steps, const System<T>& system, BatchView<T> x, StepsView<T> u,
                       const Path<T>& to) {
  const Footprint all = forward_footprint(system, size_);
  const std::int64_t most = block_of(kernels_ != nullptr ? all.each : size_.n);
  const std::int64_t largest = std::min(most, count);
  if (kernels_ != nullptr) {
    workspace_.resize(all.size(largest));
  } else {
    q_.resize(largest * size_.n);
  }
  for (std::int64_t b = 0; b < count; b += most) {
    const std::int64_t length = std::min(most, count - b);
    interrupt::checkpoint();
    const auto run_some = kernels_ != nullptr ? &Simulator::run_kernel : &Simulator::run_block;
    (this->*run_some)(length, steps, from(system, b, size_), batch::from(x, b, size_.k), from(u, b, size_.m),
                      from(to, b, size_));
  }
}

template class Simulator<double>;
template class Simulator<float>;

}  // namespace lcp::lcs
