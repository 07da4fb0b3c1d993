#include "rigid/linear_step.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "interrupt/checkpoint.h"

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
  Quaternion<Variable> quaternion(int input, int i) {
    return {leaf(input, 4 * i), leaf(input, 4 * i + 1), leaf(input, 4 * i + 2), leaf(input, 4 * i + 3)};
  }
  const Variable* state(StatePart part) const { return step.state_[part].data(); }

  const Vector<Variable>& position(int body) const {
    if (body >= scene().free()) step.set_place(body);  // that of a free body is known
    return step.places_.position(body);
  }
  const Matrix<Variable>& rotation(int body) const {
    step.set_place(body);
    return step.places_.rotation(body);
  }
  // Of a free body.
  Vector<Variable> velocity(int body) const { return vector_at(state(kVelocity), body); }
  Vector<Variable> angular_velocity(int body) const { return vector_at(state(kAngularVelocity), body); }

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
  Vector<Variable> box_size(int box) { return vector(kBoxSizes, box); }
  Vector<Variable> box_center(int box) { return vector(kBoxCenters, box); }
  Quaternion<Variable> box_turn(int box) { return quaternion(kBoxTurns, box); }
  Variable mu(int pair) { return leaf(kMu, pair); }
  Variable restitution(int pair) { return leaf(kRestitution, pair); }
  Variable stiffness(int pair) { return leaf(kStiffness, pair); }
  Variable dissipation(int pair) { return leaf(kDissipation, pair); }

  // Of trees.
  const Scene& scene() const { return step.scene_; }
  const Joint& joint(int i) const { return scene().joints[i]; }
  Vector<Variable> center_of_mass(int body) { return vector(kMassCenter, body - scene().free()); }
  Vector<Variable> placement(int body) { return vector(kPlacement, body - scene().free()); }
  Quaternion<Variable> turn_of_placement(int body) { return quaternion(kPlacementTurn, body - scene().free()); }
  Vector<Variable> axis(int i) { return vector(kAxis, i); }
  Vector<Variable> anchor(int i) { return vector(kAnchor, i); }
  Vector<Variable> origin(int i) const { return vector_at(state(kPosition), joint(i).position); }
  Quaternion<Variable> turn(int i) const { return quaternion_at(state(kOrientation), joint(i).orientation); }
  Variable coordinate(int i) const { return state(kCoordinate)[joint(i).coordinate]; }
  Variable limit(int i, bool is_upper) { return leaf(kLimits, 2 * i + (is_upper ? 1 : 0)); }
  Variable spring(int i) { return leaf(kSprings, 2 * i); }
  Variable rest(int i) { return leaf(kSprings, 2 * i + 1); }
  Variable armature(int dof) { return leaf(kArmature, dof); }
  Variable damping(int dof) { return leaf(kDamping, dof); }
  Variable friction_loss(int dof) { return leaf(kFrictionLoss, dof); }
  Variable coupling(int number, int i) { return leaf(kCoupling, 5 * number + i); }
  Vector<Variable> closure(int number, int end) { return vector(kClosure, 2 * number + end); }
  Quaternion<Variable> closure_turn(int number) { return quaternion(kClosureTurn, number); }
  Variable gear(int actuator) { return leaf(kGear, actuator); }
  Variable gain(int actuator) { return leaf(kActuatorForce, 4 * actuator); }
  Variable bias(int actuator, int i) { return leaf(kActuatorForce, 4 * actuator + 1 + i); }
  Variable control(int actuator) { return leaf(kForces, 6 * scene().bodies + actuator); }
};

LinearStep::LinearStep(const Scene& scene, double tolerance, double rank_tolerance, Ties ties)
    : scene_(scene),
      simulator_(scene, tolerance),
      derivative_(make_derivative(scene, rank_tolerance, ties)),
      state_(state_buffer<Variable>(scene)),
      end_(state_buffer<Variable>(scene)),
      places_(scene),
      has_rotation_(scene.bodies),
      before_(scene),
      after_(scene),
      start_(scene),
      motion_(scene),
      time_(scene.bodies),
      held_(scene.bodies),
      inverse_(scene.bodies),
      contacts_(scene.contacts()),
      frames_(scene.contacts()),
      normals_(scene.contacts()),
      compliances_(scene.contacts()),
      has_contact_(scene.contacts()),
      has_met_(scene.contacts()),
      times_(scene.contacts()),
      rebounds_(scene.contacts()),
      is_smoothed_(scene.law.kappa > 0),
      has_two_points_(is_smoothed_ && scene.law.formulation == Formulation::kPolyhedral),
      trees_(scene),
      displacements_(scene.dofs_of_trees()),
      of_states_(2 * scene.dofs_of_trees()),
      work_(scene),
      is_turned_(scene.bodies),
      at_point_(scene.velocities()),
      v_(scene.velocities()),
      from_(scene.velocities()),
      of_v_(scene.velocities()),
      of_p_(scene.velocities()),
      of_p_of_solution_(scene.velocities()),
      J_(3 * scene.contacts() * scene.velocities()),
      b_(3 * scene.contacts()),
      R_(3 * scene.contacts()),
      mu_(scene.contacts()),
      gamma_(3 * scene.contacts()),
      of_gamma_(3 * scene.contacts()),
      of_s_(3 * scene.contacts()),
      of_R_(3 * scene.contacts()),
      of_mu_(scene.contacts()),
      lower_(scene.rows()),
      upper_(scene.rows()),
      compliance_(scene.rows()),
      of_lower_(scene.rows()),
      of_upper_(scene.rows()),
      unknowns_(scene.contacts() * unknowns_of(scene.law)) {
  for (auto* const forces : {&joints_.at_before, &joints_.drag}) forces->resize(scene.dofs_of_trees());
  chosen_.reserve(scene.contacts());
}

void LinearStep::begin(const Parameters<const double>& parameters, const std::array<bool, kParameters>& varies,
                       bool u_varies) {
  parameters_ = parameters;
  std::copy(varies.begin(), varies.end(), varies_.begin());
  varies_[kForces] = u_varies;
  simulator_.begin(parameters);
  constexpr std::array kOfTrees = {kMass,      kInertia,       kDrag, kGravity, kMassCenter,
                                   kPlacement, kPlacementTurn, kAxis, kAnchor};
  may_use_trees_ = !scene_.links.empty() &&
                   std::none_of(kOfTrees.begin(), kOfTrees.end(), [&](Parameter k) { return varies[k]; }) &&
                   std::all_of(parameters[kDrag], parameters[kDrag] + scene_.bodies, [](double x) { return x == 0; });
}

void LinearStep::record(std::int64_t s, const WalkedPath& walked) {
  tape_.clear();
  posed_of_ = nullptr;
  leaves_.clear();
  const State<const double> now = walked.before(s);
  for (std::size_t part = 0; part < kStateParts; ++part) {
    for (std::size_t i = 0; i < state_[part].size(); ++i) {
      state_[part][i] = Variable::independent(tape_, now[part][i]);
    }
  }
  chosen_.clear();
  has_impacts_ = false;
  for (int k = 0; k < scene_.contacts(); ++k) {
    if (is_smoothed_ || walked.chosen[s][k] != kNotChosen) chosen_.push_back(k);
    has_impacts_ = has_impacts_ || walked.chosen[s][k] == kWithImpacts;
  }
  simulator_.set_step(parameters_, now, walked.u[s], chosen_);
  Leaves read = {*this, walked.u[s]};
  for_each_velocity(scene_, [&](int k, StatePart part, int i) { before_.all[k] = state_[part][i]; });
  after_.all = before_.all;
  std::fill(has_rotation_.begin(), has_rotation_.begin() + scene_.free(), false);
  for (int body = 0; body < scene_.free(); ++body) {
    places_.positions[body] = vector_at(read.state(kPosition), body);
    const Twist<Variable> free = free_velocity<Variable>(body, scene_.dt, read);
    for (std::size_t i = 0; i < 3; ++i) {
      after_.all[6 * body + i] = free.linear[i];
      after_.all[6 * body + 3 + i] = free.angular[i];
    }
  }
  uses_trees_ = may_use_trees_ && !has_impacts_;
  std::fill(has_rotation_.begin() + scene_.free(), has_rotation_.end(), !uses_trees_);
  if (!scene_.links.empty()) {
    if (uses_trees_) {
      set_displacements();
    } else {
      place(scene_, read, places_);
    }
    find_joint_forces(scene_, read, before_.all.data() + scene_.first_of_trees(), simulator_.unlimited_velocities(),
                      joints_);
  }
  count_ = 0;
  has_given_impulse_ = false;
  std::fill(has_contact_.begin(), has_contact_.end(), false);
  if (has_impacts_) {
    add_problems(simulator_.problems_of(parameters_, now, walked.u[s]), read);
  } else if (!chosen_.empty() || !scene_.links.empty()) {
    add_only_problem(s, walked, read);
  }
  end_step(read);
}

void LinearStep::reverse(StateBuffer<double>& gradient, const double* g_gamma, const Parameters<double>& to,
                         double* to_u) {
  tape_.begin_sweep();
  for (std::size_t part = 0; part < kStateParts; ++part) {
    for (std::size_t i = 0; i < end_[part].size(); ++i) tape_.add(end_[part][i].node, gradient[part][i]);
  }
  int end = tape_.size();
  for (std::size_t k = count_; k-- > 0;) {
    tape_.reverse(end, problems_[k].solved);
    pass_back(problems_[k], g_gamma, to_u);
    end = problems_[k].solved;
  }
  tape_.reverse(end, 1);
  for (const Leaf& leaf : leaves_) {
    (leaf.input == kForces ? to_u : to[leaf.input])[leaf.index] += tape_.derivative(leaf.node);
  }
  for (std::size_t part = 0; part < kStateParts; ++part) {
    for (std::size_t i = 0; i < state_[part].size(); ++i) {
      gradient[part][i] = tape_.derivative(state_[part][i].node);
    }
  }
}

void LinearStep::forward(StateBuffer<double>& tangent, const Parameters<const double>& d, const double* du,
                         double* dgamma) {
  tape_.begin_sweep();
  for (std::size_t part = 0; part < kStateParts; ++part) {
    for (std::size_t i = 0; i < state_[part].size(); ++i) tape_.add(state_[part][i].node, tangent[part][i]);
  }
  for (const Leaf& leaf : leaves_) {
    tape_.add(leaf.node, (leaf.input == kForces ? du : d[leaf.input])[leaf.index]);
  }
  std::fill_n(dgamma, 3 * scene_.contacts(), 0.0);
  int begin = 1;
  for (std::size_t k = 0; k < count_; ++k) {
    tape_.forward(begin, problems_[k].solved);
    pass_on(problems_[k], du, dgamma);
    begin = problems_[k].solved;
  }
  tape_.forward(begin, tape_.size());
  for (std::size_t part = 0; part < kStateParts; ++part) {
    for (std::size_t i = 0; i < end_[part].size(); ++i) tangent[part][i] = tape_.derivative(end_[part][i].node);
  }
}

// The problem of a step without impacts.
void LinearStep::add_only_problem(std::int64_t s, const WalkedPath& walked, Leaves& read) {
  const bool is_compliant = scene_.law.formulation == Formulation::kCompliant;
  if (is_compliant) {
    for (int body = 0; body < scene_.bodies; ++body) inverse_[body] = inverse_mass<Variable>(body, read);
  }
  Problem& problem = begin_problem(chosen_, read);
  for (const int pair : chosen_) {
    if (scene_.pairs[pair].is_row()) break;
    const Variable& gap = contacts_[pair].gap;
    if (!is_compliant) {
      problem.b.push_back(closing_of<Variable>({gap, 0, 0, 0, 0, false}, scene_));
      continue;
    }
    problem.b.push_back(compliant_closing(gap, read.dissipation(pair), scene_.dt));
    Row<Variable> rows[3];
    for (std::size_t i = 0; i < 3; ++i) rows[i] = row_of(scene_.pairs[pair], contacts_[pair], frames_[pair][i], read);
    compliances_[pair] = regularization_of(delassus_of(scene_.pairs[pair], rows, inverse_.data()), read.stiffness(pair),
                                           read.dissipation(pair), scene_.dt, scene_.law.sigma, scene_.law.beta);
  }
  const State<const double> end = walked.path.state(s);
  for_each_velocity(scene_, [&](int k, StatePart part, int i) { v_[k] = end[part][i]; });
  for_each_impulse(scene_, chosen_, [&](int i, int j) { gamma_[i] = walked.path.gamma[s][j]; });
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
  end_problem(problem, {v_.data(), gamma_.data(), unknowns, kept(walked.states)}, read);
}

// The problems of a step with impacts, and its motion.
void LinearStep::add_problems(std::span<const StepProblem> problems, Leaves& read) {
  std::fill(motion_.all.begin(), motion_.all.end(), Variable(0));
  for (Velocities<Variable>* const nu : {&before_, &after_, &motion_}) set_bodies(*nu);
  start_ = after_;
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
    end_problem(problem, {solved.v.data(), solved.gamma.data(), solved.unknowns.data(), solved.states.data()}, read);
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
        return held_velocity(scene_.pairs[pair], normals_[pair], rebounds_[k].held, is_other, read);
      },
      [&](int body, const Vector<Variable>& held) {
        time_[body] = time;
        held_[body] = held;
      });
  return time;
}

Approach<Variable> LinearStep::approach_of(int pair, const Variable& elapsed) const {
  const auto velocity = [&](const Velocities<Variable>& nu) {
    return velocity_of(scene_.pairs[pair], normals_[pair], nu, scene_);
  };
  return {contacts_[pair].gap, velocity(motion_), elapsed, -velocity(after_), velocity(before_) - velocity(start_),
          has_met_[pair] != 0};
}

// The velocities of the bodies.
void LinearStep::set_bodies(Velocities<Variable>& nu) {
  for (int body = 0; body < scene_.free(); ++body) nu.of_bodies[body] = twist_at(nu.all.data(), body);
  set_twists(scene_, places_, nu.all.data() + scene_.first_of_trees(), work_.motions, nu.of_bodies);
}

void LinearStep::move(const Variable& time) {
  for (int k = 0; k < scene_.velocities(); ++k) motion_.all[k] = motion_.all[k] + time * after_.all[k];
  set_bodies(motion_);
}

// A problem that begins with the velocities of now, and the contacts of its pairs. end_problem makes the velocities
// those of its solution.
LinearStep::Problem& LinearStep::begin_problem(std::span<const int> chosen, Leaves& read) {
  if (count_ == problems_.size()) problems_.emplace_back();
  Problem& problem = problems_[count_];
  problem.is_first = count_++ == 0;
  problem.chosen = chosen;
  problem.from = after_.all;
  problem.b.clear();
  problem.mu.clear();
  problem.lower.clear();
  problem.upper.clear();
  problem.compliance.clear();
  problem.servos.clear();
  problem.gaps.clear();
  problem.points.clear();
  problem.turns.clear();
  problem.b_of_rows.clear();
  for (const int k : chosen) {
    const Pair& row = scene_.pairs[k];
    const auto add_row = [&](const Variable& lower, const Variable& upper, double b, double compliance) {
      problem.lower.push_back(lower);
      problem.upper.push_back(upper);
      problem.b_of_rows.push_back(b);
      problem.compliance.push_back(compliance);
    };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (row.coupling != Pair::kNone) {
      problem.gaps.push_back(gap_of<Variable>(scene_.couplings[row.coupling], row.coupling, read));
      add_row(-kInfinity, kInfinity, problem.gaps.back().gap.value / scene_.dt, 0);
      continue;
    }
    if (row.closure != Pair::kNone) {
      const Closure& closure = scene_.closures[row.closure];
      if (row.axis == 0) {
        problem.points.push_back(points_of<Variable>(closure, row.closure, read));
        problem.turns.push_back(closure.is_weld ? turn_of<Variable>(closure, row.closure, read) : Vector<Variable>{});
      }
      const ClosurePoints<Variable>& points = problem.points.back();
      const double gap = row.axis < 3 ? points[0][row.axis].value - points[1][row.axis].value
                                      : problem.turns.back()[row.axis - 3].value;
      add_row(-kInfinity, kInfinity, gap / scene_.dt, 0);
      continue;
    }
    if (row.servo != Pair::kNone) {
      const int dof = scene_.joints[scene_.actuators[row.servo].joint].dof;
      problem.servos.push_back(row_of_servo<Variable>(scene_, row.servo, before_.all[dof], read));
      const ServoRow<Variable>& servo = problem.servos.back();
      add_row(servo.lower, servo.upper, servo.b.value, servo.compliance.value);
      has_given_impulse_ = has_given_impulse_ || servo.upper.node != 0;
      continue;
    }
    if (row.is_row()) {
      const Variable bound = scene_.dt * read.friction_loss(row.resisted - scene_.first_of_trees());
      add_row(-bound, bound, 0, 0);
      continue;
    }
    problem.mu.push_back(read.mu(k));
    if (has_contact_[k]) continue;
    has_contact_[k] = true;
    const Pair& pair = scene_.pairs[k];
    contacts_[k] = contact_of<Variable>(pair, read);
    if (pair.is_limit()) continue;
    frames_[k] = frame_of(contacts_[k].normal);
    if (has_impacts_) normals_[k] = row_of(pair, contacts_[k], contacts_[k].normal, read);
  }
  return problem;
}

void LinearStep::end_problem(Problem& problem, const SolvedContacts& solution, Leaves& read) {
  problem.solution = solution;
  linearize(problem);
  add_data(problem, at_, read, problem.data);
  if (has_two_points_) add_data(problem, solution, read, problem.data_of_solution);
  problem.solved = tape_.size();
  for (int k = 0; k < scene_.velocities(); ++k) after_.all[k] = Variable::independent(tape_, solution.v[k]);
  if (has_impacts_) set_bodies(after_);
  problem.after = after_.all;
}

// p and s for the velocities and impulses of a point.
void LinearStep::add_data(const Problem& problem, const SolvedContacts& at, Leaves& read, Data& data) {
  const int first_of_trees = scene_.first_of_trees();
  data.p.assign(scene_.velocities(), 0);
  data.s.clear();
  std::vector<Variable>& after = at_point_;
  std::copy_n(at.v, scene_.velocities(), after.begin());
  work_.clear();
  std::fill(is_turned_.begin(), is_turned_.end(), false);
  if (uses_trees_) {
    trees_.set_velocities(at.v + first_of_trees);
  } else {
    std::fill(is_turned_.begin() + scene_.free(), is_turned_.end(), true);
    set_twists(scene_, places_, after.data() + first_of_trees, work_.motions, after_.of_bodies);
  }
  const auto motion_of = [&](int body) -> const Motion<Variable>& {
    Motion<Variable>& motion = work_.motions[body];
    if (!is_turned_[body]) {
      if (body < scene_.free()) {
        const Twist<Variable> nu = twist_at(after.data(), body);
        motion.velocity = nu.linear;
        motion.turning = read.rotation(body) * nu.angular;
      } else {
        set_motion(body, motion);
      }
      is_turned_[body] = true;
    }
    return motion;
  };
  // Adds an impulse at a point of a body; returns the velocity of the point.
  const auto act_on = [&](int body, const Vector<Variable>& point, const Vector<Variable>& impulse, double sign) {
    const Vector<Variable> arm = point - read.position(body);
    Wrench<Variable>& wrench = work_.wrenches[body];
    const Vector<Variable> turning = cross(arm, impulse);
    wrench.force = sign > 0 ? wrench.force + impulse : wrench.force - impulse;
    wrench.torque = sign > 0 ? wrench.torque + turning : wrench.torque - turning;
    const Motion<Variable>& motion = motion_of(body);
    return motion.velocity + cross(motion.turning, arm);
  };
  // The same of an impulse that turns the body, and its angular velocity.
  const auto turn = [&](int body, const Vector<Variable>& impulse, double sign) {
    Wrench<Variable>& wrench = work_.wrenches[body];
    wrench.torque = sign > 0 ? wrench.torque + impulse : wrench.torque - impulse;
    return motion_of(body).turning;
  };
  std::size_t next_servo = 0;
  for (std::size_t j = 0; j < problem.chosen.size(); ++j) {
    const int k = problem.chosen[j];
    const Pair& pair = scene_.pairs[k];
    const std::size_t contacts = problem.mu.size();
    const double* const gamma = at.gamma + (j < contacts ? 3 * j : 2 * contacts + j);
    if (pair.closure != Pair::kNone) {
      if (pair.axis > 0) continue;  // the first axis has the others, too
      const Closure& closure = scene_.closures[pair.closure];
      const ClosurePoints<Variable>& points = problem.points[pair.closure];
      const Vector<Variable> impulse = {gamma[0], gamma[1], gamma[2]};
      Vector<Variable> u = act_on(closure.body, points[0], impulse, 1) + (1 / scene_.dt) * (points[0] - points[1]);
      if (closure.other != Pair::kWorld) u = u - act_on(closure.other, points[1], impulse, -1);
      data.s.insert(data.s.end(), {u[0], u[1], u[2]});
      if (!closure.is_weld) continue;
      const Vector<Variable> torque = {gamma[3], gamma[4], gamma[5]};
      Vector<Variable> turning = turn(closure.body, torque, 1) + (1 / scene_.dt) * problem.turns[pair.closure];
      if (closure.other != Pair::kWorld) turning = turning - turn(closure.other, torque, -1);
      data.s.insert(data.s.end(), {turning[0], turning[1], turning[2]});
      continue;
    }
    if (pair.coupling != Pair::kNone) {
      const Coupling& coupling = scene_.couplings[pair.coupling];
      const CouplingGap<Variable>& gap = problem.gaps[pair.coupling];
      const int dof = scene_.joints[coupling.joint].dof;
      data.p[dof] = data.p[dof] + gamma[0];
      Variable velocity = (1 / scene_.dt) * gap.gap + at.v[dof];
      if (coupling.other != Pair::kNone) {
        const int other = scene_.joints[coupling.other].dof;
        data.p[other] = data.p[other] - gamma[0] * gap.slope;
        velocity = velocity - at.v[other] * gap.slope;
      }
      data.s.push_back(velocity);
      continue;
    }
    if (pair.servo != Pair::kNone) {
      const ServoRow<Variable>& servo = problem.servos[next_servo++];
      const int dof = scene_.joints[scene_.actuators[pair.servo].joint].dof;
      data.p[dof] = data.p[dof] + gamma[0] * servo.gear;
      data.s.push_back(at.v[dof] * servo.gear + servo.b + gamma[0] * servo.compliance);
      continue;
    }
    if (pair.is_row()) {
      data.p[pair.resisted] = data.p[pair.resisted] + gamma[0];
      data.s.push_back(at.v[pair.resisted]);
      continue;
    }
    if (pair.is_limit()) {
      const int dof = dof_of(pair, scene_);
      data.p[dof] = data.p[dof] + sign_of(pair) * gamma[2];
      data.s.insert(data.s.end(), {0, 0, sign_of(pair) * at.v[dof] + problem.b[j]});
      continue;
    }
    const Matrix<Variable>& frame = frames_[k];
    const Vector<Variable> impulse = transposed_times(frame, Vector<Variable>{gamma[0], gamma[1], gamma[2]});
    const Vector<Variable>& point = contacts_[k].point;
    Vector<Variable> velocity = act_on(pair.body, point, impulse, 1);
    if (pair.has_other()) velocity = velocity - act_on(pair.other_body, point, impulse, -1);
    const Vector<Variable> u = frame * velocity;
    data.s.insert(data.s.end(), {u[0], u[1], u[2] + problem.b[j]});
  }
  for (int body = 0; body < scene_.free(); ++body) {
    const Twist<Variable> from = twist_at(problem.from.data(), body), to = twist_at(after.data(), body);
    const Wrench<Variable>& wrench = work_.wrenches[body];
    const Vector<Variable> linear = wrench.force - read.mass(body) * (to.linear - from.linear);
    const Vector<Variable> needed = symmetric(read.inertia(body)) * (to.angular - from.angular);
    const Vector<Variable> angular =
        is_turned_[body] ? transposed_times(read.rotation(body), wrench.torque) - needed : -needed;
    for (std::size_t i = 0; i < 3; ++i) {
      data.p[6 * body + i] = linear[i];
      data.p[6 * body + 3 + i] = angular[i];
    }
  }
  if (scene_.links.empty()) return;
  if (uses_trees_) return add_trees(problem, at, read.u, data);
  for (const Link& link : scene_.links) {
    Wrench<Variable>& wrench = work_.wrenches[link.body];
    wrench = {(-1 / scene_.dt) * wrench.force, (-1 / scene_.dt) * wrench.torque};
  }
  add_momentum(scene_, places_, read, joints_, problem.is_first, problem.from.data() + first_of_trees,
               after.data() + first_of_trees, work_, data.p.data() + first_of_trees);
}

void LinearStep::end_step(Leaves& read) {
  if (!has_impacts_) {
    for (int k = 0; k < scene_.velocities(); ++k) motion_.all[k] = scene_.dt * after_.all[k];
  } else {
    for (int body = 0; body < scene_.free(); ++body) {
      const Vector<Variable> held = held_motion(scene_.dt, time_[body], held_[body]);
      for (std::size_t i = 0; i < 3; ++i) motion_.all[6 * body + i] = motion_.all[6 * body + i] + held[i];
    }
  }
  for_each_velocity(scene_, [&](int k, StatePart part, int i) { end_[part][i] = after_.all[k]; });
  for_each_coordinate(
      scene_, motion_.all.data(),
      [&](StatePart part, int i, const Variable& motion) { end_[part][i] = state_[part][i] + motion; },
      [&](int i, const Vector<Variable>& turn) {
        const Quaternion<Variable> q = turned(quaternion_at(read.state(kOrientation), i), turn);
        Variable* const to = end_[kOrientation].data() + 4 * i;
        to[0] = q.w;
        to[1] = q.x;
        to[2] = q.y;
        to[3] = q.z;
      });
}

// Makes a problem the one that the derivative_ is asked about.
void LinearStep::linearize(const Problem& problem) {
  is_same_ = posed_of_ == &problem && is_asked_;
  is_asked_ = true;
  if (posed_of_ == &problem) return;
  simulator_.set_rows(problem.chosen, J_.data());
  const auto values = [](const std::vector<Variable>& x, double* to) {
    for (const Variable& number : x) *to++ = number.value;
  };
  if (problem.is_first) {
    from_ = simulator_.free_velocities().all;
  } else {
    values(problem.from, from_.data());
  }
  values(problem.mu, mu_.data());
  const std::size_t contacts = problem.mu.size();
  values(problem.lower, lower_.data());
  values(problem.upper, upper_.data());
  std::copy(problem.compliance.begin(), problem.compliance.end(), compliance_.begin());
  std::copy(problem.b_of_rows.begin(), problem.b_of_rows.end(), b_.begin() + static_cast<std::ptrdiff_t>(3 * contacts));
  for (std::size_t j = 0; j < contacts; ++j) {
    const Regularization<Variable>& R = compliances_[problem.chosen[j]];
    b_[3 * j] = b_[3 * j + 1] = 0;
    b_[3 * j + 2] = problem.b[j].value;
    R_[3 * j] = R_[3 * j + 1] = R.tangent.value;
    R_[3 * j + 2] = R.normal.value;
  }
  posed_ = {simulator_.mass_matrix().data(),
            from_.data(),
            J_.data(),
            b_.data(),
            R_.data(),
            mu_.data(),
            lower_.data(),
            upper_.data(),
            compliance_.data()};
  at_ = derivative_->point(static_cast<int>(contacts), posed_, problem.solution);
  posed_of_ = &problem;
  is_asked_ = false;
}

// From the gradient of the velocities after a problem to those of its data.
void LinearStep::pass_back(const Problem& problem, const double* g_gamma, double* to_u) {
  linearize(problem);
  const int count = static_cast<int>(problem.mu.size());
  for_each_impulse(scene_, problem.chosen, [&](int i, int j) { of_gamma_[i] = g_gamma[j]; });
  for (int k = 0; k < scene_.velocities(); ++k) of_v_[k] = tape_.derivative(problem.after[k].node);
  derivative_->adjoint(count, posed_, at_, is_same_, of_v_.data(), of_gamma_.data(),
                       {of_p_.data(), of_s_.data(), of_R_.data(), of_mu_.data(), of_p_of_solution_.data(),
                        of_lower_.data(), of_upper_.data()});
  const auto add = [&](const std::vector<Variable>& x, const std::vector<double>& of) {
    for (std::size_t i = 0; i < x.size(); ++i) tape_.add(x[i].node, of[i]);
  };
  const auto add_p = [&](const Data& data, const std::vector<double>& of) {
    add(data.p, of);
    if (!uses_trees_) return;
    const int first = scene_.first_of_trees(), dofs = scene_.dofs_of_trees();
    Eigen::Map<const Eigen::VectorXd> given(of.data() + first, dofs);
    of_states_.noalias() = data.by_trees.transpose() * given;
    for (int k = 0; k < dofs; ++k) {
      tape_.add(displacements_[k].node, of_states_[k]);
      tape_.add(problem.from[first + k].node, of_states_[dofs + k]);
    }
    if (data.touched.empty() && to_u == nullptr) return;
    trees_.set_velocities(given.data());
    for (const TouchedBody& touched : data.touched) {
      const SpatialMotion& along = trees_.velocity(touched.body);
      for (std::size_t i = 0; i < 3; ++i) {
        tape_.add(touched.impulse.force[i].node, along.linear[i]);
        tape_.add(touched.impulse.torque[i].node, along.angular[i]);
      }
    }
    if (to_u != nullptr) trees_.add_gradient(parameters_, to_u);
  };
  add_p(problem.data, of_p_);
  add(problem.data.s, of_s_);
  add(problem.mu, of_mu_);
  add(problem.lower, of_lower_);
  add(problem.upper, of_upper_);
  if (has_two_points_) add_p(problem.data_of_solution, of_p_of_solution_);
  if (scene_.law.formulation != Formulation::kCompliant) return;
  for (int j = 0; j < count; ++j) {
    const Regularization<Variable>& R = compliances_[problem.chosen[j]];
    tape_.add(R.tangent.node, of_R_[3 * j] + of_R_[3 * j + 1]);
    tape_.add(R.normal.node, of_R_[3 * j + 2]);
  }
}

// From the tangents of the data of a problem to those of its solution.
void LinearStep::pass_on(const Problem& problem, const double* du, double* dgamma) {
  linearize(problem);
  const int count = static_cast<int>(problem.mu.size());
  const auto read = [&](const std::vector<Variable>& x, std::vector<double>& of) {
    for (std::size_t i = 0; i < x.size(); ++i) of[i] = tape_.derivative(x[i].node);
  };
  const auto read_p = [&](const Data& data, std::vector<double>& of) {
    read(data.p, of);
    if (!uses_trees_) return;
    const int first = scene_.first_of_trees(), dofs = scene_.dofs_of_trees();
    for (int k = 0; k < dofs; ++k) {
      of_states_[k] = tape_.derivative(displacements_[k].node);
      of_states_[dofs + k] = tape_.derivative(problem.from[first + k].node);
    }
    Eigen::Map<Eigen::VectorXd>(of.data() + first, dofs).noalias() += data.by_trees * of_states_;
    for (const TouchedBody& touched : data.touched) {
      Wrench<double> change;
      for (std::size_t i = 0; i < 3; ++i) {
        change.force[i] = tape_.derivative(touched.impulse.force[i].node);
        change.torque[i] = tape_.derivative(touched.impulse.torque[i].node);
      }
      trees_.add_forces(touched.body, change, of.data() + first);
    }
    if (du != nullptr) trees_.add_change(parameters_, du, of.data() + first);
  };
  read_p(problem.data, of_p_);
  read(problem.data.s, of_s_);
  read(problem.mu, of_mu_);
  read(problem.lower, of_lower_);
  read(problem.upper, of_upper_);
  if (has_two_points_) read_p(problem.data_of_solution, of_p_of_solution_);
  for (int j = 0; j < count; ++j) {
    const Regularization<Variable>& R = compliances_[problem.chosen[j]];
    of_R_[3 * j] = of_R_[3 * j + 1] = tape_.derivative(R.tangent.node);
    of_R_[3 * j + 2] = tape_.derivative(R.normal.node);
  }
  derivative_->tangent(count, posed_, at_, is_same_,
                       {of_p_.data(), of_s_.data(), of_R_.data(), of_mu_.data(), of_p_of_solution_.data(),
                        of_lower_.data(), of_upper_.data()},
                       of_v_.data(), of_gamma_.data());
  for (int k = 0; k < scene_.velocities(); ++k) tape_.add(problem.after[k].node, of_v_[k]);
  for_each_impulse(scene_, problem.chosen, [&](int i, int j) { dgamma[j] += of_gamma_[i]; });
}

}  // namespace lcp::rigid
