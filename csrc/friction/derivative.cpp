#include "friction/derivative.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::friction {
namespace {

using Map = Eigen::Map<const contact::Vector>;

bool any_nonzero(const double* x, Eigen::Index size) {
  return std::any_of(x, x + size, [](double number) { return number != 0; });
}

bool is_finite(const double* x, Eigen::Index size) {
  return std::all_of(x, x + size, [](double number) { return std::isfinite(number); });
}

}  // namespace

Derivative::Derivative(Eigen::Index n, Eigen::Index contacts, double rank_tolerance, bool smooth, Eigen::Index rows)
    : n_(n),
      contacts_(contacts),
      size_(3 * contacts + rows),
      rank_tolerance_(rank_tolerance),
      smooth_(smooth),
      problem_(n, contacts, rows),
      lu_(static_cast<int>(size_), linalg::Pivoting::kFull),
      none_(size_),
      h_(size_),
      u_(size_),
      states_(contacts),
      linear_(contacts),
      push_(n),
      solved_(n),
      y_(size_),
      x_(size_),
      work_(size_) {
  touching_.reserve(contacts);
  free_.reserve(rows);
  bound_.reserve(rows);
}

// An interval whose impulse just reaches a bound counts as without slip, as friction at its limit counts as stick. A
// row with one bound and no impulse counts as at this bound, as such a contact counts as apart. An interval of one
// number is always at its bounds.
void Derivative::find_row_states(double largest_number) {
  free_.clear();
  bound_.clear();
  for (int r = 0; r < impulses_.rows; ++r) {
    const int i = 3 * static_cast<int>(contacts_) + r;
    const double lower = impulses_.lower[r], upper = impulses_.upper[r], z = h_[i] - u_[i];
    const double rounding = problem_.rounding() / impulses_.row_weight;
    const double zero = std::max(rank_tolerance_ * largest_number, rounding);
    const double tie = std::isfinite(lower) && std::isfinite(upper) ? -zero : zero;
    if (upper - lower <= zero && std::abs(u_[i]) <= zero) {
      bound_.push_back({r, 0.5, 0.5});
    } else if (z - lower <= tie) {
      bound_.push_back({r, 1, 0});
    } else if (upper - z <= tie) {
      bound_.push_back({r, 0, 1});
    } else if (upper - lower <= zero) {
      bound_.push_back({r, u_[i] > 0 ? 1.0 : 0.0, u_[i] > 0 ? 0.0 : 1.0});
    } else {
      free_.push_back(i);
    }
  }
}

// Finds the states, and N of the contacts that touch.
bool Derivative::linearize(const Problem& problem, const Solution& at) {
  if (!problem_.set(
          {problem.A, at.v, problem.J, none_.data(), problem.mu, problem.lower, problem.upper, problem.compliance})) {
    return false;
  }
  impulses_ = problem_.impulses();
  problem_.scaled(at.gamma, h_.data());
  double largest_number = 0;
  for (int i = 0; i < size_; ++i) {
    u_[i] = at.u[i] / (impulses_.weight[impulses_.owner(i)] * problem_.unit());
    largest_number = std::max({largest_number, std::abs(h_[i]), std::abs(u_[i])});
  }
  touching_.clear();
  for (int k = 0; k < contacts_; ++k) {
    const double mu = impulses_.mu[k], *h = h_.data() + 3 * k, *u = u_.data() + 3 * k;
    if (smooth_) {
      const SmoothLaw law(h, u, mu, 0);
      touching_.push_back(k);
      std::copy_n(&law.C[0][0], 9, &linear_[k].C[0][0]);
      std::copy_n(&law.D[0][0], 9, &linear_[k].D[0][0]);
      std::copy_n(law.E, 3, linear_[k].E);
      continue;
    }
    const double rounding = problem_.rounding() / impulses_.weight[k];
    states_[k] = state_of(h, u, mu, std::max(rank_tolerance_ * largest_number, rounding));
    if (states_[k] == State::kApart) continue;
    touching_.push_back(k);
    linear_[k] = LinearLaw(states_[k] == State::kStick, h, u, mu);
  }
  find_row_states(largest_number);
  const int of_contacts = 3 * num_touching(), unknowns = of_contacts + static_cast<int>(free_.size());
  N_.setZero(unknowns, unknowns);
  rows_.resize(unknowns);
  const auto add = [&](int a, double factor, std::ptrdiff_t of) {
    const double* const row = impulses_.W + of * size_;
    for (int b = 0; b < unknowns; ++b) N_(a, b) += factor * row[entry(b)];
  };
  for (int a = 0; a < unknowns; ++a) {
    if (a < of_contacts) {
      const int k = touching_[a / 3], i = a % 3;
      const LinearLaw& linear = linear_[k];
      for (int l = 0; l < 3; ++l) {
        if (linear.C[i][l] != 0) add(a, linear.C[i][l], 3 * k + l);
      }
      for (int l = 0; l < 3; ++l) N_(a, a - i + l) += linear.D[i][l];
    } else {
      add(a, 1, entry(a));
    }
    const double largest = N_.row(a).lpNorm<1>();
    rows_[a] = largest > 0 ? 1 / largest : 1;
    N_.row(a) *= rows_[a];
  }
  return true;
}

bool Derivative::unique() const {
  const Eigen::Index unknowns = N_.rows();
  Eigen::VectorXd free(unknowns), moved = Eigen::VectorXd::Zero(impulses_.size());
  for (Eigen::Index i = 0; i < unknowns; ++i) free[i] = std::cos(static_cast<double>((i + 1) * (i + 1)));
  const double size = free.norm();
  Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> factors(unknowns, unknowns);
  factors.setThreshold(rank_tolerance_);
  factors.compute(N_);
  free -= factors.solve(N_ * free);  // the rest changes nothing in the law
  for (int b = 0; b < unknowns; ++b) moved += free[b] * Map(impulses_.W + entry(b) * size_, size_);
  return moved.norm() <= kUnique * size;
}

// Linearizes the law at the solution. Returns false where there is no solution.
bool Derivative::is_defined(const Problem& problem, const Solution& at) {
  const Eigen::Index rows = size_;
  factored_ = Factored::kNone;
  is_defined_ = is_finite(at.v, n_) && is_finite(at.gamma, rows) && is_finite(at.u, rows) && linearize(problem, at);
  return is_defined_;
}

// Replaces x_, numbers of touching_ and free_, by the least-squares solution of least norm of N y = x_ or N' y =
// x_.
void Derivative::solve(Factored matrix) {
  const auto unknowns = static_cast<int>(N_.rows());
  if (factored_ != matrix) {
    factored_ = matrix;
    const bool transposed = matrix == Factored::kTransposed;
    double* const entries = lu_.matrix(unknowns);
    for (int a = 0; a < unknowns; ++a) {
      for (int b = 0; b < unknowns; ++b) entries[a * unknowns + b] = transposed ? N_(b, a) : N_(a, b);
    }
    is_regular_ = lu_.factor(rank_tolerance_) == unknowns;
    factors_.setThreshold(rank_tolerance_);
    if (!is_regular_ && transposed) factors_.compute(N_.transpose());
    if (!is_regular_ && !transposed) factors_.compute(N_);
  }
  if (is_regular_) return lu_.solve(x_.data());
  x_.head(unknowns) = factors_.solve(x_.head(unknowns)).eval();
}

void Derivative::adjoint(const Problem& problem, const Solution& at, const Solution& g, const Data<double>& result,
                         bool same) {
  const Eigen::Index rows = size_;
  if (!(same ? is_defined_ : is_defined(problem, at))) {
    const bool asked = any_nonzero(g.v, n_) || any_nonzero(g.gamma, rows) || any_nonzero(g.u, rows);
    const double value = asked ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    std::fill_n(result.p, n_, value);
    std::fill_n(result.s, rows, value);
    std::fill_n(result.mu, contacts_, value);
    for (double* const bound : {result.lower, result.upper}) std::fill_n(bound, rows - 3 * contacts_, value);
    return;
  }
  contact::System& system = problem_.system();
  work_ = Map(g.u, rows);
  system.to_bodies(work_, push_);
  push_ += Map(g.v, n_);
  solved_ = push_;
  system.solve(solved_);
  system.to_contacts(solved_, y_);
  y_ += Map(g.gamma, rows);
  // u has a part of gamma in compliant rows.
  const auto of_compliance = [&](Eigen::Index i) {
    return problem.compliance != nullptr && i >= 3 * contacts_ ? problem.compliance[i - 3 * contacts_] * g.u[i] : 0;
  };
  for (Eigen::Index i = 3 * contacts_; i < rows; ++i) y_[i] += of_compliance(i);

  // Solves N' x = y, in the units of h.
  const auto unknowns = static_cast<int>(N_.rows());
  const auto weight = [&](int i) { return impulses_.weight[impulses_.owner(i)]; };
  for (int a = 0; a < unknowns; ++a) x_[a] = problem_.unit() / weight(entry(a)) * y_[entry(a)];
  solve(Factored::kTransposed);
  x_.head(unknowns).array() *= rows_.array();

  std::fill_n(result.mu, contacts_, 0.0);
  work_.setZero();
  for (int a = 0; a < unknowns; ++a) {
    const double length = weight(entry(a)) * problem_.unit();
    if (a >= 3 * num_touching()) {
      work_[entry(a)] -= x_[a] / length;
      continue;
    }
    const int k = touching_[a / 3], i = a % 3;
    for (int l = 0; l < 3; ++l) work_[3 * k + l] -= linear_[k].C[i][l] * x_[a] / length;
    if (impulses_.mu[k] == problem.mu[k]) result.mu[k] += linear_[k].E[i] * x_[a];  // a limited mu is constant
  }
  for (Eigen::Index i = 0; i < rows; ++i) result.s[i] = work_[i] + g.u[i];
  system.to_bodies(work_, solved_);
  solved_ += push_;
  system.solve(solved_);
  std::copy_n(solved_.data(), n_, result.p);
  if (size_ == 3 * contacts_) return;
  for (double* const bound : {result.lower, result.upper}) std::fill_n(bound, size_ - 3 * contacts_, 0.0);
  system.to_contacts(solved_, y_);
  for (const Bound& at_bound : bound_) {
    const Eigen::Index i = 3 * contacts_ + at_bound.row;
    const double of_impulse = g.gamma[i] + y_[i] + of_compliance(i);
    result.lower[at_bound.row] = at_bound.of_lower * of_impulse;
    result.upper[at_bound.row] = at_bound.of_upper * of_impulse;
  }
}

void Derivative::tangent(const Problem& problem, const Solution& at, const Data<const double>& d, double* dv,
                         double* dgamma, bool same) {
  const Eigen::Index rows = size_, of_rows = size_ - 3 * contacts_;
  if (!(same ? is_defined_ : is_defined(problem, at))) {
    const bool changes = any_nonzero(d.p, n_) || any_nonzero(d.s, rows) || any_nonzero(d.mu, contacts_) ||
                         any_nonzero(d.lower, of_rows) || any_nonzero(d.upper, of_rows);
    const double value = changes ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    std::fill_n(dv, n_, value);
    std::fill_n(dgamma, rows, value);
    return;
  }
  contact::System& system = problem_.system();
  const auto change_of = [&](const Bound& at_bound) {
    return (at_bound.of_lower != 0 ? at_bound.of_lower * d.lower[at_bound.row] : 0) +
           (at_bound.of_upper != 0 ? at_bound.of_upper * d.upper[at_bound.row] : 0);
  };
  solved_ = Map(d.p, n_);
  if (of_rows > 0) {
    work_.setZero();
    for (const Bound& at_bound : bound_) work_[3 * contacts_ + at_bound.row] = change_of(at_bound);
    system.to_bodies(work_, push_);
    solved_ += push_;
  }
  system.solve(solved_);
  system.to_contacts(solved_, y_);
  y_ += Map(d.s, rows);  // the change of u at constant impulses

  const auto unknowns = static_cast<int>(N_.rows());
  const auto weight = [&](int i) { return impulses_.weight[impulses_.owner(i)]; };
  for (int a = 0; a < unknowns; ++a) {
    const double length = weight(entry(a)) * problem_.unit();
    if (a >= 3 * num_touching()) {
      x_[a] = -y_[entry(a)] / length;
      continue;
    }
    const int k = touching_[a / 3], i = a % 3;
    x_[a] = impulses_.mu[k] == problem.mu[k] ? linear_[k].E[i] * d.mu[k] : 0;  // a limited mu is constant
    for (int l = 0; l < 3; ++l) x_[a] -= linear_[k].C[i][l] * y_[3 * k + l] / length;
  }
  x_.head(unknowns).array() *= rows_.array();
  solve(Factored::kN);
  work_.setZero();
  for (int a = 0; a < unknowns; ++a) work_[entry(a)] = problem_.unit() / weight(entry(a)) * x_[a];
  for (const Bound& at_bound : bound_) work_[3 * contacts_ + at_bound.row] = change_of(at_bound);
  std::copy_n(work_.data(), rows, dgamma);
  system.to_bodies(work_, push_);
  push_ += Map(d.p, n_);
  system.solve(push_);
  std::copy_n(push_.data(), n_, dv);
}

// dgamma = K (J A^-1 dp + ds) and dv = A^-1 (dp + J' dgamma).
void Derivative::jacobian(const Problem& problem, const Solution& at, Eigen::MatrixXd& by_p, Eigen::MatrixXd& by_s,
                          bool same) {
  by_p.resize(n_, n_);
  by_s.setZero(n_, size_);
  if (!(same ? is_defined_ : is_defined(problem, at))) {
    by_p.setConstant(std::numeric_limits<double>::quiet_NaN());
    return;
  }
  problem_.system().inverse(by_p);
  const auto unknowns = static_cast<int>(N_.rows());
  if (unknowns == 0) return;
  J_.resize(unknowns, n_);
  response_.resize(unknowns, unknowns);
  const auto weight = [&](int i) { return impulses_.weight[impulses_.owner(i)]; };
  for (int b = 0; b < unknowns; ++b) {
    const double length = weight(entry(b)) * problem_.unit();
    J_.row(b) = Eigen::Map<const Eigen::RowVectorXd>(problem.J + entry(b) * n_, n_);
    x_.head(unknowns).setZero();
    if (b < 3 * num_touching()) {
      const int k = touching_[b / 3], l = b % 3;
      for (int i = 0; i < 3; ++i) x_[b - l + i] = -rows_[b - l + i] * linear_[k].C[i][l] / length;
    } else {
      x_[b] = -rows_[b] / length;
    }
    solve(Factored::kN);
    for (int a = 0; a < unknowns; ++a) response_(a, b) = problem_.unit() / weight(entry(a)) * x_[a];
  }
  moved_.noalias() = by_p * J_.transpose();
  by_p.noalias() += moved_ * response_ * moved_.transpose();
  moved_ *= response_;
  for (int b = 0; b < unknowns; ++b) by_s.col(entry(b)) = moved_.col(b);
}

bool Derivative::certify(const Problem& problem, const Solution& at, Certificate& result) {
  const Eigen::Index rows = size_;
  if (!well_posed(problem, n_, contacts_, rows - 3 * contacts_)) return false;
  if (!is_finite(at.v, n_) || !is_finite(at.gamma, rows) || !problem_.set(problem)) return false;
  const double unit_of_problem = problem_.unit();
  if (!linearize(problem, at)) return false;
  contact::System& system = problem_.system();
  system.diagonal(push_);
  const contact::Vector scale = push_.cwiseSqrt().cwiseInverse();
  const auto size = [&](const contact::Vector& x) { return scale.cwiseProduct(x).stableNorm(); };
  contact::Vector momentum(n_), given(n_);
  system.multiply(Map(problem.v_free, n_), given);
  system.multiply(Map(at.v, n_) - Map(problem.v_free, n_), momentum);
  work_ = Map(at.gamma, rows);
  system.to_bodies(work_, push_);
  const double imbalance = size(momentum - push_), largest = std::max(size(given), size(push_));
  const double unit = problem_.unit() / unit_of_problem;  // linearize has set the problem that begins with v
  result = {unit * impulses_.residual(h_.data(), u_.data()), std::numeric_limits<double>::infinity(), 0, true};
  if (imbalance > 0) result.residual = std::max(result.residual, imbalance / largest);
  for (int k = 0; k < contacts_; ++k) {
    const double *h = h_.data() + 3 * k, *u = u_.data() + 3 * k, mu = impulses_.mu[k];
    const double surface = (mu * h[2] - std::hypot(h[0], h[1])) / std::hypot(1, mu);
    const double distance = states_[k] == State::kApart   ? u[2] - h[2]
                            : states_[k] == State::kStick ? std::min(h[2], surface)
                            : mu > 0                      ? std::min(h[2], std::hypot(u[0], u[1]))
                                                          : h[2];
    result.margin = std::min(result.margin, unit * impulses_.weight[k] * distance);
  }
  const auto add_row = [&](double distance) {
    result.margin = std::min(result.margin, unit * impulses_.row_weight * distance);
  };
  for (const int i : free_) {
    const int r = i - 3 * static_cast<int>(contacts_);
    add_row(std::min(h_[i] - impulses_.lower[r], impulses_.upper[r] - h_[i]));
  }
  for (const Bound& at_bound : bound_) {
    const double s = u_[3 * contacts_ + at_bound.row];
    add_row(at_bound.of_lower == at_bound.of_upper ? 0 : at_bound.of_lower > 0 ? s : -s);
  }
  result.rank = rows - N_.rows();  // D = I of contacts that are apart, and of rows at bounds
  if (N_.rows() == 0) return true;
  Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> factors(N_.rows(), N_.cols());
  factors.setThreshold(rank_tolerance_);
  factors.compute(N_);
  result.rank += factors.rank();
  result.unique = factors.rank() == N_.rows() || unique();
  return true;
}

}  // namespace lcp::friction
