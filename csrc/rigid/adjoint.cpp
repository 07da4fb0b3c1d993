#include "rigid/adjoint.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "interrupt/checkpoint.h"
#include "rigid/mass_matrix.h"

namespace lcp::rigid {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool any_nonzero(const double* x, int size) {
  return std::any_of(x, x + size, [](double number) { return number != 0; });
}

void add(const double* x, std::vector<double>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += x[i];
}

template <class Buffer, class Use>
void for_each_part(Buffer& buffer, const Use& use) {
  use(buffer.position);
  use(buffer.orientation);
  use(buffer.velocity);
  use(buffer.angular_velocity);
}

}  // namespace

struct Adjoint::Leaves {
  Adjoint& adjoint;
  const Parameters<const double>& parameters;
  const double* u;
  const Parameters<double>& to;
  double* to_u;

  // Number i of an input, and place i of its gradient.
  Variable leaf(const double* x, double* gradient, int i) {
    if (gradient == nullptr) return x[i];
    const Variable number = Variable::independent(adjoint.tape_, x[i]);
    adjoint.leaves_.push_back({number.node, gradient + i});
    return number;
  }
  Vector<Variable> vector(const double* x, double* gradient, int i) {
    return {leaf(x, gradient, 3 * i), leaf(x, gradient, 3 * i + 1), leaf(x, gradient, 3 * i + 2)};
  }
  static Vector<Variable> vector(const std::vector<Variable>& x, int i) {
    return {x[3 * i], x[3 * i + 1], x[3 * i + 2]};
  }

  Vector<Variable> position(int body) const { return vector(adjoint.state_.position, body); }
  Quaternion<Variable> orientation(int body) const {
    const Variable* const q = adjoint.state_.orientation.data() + 4 * body;
    return {q[0], q[1], q[2], q[3]};
  }
  const Matrix<Variable>& rotation(int body) const {
    if (!adjoint.has_rotation_[body]) {
      adjoint.rotation_[body] = rotation_matrix(orientation(body));
      adjoint.has_rotation_[body] = true;
    }
    return adjoint.rotation_[body];
  }
  Vector<Variable> velocity(int body) const { return vector(adjoint.state_.velocity, body); }
  Vector<Variable> angular_velocity(int body) const { return vector(adjoint.state_.angular_velocity, body); }
  Variable mass(int body) { return leaf(parameters.mass, to.mass, body); }
  Matrix<Variable> inertia(int body) {
    return {{vector(parameters.inertia, to.inertia, 3 * body), vector(parameters.inertia, to.inertia, 3 * body + 1),
             vector(parameters.inertia, to.inertia, 3 * body + 2)}};
  }
  Variable drag(int body) { return leaf(parameters.drag, to.drag, body); }
  Vector<Variable> gravity() { return vector(parameters.gravity, to.gravity, 0); }
  Vector<Variable> force(int body) { return vector(u, to_u, 2 * body); }
  Vector<Variable> torque(int body) { return vector(u, to_u, 2 * body + 1); }
  Vector<Variable> center(int ball) { return vector(parameters.centers, to.centers, ball); }
  Variable radius(int ball) { return leaf(parameters.radii, to.radii, ball); }
  Vector<Variable> normal(int plane) { return vector(parameters.normals, to.normals, plane); }
  Variable offset(int plane) { return leaf(parameters.offsets, to.offsets, plane); }
  Variable restitution(int pair) { return leaf(parameters.restitution, to.restitution, pair); }
  Variable stiffness(int pair) { return leaf(parameters.stiffness, to.stiffness, pair); }
  Variable dissipation(int pair) { return leaf(parameters.dissipation, to.dissipation, pair); }
};

Adjoint::Adjoint(const Scene& scene, double tolerance, double rank_tolerance, Ties ties)
    : scene_(scene),
      simulator_(scene, tolerance),
      derivative_(make_derivative(scene, rank_tolerance, ties)),
      carried_(scene.bodies),
      carried_gamma_(3 * scene.contacts()),
      state_(scene.bodies),
      rotation_(scene.bodies),
      has_rotation_(scene.bodies),
      before_(scene.bodies),
      free_(scene.bodies),
      after_(scene.bodies),
      start_(scene.bodies),
      motion_(scene.bodies),
      time_(scene.bodies),
      held_(scene.bodies),
      inverse_(scene.bodies),
      contacts_(scene.contacts()),
      rows_(3 * scene.contacts()),
      compliances_(scene.contacts()),
      has_contact_(scene.contacts()),
      has_met_(scene.contacts()),
      times_(scene.contacts()),
      rebounds_(scene.contacts()),
      A_(36 * scene.bodies * scene.bodies),
      v_(6 * scene.bodies),
      g_v_(6 * scene.bodies),
      a_(6 * scene.bodies),
      J_(18 * scene.contacts() * scene.bodies),
      b_(3 * scene.contacts()),
      R_(3 * scene.contacts()),
      mu_(scene.contacts()),
      gamma_(3 * scene.contacts()),
      c_(3 * scene.contacts()),
      g_gamma_(3 * scene.contacts()),
      g_R_(3 * scene.contacts()),
      g_mu_(scene.contacts()) {
  chosen_.reserve(scene.contacts());
}

// Sets the gradients of all parameters that are asked for to one number.
void Adjoint::fill(const Parameters<double>& to, double number) const {
  const auto set = [&](double* x, int size) {
    if (x != nullptr) std::fill_n(x, size, number);
  };
  const int bodies = scene_.bodies, contacts = scene_.contacts();
  set(to.mass, bodies);
  set(to.inertia, 9 * bodies);
  set(to.centers, 3 * scene_.balls);
  set(to.radii, scene_.balls);
  set(to.normals, 3 * scene_.planes);
  set(to.offsets, scene_.planes);
  set(to.gravity, 3);
  set(to.mu, contacts);
  set(to.restitution, contacts);
  set(to.drag, bodies);
  set(to.stiffness, contacts);
  set(to.dissipation, contacts);
}

void Adjoint::run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
                  const Gradients& to) {
  const int bodies = scene_.bodies;
  fill(to.parameters, 0);
  simulator_.begin(parameters);
  set_mass_matrix(scene_, parameters, A_.data());
  for_each_part(carried_, [](std::vector<double>& x) { std::fill(x.begin(), x.end(), 0.0); });
  interrupt::Pace pace;
  for (std::int64_t s = steps - 1; s >= 0; --s) {
    pace.spend(2000 * (bodies + scene_.contacts()));
    if (to.u.data != nullptr) std::fill_n(to.u[s], 6 * bodies, 0.0);
    if (!gather(s, walked)) continue;
    if (*walked.status[s] != 0) {
      fail(s, to);
    } else {
      step(s, s == 0 ? walked.first : walked.path.state(s - 1), parameters, walked, to);
    }
  }
  const auto write = [](const std::vector<double>& x, double* target) {
    if (target != nullptr) std::copy(x.begin(), x.end(), target);
  };
  write(carried_.position, to.first.position);
  write(carried_.orientation, to.first.orientation);
  write(carried_.velocity, to.first.velocity);
  write(carried_.angular_velocity, to.first.angular_velocity);
}

// Finds the chosen pairs, and adds the given gradients of the end of step s to those that are carried to it. Returns
// whether any of them is not 0.
bool Adjoint::gather(std::int64_t s, const WalkedPath& walked) {
  const State<const double> given = walked.gradient.state(s);
  add(given.position, carried_.position);
  add(given.orientation, carried_.orientation);
  add(given.velocity, carried_.velocity);
  add(given.angular_velocity, carried_.angular_velocity);
  bool any = false;
  for_each_part(carried_,
                [&](const std::vector<double>& x) { any = any || any_nonzero(x.data(), static_cast<int>(x.size())); });
  chosen_.clear();
  for (int k = 0; k < scene_.contacts(); ++k) {
    const double* const of_gamma = walked.gradient.gamma[s] + 3 * k;
    if (*walked.status[s] != 0) {
      any = any || any_nonzero(of_gamma, 3);
      continue;
    }
    if (walked.chosen[s][k] == kNotChosen) continue;
    std::copy_n(of_gamma, 3, carried_gamma_.data() + 3 * k);
    any = any || any_nonzero(of_gamma, 3);
    chosen_.push_back(k);
  }
  return any;
}

// The gradients that go through a step that was not solved.
void Adjoint::fail(std::int64_t s, const Gradients& to) {
  fill(to.parameters, kNaN);
  if (to.u.data != nullptr) std::fill_n(to.u[s], 6 * scene_.bodies, kNaN);
  for_each_part(carried_, [](std::vector<double>& x) { std::fill(x.begin(), x.end(), kNaN); });
}

// Replaces the gradient of the end of step s by that of its beginning, and adds what the parameters have of it.
void Adjoint::step(std::int64_t s, const State<const double>& now, const Parameters<const double>& parameters,
                   const WalkedPath& walked, const Gradients& to) {
  tape_.clear();
  leaves_.clear();
  const auto set = [&](const double* x, std::vector<Variable>& variables) {
    for (std::size_t i = 0; i < variables.size(); ++i) variables[i] = Variable::independent(tape_, x[i]);
  };
  set(now.position, state_.position);
  set(now.orientation, state_.orientation);
  set(now.velocity, state_.velocity);
  set(now.angular_velocity, state_.angular_velocity);
  std::fill(has_rotation_.begin(), has_rotation_.end(), false);
  Leaves read = {*this, parameters, walked.u[s], to.parameters, to.u.data == nullptr ? nullptr : to.u[s]};
  for (int body = 0; body < scene_.bodies; ++body) {
    before_[body] = {read.velocity(body), read.angular_velocity(body)};
    free_[body] = free_velocity<Variable>(body, scene_.dt, read);
  }
  after_ = free_;
  count_ = 0;
  std::fill(has_contact_.begin(), has_contact_.end(), false);
  has_impacts_ = !chosen_.empty() && walked.chosen[s][chosen_.front()] == kWithImpacts;
  if (has_impacts_) {
    add_problems(simulator_.problems_of(parameters, now, walked.u[s]), read);
  } else if (!chosen_.empty()) {
    add_only_problem(s, walked, read);
  }
  seed_end(read);
  int end = tape_.size();
  for (std::size_t k = count_; k-- > 0;) {
    tape_.reverse(end, problems_[k].solved);
    pass_solver(problems_[k], parameters, to.parameters);
    end = problems_[k].solved;
  }
  tape_.reverse(end, 1);
  for (const Leaf& leaf : leaves_) *leaf.gradient += tape_.adjoint(leaf.node);
  const auto carry = [&](const std::vector<Variable>& variables, std::vector<double>& gradient) {
    for (std::size_t i = 0; i < variables.size(); ++i) gradient[i] = tape_.adjoint(variables[i].node);
  };
  carry(state_.position, carried_.position);
  carry(state_.orientation, carried_.orientation);
  carry(state_.velocity, carried_.velocity);
  carry(state_.angular_velocity, carried_.angular_velocity);
}

// The problem of a step without impacts.
void Adjoint::add_only_problem(std::int64_t s, const WalkedPath& walked, Leaves& read) {
  const bool is_compliant = scene_.law.formulation == Formulation::kCompliant;
  if (is_compliant) {
    for (int body = 0; body < scene_.bodies; ++body) inverse_[body] = inverse_mass<Variable>(body, read);
  }
  Problem& problem = begin_problem(chosen_, read);
  for (const int pair : chosen_) {
    const Variable& gap = contacts_[pair].gap;
    if (!is_compliant) {
      problem.b.push_back(closing_of<Variable>({gap, 0, 0, 0, 0, false}, scene_));
      continue;
    }
    problem.b.push_back(compliant_closing(gap, read.dissipation(pair), scene_.dt));
    compliances_[pair] =
        regularization_of(delassus_of(scene_.pairs[pair], rows_.data() + 3 * pair, inverse_.data()),
                          read.stiffness(pair), read.dissipation(pair), scene_.dt, scene_.law.sigma, scene_.law.beta);
  }
  const State<const double> end = walked.path.state(s);
  for (int body = 0; body < scene_.bodies; ++body) {
    std::copy_n(end.velocity + 3 * body, 3, v_.data() + 6 * body);
    std::copy_n(end.angular_velocity + 3 * body, 3, v_.data() + 6 * body + 3);
  }
  for (std::size_t k = 0; k < chosen_.size(); ++k) {
    std::copy_n(walked.path.gamma[s] + 3 * chosen_[k], 3, gamma_.data() + 3 * k);
  }
  const auto kept = [&](const auto& series) { return series.data != nullptr ? series[s] : nullptr; };
  end_problem(problem, {v_.data(), gamma_.data(), kept(walked.unknowns), kept(walked.states)});
}

// The problems of a step with impacts, and its motion.
void Adjoint::add_problems(std::span<const StepProblem> problems, Leaves& read) {
  start_ = free_;
  std::fill(motion_.begin(), motion_.end(), Twist<Variable>{});
  std::fill(held_.begin(), held_.end(), Vector<Variable>{});
  std::fill(time_.begin(), time_.end(), Variable(0));
  std::fill(has_met_.begin(), has_met_.end(), false);
  Variable elapsed = 0;
  for (const StepProblem& solved : problems) {
    Problem& problem = begin_problem(solved.chosen, read);
    if (solved.kind == StepProblem::Kind::kImpacts) {
      elapsed = add_impacts(solved, elapsed, problem.b, read);
    } else {
      for (const int pair : solved.chosen) problem.b.push_back(closing_of(approach_of(pair, elapsed), scene_));
    }
    end_problem(problem, {solved.v.data(), solved.gamma.data(), solved.unknowns.data(), solved.states.data()});
    if (solved.kind == StepProblem::Kind::kStart) start_ = after_;
  }
  move(scene_.dt - elapsed);
}

// Moves the bodies on until these impacts, and sets what the contacts separate with. Returns the time of the impacts.
Variable Adjoint::add_impacts(const StepProblem& problem, const Variable& elapsed, std::vector<Variable>& b,
                              Leaves& read) {
  using Role = StepProblem::Role;
  // Several first impacts at the same time have the mean of their derivatives.
  Variable sum = 0;
  int count = 0;
  for (std::size_t k = 0; k < problem.chosen.size(); ++k) {
    if (problem.roles[k] == Role::kHolds) continue;
    times_[k] = time_of(approach_of(problem.chosen[k], elapsed), scene_.dt);
    if (problem.roles[k] != Role::kFirst) continue;
    sum = sum + times_[k];
    ++count;
  }
  const Variable time = (1.0 / count) * sum;
  move(time - elapsed);
  for (std::size_t k = 0; k < problem.chosen.size(); ++k) {
    const int pair = problem.chosen[k];
    const Approach<Variable> at = approach_of(pair, time);
    if (problem.roles[k] == Role::kHolds) {
      b.push_back(closing_of(at, scene_));
    } else {
      rebounds_[k] = rebound_of(at, times_[k], read.restitution(pair), scene_);
      has_met_[pair] = true;
      b.push_back(rebounds_[k].b);
    }
  }
  for_each_hit<Variable>(
      scene_, problem.chosen, problem.roles, problem.gamma,
      [&](std::size_t k, bool is_other) {
        const int pair = problem.chosen[k];
        return held_velocity(scene_.pairs[pair], rows_[3 * pair + 2], rebounds_[k].held, is_other, read);
      },
      [&](int body, const Vector<Variable>& held) {
        time_[body] = time;
        held_[body] = held;
      });
  return time;
}

Approach<Variable> Adjoint::approach_of(int pair, const Variable& elapsed) const {
  const auto velocity = [&](const std::vector<Twist<Variable>>& nu) {
    return velocity_of(scene_.pairs[pair], rows_[3 * pair + 2], nu.data());
  };
  return {contacts_[pair].gap, velocity(motion_), elapsed, -velocity(after_), velocity(before_) - velocity(start_),
          has_met_[pair] != 0};
}

void Adjoint::move(const Variable& time) {
  for (int body = 0; body < scene_.bodies; ++body) motion_[body] = motion_[body] + time * after_[body];
}

// A problem that begins with the velocities of now, and the contacts of its pairs. end_problem makes the velocities
// those of its solution.
Adjoint::Problem& Adjoint::begin_problem(std::span<const int> chosen, Leaves& read) {
  if (count_ == problems_.size()) problems_.emplace_back();
  Problem& problem = problems_[count_++];
  problem.chosen = chosen;
  problem.from = after_;
  problem.b.clear();
  for (const int k : chosen) {
    if (has_contact_[k]) continue;
    has_contact_[k] = true;
    const Pair& pair = scene_.pairs[k];
    contacts_[k] = contact_of<Variable>(pair, read);
    const Matrix<Variable> frame = frame_of(contacts_[k].normal);
    for (std::size_t i = 0; i < 3; ++i) rows_[3 * k + i] = row_of(pair, contacts_[k], frame[i], read);
  }
  return problem;
}

void Adjoint::end_problem(Problem& problem, const SolvedContacts& solution) {
  problem.solution = solution;
  problem.solved = tape_.size();
  for (int body = 0; body < scene_.bodies; ++body) {
    const Twist<double> nu = twist_at(solution.v, body);
    for (std::size_t i = 0; i < 3; ++i) {
      after_[body].linear[i] = Variable::independent(tape_, nu.linear[i]);
      after_[body].angular[i] = Variable::independent(tape_, nu.angular[i]);
    }
  }
  problem.after = after_;
}

// Computes the end of the step, and gives it the gradient that is carried to it.
void Adjoint::seed_end(Leaves& read) {
  ends_.clear();
  for (int body = 0; body < scene_.bodies; ++body) {
    const Twist<Variable>& nu = after_[body];
    Twist<Variable> motion = has_impacts_ ? motion_[body] : scene_.dt * nu;
    if (has_impacts_) motion.linear = motion.linear + held_motion(scene_.dt, time_[body], held_[body]);
    const Quaternion<Variable> q = turned(read.orientation(body), motion.angular);
    ends_.push_back({read.position(body) + motion.linear, q, nu.linear, nu.angular});
  }
  tape_.begin_reverse();
  const auto seed = [&](const Vector<Variable>& x, const std::vector<double>& gradient, int body) {
    for (std::size_t i = 0; i < 3; ++i) tape_.add_adjoint(x[i].node, gradient[3 * body + i]);
  };
  for (int body = 0; body < scene_.bodies; ++body) {
    const End& end = ends_[body];
    seed(end.position, carried_.position, body);
    seed(end.velocity, carried_.velocity, body);
    seed(end.angular_velocity, carried_.angular_velocity, body);
    const double* const of_q = carried_.orientation.data() + 4 * body;
    tape_.add_adjoint(end.orientation.w.node, of_q[0]);
    tape_.add_adjoint(end.orientation.x.node, of_q[1]);
    tape_.add_adjoint(end.orientation.y.node, of_q[2]);
    tape_.add_adjoint(end.orientation.z.node, of_q[3]);
  }
}

// From the adjoint of the velocities after a problem to those of J, b, R, the velocities before it, the masses and mu.
void Adjoint::pass_solver(const Problem& problem, const Parameters<const double>& parameters,
                          const Parameters<double>& to) {
  const std::ptrdiff_t n = 6 * scene_.bodies;
  const std::span<const int> chosen = problem.chosen;
  const double *const v = problem.solution.v, *const gamma = problem.solution.gamma;
  const std::size_t rows = 3 * chosen.size();
  std::fill_n(J_.begin(), rows * n, 0.0);
  const auto entries = [&](std::size_t i, const auto& use) {
    const std::size_t k = chosen[i / 3];
    const Pair& pair = scene_.pairs[k];
    const auto of_body = [&](int body, const Twist<Variable>& row) {
      for (int j = 0; j < 3; ++j) {
        use(row.linear[j], 6 * body + j);
        use(row.angular[j], 6 * body + 3 + j);
      }
    };
    const Row<Variable>& row = rows_[3 * k + i % 3];
    of_body(pair.body, row.body);
    if (pair.other_body != Pair::kWorld) of_body(pair.other_body, row.other);
  };
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t k = chosen[i / 3];
    b_[i] = i % 3 == 2 ? problem.b[i / 3].value : 0;
    R_[i] = i % 3 == 2 ? compliances_[k].normal.value : compliances_[k].tangent.value;
    g_gamma_[i] = carried_gamma_[3 * k + i % 3];
    if (i % 3 == 0) mu_[i / 3] = parameters.mu[k];
    entries(i, [&](const Variable& entry, std::ptrdiff_t j) { J_[i * n + j] = entry.value; });
  }
  for (int body = 0; body < scene_.bodies; ++body) {
    for (int i = 0; i < 3; ++i) {
      g_v_[6 * body + i] = tape_.adjoint(problem.after[body].linear[i].node);
      g_v_[6 * body + 3 + i] = tape_.adjoint(problem.after[body].angular[i].node);
    }
  }
  derivative_->adjoint(static_cast<int>(chosen.size()),
                       {A_.data(), nullptr, J_.data(), b_.data(), R_.data(), mu_.data()}, problem.solution, g_v_.data(),
                       g_gamma_.data(), {a_.data(), c_.data(), g_R_.data(), g_mu_.data()});

  // dL = a' (A dv_from - dA (v - v_from) + dJ' gamma) + c' (dJ v + db) + R' dR + mu' dmu.
  for (std::size_t i = 0; i < rows; ++i) {
    entries(i, [&](const Variable& entry, std::ptrdiff_t j) {
      tape_.add_adjoint(entry.node, a_[j] * gamma[i] + c_[i] * v[j]);
    });
    if (i % 3 == 2) tape_.add_adjoint(problem.b[i / 3].node, c_[i]);
  }
  for (std::size_t k = 0; k < chosen.size() && scene_.law.formulation == Formulation::kCompliant; ++k) {
    tape_.add_adjoint(compliances_[chosen[k]].tangent.node, g_R_[3 * k] + g_R_[3 * k + 1]);
    tape_.add_adjoint(compliances_[chosen[k]].normal.node, g_R_[3 * k + 2]);
  }
  for (std::size_t k = 0; k < chosen.size() && to.mu != nullptr; ++k) to.mu[chosen[k]] += g_mu_[k];
  for (int body = 0; body < scene_.bodies; ++body) {
    const Twist<Variable>& from = problem.from[body];
    const Twist<double> a = twist_at(a_.data(), body), nu = twist_at(v, body);
    const Vector<double> change = nu.linear - values_of(from.linear), turn = nu.angular - values_of(from.angular);
    const std::ptrdiff_t first = 6 * body;
    for (std::size_t i = 0; i < 3; ++i) {
      double of_linear = 0, of_angular = 0;
      for (std::size_t j = 0; j < 3; ++j) {
        const auto symmetric = [&](std::ptrdiff_t row, std::ptrdiff_t column) {
          return 0.5 * (A_[row * n + column] + A_[column * n + row]);
        };
        const std::ptrdiff_t row = first + i, at = first + j;
        of_linear += symmetric(row, at) * a.linear[j];
        of_angular += symmetric(row + 3, at + 3) * a.angular[j];
        if (to.inertia != nullptr) {
          to.inertia[9 * body + 3 * i + j] -= 0.5 * (a.angular[i] * turn[j] + a.angular[j] * turn[i]);
        }
      }
      tape_.add_adjoint(from.linear[i].node, of_linear);
      tape_.add_adjoint(from.angular[i].node, of_angular);
    }
    if (to.mass != nullptr) to.mass[body] -= dot(a.linear, change);
  }
}

}  // namespace lcp::rigid
