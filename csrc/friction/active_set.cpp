#include "friction/active_set.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lcp::friction {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A pivot of at most this multiple of the largest counts as 0, since W is rounded to 1e-16 of its entries.
constexpr double kNegligiblePivot = 1e-14;
constexpr int kMostSteps = 30;
// The method stops after this many steps in a row without a smaller residual: the states then recur.
constexpr int kPatience = 12;
// A contact changes its state where it violates a condition by more than this multiple of the goal.
constexpr double kViolated = 0.1;
// A contact sticks at the start if its friction is at most this multiple of the limit.
constexpr double kWithinCone = 1 - 1e-6;
// The largest coefficient of friction with which release() looks for the first contact that reaches the limit of
// friction. A larger coefficient gives the same contact, but at impulses beside which the others round to 0.
constexpr double kLargestRelease = 1e6;
// The Newton steps for one set of states in enumerate(). With 8 steps, a tenth of the solutions with mu = 1e6 are
// missed.
constexpr int kFixedSteps = 20;

}  // namespace

ActiveSet::ActiveSet(int contacts)
    : lu_(3 * contacts, linalg::Pivoting::kFull),
      contacts_(contacts),
      h_(3 * contacts),
      u_(3 * contacts),
      right_(3 * contacts),
      y_(3 * contacts) {}

void ActiveSet::find_states(const double* mu, double goal, const double* h) {
  for (std::size_t k = 0; k < contacts_.size(); ++k, h += 3) {
    const double friction = std::hypot(h[0], h[1]);
    if (h[2] <= kViolated * goal && friction <= goal) {
      contacts_[k].state = State::kApart;
    } else {
      contacts_[k].state = friction <= kWithinCone * mu[k] * h[2] ? State::kStick : State::kSlide;
    }
  }
}

// Brings the impulses to the states of the contacts, and finds their equations.
void ActiveSet::linearize(const Impulses& problem, bool with_friction, double* h, const double* u) {
  for (int k = 0; k < problem.contacts; ++k, h += 3, u += 3) {
    const State state = contacts_[k].state;
    Contact& at = contacts_[k] = {state, 0, {}, {}, 0};
    if (state == State::kApart) {
      std::fill_n(h, 3, 0.0);
    } else if (state == State::kStick) {
      at.unknowns = 3;
      for (int i = 0; i < 3; ++i) at.impulse[i][i] = at.equation[i][i] = 1;
    } else if (!with_friction) {
      at.unknowns = 1;
      at.impulse[0][2] = at.equation[0][2] = 1;
    } else {
      at.unknowns = 2;
      const double friction = std::hypot(h[0], h[1]), slip = std::hypot(u[0], u[1]), inverse = 1 / problem.given_mu[k];
      double t[2] = {1, 0};
      for (int i = 0; i < 2; ++i) {
        if (friction > 0) {
          t[i] = h[i] / friction;
        } else if (slip > 0) {
          t[i] = -u[i] / slip;  // the friction that is to come opposes the slip
        }
      }
      if (friction > 0) at.across = std::max(0.0, -(t[0] * u[0] + t[1] * u[1]) / friction);
      h[2] = friction * inverse;
      at = {state, 2, {{t[0], t[1], inverse}, {-t[1], t[0], 0}}, {{0, 0, 1}, {-t[1], t[0], 0}}, at.across};
    }
  }
}

// The components of u that the equations set to 0.
void ActiveSet::equations(const double* u, double* out) const {
  for (const Contact& at : contacts_) {
    for (int r = 0; r < at.unknowns; ++r) {
      const double* x = at.equation[r];
      *out++ = x[0] * u[0] + x[1] * u[1] + x[2] * u[2];
    }
    u += 3;
  }
}

// h_ += length times the change of the impulses for the unknowns y.
void ActiveSet::add(const double* y, double length) {
  double* h = h_.data();
  for (const Contact& at : contacts_) {
    for (int r = 0; r < at.unknowns; ++r, ++y) {
      for (int i = 0; i < 3; ++i) h[i] += length * *y * at.impulse[r][i];
    }
    h += 3;
  }
}

// Adds the Newton step to h_. Returns false where the step is not finite.
bool ActiveSet::step(const Impulses& problem, bool with_friction) {
  linearize(problem, with_friction, h_.data(), u_.data());
  problem.velocities(h_.data(), u_.data());
  const auto size = static_cast<std::size_t>(problem.size());
  int count = 0;
  for (const Contact& at : contacts_) count += at.unknowns;
  double* out = lu_.matrix(count);
  for (int k = 0; k < problem.contacts; ++k) {
    const Contact& at = contacts_[k];
    for (int r = 0; r < at.unknowns; ++r) {
      const double* W = problem.W + 3 * k * size;
      for (int l = 0; l < problem.contacts; ++l, W += 3) {
        const Contact& of = contacts_[l];
        double row[3];
        for (int i = 0; i < 3; ++i) {
          row[i] = at.equation[r][0] * W[i] + at.equation[r][1] * W[size + i] + at.equation[r][2] * W[2 * size + i];
        }
        for (int i = 0; i < of.unknowns; ++i) {
          const double* x = of.impulse[i];
          *out++ = x[0] * row[0] + x[1] * row[1] + x[2] * row[2] + (l == k && r == 1 && i == 1 ? at.across : 0);
        }
      }
    }
  }
  singular_ = lu_.factor(kNegligiblePivot) < count;
  equations(u_.data(), right_.data());
  for (int i = 0; i < count; ++i) right_[i] = -right_[i];
  std::fill_n(y_.begin(), count, 0.0);
  lu_.solve_near(right_.data(), y_.data());
  add(y_.data(), 1);
  for (int k = 0; k < problem.contacts; ++k) {
    const Contact& at = contacts_[k];
    double* h = h_.data() + 3 * static_cast<std::ptrdiff_t>(k);
    if (at.unknowns == 2) {
      // Friction that has turned round belongs to a contact that pulls.
      const double* t = at.impulse[0];
      const bool pulls = h[0] * t[0] + h[1] * t[1] <= 0;
      h[2] = pulls ? 0 : std::hypot(h[0], h[1]) / problem.given_mu[k];
      if (pulls) h[0] = h[1] = 0;
    }
  }
  problem.velocities(h_.data(), u_.data());
  return std::all_of(u_.begin(), u_.end(), [](double x) { return std::isfinite(x); });
}

bool ActiveSet::change_states(const Impulses& problem, double goal) {
  const double violated = kViolated * goal;
  bool changed = false;
  for (int k = 0; k < problem.contacts; ++k) {
    const double *h = h_.data() + 3 * static_cast<std::ptrdiff_t>(k),
                 *u = u_.data() + 3 * static_cast<std::ptrdiff_t>(k);
    State& state = contacts_[k].state;
    const State before = state;
    const double friction = std::hypot(h[0], h[1]);
    if (state == State::kApart) {
      if (u[2] < -violated) state = State::kStick;
    } else if (state == State::kStick) {
      if (h[2] < -violated || (h[2] <= 0 && friction == 0)) {
        state = State::kApart;
      } else if (friction / problem.given_mu[k] > h[2]) {
        state = State::kSlide;
      }
    } else if (friction == 0) {
      state = State::kApart;
    } else if (h[0] * u[0] + h[1] * u[1] > 0 && std::hypot(u[0], u[1]) > violated) {
      state = State::kStick;
    }
    changed = changed || state != before;
  }
  return changed;
}

// Handles contacts that stick although the bodies, being rigid, cannot close all gaps without a slip. The equations of
// such contacts are singular and contradict each other. The impulses grow along a vector of the kernel, which moves no
// body, against the velocities that the last step left. The first contact whose friction reaches its limit slides from
// then on. Returns false where no friction reaches its limit.
bool ActiveSet::release(const Impulses& problem) {
  std::fill(right_.begin(), right_.end(), 0.0);
  equations(u_.data(), y_.data());
  int count = 0;
  for (const Contact& at : contacts_) count += at.unknowns;
  for (int i = 0; i < count; ++i) y_[i] = -y_[i];
  // The unknowns without a pivot keep these values, and the others follow from them.
  lu_.solve_near(right_.data(), y_.data());
  double least = kInfinity;
  Contact* first = nullptr;
  const double *y = y_.data(), *h = h_.data();
  for (int k = 0; k < problem.contacts; ++k, h += 3) {
    Contact& at = contacts_[k];
    if (at.state == State::kStick) {
      // The least length >= 0 with |h_t + length y_t| = mu (h_n + length y_n).
      const double mu = std::min(problem.mu[k], kLargestRelease);
      const auto product = [mu](const double* a, const double* b) {
        return a[0] * b[0] + a[1] * b[1] - mu * mu * a[2] * b[2];
      };
      const double a = product(y, y), b = product(h, y), c = product(h, h), root = b * b - a * c;
      double length = kInfinity;
      if (c >= 0) {
        length = 0;
      } else if (root >= 0 && b + std::sqrt(root) > 0) {
        length = -c / (b + std::sqrt(root));
      }
      if (length < least) {
        least = length;
        first = &at;
      }
    }
    y += at.unknowns;
  }
  if (first == nullptr) return false;
  add(y_.data(), least);
  first->state = State::kSlide;
  problem.velocities(h_.data(), u_.data());
  return true;
}

double ActiveSet::solve(const Impulses& problem, const double* start_mu, double goal, double* h, std::int64_t& steps,
                        std::int64_t most) {
  std::copy_n(h, problem.size(), h_.data());
  find_states(start_mu, goal, h_.data());
  problem.velocities(h_.data(), u_.data());
  double best = kInfinity;
  int stalled = 0;
  for (int k = 0; k < kMostSteps && stalled < kPatience && steps < most; ++k) {
    ++steps;
    if (!step(problem, true)) break;
    const double residual = problem.residual(h_.data(), u_.data());
    ++stalled;
    if (residual < best) {
      best = residual;
      std::copy_n(h_.data(), problem.size(), h);
      stalled = 0;
    }
    if (best <= goal) break;
    if (!change_states(problem, goal) && singular_ && !release(problem)) break;
  }
  return best;
}

double ActiveSet::enumerate(const Impulses& problem, double goal, double* h, std::int64_t& steps, std::int64_t most) {
  double best = kInfinity;
  constexpr State kStates[] = {State::kStick, State::kSlide, State::kApart};
  std::int64_t sets = 1;
  for (int k = 0; k < problem.contacts; ++k) sets *= 3;
  for (std::int64_t set = 0; set + 1 < sets; ++set) {
    std::int64_t digits = set;
    for (Contact& at : contacts_) {
      at.state = kStates[digits % 3];
      digits /= 3;
    }
    // The first step leaves out the friction of the contacts that slide. Their slip then gives its direction.
    std::fill(h_.begin(), h_.end(), 0.0);
    if (steps >= most) break;
    ++steps;
    if (!step(problem, false)) continue;
    for (std::size_t k = 0; k < contacts_.size(); ++k) {
      if (contacts_[k].state == State::kSlide) h_[3 * k + 2] = 0;
    }
    for (int k = 0; k < kFixedSteps && steps < most; ++k) {
      ++steps;
      if (!step(problem, true)) break;
      const double residual = problem.residual(h_.data(), u_.data());
      if (residual < best) {
        best = residual;
        std::copy_n(h_.data(), problem.size(), h);
      }
      if (best <= goal) return best;
    }
  }
  return best;
}

}  // namespace lcp::friction
