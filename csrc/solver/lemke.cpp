#include "solver/lemke.h"

#include <algorithm>

#include "solver/random.h"

namespace lcp::solver {

void perturb(std::uint64_t cover, int n, double* perturbation) {
  Random random(12345 + cover);
  for (int i = 0; i < n; ++i) perturbation[i] = random.uniform(0.5, 1.5);
}

bool bounds_from_above(int n, const double* row, double q) {
  return q > 0 && std::all_of(row, row + n, [](double x) { return x <= 0; });
}

Lemke::Lemke(int n)
    : n_(n),
      row_variable_(n),
      complement_column_(n),
      tableau_{},
      covering_(n),
      perturbation_(n),
      values_(std::size_t{2} * n),
      basic_(std::size_t{2} * n) {
  const int stride = (n + 7) / 8 * 8;
  columns_.resize(static_cast<std::size_t>(n + 3) * stride);
  scratch_.resize(static_cast<std::size_t>(2) * stride);
  tableau_ = {.n = n,
              .stride = stride,
              .columns = columns_.data(),
              .scratch = scratch_.data(),
              .row_variable = row_variable_.data(),
              .complement_column = complement_column_.data(),
              .last_row = 0,
              .last_column = 0,
              .pivots = 0};
  set_cover(0);
}

void Lemke::set_cover(std::uint64_t cover) {
  cover_ = cover;
  Random random(cover);
  for (double& d : covering_) d = cover == 0 ? 1.0 : random.uniform(0.5, 2.0);
  perturb(cover, n_, perturbation_.data());
}

Termination Lemke::run(const double* M, const double* q, const Options& options) {
  if (options.cover != cover_) set_cover(options.cover);
  if (options.bounded) uncover_bounds(M, q);
  for (int i = 0; i < n_; ++i) row_variable_[i] = complement_column_[i] = i;
  const Termination end = kernels().lemke(tableau_, {M, options.unit, q, covering_.data(), perturbation_.data()},
                                          options.pivot_tolerance, options.tie_tolerance, options.max_pivots);
  pace_.spend(tableau_.pivots * n_ * n_);
  if (end == Termination::kCandidate) read_solution();
  if (options.bounded) set_cover(options.cover);
  return end;
}

void Lemke::uncover_bounds(const double* M, const double* q) {
  for (int i = 0; i < n_; ++i) {
    if (bounds_from_above(n_, M + static_cast<std::ptrdiff_t>(i) * n_, q[i])) covering_[i] = 0;
  }
}

void Lemke::read_solution() {
  const double* const q = columns_.data() + static_cast<std::size_t>(n_ + 2) * tableau_.stride;
  std::fill(values_.begin() + n_, values_.end(), 0.0);
  std::fill(basic_.begin() + n_, basic_.end(), static_cast<unsigned char>(0));
  for (int i = 0; i < n_; ++i) {  // values of w, too, which costs less than a branch that the processor cannot predict
    values_[row_variable_[i]] = std::max(0.0, q[i]);
    basic_[row_variable_[i]] = 1;
  }
}

// z_a -= M_aa^-1 w_a. The column of a nonbasic w_i in the tableau holds the change of the basic variables for a unit of
// w_i.
void Lemke::refine(const double* w) {
  const int stride = tableau_.stride;
  double* const change = scratch_.data();
  std::fill_n(change, stride, 0.0);
  for (int i = 0; i < n_; ++i) {
    const int variable = row_variable_[i] - n_;
    if (variable < 0) continue;
    const double* const column = columns_.data() + static_cast<std::size_t>(complement_column_[i]) * stride;
    const double step = w[variable];
    for (int k = 0; k < stride; ++k) change[k] += step * column[k];
  }
  const double* const driving = columns_.data() + static_cast<std::size_t>(tableau_.last_column) * stride;
  const double multiple = -change[tableau_.last_row] / driving[tableau_.last_row];
  for (int k = 0; k < stride; ++k) change[k] += multiple * driving[k];
  change[tableau_.last_row] = multiple;
  for (int i = 0; i < n_; ++i) {
    double& value = values_[row_variable_[i]];
    value = std::max(0.0, value - change[i]);
  }
}

}  // namespace lcp::solver
