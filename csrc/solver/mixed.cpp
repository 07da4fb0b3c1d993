#include "solver/mixed.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "linalg/equilibrate.h"
#include "linalg/scale.h"
#include "solver/verify.h"

namespace lcp::solver {
namespace {

// The rows and columns of a proof are singular where a pivot is below this times the largest.
constexpr double kRegular = 1e-13;

// The ways to pivot, tried in turn. Equations that depend on each other, or nearly do, leave entries that are only
// rounding errors, whose size depends on the numbers that they were computed from. Block pivots, wherever they are
// larger, keep numbers small where A has entries of all sizes. With bounds_first, a variational inequality over a box
// remains one, see Lemke::Options::bounded.
constexpr Elimination::Pivoting kPivoting[] = {{1e-12, 1e-4, false}, {1e-12, 1e-4, true}, {1e-12, 1, false},
                                               {1e-12, 0, false},    {1e-15, 1, false},   {1e-15, 0, false},
                                               {1e-9, 1, false}};

// The largest entries of rows and columns that differ by no more than this factor are left unscaled, so that a
// symmetric H stays symmetric.
constexpr double kLikeSize = 64;

bool is_of_like_size(int n, const double* H) {
  for (const auto& [along, across] : {std::pair{1, n}, std::pair{n, 1}}) {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (int i = 0; i < n; ++i) {
      double largest = 0;
      for (int j = 0; j < n; ++j) {
        largest = std::max(
            largest, std::abs(H[static_cast<std::ptrdiff_t>(i) * across + static_cast<std::ptrdiff_t>(j) * along]));
      }
      most = std::max(most, largest);
      if (largest > 0) least = std::min(least, largest);
    }
    if (most > kLikeSize * least) return false;
  }
  return true;
}

}  // namespace

Mixed::Mixed(int k, int n, const Settings& settings)
    : k_(k),
      n_(n),
      size_(k + n),
      settings_(settings),
      H_(static_cast<std::size_t>(size_) * size_),
      h_(size_),
      row_exponent_(size_),
      column_exponent_(size_),
      problem_(size_),
      candidate_(size_, settings, k),
      elimination_(k, n),
      ladders_(k + 1),
      quick_ladders_(k + 1),
      marked_(size_),
      v_(size_) {
  settings_.derived = true;  // only the final v is rounded to float
}

Status Mixed::solve(const double* H, const double* h, const double* guess, double* v, double* y) {
  Status status = Status::kBadInput;
  if (load(H, h)) {
    ran_out_ = false;
    status = decide(guess);
    if (status == Status::kSolved && !write(v, y)) status = Status::kNotFound;
    if (status == Status::kInfeasible && !scaled_exactly_) status = Status::kNotFound;
    if (status == Status::kNotFound && ran_out_) status = Status::kPivotLimit;
  }
  if (status != Status::kSolved) {
    std::fill_n(v, size_, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(y, size_, std::numeric_limits<double>::quiet_NaN());
  }
  return status;
}

// Rows and columns of like size: H_ = 2^-r H 2^-c and h_ = 2^-(r + f) h. False where an entry is not finite.
bool Mixed::load(const double* H, const double* h) {
  given_H_ = H;
  given_h_ = h;
  const double largest_H = linalg::largest_magnitude(H, H_.size());
  if (!std::isfinite(largest_H) || !std::isfinite(linalg::largest_magnitude(h, h_.size()))) return false;
  const int exponent = linalg::exponent_of(largest_H);
  linalg::PowerOfTwo(-exponent).scale(H, H_.size(), H_.data());
  if (is_of_like_size(size_, H_.data())) {
    std::fill(row_exponent_.begin(), row_exponent_.end(), 0);
    std::fill(column_exponent_.begin(), column_exponent_.end(), 0);
  } else {
    linalg::equilibrate(size_, H_.data(), row_exponent_.data(), column_exponent_.data());
  }
  int largest_h = std::numeric_limits<int>::min();
  for (int i = 0; i < size_; ++i) {
    row_exponent_[i] += exponent;
    if (h[i] != 0) largest_h = std::max(largest_h, linalg::exponent_of(h[i]) - row_exponent_[i]);
  }
  vector_exponent_ = largest_h == std::numeric_limits<int>::min() ? 0 : largest_h;
  for (int i = 0; i < size_; ++i) h_[i] = linalg::PowerOfTwo(-row_exponent_[i] - vector_exponent_)(h[i]);
  const auto kept_digits = [](double before, double after) {
    return before == 0 || std::abs(after) >= std::numeric_limits<double>::min();
  };
  scaled_exactly_ =
      std::equal(H, H + H_.size(), H_.begin(), kept_digits) && std::equal(h, h + h_.size(), h_.begin(), kept_digits);
  return problem_.load(H_.data(), h_.data());
}

Status Mixed::decide(const double* guess) {
  candidate_.forget();
  for (const Elimination::Pivoting& pivoting : kPivoting) {
    if (const std::optional<Status> status = eliminate(guess, pivoting, true)) return *status;
  }
  if (const std::optional<Status> status = eliminate(guess, kPivoting[0], false)) return *status;
  if (settings_.method != Method::kAuto) return Status::kNotFound;
  if (enumerate()) return Status::kSolved;
  return elimination_.left() > 0 && prove_split() ? Status::kInfeasible : Status::kNotFound;
}

// Returns std::nullopt if the status of the LCP that remains need not be that of the problem.
std::optional<Status> Mixed::eliminate(const double* guess, const Elimination::Pivoting& pivoting, bool quick) {
  elimination_.run(H_.data(), problem_.q(), pivoting);
  const auto order = static_cast<std::size_t>(elimination_.order());
  M_.resize(order * order);
  for (std::vector<double>* const x : {&q_, &z_, &w_, &guess_}) x->resize(order);
  elimination_.reduced(M_.data(), q_.data());
  if (guess != nullptr) {
    for (int j = 0; j < n_; ++j) v_[j] = linalg::PowerOfTwo(column_exponent_[k_ + j] - vector_exponent_)(guess[j]);
    elimination_.propose(v_.data(), guess_.data());
  }
  std::optional<Ladder>& ladder = (quick ? quick_ladders_ : ladders_)[elimination_.left()];
  if (!ladder) {
    Settings settings = settings_;
    settings.quick = quick;
    ladder.emplace(static_cast<int>(order), settings);
  }
  const double* const proposal = guess == nullptr ? nullptr : guess_.data();
  const Status status = ladder->solve(M_.data(), q_.data(), proposal, z_.data(), w_.data());
  ran_out_ = ran_out_ || status == Status::kPivotLimit;
  if (status == Status::kInfeasible && elimination_.left() == 0 && proved(ladder->farkas())) return status;
  return status == Status::kSolved && accept_reduced() ? std::optional(Status::kSolved) : std::nullopt;
}

bool Mixed::accept_reduced() {
  elimination_.expand(z_.data(), w_.data(), v_.data());
  for (int i = 0; i < size_; ++i) marked_[i] = i < k_ || v_[i] > 0;
  candidate_.set(problem_, v_.data(), 0);
  return candidate_.accept(problem_, marked_.data());
}

bool Mixed::enumerate() {
  if (n_ > kEnumerable) return false;
  if (!enumeration_) enumeration_.emplace(size_, k_);
  const auto bases = settings_.max_pivots.value_or(std::numeric_limits<std::int64_t>::max());
  const Termination end = enumeration_->run(H_.data(), problem_.q(), bases, [&] {
    candidate_.set(problem_, enumeration_->z(), 0);
    return candidate_.violation() <= 1 && candidate_.accept(problem_, enumeration_->basic());
  });
  ran_out_ = ran_out_ || (end == Termination::kBudget && settings_.max_pivots);
  return end == Termination::kCandidate;
}

// Whether y >= 0, which proves that the LCP that remains is infeasible, also proves this for H. The multipliers of the
// equations and of the exchanged w_j follow from y by a solve with P, these rows and columns of H. With the residual
// rho of that solve, their error is |P^-T rho| <= bound. No sign must depend on it.
bool Mixed::proved(const double* y) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const double rounding = 2 * size_ * kEpsilon;
  const double largest = linalg::largest_magnitude(y, n_);
  if (!basis_) basis_.emplace(size_, kRegular);
  for (int i = 0; i < size_; ++i) marked_[i] = i < k_ || elimination_.exchanged(i - k_);
  basis_->factor(H_.data(), marked_.data());
  if (!basis_->regular()) return false;
  const int count = basis_->size();
  const int* const index = basis_->indices();
  std::vector<double> multiplier(size_), bound(size_), column(count), solution(count);
  const auto entry = [this](int i, int j) { return H_[static_cast<std::size_t>(i) * size_ + j]; };
  const auto share = [&](int i) { return i < k_ ? 0.0 : y[i - k_] / largest; };
  for (int i = k_; i < size_; ++i) {
    if (!marked_[i]) multiplier[i] = share(i);
  }
  for (int j = 0; j < count; ++j) {
    solution[j] = -share(index[j]);
    for (int i = k_; i < size_; ++i) solution[j] -= entry(i, index[j]) * multiplier[i];
  }
  basis_->solve_transposed(solution.data());
  for (int j = 0; j < count; ++j) multiplier[index[j]] = solution[j];
  for (int j = 0; j < count; ++j) {
    double rho = share(index[j]);
    double magnitude = rho;
    for (int i = 0; i < size_; ++i) {
      rho += entry(i, index[j]) * multiplier[i];
      magnitude += std::abs(entry(i, index[j]) * multiplier[i]);
    }
    std::fill(column.begin(), column.end(), 0.0);
    column[j] = 1;
    basis_->solve_transposed(column.data());
    for (int i = 0; i < count; ++i) {
      bound[index[i]] += 2 * std::abs(column[i]) * (std::abs(rho) + rounding * magnitude);
    }
  }
  const auto certainly = [&](const auto& coefficient, bool strict) {
    double sum = 0;
    double magnitude = 0;
    for (int i = 0; i < size_; ++i) {
      sum += coefficient(i) * multiplier[i];
      magnitude += std::abs(coefficient(i)) * (rounding * std::abs(multiplier[i]) + bound[i]);
    }
    return sum + magnitude < 0 || (!strict && magnitude == 0);
  };
  for (int j = k_; j < size_; ++j) {
    if (marked_[j] ? !(multiplier[j] >= bound[j]) : !certainly([&](int i) { return entry(i, j); }, false)) return false;
  }
  return certainly([&](int i) { return problem_.q()[i]; }, true);
}

// Proves infeasibility by the LCP with x = x+ - x- and two inequalities for each equation, whose entries are those of
// H.
bool Mixed::prove_split() {
  const auto k = static_cast<std::size_t>(k_);
  const auto size = static_cast<std::size_t>(size_);
  const std::size_t n = size + k;
  M_.resize(n * n);
  q_.resize(n);
  // Row and column i >= k of the LCP are i - k of H; the rows and columns before k have the other sign.
  const auto sign = [k](std::size_t i) { return i < k ? -1.0 : 1.0; };
  const auto source = [k](std::size_t i) { return i < k ? i : i - k; };
  for (std::size_t i = 0; i < n; ++i) {
    q_[i] = sign(i) * problem_.q()[source(i)];
    for (std::size_t j = 0; j < n; ++j) M_[i * n + j] = sign(i) * sign(j) * H_[source(i) * size + source(j)];
  }
  if (*std::min_element(q_.begin(), q_.end()) >= 0) return false;
  const std::vector<int> zero(n, 0);
  const auto pivots = settings_.max_pivots.value_or(60 * static_cast<std::int64_t>(n));
  if (!farkas_) farkas_.emplace(static_cast<int>(n));
  const Termination end = farkas_->run(M_.data(), q_.data(), zero.data(), zero.data(), pivots);
  ran_out_ = ran_out_ || (end == Termination::kBudget && settings_.max_pivots);
  return end == Termination::kCandidate;
}

// Writes the solution in the caller's units. Returns false if numbers are too large or too small there.
bool Mixed::write(double* v, double* y) {
  bool exact = scaled_exactly_;
  for (int i = 0; i < size_; ++i) {
    const linalg::PowerOfTwo to_v(vector_exponent_ - column_exponent_[i]);
    const linalg::PowerOfTwo from_v(column_exponent_[i] - vector_exponent_);
    v[i] = to_v(candidate_.given_z()[i]);
    y[i] = linalg::PowerOfTwo(row_exponent_[i] + vector_exponent_)(candidate_.given_w()[i]);
    if (settings_.single_precision) v[i] = static_cast<float>(v[i]);
    exact = exact && from_v(v[i]) == candidate_.given_z()[i];
  }
  if (!exact && !(violation(size_, k_, given_H_, given_h_, v, settings_.tolerance, y) <= 1)) return false;
  for (int i = 0; i < size_; ++i) {
    y[i] = i < k_ || v[i] > 0 ? 0.0 : std::max(0.0, y[i]);
    if (settings_.single_precision) y[i] = static_cast<float>(y[i]);
    if (!std::isfinite(v[i]) || !std::isfinite(y[i])) return false;
  }
  return true;
}

}  // namespace lcp::solver
