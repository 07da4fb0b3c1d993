#include "solver/pair_states.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace lcp::solver {

PairStates::PairStates(int n, int num_equations, bool single_precision)
    : n_(n),
      num_equations_(num_equations),
      epsilon_(single_precision ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon()),
      flags_(static_cast<std::size_t>(4) * n) {}

void PairStates::find(const double* M, const double* q, const double* z, const double* w, std::int8_t* states) {
  if (std::any_of(z, z + n_, [](double value) { return std::isnan(value); })) {
    std::fill_n(states, n_, PairState::kUnsolved);
    return;
  }
  unsigned char* const flags = flags_.data();
  const auto at = [](const double* x) { return [x](int i) { return x[i]; }; };
  find_pair_states<ScalarArithmetic>(
      n_, num_equations_, epsilon_, [=, this](int i, int j) { return M[static_cast<std::ptrdiff_t>(i) * n_ + j]; },
      at(q), at(z), at(w), {flags, flags + n_, flags + 2 * n_, flags + 3 * n_},
      [states](int j, bool basic, bool tied) {
        states[j] = basic ? PairState::kBasic : tied ? PairState::kTied : PairState::kNonbasic;
      });
}

}  // namespace lcp::solver
