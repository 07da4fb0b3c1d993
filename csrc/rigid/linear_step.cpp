#include "rigid/linear_step.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "interrupt/checkpoint.h"
#include "rigid/mass_matrix.h"

namespace lcp::rigid {

// Reads the variables of a step.
struct LinearStep::Leaves {
  LinearStep& step;
  const double* u;

  // Number `index` of an input.
  Variable leaf(int input, int index) {
    const double value = input == kForces ? u[index] : step.parameters_[input][index];
    if (!step.varies_[input]) return value;
    const Variable number = Variable::independent(step.tape_, value);
    step.leaves_.push_back({number.node, input, index});
    return number;
  }
  Vector<Variable> vector(int input, int i) {
    return {leaf(input, 3 * i), leaf(input, 3 * i + 1), leaf(input, 3 * i + 2)};
  }
  static Vector<Variable> vector(const std::vector<Variable>& x, int i) {
    return {x[3 * i], x[3 * i + 1], x[3 * i + 2]};
  }

  Vector<Variable> position(int body) const { return vector(step.state_.position, body); }
  Quaternion<Variable> orientation(int body) const {
    const Variable* const q = step.state_.orientation.data() + 4 * body;
    return {q[0], q[1], q[2], q[3]};
  }
  const Matrix<Variable>& rotation(int body) const {
    if (!step.has_rotation_[body]) {
      step.rotation_[body] = rotation_matrix(orientation(body));
      step.has_rotation_[body] = true;
    }
    return step.rotation_[body];
  }
  Vector<Variable> velocity(int body) const { return vector(step.state_.velocity, body); }
  Vector<Variable> angular_velocity(int body) const { return vector(step.state_.angular_velocity, body); }
  Variable mass(int body) { return leaf(kMass, body); }
  Matrix<Variable> inertia(int body) {
    return {{vector(kInertia, 3 * body), vector(kInertia, 3 * body + 1), vector(kInertia, 3 * body + 2)}};
  }
  Variable drag(int body) { return leaf(kDrag, body); }
  Vector<Variable> gravity() { return vector(kGravity, 0); }
  Vector<Variable> force(int body) { return vector(kForces, 2 * body); }
  Vector<Variable> torque(int body) { return vector(kForces, 2 * body + 1); }
  Vector<Variable> center(int ball) { return vector(kCenters, ball); }
  Variable radius(int ball) { return leaf(kRadii, ball); }
  Vector<Variable> normal(int plane) { return vector(kNormals, plane); }
  Variable offset(int plane) { return leaf(kOffsets, plane); }
  Variable restitution(int pair) { return leaf(kRestitution, pair); }
  Variable stiffness(int pair) { return leaf(kStiffness, pair); }
  Variable dissipation(int pair) { return leaf(kDissipation, pair); }
};

LinearStep::LinearStep(const Scene& scene, double tolerance, double rank_tolerance, Ties ties)
    : scene_(scene),
      simulator_(scene, tolerance),
      derivative_(make_derivative(scene, rank_tolerance, ties)),
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
      is_smoothed_(scene.law.kappa > 0),
      has_two_points_(is_smoothed_ && scene.law.formulation == Formulation::kPolyhedral),
      A_(36 * scene.bodies * scene.bodies),
      v_(6 * scene.bodies),
      from_(6 * scene.bodies),
      of_v_(6 * scene.bodies),
      of_p_(6 * scene.bodies),
      of_p_of_solution_(6 * scene.bodies),
      J_(18 * scene.contacts() * scene.bodies),
      b_(3 * scene.contacts()),
      R_(3 * scene.contacts()),
      mu_(scene.contacts()),
      gamma_(3 * scene.contacts()),
      of_gamma_(3 * scene.contacts()),
      of_s_(3 * scene.contacts()),
      of_R_(3 * scene.contacts()),
      of_mu_(scene.contacts()),
      unknowns_(scene.contacts() * unknowns_of(scene.law)) {
  chosen_.reserve(scene.contacts());
}

void LinearStep::begin(const Parameters<const double>& parameters, const std::array<bool, kParameters>& varies,
                       bool u_varies) {
  parameters_ = parameters;
  std::copy(varies.begin(), varies.end(), varies_.begin());
  varies_[kForces] = u_varies;
  simulator_.begin(parameters);
  set_mass_matrix(scene_, parameters, A_.data());
}

void LinearStep::record(std::int64_t s, const WalkedPath& walked) {
  tape_.clear();
  posed_of_ = nullptr;
  leaves_.clear();
  const State<const double> now = walked.before(s);
  const auto set = [&](const double* x, std::vector<Variable>& variables) {
    for (std::size_t i = 0; i < variables.size(); ++i) variables[i] = Variable::independent(tape_, x[i]);
  };
  set(now.position, state_.position);
  set(now.orientation, state_.orientation);
  set(now.velocity, state_.velocity);
  set(now.angular_velocity, state_.angular_velocity);
  std::fill(has_rotation_.begin(), has_rotation_.end(), false);
  chosen_.clear();
  has_impacts_ = false;
  for (int k = 0; k < scene_.contacts(); ++k) {
    if (is_smoothed_ || walked.chosen[s][k] != kNotChosen) chosen_.push_back(k);
    has_impacts_ = has_impacts_ || walked.chosen[s][k] == kWithImpacts;
  }
  Leaves read = {*this, walked.u[s]};
  for (int body = 0; body < scene_.bodies; ++body) {
    before_[body] = {read.velocity(body), read.angular_velocity(body)};
    free_[body] = free_velocity<Variable>(body, scene_.dt, read);
  }
  after_ = free_;
  count_ = 0;
  std::fill(has_contact_.begin(), has_contact_.end(), false);
  if (has_impacts_) {
    add_problems(simulator_.problems_of(parameters_, now, walked.u[s]), read);
  } else if (!chosen_.empty()) {
    add_only_problem(s, walked, read);
  }
  end_step(read);
}

// Calls use(numbers, derivatives) for each part of the state.
template <class Use>
void LinearStep::for_each_in_state(const Use& use) {
  use(state_.position, &StateBuffer<double>::position);
  use(state_.orientation, &StateBuffer<double>::orientation);
  use(state_.velocity, &StateBuffer<double>::velocity);
  use(state_.angular_velocity, &StateBuffer<double>::angular_velocity);
}

// Calls use(variable, part, index) for each number of the end of the step.
template <class Use>
void LinearStep::for_each_at_end(const Use& use) {
  const auto of_vector = [&](const Vector<Variable>& x, std::vector<double> StateBuffer<double>::*part, int body) {
    for (int i = 0; i < 3; ++i) use(x[i], part, 3 * body + i);
  };
  for (int body = 0; body < scene_.bodies; ++body) {
    const End& end = ends_[body];
    of_vector(end.position, &StateBuffer<double>::position, body);
    of_vector(end.velocity, &StateBuffer<double>::velocity, body);
    of_vector(end.angular_velocity, &StateBuffer<double>::angular_velocity, body);
    const Quaternion<Variable>& q = end.orientation;
    const Variable* const numbers[] = {&q.w, &q.x, &q.y, &q.z};
    for (int i = 0; i < 4; ++i) use(*numbers[i], &StateBuffer<double>::orientation, 4 * body + i);
  }
}

void LinearStep::reverse(StateBuffer<double>& gradient, const double* g_gamma, const Parameters<double>& to,
                         double* to_u) {
  tape_.begin_sweep();
  for_each_at_end([&](const Variable& x, auto part, int i) { tape_.add(x.node, (gradient.*part)[i]); });
  int end = tape_.size();
  for (std::size_t k = count_; k-- > 0;) {
    tape_.reverse(end, problems_[k].solved);
    pass_back(problems_[k], g_gamma, to);
    end = problems_[k].solved;
  }
  tape_.reverse(end, 1);
  for (const Leaf& leaf : leaves_) {
    (leaf.input == kForces ? to_u : to[leaf.input])[leaf.index] += tape_.derivative(leaf.node);
  }
  for_each_in_state([&](const std::vector<Variable>& numbers, auto part) {
    for (std::size_t i = 0; i < numbers.size(); ++i) (gradient.*part)[i] = tape_.derivative(numbers[i].node);
  });
}

void LinearStep::forward(StateBuffer<double>& tangent, const Parameters<const double>& d, const double* du,
                         double* dgamma) {
  tape_.begin_sweep();
  for_each_in_state([&](const std::vector<Variable>& numbers, auto part) {
    for (std::size_t i = 0; i < numbers.size(); ++i) tape_.add(numbers[i].node, (tangent.*part)[i]);
  });
  for (const Leaf& leaf : leaves_) {
    tape_.add(leaf.node, (leaf.input == kForces ? du : d[leaf.input])[leaf.index]);
  }
  std::fill_n(dgamma, 3 * scene_.contacts(), 0.0);
  int begin = 1;
  for (std::size_t k = 0; k < count_; ++k) {
    tape_.forward(begin, problems_[k].solved);
    pass_on(problems_[k], d, dgamma);
    begin = problems_[k].solved;
  }
  tape_.forward(begin, tape_.size());
  for_each_at_end([&](const Variable& x, auto part, int i) { (tangent.*part)[i] = tape_.derivative(x.node); });
}

// The problem of a step without impacts.
void LinearStep::add_only_problem(std::int64_t s, const WalkedPath& walked, Leaves& read) {
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
  const double* unknowns = kept(walked.unknowns);
  if (is_smoothed_) {  // the simulator kept those of the pairs that it had chosen
    const int each = unknowns_of(scene_.law);
    std::fill(unknowns_.begin(), unknowns_.end(), 0.0);
    for (int k = 0; k < scene_.contacts(); ++k) {
      if (walked.chosen[s][k] == kNotChosen) continue;
      std::copy_n(unknowns, each, unknowns_.begin() + std::ptrdiff_t{each} * k);
      unknowns += each;
    }
    unknowns = unknowns_.data();
  }
  end_problem(problem, {v_.data(), gamma_.data(), unknowns, kept(walked.states)});
}

// The problems of a step with impacts, and its motion.
void LinearStep::add_problems(std::span<const StepProblem> problems, Leaves& read) {
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
Variable LinearStep::add_impacts(const StepProblem& problem, const Variable& elapsed, std::vector<Variable>& b,
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

Approach<Variable> LinearStep::approach_of(int pair, const Variable& elapsed) const {
  const auto velocity = [&](const std::vector<Twist<Variable>>& nu) {
    return velocity_of(scene_.pairs[pair], rows_[3 * pair + 2], nu.data());
  };
  return {contacts_[pair].gap, velocity(motion_), elapsed, -velocity(after_), velocity(before_) - velocity(start_),
          has_met_[pair] != 0};
}

void LinearStep::move(const Variable& time) {
  for (int body = 0; body < scene_.bodies; ++body) motion_[body] = motion_[body] + time * after_[body];
}

// A problem that begins with the velocities of now, and the contacts of its pairs. end_problem makes the velocities
// those of its solution.
LinearStep::Problem& LinearStep::begin_problem(std::span<const int> chosen, Leaves& read) {
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

void LinearStep::end_problem(Problem& problem, const SolvedContacts& solution) {
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

void LinearStep::end_step(Leaves& read) {
  ends_.clear();
  for (int body = 0; body < scene_.bodies; ++body) {
    const Twist<Variable>& nu = after_[body];
    Twist<Variable> motion = has_impacts_ ? motion_[body] : scene_.dt * nu;
    if (has_impacts_) motion.linear = motion.linear + held_motion(scene_.dt, time_[body], held_[body]);
    const Quaternion<Variable> q = turned(read.orientation(body), motion.angular);
    ends_.push_back({read.position(body) + motion.linear, q, nu.linear, nu.angular});
  }
}

// Calls use(row, column, entry) for the entries of J of a problem that are not 0.
template <class Use>
void LinearStep::for_each_entry(const Problem& problem, const Use& use) {
  for (std::size_t row = 0; row < 3 * problem.chosen.size(); ++row) {
    const int k = problem.chosen[row / 3];
    const auto of_body = [&](int body, const Twist<Variable>& x) {
      for (int j = 0; j < 3; ++j) {
        use(row, 6 * body + j, x.linear[j]);
        use(row, 6 * body + 3 + j, x.angular[j]);
      }
    };
    const Row<Variable>& x = rows_[3 * k + static_cast<int>(row % 3)];
    of_body(scene_.pairs[k].body, x.body);
    if (scene_.pairs[k].other_body != Pair::kWorld) of_body(scene_.pairs[k].other_body, x.other);
  }
}

void LinearStep::pose(const Problem& problem) {
  const std::ptrdiff_t n = 6 * scene_.bodies;
  for (int body = 0; body < scene_.bodies; ++body) {
    for (std::size_t i = 0; i < 3; ++i) {
      from_[6 * body + i] = problem.from[body].linear[i].value;
      from_[6 * body + 3 + i] = problem.from[body].angular[i].value;
    }
  }
  std::fill_n(J_.begin(), 3 * problem.chosen.size() * n, 0.0);
  for_each_entry(problem, [&](std::size_t row, int column, const Variable& x) { J_[row * n + column] = x.value; });
  for (std::size_t j = 0; j < problem.chosen.size(); ++j) {
    const Regularization<Variable>& R = compliances_[problem.chosen[j]];
    b_[3 * j] = b_[3 * j + 1] = 0;
    b_[3 * j + 2] = problem.b[j].value;
    R_[3 * j] = R_[3 * j + 1] = R.tangent.value;
    R_[3 * j + 2] = R.normal.value;
    mu_[j] = parameters_[kMu][problem.chosen[j]];
  }
  posed_ = {A_.data(), from_.data(), J_.data(), b_.data(), R_.data(), mu_.data()};
}

// Makes a problem the one that the derivative_ is asked about.
void LinearStep::linearize(const Problem& problem) {
  is_same_ = posed_of_ == &problem;
  if (is_same_) return;
  pose(problem);
  at_ = derivative_->point(static_cast<int>(problem.chosen.size()), posed_, problem.solution);
  posed_of_ = &problem;
}

// Of the symmetric part of A.
double LinearStep::mass_entry(std::ptrdiff_t row, std::ptrdiff_t column) const {
  const std::ptrdiff_t n = 6 * scene_.bodies;
  return 0.5 * (A_[row * n + column] + A_[column * n + row]);
}

// From the gradient of the velocities after a problem to those of J, b, R, the velocities before it, the masses and mu.
void LinearStep::pass_back(const Problem& problem, const double* g_gamma, const Parameters<double>& to) {
  linearize(problem);
  const double *const v = at_.v, *const gamma = at_.gamma;
  const int count = static_cast<int>(problem.chosen.size());
  for (int j = 0; j < count; ++j) std::copy_n(g_gamma + 3 * problem.chosen[j], 3, of_gamma_.data() + 3 * j);
  for (int body = 0; body < scene_.bodies; ++body) {
    for (int i = 0; i < 3; ++i) {
      of_v_[6 * body + i] = tape_.derivative(problem.after[body].linear[i].node);
      of_v_[6 * body + 3 + i] = tape_.derivative(problem.after[body].angular[i].node);
    }
  }
  derivative_->adjoint(count, posed_, at_, is_same_, of_v_.data(), of_gamma_.data(),
                       {of_p_.data(), of_s_.data(), of_R_.data(), of_mu_.data(), of_p_of_solution_.data()});
  for_each_entry(problem, [&](std::size_t row, int column, const Variable& x) {
    tape_.add(x.node, of_p_[column] * gamma[row] + of_s_[row] * v[column]);
    if (has_two_points_) tape_.add(x.node, of_p_of_solution_[column] * problem.solution.gamma[row]);
  });
  for (int j = 0; j < count; ++j) {
    tape_.add(problem.b[j].node, of_s_[3 * j + 2]);
    if (to[kMu] != nullptr) to[kMu][problem.chosen[j]] += of_mu_[j];
    if (scene_.law.formulation != Formulation::kCompliant) continue;
    const Regularization<Variable>& R = compliances_[problem.chosen[j]];
    tape_.add(R.tangent.node, of_R_[3 * j] + of_R_[3 * j + 1]);
    tape_.add(R.normal.node, of_R_[3 * j + 2]);
  }
  add_momentum(problem, of_p_.data(), v, to);
  if (has_two_points_) add_momentum(problem, of_p_of_solution_.data(), problem.solution.v, to);
}

// From the gradient of p to those of the velocities before a problem and of the masses.
void LinearStep::add_momentum(const Problem& problem, const double* all_of_p, const double* v,
                              const Parameters<double>& to) {
  for (int body = 0; body < scene_.bodies; ++body) {
    const Twist<Variable>& from = problem.from[body];
    const Twist<double> of_p = twist_at(all_of_p, body), nu = twist_at(v, body);
    const Vector<double> change = nu.linear - values_of(from.linear), turn = nu.angular - values_of(from.angular);
    for (int i = 0; i < 3; ++i) {
      double of_linear = 0, of_angular = 0;
      for (int j = 0; j < 3; ++j) {
        const std::ptrdiff_t first = 6 * body;
        of_linear += mass_entry(first + i, first + j) * of_p.linear[j];
        of_angular += mass_entry(first + 3 + i, first + 3 + j) * of_p.angular[j];
        if (to[kInertia] == nullptr) continue;
        to[kInertia][9 * body + 3 * i + j] -= 0.5 * (of_p.angular[i] * turn[j] + of_p.angular[j] * turn[i]);
      }
      tape_.add(from.linear[i].node, of_linear);
      tape_.add(from.angular[i].node, of_angular);
    }
    if (to[kMass] != nullptr) to[kMass][body] -= dot(of_p.linear, change);
  }
}

// p of the tangents of J, the velocities before a problem and the masses.
void LinearStep::read_momentum(const Problem& problem, const double* v, const double* gamma,
                               const Parameters<const double>& d, double* p) {
  for (int body = 0; body < scene_.bodies; ++body) {
    const Twist<Variable>& from = problem.from[body];
    const Twist<double> nu = twist_at(v, body);
    const Vector<double> change = nu.linear - values_of(from.linear), turn = nu.angular - values_of(from.angular);
    for (int i = 0; i < 3; ++i) {
      double of_linear = d[kMass] == nullptr ? 0 : -d[kMass][body] * change[i], of_angular = 0;
      for (int j = 0; j < 3; ++j) {
        const std::ptrdiff_t first = 6 * body;
        of_linear += mass_entry(first + i, first + j) * tape_.derivative(from.linear[j].node);
        of_angular += mass_entry(first + 3 + i, first + 3 + j) * tape_.derivative(from.angular[j].node);
        if (d[kInertia] == nullptr) continue;
        const double* const dI = d[kInertia] + 9 * body;
        of_angular -= 0.5 * (dI[3 * i + j] + dI[3 * j + i]) * turn[j];
      }
      p[6 * body + i] = of_linear;
      p[6 * body + 3 + i] = of_angular;
    }
  }
  for_each_entry(problem, [&](std::size_t row, int column, const Variable& x) {
    p[column] += tape_.derivative(x.node) * gamma[row];
  });
}

// From the tangents of J, b, R, the velocities before a problem, the masses and mu to those of its solution.
void LinearStep::pass_on(const Problem& problem, const Parameters<const double>& d, double* dgamma) {
  linearize(problem);
  const int count = static_cast<int>(problem.chosen.size());
  for (int j = 0; j < count; ++j) {
    const int pair = problem.chosen[j];
    of_s_[3 * j] = of_s_[3 * j + 1] = 0;
    of_s_[3 * j + 2] = tape_.derivative(problem.b[j].node);
    of_R_[3 * j] = of_R_[3 * j + 1] = tape_.derivative(compliances_[pair].tangent.node);
    of_R_[3 * j + 2] = tape_.derivative(compliances_[pair].normal.node);
    of_mu_[j] = d[kMu] == nullptr ? 0 : d[kMu][pair];
  }
  read_momentum(problem, at_.v, at_.gamma, d, of_p_.data());
  if (has_two_points_) {
    read_momentum(problem, problem.solution.v, problem.solution.gamma, d, of_p_of_solution_.data());
  }
  for_each_entry(problem, [&](std::size_t row, int column, const Variable& x) {
    of_s_[row] += tape_.derivative(x.node) * at_.v[column];
  });
  derivative_->tangent(count, posed_, at_, is_same_,
                       {of_p_.data(), of_s_.data(), of_R_.data(), of_mu_.data(), of_p_of_solution_.data()},
                       of_v_.data(), of_gamma_.data());
  for (int body = 0; body < scene_.bodies; ++body) {
    for (int i = 0; i < 3; ++i) {
      tape_.add(problem.after[body].linear[i].node, of_v_[6 * body + i]);
      tape_.add(problem.after[body].angular[i].node, of_v_[6 * body + 3 + i]);
    }
  }
  for (int i = 0; i < 3 * count; ++i) dgamma[3 * problem.chosen[i / 3] + i % 3] += of_gamma_[i];
}

}  // namespace lcp::rigid
