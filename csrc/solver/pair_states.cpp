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
      flags_(static_cast<std::size_t>(3) * n) {}

void PairStates::find(const double* M, const double* q, const double* z, const double* w, std::int8_t* states) {
  if (std::any_of(z, z + n_, [](double value) { return std::isnan(value); })) {
    std::fill_n(states, n_, PairState::kUnsolved);
    return;
  }
  const std::ptrdiff_t n = n_;
  double* const scale = numbers_.data();
  unsigned char* const flags = flags_.data();
  const auto entry = [=](int i, int j) { return M[i * n + j]; };
  for (int i = 0; i < n_; ++i) {
    scale[i] = std::abs(q[i]);
    for (int j = 0; j < n_; ++j) scale[i] += std::abs(entry(i, j) * z[j]);
  }
  const auto at = [](const double* x) { return [x](int i) { return x[i]; }; };
  find_pair_states<ScalarArithmetic>(
      n_, num_equations_, epsilon_, entry, at(q), at(z), at(w), at(scale),
      {scale + n, scale + 2 * n, flags, flags + n, flags + 2 * n}, [states](int j, bool basic, bool tied) {
        states[j] = basic ? PairState::kBasic : tied ? PairState::kTied : PairState::kNonbasic;
      });
}

}  // namespace lcp::solver
