#include "friction/ladder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "solver/ladder.h"
#include "solver/random.h"

namespace lcp::friction {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The largest residual at which all methods aim after the first ones have failed. The proximal point method often makes
// progress only with inner problems that are solved more accurately than the tolerance requires.
constexpr double kHardGoal = 1e-12;

constexpr double kLeastWeight = 1e-10, kMostWeight = 10;  // the weights of the proximal step, in the units of W
constexpr NewtonSettings kInner = {false, 1e-12, 20};
constexpr double kSolvedInside = 100;  // an inner problem counts as solved up to this multiple of the goal

// The numbers of random starts of Newton's method, and of the slower proximal point and interior point methods.
constexpr int kRandomStarts = 200, kRandomSlow = 12;
// With more than kFewContacts contacts the interior point method takes less time than the proximal point method. With
// more than kPyramidContacts an LCP of 10 unknowns for each contact takes too long.
constexpr int kFewContacts = 12, kPyramidContacts = 40;
// The directions of a pyramid turn kTurns times. This is repeated from random directions: kPasses times in all with few
// contacts, kPassesWithMany times with many, and kPassesFirst times before the active set method. The LCP gets
// coefficients of friction of at most one of kLimits, since larger ones make its entries too unequal.
constexpr int kTurns = 6, kPasses = 8, kPassesWithMany = 2, kPassesFirst = 1;
constexpr double kLimits[] = {1e4, 1e3, 1e5, 1e2}, kNextLimit = 1e8;
// The active set method is tried where a coefficient of friction exceeds kLargeFriction. It starts from problems whose
// coefficients are at most one of kFirstLimits; this limit then rises by the factor kLift.
constexpr double kLargeFriction = 1e3, kFirstLimits[] = {1e5, 1e4, 1e3}, kLift = 10;
// All sets of states are enumerated for up to this many contacts, since 4 contacts take some 2 ms and each further
// contact takes more than three times as long. If all coefficients exceed the largest of kFirstLimits, the search ends
// there. No later method solved any of the landing boxes of the test that the enumeration had missed.
constexpr int kEnumerated = 4;
constexpr NewtonSettings kAfterPyramid = {false, 1e-9, 12};
// The logarithm of a random normal impulse is normally distributed around that of 1 or, for every second start, around
// that of kWideTypical with the deviation kWideSpread.
constexpr double kWideTypical = 0.1, kWideSpread = 2;
constexpr double kTangents = 0.3;  // the size of random tangential impulses beside the normal ones
// The numbers of the proof that there is no solution:
//   - kFarkasWeight: the weight of a proximal step, whose impulses are 1 / weight times the penetration and have to be
//     accurate.
//   - kFarkasSteps: the most steps. Each step leaves the share weight / lambda of a motion along an eigenvector of W
//     with the eigenvalue lambda.
//   - kSurelyPushed: a penetration, in units of the tolerance, that no solution within the tolerance has.
//   - kFarAway: velocities, relative to the largest |J v_free + b|, beyond which a solution does not count.
constexpr double kFarkasWeight = 1e-6;
constexpr int kFarkasSteps = 12;
constexpr double kSurelyPushed = 2, kFarAway = 1e5;
constexpr std::uint64_t kSeed = 1;

double normal(solver::Random& numbers) {
  const double radius = std::sqrt(-2 * std::log(1 - numbers.uniform(0, 1)));
  return radius * std::cos(2 * std::numbers::pi * numbers.uniform(0, 1));
}

}  // namespace

const Attempt Ladder::kManySweeps = {"more runs", 50, {false, 1e-9, 12}};
const Attempt Ladder::kRandomAttempts[] = {{"random starts", 0, {false, 1e-9, 12}},
                                           {"random starts", 0, {true, 1e-4, 20}}};
const InteriorSettings Ladder::kInterior = {Path::kCone, 1}, Ladder::kInteriorSmooth = {Path::kSmooth, 1};
const InteriorSettings Ladder::kInteriorElsewhere[] = {
    {Path::kCone, 1, 10}, {Path::kSmooth, 0.1}, {Path::kCone, 10, 10}};
const Ladder::ProximalSettings Ladder::kFast = {10, 30, 0.1, 0.3, 5, 1e-2},
                               Ladder::kCareful = {0, 60, 1e-3, 0.3, 5, 1e-3};

Ladder::Ladder(Eigen::Index n, Eigen::Index contacts, const Limits& limits, Eigen::Index rows)
    : n_(n),
      contacts_(static_cast<int>(contacts)),
      rows_(static_cast<int>(rows)),
      limits_(limits),
      problem_(n, contacts, rows),
      newton_(contacts_, rows_),
      gauss_seidel_(contacts_, rows_),
      limited_mu_(contacts),
      start_mu_(contacts) {
  for (std::vector<double>* const x : {&start_, &h_, &center_, &best_, &u_}) x->resize(3 * contacts + rows);
}

void Ladder::attempt(const Attempt& attempt) {
  h_ = start_;
  gauss_seidel_.sweep(impulses_, attempt.sweeps, h_.data());
  newton_.solve(impulses_, {}, attempt.newton, goal_, h_.data(), steps_, limits_.max_iterations);
}

double Ladder::residual(const std::vector<double>& h) {
  impulses_.velocities(h.data(), u_.data());
  return impulses_.residual(h.data(), u_.data());
}

void Ladder::proximal(const ProximalSettings& settings) {
  h_ = start_;
  gauss_seidel_.sweep(impulses_, settings.sweeps, h_.data());
  double weight = settings.weight, best = kInfinity, here = 1;
  for (int k = 0; k < settings.steps && best > goal_ && steps_ < limits_.max_iterations; ++k) {
    center_ = h_;
    const double goal = std::max(goal_, settings.accuracy * std::min(1.0, here));
    const double inside =
        newton_.solve(impulses_, {weight, center_.data()}, kInner, goal, h_.data(), steps_, limits_.max_iterations);
    weight = inside <= std::max(goal, kSolvedInside * goal_) ? std::max(kLeastWeight, settings.down * weight)
                                                             : std::min(kMostWeight, settings.up * weight);
    here = residual(h_);
    if (here < best) {
      best = here;
      best_ = h_;
    }
  }
  if (best < kInfinity) h_ = best_;
}

void Ladder::interior(const InteriorSettings& settings) {
  if (!interior_) interior_.emplace(n_, contacts_, rows_);
  if (!interior_is_set_) interior_->set(given_, impulses_);
  interior_is_set_ = true;
  interior_->solve(settings, goal_, h_.data(), steps_, limits_.max_iterations);
}

// Solves the LCPs of pyramids by Lemke's method, with mu limited to one of kLimits, and starts Newton's method from
// their solutions. Newton's method solves the problem with the same limit, then with kNextLimit if a mu exceeds
// kNextLimit, and then with the given mu. Each run begins with the states of the contacts found with the limit before.
void Ladder::pyramids(int passes) {
  if (!pyramid_) pyramid_.emplace(contacts_, rows_);
  solver::Random numbers(kSeed);
  double best = kInfinity;
  const auto limit = [&](double most, std::vector<double>& mu) {
    for (int k = 0; k < contacts_; ++k) mu[k] = std::min(impulses_.mu[k], most);
  };
  const auto newton = [&](const Impulses& problem) {
    return newton_.solve(problem, {}, kAfterPyramid, goal_, h_.data(), steps_, limits_.max_iterations,
                         start_mu_.data());
  };
  const bool is_huge = std::any_of(impulses_.mu, impulses_.mu + contacts_, [](double mu) { return mu > kNextLimit; });
  for (int pass = 0; pass < passes; ++pass) {
    const double first_limit = kLimits[pass % std::size(kLimits)];
    for (double& angle : pyramid_->angle()) angle = pass == 0 ? 0 : numbers.uniform(0, 1);
    for (int turn = 0; turn < kTurns && best > goal_ && steps_ < limits_.max_iterations; ++turn) {
      limit(first_limit, start_mu_);
      if (!pyramid_->solve(impulses_, start_mu_.data(), h_.data())) break;
      Impulses limited = impulses_;
      limited.mu = limited.given_mu = limited_mu_.data();
      if (!std::equal(start_mu_.begin(), start_mu_.end(), impulses_.mu)) {
        limit(first_limit, limited_mu_);
        newton(limited);
      }
      if (is_huge) {
        limit(kNextLimit, limited_mu_);
        newton(limited);
        start_mu_ = limited_mu_;
      }
      const double here = newton(impulses_);
      if (!(here < best)) continue;
      best = here;
      best_ = h_;
    }
  }
  if (best < kInfinity) h_ = best_;
}

// Limits the coefficients of friction and lets the first methods solve this problem, or come near its solution. From
// there the active set method takes the states of the contacts to the friction of the given problem: in one step, and
// if this fails, in steps of kLift.
template <class Accepted>
bool Ladder::lift(const Accepted& accepted) {
  if (!active_set_) active_set_.emplace(contacts_);
  const Impulses given = impulses_;
  const double largest = *std::max_element(given.mu, given.mu + contacts_);
  const auto limit = [&](double most, std::vector<double>& mu) {
    for (int k = 0; k < contacts_; ++k) mu[k] = std::min(given.mu[k], most);
  };
  const auto limited = [&](double most) {
    if (most >= largest) return given;
    limit(most, limited_mu_);
    Impulses problem = given;
    problem.mu = problem.given_mu = limited_mu_.data();
    return problem;
  };
  const auto move_to = [&](double most) {
    const double reached =
        active_set_->solve(limited(most), start_mu_.data(), goal_, h_.data(), steps_, limits_.max_iterations);
    limit(most, start_mu_);
    return reached <= tolerance_;
  };
  for (const double first : kFirstLimits) {
    if (largest <= first) continue;
    impulses_ = limited(first);
    double here = kInfinity;
    for (const Attempt& one : kAttempts) {
      if (here <= tolerance_) break;
      attempt(one);
      here = residual(h_);
    }
    if (here > tolerance_) proximal(kFast);
    here = residual(h_);
    impulses_ = given;
    limit(first, start_mu_);
    if (here > tolerance_) move_to(first);
    center_ = h_;
    if (move_to(largest) && accepted()) return true;
    h_ = center_;
    limit(first, start_mu_);
    for (double most = first; most < largest;) {
      most = std::min(kLift * most, largest);
      if (!move_to(most)) break;
      if (most == largest && accepted()) return true;
    }
  }
  return false;
}

// Whether there is a proof that no velocities keep all contacts from penetrating, so that even the problem without
// friction has no solution. The proof is that of Farkas: normal impulses y >= 0 that move no body, J_n' y = 0, and for
// which y' (J_n v + b_n) = y' b_n < 0 whatever v is. If there are such y, the steps of the proximal point method for
// the problem without friction converge to them. Rounding leaves a small J_n' y in place of 0. Then only velocities
// that are large, as the inverse of J_n' y, can keep the contacts from penetrating. Each direction in which a row has
// no bound counts as a normal, too. A row between two bounds restricts no velocity.
bool Ladder::infeasible() {
  struct Normal {
    int entry;
    double sign;
  };
  std::vector<Normal> normals;
  for (int k = 0; k < contacts_; ++k) normals.push_back({3 * k + 2, 1});
  for (int r = 0; r < rows_; ++r) {
    if (impulses_.upper[r] == kInfinity) normals.push_back({3 * contacts_ + r, 1});
    if (impulses_.lower[r] == -kInfinity) normals.push_back({3 * contacts_ + r, -1});
  }
  const std::size_t m = normals.size(), size = static_cast<std::size_t>(impulses_.size());
  if (m == 0) return false;
  std::vector<double> W(m * m), q(m), z(m), w(m), last(m);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      W[i * m + j] = normals[i].sign * normals[j].sign * impulses_.W[normals[i].entry * size + normals[j].entry];
    }
    W[i * m + i] += kFarkasWeight;
  }
  solver::Ladder frictionless(static_cast<int>(m), {});
  for (int k = 0; k < kFarkasSteps; ++k) {
    last = z;
    for (std::size_t i = 0; i < m; ++i) {
      q[i] = normals[i].sign * impulses_.q[normals[i].entry] - kFarkasWeight * last[i];
    }
    if (frictionless.solve(W.data(), q.data(), nullptr, z.data(), w.data()) != Status::kSolved) return false;
    double push = 0, all = 0, unit_push = 0;
    std::fill(h_.begin(), h_.end(), 0.0);
    for (std::size_t i = 0; i < m; ++i) {
      const auto [entry, sign] = normals[i];
      const double y = std::max(0.0, z[i] - last[i]);
      h_[entry] += sign * y;
      push -= sign * y * impulses_.q[entry];
      all += y;
      // The push for penetrations as fast as the largest |J v_free + b|.
      unit_push += y / (entry < 3 * contacts_ ? impulses_.weight[impulses_.owner(entry)] : impulses_.row_weight);
    }
    const double effect = problem_.effect(h_.data()) / all;
    if (push > kSurelyPushed * tolerance_ * unit_push && push > kFarAway * effect * unit_push) return true;
  }
  return false;
}

// Tries one method after another, until h_ is accepted.
template <class Accepted>
Status Ladder::search(const Accepted& accepted) {
  h_ = start_;
  method_ = "no contact";  // or the guess
  if (accepted()) return Status::kSolved;
  Status status = Status::kNotFound;
  const auto ends = [&](const char* method) {
    method_ = method;
    if (accepted()) {
      status = Status::kSolved;
    } else if (steps_ >= limits_.max_iterations) {
      status = Status::kPivotLimit;
    }
    return status != Status::kNotFound;
  };
  for (const Attempt& one : kAttempts) {
    attempt(one);
    if (ends(one.method)) return status;
  }
  const bool has_many = contacts_ > kFewContacts;
  if (has_many) {
    interior(kInterior);
    if (ends("interior point")) return status;
  }
  proximal(kFast);
  if (ends("proximal point")) return status;
  if (infeasible()) return Status::kInfeasible;
  const auto [least_mu, largest_mu] = std::minmax_element(impulses_.mu, impulses_.mu + contacts_);
  // The active set method does not know rows.
  const bool is_large = rows_ == 0 && contacts_ > 0 && *largest_mu > kLargeFriction;
  goal_ = std::min(goal_, kHardGoal);
  if (!has_many) {
    pyramids(is_large ? kPassesFirst : kPasses);
    if (ends("pyramid")) return status;
  }
  if (is_large) {
    goal_ = kGoal * tolerance_;
    lift(accepted);
    if (ends("active set")) return status;
    if (contacts_ <= kEnumerated) {
      active_set_->enumerate(impulses_, goal_, h_.data(), steps_, limits_.max_iterations);
      if (ends("enumeration") || *least_mu > kFirstLimits[0]) return status;
    }
    goal_ = std::min(goal_, kHardGoal);
  }
  if (!has_many) {
    if (is_large) pyramids(kPasses);
    if (is_large && ends("pyramid")) return status;
    interior(kInterior);
    if (ends("interior point")) return status;
  }
  interior(kInteriorSmooth);
  if (ends("interior point")) return status;
  if (has_many && contacts_ <= kPyramidContacts) {
    pyramids(kPassesWithMany);
    if (ends("pyramid")) return status;
  }
  attempt(kManySweeps);
  if (ends(kManySweeps.method)) return status;
  proximal(kCareful);
  if (ends(kManySweeps.method)) return status;
  for (const InteriorSettings& one : kInteriorElsewhere) {
    interior(one);
    if (ends(kManySweeps.method)) return status;
  }
  solver::Random numbers(kSeed);
  for (int k = 0; k < kRandomStarts; ++k) {
    for (int c = 0; c < contacts_; ++c) {
      double* h = start_.data() + static_cast<std::ptrdiff_t>(3) * c;
      h[2] = k % 2 == 0 ? std::exp(normal(numbers)) : kWideTypical * std::exp(kWideSpread * normal(numbers));
      for (int i = 0; i < 2; ++i) h[i] = kTangents * h[2] * normal(numbers);
    }
    for (int i = 3 * contacts_; i < impulses_.size(); ++i) start_[i] = normal(numbers);
    impulses_.clamp_rows(start_.data());
    for (const Attempt& one : kRandomAttempts) {
      attempt(one);
      if (ends(kRandomAttempts[0].method)) return status;
    }
    if (k >= kRandomSlow) continue;
    proximal(k / 2 % 2 == 0 ? kCareful : kFast);
    if (ends(kRandomAttempts[0].method)) return status;
    const double start = std::exp(kWideSpread * normal(numbers)), blur = std::exp(kWideSpread * normal(numbers));
    interior({k % 2 == 0 ? Path::kCone : Path::kSmooth, start, blur});
    if (ends(kRandomAttempts[0].method)) return status;
  }
  return status;
}

Status Ladder::solve(const Problem& problem, const double* guess, double* v, double* gamma, double* u) {
  steps_ = 0;
  const auto fail = [&](Status status) {
    std::fill_n(v, n_, kNaN);
    for (double* x : {gamma, u}) std::fill_n(x, 3 * contacts_ + rows_, kNaN);
    return status;
  };
  if (!well_posed(problem, n_, contacts_, rows_) || !problem_.set(problem)) return fail(Status::kBadInput);
  impulses_ = problem_.impulses();
  tolerance_ = std::max(limits_.tolerance, problem_.rounding());
  goal_ = kGoal * tolerance_;
  given_ = problem;
  interior_is_set_ = false;
  std::fill(start_.begin(), start_.end(), 0.0);
  // The start without a guess is that no contact touches.
  if (guess != nullptr) problem_.scaled(guess, start_.data());
  impulses_.clamp_rows(start_.data());
  const Status status =
      search([&] { return residual(h_) <= tolerance_ && problem_.unscaled(h_.data(), gamma, v, u) <= tolerance_; });
  return status == Status::kSolved ? status : fail(status);
}

}  // namespace lcp::friction
