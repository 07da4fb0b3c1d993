#include "solver/lemke.h"

#include <algorithm>
#include <cmath>

#include "solver/random.h"

namespace lcp::solver {

void perturb(std::uint64_t cover, int n, double* perturbation) {
  Random random(12345 + cover);
  for (int i = 0; i < n; ++i) perturbation[i] = random.uniform(0.5, 1.5);
}

Lemke::Lemke(int n)
    : n_(n),
      row_variable_(n),
      column_variable_(n + 1),
      column_of_(2 * n + 1),
      tableau_{},
      perturbation_(n),
      z_(n),
      basic_(n) {
  const int stride = (n + 7) / 8 * 8;
  columns_.resize(static_cast<std::size_t>(n + 3) * stride);
  ratio_.resize(stride);
  tableau_ = {.n = n,
              .stride = stride,
              .columns = columns_.data(),
              .ratio = ratio_.data(),
              .row_variable = row_variable_.data(),
              .column_variable = column_variable_.data(),
              .column_of = column_of_.data(),
              .first_row = 0,
              .largest_q = 0,
              .pivots = 0};
  perturb(0, n, perturbation_.data());
}

End Lemke::run(const double* M, const double* q, const Options& options) {
  load(M, q, options.cover);
  tableau_.first_row = first_row();
  const End end = kernels().lemke(tableau_, options.pivot_tolerance, options.tie_tolerance, options.max_pivots);
  if (end == End::kClaim) read_solution();
  return end;
}

void Lemke::load(const double* M, const double* q, std::uint64_t cover) {
  kernels().by_columns(n_, M, columns_.data(), tableau_.stride);
  double* const d = column(n_);
  if (cover == 0) {
    std::fill_n(d, n_, 1.0);
    std::copy_n(perturbation_.data(), n_, column(n_ + 2));
  } else {
    Random covering(cover);
    for (int i = 0; i < n_; ++i) d[i] = covering.uniform(0.5, 2.0);
    perturb(cover, n_, column(n_ + 2));
  }
  std::copy_n(q, n_, column(n_ + 1));
  tableau_.largest_q = 0;
  for (int i = 0; i < n_; ++i) {
    row_variable_[i] = i;
    column_variable_[i] = n_ + i;
    column_of_[n_ + i] = i;
    tableau_.largest_q = std::max(tableau_.largest_q, std::abs(q[i]));
  }
  column_variable_[n_] = 2 * n_;
  column_of_[2 * n_] = n_;
}

// The smallest q_i / d_i, or of equal ones that with the smallest perturbation.
int Lemke::first_row() {
  const double* const d = column(n_);
  const double* const q = column(n_ + 1);
  const double* const shift = column(n_ + 2);
  int best = 0;
  for (int i = 1; i < n_; ++i) {
    const double a = q[i] * d[best];
    const double b = q[best] * d[i];
    if (a < b || (a == b && shift[i] * d[best] < shift[best] * d[i])) best = i;
  }
  return best;
}

void Lemke::read_solution() {
  std::fill(z_.begin(), z_.end(), 0.0);
  std::fill(basic_.begin(), basic_.end(), static_cast<unsigned char>(0));
  for (int i = 0; i < n_; ++i) {
    const int variable = row_variable_[i] - n_;
    if (variable < 0) continue;
    z_[variable] = std::max(0.0, column(n_ + 1)[i]);
    basic_[variable] = 1;
  }
}

}  // namespace lcp::solver
