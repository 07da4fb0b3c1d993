#include "solver/pair_states.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "solver/singular.h"
#include "solver/verify.h"

namespace lcp::solver {
namespace {

// Steps of iterative refinement: each gains the digits that the condition of the basis leaves.
constexpr int kRefinementSteps = 4;

}  // namespace

PairStates::PairStates(int n, int num_equations, bool single_precision)
    : n_(n),
      num_equations_(num_equations),
      epsilon_(single_precision ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon()),
      numbers_(static_cast<std::size_t>(3) * n),
      flags_(static_cast<std::size_t>(3) * n),
      support_(n) {}

void PairStates::find(const double* M, const double* q, const double* z, const double* w, std::int8_t* states) {
  if (std::any_of(z, z + n_, [](double value) { return std::isnan(value); })) {
    std::fill_n(states, n_, PairState::kUnsolved);
    return;
  }
  if (!decide(M, q, z, w, states)) return;
  z_.assign(z, z + n_);
  w_.assign(w, w + n_);
  if (refine(M, q) && is_near(M, q, z)) decide(M, q, z_.data(), w_.data(), states);
}

// Fills `states`; returns whether some size is doubtful.
bool PairStates::decide(const double* M, const double* q, const double* z, const double* w, std::int8_t* states) {
  const std::ptrdiff_t n = n_;
  int* const support = support_.data();
  int variables = 0;
  for (int j = 0; j < n_; ++j) {
    if (z[j] != 0) support[variables++] = j;
  }
  double* const scale = numbers_.data();
  unsigned char* const flags = flags_.data();
  unsigned char* const tied = flags + 2 * n;
  const auto entry = [=](int i, int j) { return M[i * n + support[j]]; };
  const auto variable = [=](int j) { return z[support[j]]; };
  for (int i = 0; i < n_; ++i) {
    scale[i] = std::abs(q[i]);
    for (int j = 0; j < variables; ++j) scale[i] += std::abs(entry(i, j) * variable(j));
  }
  const auto at = [](const double* x) { return [x](int i) { return x[i]; }; };
  std::fill_n(states, n_, PairState::kNonbasic);
  const bool doubtful = find_pair_states<ScalarArithmetic, true>(
      n_, variables, epsilon_, entry, at(q), variable, at(w), at(scale),
      {scale + n, scale + 2 * n, flags, flags + n, tied}, [=](int j, bool basic) {
        if (basic) states[support[j]] = PairState::kBasic;
      });
  std::fill_n(states, num_equations_, PairState::kBasic);
  for (int i = 0; i < n_; ++i) {
    if (tied[i] && states[i] != PairState::kBasic) states[i] = PairState::kTied;
  }
  return doubtful;
}

// Whether z_ differs from z by no more than sizes that are doubtful. If not, z is no solution.
bool PairStates::is_near(const double* M, const double* q, const double* z) const {
  const double allowed = doubtful_size(epsilon_);
  for (std::ptrdiff_t i = 0; i < n_; ++i) {
    if (q[i] == 0) continue;
    const double* const row = M + i * n_;
    double terms = std::abs(q[i]);
    double largest = 0;
    for (int j = 0; j < n_; ++j) {
      terms += std::abs(row[j] * z[j]);
      largest = std::max(largest, std::abs(row[j] * (z_[j] - z[j])));
    }
    if (largest > allowed * terms) return false;
  }
  return true;
}

// Refines z_ and w_ by the equations of the basis that z_ has; false where the refinement does not settle.
bool PairStates::refine(const double* M, const double* q) {
  if (!basis_) basis_.emplace(n_, negligible_pivot(false));
  for (int i = 0; i < n_; ++i) flags_[i] = i < num_equations_ || z_[i] > 0;
  basis_->factor(M, flags_.data());
  const auto row_sum = [&](int i) {
    return accurate_sum(n_, M + static_cast<std::ptrdiff_t>(i) * n_, z_.data(), q[i]);
  };
  double* const x = numbers_.data();
  for (int step = 0; step < kRefinementSteps; ++step) {
    for (int k = 0; k < basis_->size(); ++k) x[k] = -row_sum(basis_->indices()[k]);
    basis_->solve(x);
    for (int k = 0; k < basis_->size(); ++k) {
      if (!std::isfinite(x[k])) return false;
      z_[basis_->indices()[k]] += x[k];
    }
  }
  for (int i = num_equations_; i < n_; ++i) z_[i] = std::max(0.0, z_[i]);
  for (int i = 0; i < n_; ++i) w_[i] = flags_[i] != 0 ? 0.0 : std::max(0.0, row_sum(i));
  return true;
}

}  // namespace lcp::solver
