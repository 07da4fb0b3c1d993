#include "solver/pair_states.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace lcp::solver {

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
  find_pair_states<ScalarArithmetic>(n_, variables, epsilon_, entry, at(q), variable, at(w), at(scale),
                                     {scale + n, scale + 2 * n, flags, flags + n, tied}, [=](int j, bool basic) {
                                       if (basic) states[support[j]] = PairState::kBasic;
                                     });
  std::fill_n(states, num_equations_, PairState::kBasic);
  for (int i = 0; i < n_; ++i) {
    if (tied[i] && states[i] != PairState::kBasic) states[i] = PairState::kTied;
  }
}

}  // namespace lcp::solver
