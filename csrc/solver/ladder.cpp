#include "solver/ladder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "linalg/equilibrate.h"
#include "linalg/scale.h"
#include "solver/verify.h"

namespace lcp::solver {
namespace {

constexpr int kEnumerable = 10;
constexpr std::uint64_t kCovers = 8;
constexpr std::uint64_t kStarts = 20;
constexpr int kNewtonMinSize = 16;
constexpr std::int64_t kPathSteps = 1500;

constexpr std::array kRungs = {Rung::kTrivial,    Rung::kGuess,        Rung::kNewtonMin,         Rung::kLemke,
                               Rung::kTightLemke, Rung::kEquilibrated, Rung::kTightEquilibrated, Rung::kRowScaled,
                               Rung::kShifted,    Rung::kFarkas,       Rung::kEnumeration,       Rung::kCovers,
                               Rung::kCentralPath};

constexpr Lemke::Options kTight = {.pivot_tolerance = 1e-12, .tie_tolerance = 1e-14};

// A pivot of a basis that counts as 0, beside the largest.
constexpr double kNegligible = 1e-15;

// A claim this close to round-off needs no second solve of its basis.
constexpr double kNearRoundOff = 1e-13;

// Products with entries of M that are this far from 1, as exponents of 2, neither under- nor overflow where z and q are
// of usual size.
constexpr int kUsual = 64;

// What rounding leaves of the symmetry of a product such as J M^-1 J', in units of the entries' precision.
constexpr double kAsymmetry = 16;

// Newton steps within the last basis, where its solution is not near round-off.
constexpr int kRefinements = 2;

}  // namespace

Ladder::Ladder(int n, const Settings& settings)
    : n_(n),
      settings_(settings),
      q_(n),
      z_(n),
      w_(n),
      trial_z_(n),
      trial_w_(n),
      x_(n),
      spans_(n),
      marked_(n),
      row_exponent_(n),
      column_exponent_(n) {}

Status Ladder::solve(const double* M, const double* q, const double* guess, double* z, double* w) {
  pivots_ = 0;
  ran_out_ = false;
  is_equilibrated_ = false;
  Status status = load(M, q) ? climb(guess) : Status::kBadInput;
  if (status == Status::kSolved && !write(z, w)) status = Status::kNotFound;
  if (status != Status::kSolved) {
    std::fill_n(z, n_, std::numeric_limits<double>::quiet_NaN());
    std::fill_n(w, n_, std::numeric_limits<double>::quiet_NaN());
  }
  return status;
}

bool Ladder::load(const double* M, const double* q) {
  given_M_ = M;
  given_q_ = q;
  const double largest_m = linalg::kernels().rows.scan(n_, M, spans_.data());
  const double largest_q = linalg::largest_magnitude(q, q_.size());
  if (!std::isfinite(largest_m) || !std::isfinite(largest_q)) return false;
  vector_exponent_ = linalg::exponent_of(largest_q);
  scaled_exactly_ = linalg::PowerOfTwo(-vector_exponent_).scale(q, q_.size(), q_.data());
  matrix_ = M;
  matrix_exponent_ = 0;
  unit_exponent_ = linalg::exponent_of(largest_m);
  has_unit_matrix_ = unit_exponent_ == 0;
  if (std::abs(unit_exponent_) > kUsual) {
    M_.resize(static_cast<std::size_t>(n_) * n_);
    scaled_exactly_ = linalg::PowerOfTwo(-unit_exponent_).scale(M, M_.size(), M_.data()) && scaled_exactly_;
    matrix_ = M_.data();
    matrix_exponent_ = std::exchange(unit_exponent_, 0);
  }
  return true;
}

// matrix_ in unit size, which what follows may rely on.
const double* Ladder::unit_matrix() {
  if (unit_exponent_ == 0) return matrix_;
  if (!has_unit_matrix_) {
    M_.resize(static_cast<std::size_t>(n_) * n_);
    linalg::PowerOfTwo(-unit_exponent_).scale(matrix_, M_.size(), M_.data());
    has_unit_matrix_ = true;
  }
  return M_.data();
}

Status Ladder::climb(const double* guess) {
  if (settings_.method == Method::kAuto) return climb_all(guess);
  if (try_zero() || (guess != nullptr && try_guess(guess))) return Status::kSolved;
  const bool solved = settings_.method == Method::kLemke         ? try_lemke({}, Matrix::kGiven)
                      : settings_.method == Method::kEnumeration ? try_enumeration()
                      : settings_.method == Method::kNewtonMin   ? try_newton_min()
                                                                 : try_central_path(1);
  if (solved) return Status::kSolved;
  return ran_out_ ? Status::kPivotLimit : Status::kNotFound;
}

Status Ladder::climb_all(const double* guess) {
  for (const Rung rung : kRungs) {
    if (!applies(rung, guess)) continue;
    rung_ = rung;
    if (holds(rung, guess)) return rung == Rung::kFarkas ? Status::kInfeasible : Status::kSolved;
  }
  return ran_out_ ? Status::kPivotLimit : Status::kNotFound;
}

bool Ladder::applies(Rung rung, const double* guess) {
  switch (rung) {
    case Rung::kGuess:
      return guess != nullptr;
    case Rung::kNewtonMin:
      return n_ >= kNewtonMinSize && symmetric_with_positive_diagonal();
    case Rung::kEnumeration:
      return n_ <= kEnumerable;
    case Rung::kCovers:
    case Rung::kCentralPath:
      return n_ > kEnumerable;
    default:
      return true;
  }
}

// Whether the rung finds a solution, or a proof.
bool Ladder::holds(Rung rung, const double* guess) {
  switch (rung) {
    case Rung::kTrivial:
      return try_zero();
    case Rung::kGuess:
      return try_guess(guess);
    case Rung::kNewtonMin:
      return try_newton_min();
    case Rung::kLemke:
      return try_lemke({}, Matrix::kGiven);
    case Rung::kTightLemke:
      return try_lemke(kTight, Matrix::kGiven);
    case Rung::kEquilibrated:
      return try_lemke({}, Matrix::kEquilibrated);
    case Rung::kTightEquilibrated:
      return try_lemke(kTight, Matrix::kEquilibrated);
    case Rung::kRowScaled:
      return try_lemke({}, Matrix::kRowScaled);
    case Rung::kShifted:
      return try_lemke({}, Matrix::kShifted);
    case Rung::kFarkas:
      return proves_infeasible();
    case Rung::kEnumeration:
      ran_out_ = false;  // it alone decides
      return try_enumeration();
    case Rung::kCovers:
      return try_covers();
    case Rung::kCentralPath:
      return try_central_path(kStarts);
  }
  return false;
}

bool Ladder::try_zero() {
  if (std::any_of(q_.begin(), q_.end(), [](double x) { return x < 0; })) return false;
  std::fill(z_.begin(), z_.end(), 0.0);
  w_ = q_;
  return true;
}

std::int64_t Ladder::budget(std::int64_t usual) const {
  if (!settings_.max_pivots) return usual;
  const std::int64_t left = *settings_.max_pivots - pivots_;
  return settings_.method == Method::kAuto ? std::min(usual, left) : left;
}

// Keeps the books; whether there is a claim.
bool Ladder::spend(std::int64_t pivots, Termination end) {
  pivots_ += pivots;
  ran_out_ = ran_out_ || end == Termination::kBudget;
  return end == Termination::kCandidate;
}

bool Ladder::try_lemke(Lemke::Options options, Matrix matrix) {
  options.max_pivots = budget(std::int64_t{30} * n_);
  if (matrix == Matrix::kEquilibrated) equilibrate_once();
  if (matrix == Matrix::kRowScaled) scale_rows_by_q();
  if (matrix == Matrix::kShifted) shift_diagonal();
  const bool scaled = matrix == Matrix::kEquilibrated || matrix == Matrix::kRowScaled;
  if (!lemke_) lemke_.emplace(n_);
  const Termination end = lemke_->run(matrix == Matrix::kGiven ? unit_matrix() : scaled_M_.data(),
                                      scaled ? scaled_q_.data() : q_.data(), options);
  if (!spend(lemke_->pivots(), end)) return false;
  const double* z = lemke_->z();
  if (scaled) {
    for (int i = 0; i < n_; ++i) trial_z_[i] = std::ldexp(z[i], scaled_exponent_ - column_exponent_[i]);
    z = trial_z_.data();
  }
  double claim = violation_of(z, -unit_exponent_);
  if (matrix == Matrix::kGiven && !is_near_round_off(claim) && std::isfinite(claim)) {
    lemke_->refine(w_.data());
    linalg::PowerOfTwo(-unit_exponent_).scale(lemke_->z(), trial_z_.size(), trial_z_.data());
    keep_better(claim);
  }
  return accept(claim, lemke_->basic());
}

bool Ladder::symmetric_with_positive_diagonal() {
  for (int i = n_ - 1; i >= 0; --i) {  // the zeros of friction problems are at the end
    x_[i] = matrix_[static_cast<std::size_t>(i) * (spans_.size() + 1)];
    if (!(x_[i] > 0)) return false;
  }
  const double precision = settings_.single_precision ? std::numeric_limits<float>::epsilon() / 2.0
                                                      : std::numeric_limits<double>::epsilon() / 2;
  return linalg::kernels().rows.is_symmetric(matrix(), x_.data(), kAsymmetry * precision);
}

bool Ladder::try_newton_min() {
  if (!newton_min_) newton_min_.emplace(n_);
  const bool named = settings_.method == Method::kNewtonMin;
  const bool symmetric = !named || symmetric_with_positive_diagonal();
  Termination end = newton_min_->run(matrix(), symmetric, q_.data(), budget(30 + n_), !named);
  bool claims = spend(newton_min_->steps(), end);
  if (named && symmetric && end == Termination::kFailed) {  // nothing else will be tried
    end = newton_min_->run(matrix(), false, q_.data(), budget(30 + n_));
    claims = spend(newton_min_->steps(), end);
  }
  if (!claims) return false;
  double claim = violation_of(newton_min_->z(), 0);
  for (int k = 0; k < kRefinements && !is_near_round_off(claim) && std::isfinite(claim); ++k) {
    newton_min_->refine(w_.data());
    std::copy_n(newton_min_->z(), n_, trial_z_.begin());
    if (!keep_better(claim)) break;
  }
  return accept(claim, newton_min_->basic());
}

bool Ladder::try_enumeration() {
  if (!enumeration_) enumeration_.emplace(n_);
  const Termination end =
      enumeration_->run(unit_matrix(), q_.data(), settings_.tolerance, budget(std::int64_t{1} << 20));
  return spend(enumeration_->bases(), end) &&
         accept(violation_of(enumeration_->z(), -unit_exponent_), enumeration_->basic());
}

bool Ladder::try_covers() {
  for (std::uint64_t cover = 1; cover <= kCovers; ++cover) {
    if (try_lemke({.cover = cover}, Matrix::kGiven)) return true;
  }
  return false;
}

bool Ladder::try_central_path(std::uint64_t starts) {
  if (!central_path_) central_path_.emplace(n_, 0);
  std::int64_t left = budget(kPathSteps);
  for (std::uint64_t start = 0; start < starts; ++start) {
    const Termination end = central_path_->run(unit_matrix(), q_.data(), start, left);
    left -= central_path_->steps();
    if (spend(central_path_->steps(), end) &&
        accept(violation_of(central_path_->z(), -unit_exponent_), central_path_->basic())) {
      return true;
    }
    if (end == Termination::kBudget) return false;
  }
  return false;
}

// Where the guess marks a singular M_aa, what that leaves open is taken from the guess itself.
bool Ladder::try_guess(const double* guess) {
  for (int i = 0; i < n_; ++i) marked_[i] = guess[i] > 0;
  if (n_ >= kNewtonMinSize && symmetric_with_positive_diagonal()) {
    if (!newton_min_) newton_min_.emplace(n_);
    if (newton_min_->try_basis(matrix(), q_.data(), marked_.data())) {
      std::copy_n(newton_min_->z(), n_, z_.begin());
      return violation(matrix(), 0, q_.data(), z_.data(), settings_.tolerance, w_.data()) <= 1;
    }
  }
  if (!basis_) basis_.emplace(n_, kNegligible);
  basis_->factor(matrix_, marked_.data());
  const linalg::PowerOfTwo to_scale(matrix_exponent_ - vector_exponent_);
  for (int i = 0; i < basis_->size(); ++i) {
    trial_w_[i] = -q_[basis_->indices()[i]];
    x_[i] = to_scale(guess[basis_->indices()[i]]);
  }
  basis_->solve_near(trial_w_.data(), x_.data());
  std::fill(z_.begin(), z_.end(), 0.0);
  for (int i = 0; i < basis_->size(); ++i) z_[basis_->indices()[i]] = std::max(0.0, x_[i]);
  return violation(matrix(), 0, q_.data(), z_.data(), settings_.tolerance, w_.data()) <= 1;
}

bool Ladder::proves_infeasible() {
  if (!farkas_) farkas_.emplace(n_);
  equilibrate_once();
  const Termination end =
      farkas_->run(given_M_, given_q_, row_exponent_.data(), column_exponent_.data(), budget(std::int64_t{60} * n_));
  return spend(farkas_->pivots(), end);
}

// 2^-r w = (2^-r M 2^-c) (2^c z) + 2^-r q.
void Ladder::equilibrate_once() {
  if (is_equilibrated_) return;
  is_equilibrated_ = true;
  scaled_M_.assign(unit_matrix(), unit_matrix() + spans_.size() * spans_.size());
  scaled_q_.resize(n_);
  linalg::equilibrate(n_, scaled_M_.data(), row_exponent_.data(), column_exponent_.data());
  for (int i = 0; i < n_; ++i) scaled_q_[i] = std::ldexp(q_[i], -row_exponent_[i]);
  scaled_exponent_ = linalg::exponent_of(linalg::largest_magnitude(scaled_q_.data(), scaled_q_.size()));
  for (double& q : scaled_q_) q = std::ldexp(q, -scaled_exponent_);
}

// Rows by the size of q_i where it is not 0, then columns by their largest entry.
void Ladder::scale_rows_by_q() {
  const double* const M = unit_matrix();
  scaled_M_.resize(spans_.size() * spans_.size());
  scaled_q_.resize(n_);
  scaled_exponent_ = 0;
  std::fill(column_exponent_.begin(), column_exponent_.end(), std::numeric_limits<int>::min());
  for (int i = 0; i < n_; ++i) {
    row_exponent_[i] = linalg::exponent_of(q_[i]);
    scaled_q_[i] = std::ldexp(q_[i], -row_exponent_[i]);
    for (int j = 0; j < n_; ++j) {
      const double entry = M[static_cast<std::size_t>(i) * n_ + j];
      if (entry != 0)
        column_exponent_[j] = std::max(column_exponent_[j], linalg::exponent_of(entry) - row_exponent_[i]);
    }
  }
  for (int j = 0; j < n_; ++j) {
    if (column_exponent_[j] == std::numeric_limits<int>::min()) column_exponent_[j] = 0;
    for (int i = 0; i < n_; ++i) {
      const auto k = static_cast<std::size_t>(i) * n_ + j;
      scaled_M_[k] = std::ldexp(M[k], -row_exponent_[i] - column_exponent_[j]);
    }
  }
  is_equilibrated_ = false;
}

// By the precision of the entries.
void Ladder::shift_diagonal() {
  const double* const M = unit_matrix();
  scaled_M_.assign(M, M + spans_.size() * spans_.size());
  for (std::size_t i = 0; i < scaled_M_.size(); i += spans_.size() + 1) {
    scaled_M_[i] += settings_.single_precision ? 1e-7 : 1e-15;
  }
  is_equilibrated_ = false;
}

// That of z 2^z_exponent, which becomes z_.
double Ladder::violation_of(const double* z, int z_exponent) {
  linalg::PowerOfTwo(z_exponent).scale(z, z_.size(), z_.data());
  return violation(matrix(), 0, q_.data(), z_.data(), settings_.tolerance, w_.data());
}

bool Ladder::is_near_round_off(double claim) const { return claim * settings_.tolerance <= kNearRoundOff; }

// Takes trial_z_ for z_ where its violation is less than the claim.
bool Ladder::keep_better(double& claim) {
  const double trial = violation(matrix(), 0, q_.data(), trial_z_.data(), settings_.tolerance, trial_w_.data());
  if (!(trial < claim)) return false;
  claim = trial;
  z_.swap(trial_z_);
  w_.swap(trial_w_);
  return true;
}

// Solves the basis of a claim afresh where that helps, and keeps the better of the two.
bool Ladder::accept(double claim, const unsigned char* basic) {
  if (!is_near_round_off(claim)) {
    solve_basis(basic, trial_z_.data());
    keep_better(claim);
  }
  return claim <= 1;
}

void Ladder::solve_basis(const unsigned char* basic, double* z) {
  if (!basis_) basis_.emplace(n_, kNegligible);
  basis_->factor(matrix_, basic);
  for (int i = 0; i < basis_->size(); ++i) x_[i] = -q_[basis_->indices()[i]];
  basis_->solve(x_.data());
  std::fill_n(z, n_, 0.0);
  for (int i = 0; i < basis_->size(); ++i) z[basis_->indices()[i]] = std::max(0.0, x_[i]);
}

// Back to the caller's scale, exactly complementary; false where the result, as the caller will see it, is none: z may
// be rounded to float, or under- or overflow, and M and q may have lost digits when they were scaled.
bool Ladder::write(double* z, double* w) {
  const int z_exponent = vector_exponent_ - matrix_exponent_;
  const bool single = settings_.single_precision;
  const bool exact = linalg::PowerOfTwo(z_exponent).scale(z_.data(), z_.size(), z) && !single;
  if (single) std::transform(z, z + n_, z, [](double x) { return static_cast<float>(x); });
  if (!scaled_exactly_) {
    if (!(violation({n_, given_M_, spans_.data()}, 0, given_q_, z, settings_.tolerance, w) <= 1)) return false;
  } else {
    if (!exact) {
      linalg::PowerOfTwo(-z_exponent).scale(z, z_.size(), trial_z_.data());
      if (!(violation(matrix(), 0, q_.data(), trial_z_.data(), settings_.tolerance, w_.data()) <= 1)) return false;
    }
    linalg::PowerOfTwo(vector_exponent_).scale(w_.data(), w_.size(), w);
  }
  for (int i = 0; i < n_; ++i) {
    w[i] = z[i] > 0 ? 0.0 : std::max(0.0, w[i]);
    if (single) w[i] = static_cast<float>(w[i]);
  }
  return std::isfinite(linalg::largest_magnitude(z, z_.size())) &&
         std::isfinite(linalg::largest_magnitude(w, w_.size()));
}

}  // namespace lcp::solver
