#include "friction/ladder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "solver/ladder.h"
#include "solver/random.h"

namespace lcp::friction {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The methods aim at this part of the tolerance, since the residual is measured again at the velocities of the bodies.
constexpr double kGoal = 0.1;

constexpr Ladder::ProximalSettings kFree = {30, 0.1, 20, 0, false}, kCareful = {60, 0.3, 5, 20, true};
constexpr double kFirstWeight = 1e-2, kLeastWeight = 1e-10, kMostWeight = 10;
constexpr double kProximalRegularization = 1e-12;
constexpr int kInnerSteps = 30;
constexpr double kSolvedInside = 100;  // times the goal
constexpr double kLost = 1e-3;         // an inner residual above this leaves h where it was

constexpr int kFrictionSteps = 10;  // of the continuation in mu
constexpr int kRandomStarts = 10;
constexpr double kTangents = 0.3;  // the size of random tangential impulses beside the normal ones
constexpr std::uint64_t kSeed = 1;

double normal(solver::Random& numbers) {
  const double radius = std::sqrt(-2 * std::log(1 - numbers.uniform(0, 1)));
  return radius * std::cos(2 * std::numbers::pi * numbers.uniform(0, 1));
}

}  // namespace

// What is tried, in this order. Each starts at h_, improves it and returns its residual.
const std::array<double (Ladder::*)(), 6> Ladder::kRungs = {
    &Ladder::one_sweep,           &Ladder::newton,       &Ladder::proximal_point, &Ladder::careful_proximal_point,
    &Ladder::increasing_friction, &Ladder::random_starts};

Ladder::Ladder(Eigen::Index n, Eigen::Index contacts, const Limits& limits)
    : n_(n),
      contacts_(static_cast<int>(contacts)),
      limits_(limits),
      goal_(kGoal * limits.tolerance),
      problem_(n, contacts),
      newton_(contacts_),
      gauss_seidel_(contacts_),
      start_(3 * contacts),
      h_(3 * contacts),
      other_(3 * contacts),
      center_(3 * contacts),
      best_(3 * contacts),
      u_(3 * contacts),
      mu_(contacts) {}

// A single contact, or contacts that do not touch one another's bodies.
double Ladder::one_sweep() {
  gauss_seidel_.sweep(impulses_, {}, 1, h_.data());
  return residual(h_);
}

double Ladder::newton() { return newton_.solve(impulses_, {}, {}, goal_, h_.data(), steps_, limits_.max_iterations); }
double Ladder::proximal_point() { return proximal(kFree); }
double Ladder::careful_proximal_point() { return proximal(kCareful); }

// The friction rises from a tenth of mu to mu.
double Ladder::increasing_friction() {
  double last = kInfinity;
  const double* mu = impulses_.mu;
  for (int k = 1; k <= kFrictionSteps; ++k) {
    for (int c = 0; c < contacts_; ++c) mu_[c] = k == kFrictionSteps ? mu[c] : mu[c] * k / kFrictionSteps;
    impulses_.mu = mu_.data();
    last = newton();
    if (last > limits_.tolerance) last = proximal(kFree);
  }
  impulses_.mu = mu;
  return last;
}

double Ladder::random_starts() {
  solver::Random numbers(kSeed);
  double last = kInfinity;
  for (int k = 0; k < kRandomStarts && last > limits_.tolerance; ++k) {
    for (int c = 0; c < contacts_; ++c) {
      double* h = h_.data() + static_cast<std::ptrdiff_t>(3) * c;
      h[2] = std::exp(normal(numbers));
      for (int i = 0; i < 2; ++i) h[i] = kTangents * h[2] * normal(numbers);
    }
    last = proximal(kFree);
  }
  return last;
}

double Ladder::residual(const std::vector<double>& h) {
  impulses_.velocities(h.data(), u_.data());
  return impulses_.residual(h.data(), u_.data());
}

double Ladder::proximal(const ProximalSettings& settings) {
  double weight = kFirstWeight, best = kInfinity;
  for (int k = 0; k < settings.steps && best > goal_ && steps_ < limits_.max_iterations; ++k) {
    center_ = h_;
    const Proximal around = {weight, center_.data()};
    if (settings.sweeps > 0) gauss_seidel_.sweep(impulses_, around, settings.sweeps, h_.data());
    other_ = h_;
    const auto inner = [&](Equation equation, std::vector<double>& h) {
      return newton_.solve(impulses_, around, {equation, settings.line_search, kProximalRegularization, kInnerSteps},
                           goal_, h.data(), steps_, limits_.max_iterations);
    };
    double inside = inner(Equation::kJeanMoreau, h_);
    if (inside > kSolvedInside * goal_) {
      const double second = inner(Equation::kAlartCurnier, other_);
      if (second < inside) {
        inside = second;
        h_.swap(other_);
      }
    }
    const double here = residual(h_);
    if (here < best) {
      best = here;
      best_ = h_;
    }
    if (inside <= kSolvedInside * goal_) {
      weight = std::max(kLeastWeight, settings.down * weight);
    } else {
      weight = std::min(kMostWeight, settings.up * weight);
      if (!(inside <= kLost)) h_ = center_;
    }
  }
  if (best < kInfinity) h_ = best_;
  return best;
}

// Whether it is proved that no velocities keep all contacts from penetrating: then even the problem without friction
// has no solution.
bool Ladder::infeasible() {
  const std::size_t m = static_cast<std::size_t>(contacts_);
  std::vector<double> W(m * m), q(m), z(m), w(m);
  for (std::size_t i = 0; i < m; ++i) {
    q[i] = impulses_.q[3 * i + 2];
    for (std::size_t j = 0; j < m; ++j) W[i * m + j] = impulses_.W[(3 * i + 2) * 3 * m + 3 * j + 2];
  }
  solver::Ladder frictionless(contacts_, {});
  return frictionless.solve(W.data(), q.data(), nullptr, z.data(), w.data()) == Status::kInfeasible;
}

Status Ladder::solve(const Problem& problem, const double* guess, double* v, double* gamma, double* u) {
  steps_ = 0;
  const auto fail = [&](Status status) {
    std::fill_n(v, n_, kNaN);
    for (double* x : {gamma, u}) std::fill_n(x, 3 * contacts_, kNaN);
    return status;
  };
  if (!well_posed(problem, n_, contacts_) || !problem_.set(problem)) return fail(Status::kBadInput);
  impulses_ = problem_.impulses();
  std::fill(start_.begin(), start_.end(), 0.0);
  // Without a guess nothing is better known than that no contact touches.
  if (guess != nullptr) problem_.scaled(guess, start_.data());
  const auto accepted = [&] {
    return residual(h_) <= limits_.tolerance && problem_.unscaled(h_.data(), gamma, v, u) <= limits_.tolerance;
  };
  h_ = start_;
  if (accepted()) return Status::kSolved;
  for (const auto rung : kRungs) {
    h_ = start_;
    (this->*rung)();
    if (accepted()) return Status::kSolved;
    if (steps_ >= limits_.max_iterations) return fail(Status::kPivotLimit);
  }
  return fail(infeasible() ? Status::kInfeasible : Status::kNotFound);
}

}  // namespace lcp::friction
