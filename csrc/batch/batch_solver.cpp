#include "batch/batch_solver.h"

#include <algorithm>

namespace lcp::batch {
namespace {

// The number of unsolved elements that are gathered for one call of a kernel, so that they fill its vectors.
constexpr std::int64_t kGathered = 64;

}  // namespace

template <class T>
BatchSolver<T>::BatchSolver(int n, const solver::Settings& settings) : n_(n), settings_(settings) {
  if (!has_kernel(n, settings, false)) return;
  const TypedKernels<T>& kernels = batch::kernels().of<T>();
  if (n <= kSmall) {
    enumerate_ = kernels.small[n - 1].solve;
    enumerate_as_double_ = kernels.small[n - 1].solve_as_double;
    if (enumerate_as_double_ != nullptr) copies_.resize(n, kGathered);
  } else if (n <= kEnumerated) {
    enumerate_ = kernels.enumerate[n - kSmall - 1];
  } else {
    lockstep_ = &kernels.lockstep;
    perturbation_.resize(n);
    solver::perturb(0, n, perturbation_.data());
    workspace_.resize(lockstep_workspace(n));
  }
}

template <class T>
bool BatchSolver<T>::has_kernel(int n, const solver::Settings& settings, bool has_guess) {
  return n >= 1 && n <= (has_guess ? kEnumerated : std::max(kEnumerated, batch::kernels().lockstep_up_to)) &&
         settings.method == Method::kAuto && !settings.max_pivots &&
         settings.tolerance >= batch::kernels().of<T>().min_tolerance;
}

template <class T>
void BatchSolver<T>::solve_again_as_double(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess,
                                           const Solutions<T>& solutions) {
  const std::int64_t size = std::int64_t{n_} * n_;
  const auto copy = [](const BatchView<T>& view, std::int64_t b, std::int64_t length, std::vector<T>& target,
                       std::int64_t k) {
    if (!view.shared) std::copy_n(view.data + b * length, length, target.begin() + k * length);
  };
  const auto gathered = [](const BatchView<T>& view, const std::vector<T>& target) {
    return view.shared ? view : BatchView<T>{target.data(), false};
  };
  Copies& some = copies_;
  const bool wants_states = solutions.states != nullptr;
  for (std::int64_t b = next_left(solutions.status, 0, count); b < count;) {
    std::int64_t found = 0;
    for (; b < count && found < kGathered; b = next_left(solutions.status, b + 1, count)) {
      some.element[found] = b;
      copy(M, b, size, some.M, found);
      copy(q, b, n_, some.q, found);
      copy(guess, b, n_, some.guess, found);
      ++found;
    }
    enumerate_as_double_(
        found, gathered(M, some.M), some.q.data(), gathered(guess, some.guess), settings_.tolerance,
        {some.z.data(), some.w.data(), some.status.data(), wants_states ? some.states.data() : nullptr});
    for (std::int64_t k = 0; k < found; ++k) {
      if (some.status[k] == kLeftOver) continue;
      const std::int64_t target = some.element[k];
      solutions.status[target] = some.status[k];
      std::copy_n(some.z.begin() + k * n_, n_, solutions.z + target * n_);
      std::copy_n(some.w.begin() + k * n_, n_, solutions.w + target * n_);
      if (wants_states) std::copy_n(some.states.begin() + k * n_, n_, solutions.states + target * n_);
    }
  }
}

template <class T>
void BatchSolver<T>::solve(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess,
                           const Solutions<T>& solutions) {
  const auto& [z, w, status, states] = solutions;
  if (guess.data == nullptr) guess.shared = true;
  if (enumerate_ != nullptr && !q.shared) {
    enumerate_(count, M, q.data, guess, settings_.tolerance, solutions);
    if (enumerate_as_double_ != nullptr) solve_again_as_double(count, M, q, guess, solutions);
  } else if (lockstep_ != nullptr && !q.shared && guess.data == nullptr) {
    lockstep_->solve(n_, count, M, q.data, settings_.tolerance, perturbation_.data(), workspace_.data(), solutions);
  } else {
    std::fill_n(status, count, kLeftOver);
  }
  if (states != nullptr && n_ > kSmall) {
    for (std::int64_t b = 0; b < count; ++b) {
      if (status[b] != kLeftOver && states[b * n_] == solver::PairState::kDoubtful) {
        std::copy_n(z + b * n_, n_, one_by_one().z.begin());
        std::copy_n(w + b * n_, n_, one_by_one().w.begin());
        find_states(b, M, q, states);
      }
    }
  }
  for (std::int64_t b = next_left(status, 0, count); b < count; b = next_left(status, b + 1, count)) {
    OneByOne& one = one_by_one();
    const double* const proposal = guess.data == nullptr ? nullptr : one.guess(guess, b);
    status[b] =
        static_cast<std::int8_t>(one.ladder.solve(one.M(M, b), one.q(q, b), proposal, one.z.data(), one.w.data()));
    std::copy_n(one.z.begin(), n_, z + b * n_);
    std::copy_n(one.w.begin(), n_, w + b * n_);
    if (states != nullptr) find_states(b, M, q, states);
  }
}

template <class T>
typename BatchSolver<T>::OneByOne& BatchSolver<T>::one_by_one() {
  if (!one_by_one_) one_by_one_.emplace(n_, settings_);
  return *one_by_one_;
}

// Finds the states of element b from its z and w in one_by_one().
template <class T>
void BatchSolver<T>::find_states(std::int64_t b, BatchView<T> M, BatchView<T> q, std::int8_t* states) {
  OneByOne& one = one_by_one();
  one.pair_states.find(one.M(M, b), one.q(q, b), one.z.data(), one.w.data(), states + b * n_);
}

template class BatchSolver<double>;
template class BatchSolver<float>;

}  // namespace lcp::batch
