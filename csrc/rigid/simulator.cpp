#include "rigid/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "interrupt/checkpoint.h"
#include "rigid/mass_matrix.h"
#include "rigid/tree.h"

namespace lcp::rigid {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// A pair that the solution brings to close counts from this velocity on, relative to the largest of all contacts. The
// solution has rounding errors below that.
constexpr double kSlack = 1e-10;

// The round-off of the velocity of a contact, relative to the magnitude of its sum.
constexpr double kRoundOff = 16 * std::numeric_limits<double>::epsilon();

// As many impacts one after another as a step may have, and as many more for each pair. n equal balls in a row have
// n (n - 1) / 2.
constexpr int kMostImpacts = 64, kMostOfPair = 32;

// The magnitude of the sum that is the velocity of a contact.
double magnitude_of(const Pair& pair, const Row<double>& row, const Velocities<double>& nu, const Scene& scene) {
  if (pair.is_limit()) return std::abs(nu.all[dof_of(pair, scene)]);
  const auto of_body = [](const Twist<double>& a, const Twist<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i)
      sum += std::abs(a.linear[i] * b.linear[i]) + std::abs(a.angular[i] * b.angular[i]);
    return sum;
  };
  const double own = of_body(row.body, nu.of_bodies[pair.body]);
  return pair.has_other() ? own + of_body(row.other, nu.of_bodies[pair.other_body]) : own;
}

// Whether the numbers of trees are in their ranges, and axes of length 1, to 4 digits.
bool are_valid_trees(const Scene& scene, const Parameters<const double>& parameters) {
  constexpr double kUnitLength = 1e-4;
  for (std::size_t j = 0; j < scene.joints.size(); ++j) {
    if (scene.joints[j].coordinate == Pair::kNone) continue;
    const Vector<double> axis = vector_at(parameters[kAxis], static_cast<int>(j));
    if (!(std::abs(dot(axis, axis) - 1) <= kUnitLength) || !(parameters[kSprings][2 * j] >= 0)) return false;
  }
  const auto are_positive = [&](Parameter parameter) {
    const double* const x = parameters[parameter];
    return std::all_of(x, x + size_of(parameter, scene), [](double number) { return number >= 0; });
  };
  return are_positive(kMass) && are_positive(kRadii) && are_positive(kBoxSizes) && are_positive(kMu) &&
         are_positive(kDamping) && are_positive(kArmature) && are_positive(kFrictionLoss);
}

// Whether both pairs are of the same body, and of another body or the same plane.
bool are_of_one_collision(const Pair& a, const Pair& b) {
  return !a.is_of_joint() && !b.is_of_joint() && a.body == b.body && a.other_body == b.other_body && a.plane == b.plane;
}

bool is_finite(const double* x, int size) {
  return std::all_of(x, x + size, [](double number) { return std::isfinite(number); });
}

void put(const Vector<double>& x, double* to) {
  for (std::size_t i = 0; i < 3; ++i) to[i] = x[i];
}

void put(const Twist<double>& x, double* to) {
  put(x.linear, to);
  put(x.angular, to + 3);
}

}  // namespace

struct Simulator::Numbers {
  const Scene& scene;
  const Parameters<const double>& parameters;
  State<const double> state;
  const double* u;
  const Places<double>& places;

  const Vector<double>& position(int body) const { return places.position(body); }
  const Matrix<double>& rotation(int body) const { return places.rotation(body); }
  // Of a free body.
  Quaternion<double> orientation(int body) const { return quaternion_at(state[kOrientation], body); }
  Vector<double> velocity(int body) const { return vector_at(state[kVelocity], body); }
  Vector<double> angular_velocity(int body) const { return vector_at(state[kAngularVelocity], body); }

  double mass(int body) const { return parameters[kMass][body]; }
  Matrix<double> inertia(int body) const { return matrix_at(parameters[kInertia], body); }
  double drag(int body) const { return parameters[kDrag][body]; }
  Vector<double> gravity() const { return vector_at(parameters[kGravity], 0); }
  Vector<double> force(int body) const { return vector_at(u, 2 * body); }
  Vector<double> torque(int body) const { return vector_at(u, 2 * body + 1); }
  Vector<double> center(int ball) const { return vector_at(parameters[kCenters], ball); }
  double radius(int ball) const { return parameters[kRadii][ball]; }
  Vector<double> normal(int plane) const { return vector_at(parameters[kNormals], plane); }
  double offset(int plane) const { return parameters[kOffsets][plane]; }
  Vector<double> box_size(int box) const { return vector_at(parameters[kBoxSizes], box); }
  Vector<double> box_center(int box) const { return vector_at(parameters[kBoxCenters], box); }
  Quaternion<double> box_turn(int box) const { return quaternion_at(parameters[kBoxTurns], box); }
  double restitution(int pair) const { return parameters[kRestitution][pair]; }
  double stiffness(int pair) const { return parameters[kStiffness][pair]; }
  double dissipation(int pair) const { return parameters[kDissipation][pair]; }

  // Of trees.
  Vector<double> center_of_mass(int body) const { return vector_at(parameters[kMassCenter], body - scene.free()); }
  Vector<double> placement(int body) const { return vector_at(parameters[kPlacement], body - scene.free()); }
  Quaternion<double> turn_of_placement(int body) const {
    return quaternion_at(parameters[kPlacementTurn], body - scene.free());
  }
  Vector<double> axis(int joint) const { return vector_at(parameters[kAxis], joint); }
  Vector<double> anchor(int joint) const { return vector_at(parameters[kAnchor], joint); }
  Vector<double> origin(int joint) const { return vector_at(state[kPosition], scene.joints[joint].position); }
  Quaternion<double> turn(int joint) const {
    return quaternion_at(state[kOrientation], scene.joints[joint].orientation);
  }
  double coordinate(int joint) const { return state[kCoordinate][scene.joints[joint].coordinate]; }
  double limit(int joint, bool is_upper) const { return parameters[kLimits][2 * joint + (is_upper ? 1 : 0)]; }
  double spring(int joint) const { return parameters[kSprings][2 * joint]; }
  double rest(int joint) const { return parameters[kSprings][2 * joint + 1]; }
  double armature(int dof) const { return parameters[kArmature][dof]; }
  double damping(int dof) const { return parameters[kDamping][dof]; }
  double coupling(int number, int i) const { return parameters[kCoupling][5 * number + i]; }
  Vector<double> closure(int number, int end) const { return vector_at(parameters[kClosure], 2 * number + end); }
  Quaternion<double> closure_turn(int number) const { return quaternion_at(parameters[kClosureTurn], number); }
  double gear(int actuator) const { return parameters[kGear][actuator]; }
  double gain(int actuator) const { return parameters[kActuatorForce][4 * actuator]; }
  double bias(int actuator, int i) const { return parameters[kActuatorForce][4 * actuator + 1 + i]; }
  double control(int actuator) const { return u[6 * scene.bodies + actuator]; }
};

Simulator::Simulator(const Scene& scene, double tolerance)
    : scene_(scene),
      solver_(make_solver(scene, tolerance)),
      places_(scene),
      before_(scene),
      free_(scene),
      after_(scene),
      start_(scene),
      motion_(scene),
      time_(scene.bodies),
      held_(scene.bodies),
      inverse_(scene.bodies),
      speeds_(scene.bodies),
      meetings_(scene.contacts()),
      collision_(scene.contacts()),
      composites_(scene),
      work_(scene),
      A_(scene.velocities() * scene.velocities()),
      from_(scene.velocities()),
      v_(scene.velocities()),
      J_(3 * scene.contacts() * scene.velocities()),
      one_J_(3 * scene.velocities()),
      b_(3 * scene.contacts()),
      R_(3 * scene.contacts()),
      mu_(scene.contacts()),
      gamma_(3 * scene.contacts()),
      lower_(scene.rows()),
      upper_(scene.rows()),
      compliance_(scene.rows()),
      closed_(scene.closures.size()),
      turns_(scene.closures.size()),
      impulses_(3 * scene.contacts()) {
  for (auto* const forces : {&joints_.at_before, &joints_.drag}) forces->resize(scene.dofs_of_trees());
  if (std::any_of(scene.actuators.begin(), scene.actuators.end(),
                  [](const Actuator& actuator) { return actuator.force_range != kUnlimited && !actuator.has_row; })) {
    unlimited_.resize(scene.dofs_of_trees());
  }
  chosen_.reserve(scene.contacts());
  for (int k = 0; k < scene.contacts(); ++k) {
    int& first = collision_[k];
    while (first < k && !are_of_one_collision(scene.pairs[first], scene.pairs[k])) ++first;
  }
}

void Simulator::begin(const Parameters<const double>& parameters) {
  threshold_ = threshold_of(scene_, parameters[kGravity]);
  skips_far_ = !scene_.links.empty() && threshold_ == std::numeric_limits<double>::max() && scene_.law.kappa == 0;
  set_mass_matrix(scene_, parameters, A_.data());
  // The rows move nothing.
  for (std::vector<double>* const x : {&from_, &J_, &b_, &lower_, &upper_, &compliance_}) {
    std::fill(x->begin(), x->end(), 0.0);
  }
  of_A_ = solver_->solve(0, posed(), {v_.data(), gamma_.data(), nullptr, nullptr});
  if (!scene_.links.empty() && !are_valid_trees(scene_, parameters)) of_A_ = Status::kBadInput;
  if (scene_.law.formulation == Formulation::kCompliant) {
    const Numbers read = {scene_, parameters, {}, nullptr, places_};
    for (int body = 0; body < scene_.bodies; ++body) inverse_[body] = inverse_mass<double>(body, read);
  }
}

void Simulator::run(std::int64_t steps, const Parameters<const double>& parameters, const State<const double>& first,
                    Series<const double> u, const Path<double>& path, const Outcome& outcome, bool has_begun) {
  const int bodies = scene_.bodies, contacts = scene_.contacts(), unknowns = contacts * unknowns_of(scene_.law);
  if (!has_begun) begin(parameters);
  bool failed = false;
  for (int part = 0; part < kStateParts; ++part) {
    failed = failed || !is_finite(first[part], size_of(static_cast<StatePart>(part), scene_));
  }
  State<const double> now = first;
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    pace.spend(500 * (bodies + contacts));
    const State<double> next = path.state(s);
    std::int8_t* const chosen = outcome.chosen[s];
    double* const gamma = path.gamma[s];
    std::int64_t& iterations = *outcome.iterations[s];
    iterations = 0;
    double* const kept = outcome.unknowns.data != nullptr ? outcome.unknowns[s] : nullptr;
    std::int8_t* const states = outcome.states.data != nullptr ? outcome.states[s] : nullptr;
    if (kept != nullptr) std::fill_n(kept, unknowns, 0.0);
    if (states != nullptr) std::fill_n(states, unknowns, std::int8_t{0});
    Status status = Status::kBadInput;
    failed = failed || !is_finite(u[s], inputs_of(scene_));
    if (!failed && of_A_ == Status::kSolved) {
      const Numbers read = {scene_, parameters, now, u[s], places_};
      if (find(read)) status = solve(read, {kept, states}, iterations);
      if (status == Status::kSolved) advance(read, next);
    }
    *outcome.status[s] = static_cast<std::int8_t>(status);
    failed = status != Status::kSolved;
    if (failed) {
      for (int part = 0; part < kStateParts; ++part) {
        std::fill_n(next[part], size_of(static_cast<StatePart>(part), scene_), kNaN);
      }
      std::fill_n(gamma, 3 * contacts, kNaN);
      std::fill_n(chosen, contacts, std::int8_t{kNotChosen});
      continue;
    }
    std::copy_n(impulses_.data(), 3 * contacts, gamma);
    for (int k = 0; k < contacts; ++k) chosen[k] = meetings_[k].choice;
    std::copy(next.begin(), next.end(), now.begin());
  }
}

std::span<const StepProblem> Simulator::problems_of(const Parameters<const double>& parameters,
                                                    const State<const double>& now, const double* u) {
  const Numbers read = {scene_, parameters, now, u, places_};
  std::int64_t iterations = 0;
  find(read);
  keeps_problems_ = true;
  solve(read, {nullptr, nullptr}, iterations);
  keeps_problems_ = false;
  return {problems_.data(), count_};
}

bool Simulator::set_step(const Parameters<const double>& parameters, const State<const double>& now, const double* u,
                         std::span<const int> chosen) {
  const Numbers read = {scene_, parameters, now, u, places_};
  if (!find_free(read)) return false;
  for (const int k : chosen) {
    Meeting& meeting = meetings_[k];
    const Pair& pair = scene_.pairs[k];
    if (pair.is_row()) {
      if (!find_row(k, read)) return false;
      continue;
    }
    meeting.contact = contact_of<double>(pair, read);
    if (!pair.is_limit()) meeting.rows[2] = row_of(pair, meeting.contact, meeting.contact.normal, read);
    meeting.has_tangents = meeting.is_far = false;
  }
  return true;
}

bool Simulator::pose_all(const Parameters<const double>& parameters, const State<const double>& now, const double* u,
                         const State<const double>& end) {
  const Numbers read = {scene_, parameters, now, u, places_};
  if (!find(read)) return false;
  for_each_velocity(scene_, [&](int k, StatePart part, int i) { after_.all[k] = end[part][i]; });
  set_bodies(after_);
  set_speeds(after_);
  for (int k = 0; k < scene_.contacts(); ++k) {
    Meeting& meeting = meetings_[k];
    meeting.chosen = (!meeting.is_far || meeting.b <= fastest(k)) && may_move(k);
  }
  list_chosen();
  from_ = free_.all;
  pose_problem(read);
  return true;
}

ContactProblem Simulator::posed() const {
  return {A_.data(),  from_.data(),  J_.data(),     b_.data(),         R_.data(),
          mu_.data(), lower_.data(), upper_.data(), compliance_.data()};
}

double Simulator::least_gap() const {
  double least = kInfinity;
  for (int k = 0; k < scene_.contacts(); ++k) {
    if (!scene_.pairs[k].is_of_joint()) least = std::min(least, meetings_[k].contact.gap);
  }
  return least;
}

// The velocities of the bodies.
void Simulator::set_bodies(Velocities<double>& nu) {
  for (int body = 0; body < scene_.free(); ++body) nu.of_bodies[body] = twist_at(nu.all.data(), body);
  set_twists(scene_, places_, nu.all.data() + scene_.first_of_trees(), work_.motions, nu.of_bodies);
}

// The velocities of the trees without contacts, and the part of A that belongs to them. False where that is not
// positive definite.
bool Simulator::find_trees(const Numbers& read) {
  const int n = scene_.velocities(), first = scene_.first_of_trees(), dofs = n - first;
  composites_.set_mass_matrix(scene_, places_, read, A_.data());
  double *const before = before_.all.data() + first, *const free = free_.all.data() + first;
  const auto advance = [&](const double* guess) {
    find_joint_forces(scene_, read, before, guess, joints_);
    tree_A_.resize(dofs, dofs);
    for (int i = 0; i < dofs; ++i) {
      for (int j = 0; j < dofs; ++j) tree_A_(i, j) = A_[(first + i) * n + first + j];
      tree_A_(i, i) += joints_.drag[i];
    }
    work_.clear();
    change_.setZero(dofs);
    add_momentum(scene_, places_, read, joints_, true, before, before, work_, change_.data());
    factors_.compute(tree_A_);
    if (factors_.info() != Eigen::Success) return false;
    factors_.solveInPlace(change_);
    for (int i = 0; i < dofs; ++i) free[i] = before[i] + change_[i];
    return true;
  };
  if (!advance(nullptr)) return false;
  if (!unlimited_.empty()) {
    std::copy_n(free, dofs, unlimited_.begin());
    if (!advance(unlimited_.data())) return false;
  }
  for (int i = 0; i < dofs; ++i) A_[(first + i) * (n + 1)] += joints_.drag[i];
  return true;
}

// What a problem needs of a row. False where it is not finite.
bool Simulator::find_row(int k, const Numbers& read) {
  Meeting& meeting = meetings_[k];
  const Pair& pair = scene_.pairs[k];
  meeting.b = 0;
  if (pair.closure != Pair::kNone) {
    const Closure& closure = scene_.closures[pair.closure];
    ClosurePoints<double>& points = closed_[pair.closure];
    Vector<double>& turn = turns_[pair.closure];
    if (pair.axis == 0) points = points_of<double>(closure, pair.closure, read);
    if (pair.axis == 3) turn = turn_of<double>(closure, pair.closure, read);
    const double gap = pair.axis < 3 ? points[0][pair.axis] - points[1][pair.axis] : turn[pair.axis - 3];
    meeting.b = gap / scene_.dt;
    return std::isfinite(meeting.b);
  }
  if (pair.servo != Pair::kNone) {
    const int dof = scene_.joints[scene_.actuators[pair.servo].joint].dof;
    const ServoRow<double> row = row_of_servo<double>(scene_, pair.servo, before_.all[dof], read);
    meeting.slope = row.gear;
    meeting.b = row.b;
    meeting.lower = row.lower;
    meeting.upper = row.upper;
    meeting.compliance = row.compliance;
    return std::isfinite(row.b + row.compliance + row.gear);
  }
  const int number = pair.coupling;
  if (number == Pair::kNone) return true;
  const CouplingGap<double> at = gap_of<double>(scene_.couplings[number], number, read);
  meeting.b = at.gap / scene_.dt;
  meeting.slope = at.slope;
  return std::isfinite(meeting.b) && std::isfinite(at.slope);
}

// The places and the velocities before and without contacts. False where numbers are not finite, or a quaternion is 0.
bool Simulator::find_free(const Numbers& read) {
  for (int k = 0; k < size_of(kOrientation, scene_); k += 4) {
    const Quaternion<double> q = quaternion_at(read.state[kOrientation] + k, 0);
    const double square = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
    if (!(square > 0 && std::isfinite(square))) return false;
  }
  for_each_velocity(scene_, [&](int k, StatePart part, int i) { before_.all[k] = read.state[part][i]; });
  for (int body = 0; body < scene_.free(); ++body) {
    places_.positions[body] = vector_at(read.state[kPosition], body);
    places_.rotations[body] = rotation_matrix(read.orientation(body));
    put(free_velocity<double>(body, scene_.dt, read), free_.all.data() + 6 * body);
  }
  if (!scene_.links.empty()) {
    place(scene_, read, places_);
    if (!find_trees(read)) return false;
  }
  if (!is_finite(free_.all.data(), scene_.velocities())) return false;
  set_bodies(free_);
  return true;
}

// The same, and the meetings of all pairs.
bool Simulator::find(const Numbers& read) {
  if (!find_free(read)) return false;
  const bool is_compliant = scene_.law.formulation == Formulation::kCompliant;
  has_impacts_ = false;
  if (skips_far_) set_speeds(free_);
  for (int k = 0; k < scene_.contacts(); ++k) {
    const Pair& pair = scene_.pairs[k];
    Meeting& meeting = meetings_[k];
    if (pair.is_row()) {
      meeting.is_far = meeting.waits = meeting.has_met = false;
      if (!find_row(k, read)) return false;
      continue;
    }
    meeting.contact = contact_of<double>(pair, read);
    if (skips_far_ && !pair.is_of_joint()) {
      meeting.b = closing_of(Approach<double>{meeting.contact.gap, 0, 0, 0, 0, false}, scene_);
      meeting.is_far = meeting.b > fastest(k);
      meeting.has_tangents = meeting.waits = false;
      meeting.choice = kNotChosen;
      if (meeting.is_far) continue;
    }
    if (!pair.is_of_joint()) meeting.rows[2] = row_of(pair, meeting.contact, meeting.contact.normal, read);
    meeting.has_tangents = meeting.waits = meeting.has_met = false;
    meeting.choice = kNotChosen;
    const double speed = -velocity_of(k, meeting.rows[2], free_);
    if (is_compliant) {
      meeting.b = compliant_closing(meeting.contact.gap, read.dissipation(k), scene_.dt);
    } else {
      const Approach<double> at = {meeting.contact.gap, 0, 0, speed, 0, false};
      meeting.b = closing_of(at, scene_);
      meeting.waits = is_impact(at, threshold_, scene_);
      has_impacts_ = has_impacts_ || meeting.waits;
    }
    if (!std::isfinite(meeting.b - speed)) return false;
  }
  return true;
}

// Leaves the velocities in after_ and the impulses in impulses_.
Status Simulator::solve(const Numbers& read, const Kept& kept, std::int64_t& iterations) {
  count_ = 0;
  std::fill(impulses_.begin(), impulses_.end(), 0.0);
  after_ = free_;
  for (int k = 0; k < scene_.contacts(); ++k) meetings_[k].chosen = scene_.pairs[k].is_row();
  // The LCP of a pile at rest is hard to solve for only some of its contacts, which round-off would choose.
  choose(read, free_, scene_.law.formulation == Formulation::kPolyhedral ? -kSlack : 0);
  const Status status = hold(read, Kind::kStart, kept, iterations);
  return status == Status::kSolved && has_impacts_ ? collide(read, iterations) : status;
}

// Solves the contacts that are chosen, and chooses more, until none closes that need not wait.
Status Simulator::hold(const Numbers& read, Kind kind, const Kept& kept, std::int64_t& iterations) {
  if (chosen_.empty()) {
    if (keeps_problems_ && ((scene_.law.kappa > 0 && (kind == Kind::kStart || may_close_)) ||
                            (kind == Kind::kStart && !scene_.links.empty()))) {
      begin_problem();
      keep_problem();
      v_ = from_;
      finish_problem(kind);
    }
    return Status::kSolved;
  }
  begin_problem();
  for (;;) {
    const Status status = solve_chosen(read, kept, iterations);
    const bool is_complete = std::all_of(meetings_.begin(), meetings_.end(),
                                         [](const Meeting& meeting) { return meeting.chosen || meeting.waits; });
    if (status != Status::kSolved) {
      // Lemke's method may fail for some of the contacts, and not for all.
      if (scene_.law.formulation != Formulation::kPolyhedral || status == Status::kBadInput || is_complete) {
        return status;
      }
      for (Meeting& meeting : meetings_) meeting.chosen = !meeting.waits;
      list_chosen();
      continue;
    }
    if (is_complete || !choose(read, after_, kSlack)) {
      finish_problem(kind);
      return status;
    }
  }
}

// Solves the impacts one after another, and after each what it has brought to close slowly.
Status Simulator::collide(const Numbers& read, std::int64_t& iterations) {
  double least = threshold_;  // the speed from which a contact that closes is an impact
  for (int k = 0; k < scene_.contacts(); ++k) {
    const Meeting& meeting = meetings_[k];
    if (!meeting.waits) continue;
    const double round_off = magnitude_of(scene_.pairs[k], meeting.rows[2], free_, scene_) * kRoundOff;
    least = std::max({least, -kSlack * velocity_of(k, meeting.rows[2], free_), round_off});
  }
  set_bodies(before_);
  start_ = after_;
  std::fill(motion_.all.begin(), motion_.all.end(), 0.0);
  set_bodies(motion_);
  std::fill(held_.begin(), held_.end(), Vector<double>{});
  std::fill(time_.begin(), time_.end(), 0.0);
  double elapsed = 0;
  const int most = kMostImpacts + kMostOfPair * scene_.contacts();
  for (int count = 0;; ++count) {
    if (count == most) least = kInfinity;
    Status status = hold_slow(read, elapsed, least, iterations);
    if (status != Status::kSolved) return status;
    const double time = next_impacts(read, elapsed, least);
    if (!std::isfinite(time)) break;
    move(time - elapsed);
    elapsed = time;
    for (const int k : chosen_) {
      Meeting& meeting = meetings_[k];
      const Approach<double> at = approach_of(k, elapsed);
      if (meeting.role == Role::kHolds) {
        meeting.b = closing_of(at, scene_);
      } else {
        const Rebound<double> rebound = rebound_of(at, meeting.time, read.restitution(k), scene_);
        meeting.has_met = true;
        meeting.b = rebound.b;
        meeting.held = rebound.held;
      }
    }
    begin_problem();
    status = solve_chosen(read, {nullptr, nullptr}, iterations);
    if (status != Status::kSolved) return status;
    finish_problem(Kind::kImpacts);
    for_each_hit<double>(
        scene_, chosen_, roles_, gamma_,
        [&](std::size_t j, bool is_other) {
          const Meeting& meeting = meetings_[chosen_[j]];
          return held_velocity(scene_.pairs[chosen_[j]], meeting.rows[2], meeting.held, is_other, read);
        },
        [&](int body, const Vector<double>& held) {
          time_[body] = elapsed;
          held_[body] = held;
        });
  }
  move(scene_.dt - elapsed);
  return Status::kSolved;
}

// Solves what closes slower than `least`, after the time `elapsed` of a step with impacts. No contact may have begun to
// close so since the last problem unless one was an impact then.
Status Simulator::hold_slow(const Numbers& read, double elapsed, double least, std::int64_t& iterations) {
  may_close_ = false;
  for (int k = 0; k < scene_.contacts(); ++k) {
    Meeting& meeting = meetings_[k];
    const Approach<double> at = approach_of(k, elapsed);
    meeting.b = closing_of(at, scene_);
    const bool waited = std::exchange(meeting.waits, is_impact(at, least, scene_));
    may_close_ = may_close_ || (waited && !meeting.waits);
    meeting.chosen = false;
    meeting.role = Role::kHolds;
  }
  choose(read, after_, kSlack);
  return hold(read, Kind::kSlow, {nullptr, nullptr}, iterations);
}

// A pair after the time `elapsed` of a step with impacts.
Approach<double> Simulator::approach_of(int k, double elapsed) const {
  const Row<double>& row = meetings_[k].rows[2];
  return {meetings_[k].contact.gap,
          velocity_of(k, row, motion_),
          elapsed,
          -velocity_of(k, row, after_),
          velocity_of(k, row, before_) - velocity_of(k, row, start_),
          meetings_[k].has_met};
}

// Chooses the impacts that come next, what else closes between the same things, and what touches without rebounding.
// Returns their time, infinite where there are none.
double Simulator::next_impacts(const Numbers& read, double elapsed, double least) {
  double first = kInfinity;
  for (int k = 0; k < scene_.contacts(); ++k) {
    Meeting& meeting = meetings_[k];
    const Approach<double> at = approach_of(k, elapsed);
    meeting.b = closing_of(at, scene_);
    meeting.time = is_impact(at, least, scene_) ? time_of(at, scene_.dt) : kInfinity;
    meeting.collides = meeting.chosen = false;
    first = std::min(first, meeting.time);
  }
  chosen_.clear();
  if (!std::isfinite(first)) return first;
  const double last = first + kSameTime * scene_.dt;
  for (int k = 0; k < scene_.contacts(); ++k) {
    if (meetings_[k].time <= last) meetings_[collision_[k]].collides = true;
  }
  choose(read, after_, -kSlack);  // what touches, too
  for (int k = 0; k < scene_.contacts(); ++k) {
    Meeting& meeting = meetings_[k];
    meeting.role = meeting.time <= last ? Role::kFirst : std::isfinite(meeting.time) ? Role::kBounces : Role::kHolds;
    const bool is_hit = meetings_[collision_[k]].collides &&
                        (meeting.role != Role::kHolds || is_impact(approach_of(k, elapsed), 0, scene_));
    meeting.chosen = is_hit || (meeting.chosen && meeting.role == Role::kHolds && read.restitution(k) == 0);
  }
  list_chosen();
  return first;
}

// Moves the bodies on, in a step with impacts.
void Simulator::move(double time) {
  for (int k = 0; k < scene_.velocities(); ++k) motion_.all[k] += time * after_.all[k];
  set_bodies(motion_);
}

// Makes the velocities of now those that the next problem begins with.
void Simulator::begin_problem() { from_ = after_.all; }

Status Simulator::solve_chosen(const Numbers& read, const Kept& kept, std::int64_t& iterations) {
  pose_problem(read);
  Kept to = kept;
  if (keeps_problems_) {
    keep_problem();
    to = {problems_[count_].unknowns.data(), problems_[count_].states.data()};
  }
  const Status status = solver_->solve(static_cast<int>(chosen_.size() - lower_.size()), posed(),
                                       {v_.data(), gamma_.data(), to.unknowns, to.states});
  iterations += solver_->iterations();
  if (status != Status::kSolved) return status;
  after_.all = v_;
  set_bodies(after_);
  return status;
}

// Makes room for what the derivative needs of the chosen contacts.
void Simulator::keep_problem() {
  if (count_ == problems_.size()) problems_.emplace_back();
  StepProblem& problem = problems_[count_];
  problem.unknowns.resize(chosen_.size() * unknowns_of(scene_.law));
  problem.states.resize(problem.unknowns.size());
}

// Adds the pairs that do not wait, without impulses.
void Simulator::add_open_pairs(StepProblem& problem) const {
  const std::ptrdiff_t each = unknowns_of(scene_.law);
  const StepProblem solved = std::move(problem);
  problem = {};
  problem.v = solved.v;
  for (int k = 0; k < scene_.contacts(); ++k) {
    if (meetings_[k].waits) continue;
    problem.chosen.push_back(k);
    problem.gamma.resize(3 * problem.chosen.size());
    problem.unknowns.resize(each * problem.chosen.size());
    const auto found = std::find(solved.chosen.begin(), solved.chosen.end(), k);
    if (found == solved.chosen.end()) continue;
    const std::ptrdiff_t j = found - solved.chosen.begin();
    std::copy_n(solved.gamma.begin() + 3 * j, 3, problem.gamma.end() - 3);
    std::copy_n(solved.unknowns.begin() + each * j, each, problem.unknowns.end() - each);
  }
  problem.roles.assign(problem.chosen.size(), Role::kHolds);
}

// Adds the impulses of the problem that was solved to those of the step.
void Simulator::finish_problem(Kind kind) {
  roles_.clear();
  for (std::size_t j = 0; j < chosen_.size(); ++j) {
    Meeting& meeting = meetings_[chosen_[j]];
    meeting.choice = has_impacts_ ? kWithImpacts : kChosen;
    roles_.push_back(meeting.role);
  }
  for_each_impulse(scene_, chosen_, [&](int i, int j) { impulses_[j] += gamma_[i]; });
  if (keeps_problems_) {
    StepProblem& problem = problems_[count_];
    problem.chosen = chosen_;
    problem.roles = roles_;
    problem.v = v_;
    problem.gamma.assign(gamma_.begin(), gamma_.begin() + 3 * chosen_.size());
    if (scene_.law.kappa > 0 && kind != Kind::kImpacts) add_open_pairs(problem);
    problem.kind = kind;
  }
  ++count_;
}

void Simulator::set_rows(std::span<const int> chosen, double* J) {
  const std::ptrdiff_t n = scene_.velocities();
  for_each_impulse(scene_, chosen, [&](int i, int) { std::fill_n(J + i * n, n, 0.0); });
  for (const int k : chosen) {
    const Pair& pair = scene_.pairs[k];
    if (pair.is_row()) {
      if (pair.closure != Pair::kNone) {
        const Closure& closure = scene_.closures[pair.closure];
        const ClosurePoints<double>& points = closed_[pair.closure];
        Vector<double> along = {0, 0, 0};
        along[pair.axis % 3] = 1;
        const auto add = [&](int body, const Vector<double>& point, const Vector<double>& direction) {
          if (pair.axis < 3) {
            add_row(scene_, places_, body, point, direction, J);
          } else {
            add_turning_row(scene_, places_, body, direction, J);
          }
        };
        add(closure.body, points[0], along);
        if (closure.other != Pair::kWorld) add(closure.other, points[1], -along);
      } else if (pair.servo != Pair::kNone) {
        J[scene_.joints[scene_.actuators[pair.servo].joint].dof] = meetings_[k].slope;
      } else if (pair.coupling == Pair::kNone) {
        J[pair.resisted] = 1;
      } else {
        const Coupling& coupling = scene_.couplings[pair.coupling];
        J[scene_.joints[coupling.joint].dof] = 1;
        if (coupling.other != Pair::kNone) J[scene_.joints[coupling.other].dof] = -meetings_[k].slope;
      }
      J += n;
      continue;
    }
    const Row<double>* const rows = this->rows(k);
    const auto add = [&](int body, const Twist<double>& row) {
      if (body < scene_.free()) {
        put(row, J + 6 * body);
      } else {
        add_row(scene_, places_, body, meetings_[k].contact.point, row.linear, J);
      }
    };
    for (std::size_t i = 0; i < 3; ++i, J += n) {
      if (pair.is_limit()) {
        if (i == 2) J[dof_of(pair, scene_)] = sign_of(pair);
        continue;
      }
      add(pair.body, rows[i].body);
      if (pair.has_other()) add(pair.other_body, rows[i].other);
    }
  }
}

void Simulator::pose_problem(const Numbers& read) {
  set_rows(chosen_, J_.data());
  const std::size_t contacts = chosen_.size() - lower_.size();
  for (std::size_t r = 0; r < lower_.size(); ++r) {
    const int chosen = chosen_[contacts + r];
    const Pair& pair = scene_.pairs[chosen];
    b_[3 * contacts + r] = meetings_[chosen].b;
    compliance_[r] = 0;
    if (pair.servo != Pair::kNone) {
      lower_[r] = meetings_[chosen].lower;
      upper_[r] = meetings_[chosen].upper;
      compliance_[r] = meetings_[chosen].compliance;
      continue;
    }
    upper_[r] = pair.is_equation()
                    ? kInfinity
                    : scene_.dt * read.parameters[kFrictionLoss][pair.resisted - scene_.first_of_trees()];
    lower_[r] = -upper_[r];
  }
  for (std::size_t k = 0; k < contacts; ++k) {
    const int chosen = chosen_[k];
    const Pair& pair = scene_.pairs[chosen];
    b_[3 * k] = b_[3 * k + 1] = 0;
    b_[3 * k + 2] = meetings_[chosen].b;
    mu_[k] = read.parameters[kMu][chosen];
    if (scene_.law.formulation == Formulation::kCompliant) {
      const Regularization<double> R =
          regularization_of(delassus_of(pair, meetings_[chosen].rows, inverse_.data()), read.stiffness(chosen),
                            read.dissipation(chosen), scene_.dt, scene_.law.sigma, scene_.law.beta);
      R_[3 * k] = R_[3 * k + 1] = R.tangent;
      R_[3 * k + 2] = R.normal;
    }
  }
}

// The rows of J of a pair, which counts as far no longer.
const Row<double>* Simulator::rows(int k) {
  Meeting& meeting = meetings_[k];
  if (meeting.is_far) {
    meeting.rows[2] = row_of(scene_.pairs[k], meeting.contact, meeting.contact.normal, places_);
    meeting.is_far = false;
  }
  if (!meeting.has_tangents && !scene_.pairs[k].is_of_joint()) {
    const Matrix<double> frame = frame_of(meeting.contact.normal);
    for (std::size_t i = 0; i < 2; ++i) meeting.rows[i] = row_of(scene_.pairs[k], meeting.contact, frame[i], places_);
    meeting.has_tangents = true;
  }
  return meeting.rows;
}

double Simulator::velocity_of(int k, const Row<double>& row, const Velocities<double>& nu) const {
  return rigid::velocity_of(scene_.pairs[k], row, nu, scene_);
}

// Chooses the pairs that the velocities nu bring to close, too, faster than `slack` times the largest velocity of all
// contacts. Returns whether there are any.
bool Simulator::choose(const Numbers& read, const Velocities<double>& nu, double slack) {
  double largest = 0;
  if (skips_far_) {
    set_speeds(nu);
    for (int k = 0; k < scene_.contacts(); ++k) {
      const Meeting& meeting = meetings_[k];
      if (meeting.is_far && meeting.b <= fastest(k)) rows(k);
    }
  }
  for (int k = 0; k < scene_.contacts() && slack != 0; ++k) {
    if (meetings_[k].is_far || scene_.pairs[k].is_row()) continue;
    const Row<double>* const all = rows(k);
    for (int i = 0; i < 3; ++i) largest = std::max(largest, std::abs(velocity_of(k, all[i], nu)));
  }
  const std::size_t before = chosen_.size();
  for (int k = 0; k < scene_.contacts(); ++k) {
    Meeting& meeting = meetings_[k];
    if (meeting.chosen || meeting.waits || meeting.is_far) continue;
    double least = -slack * largest;
    if (scene_.law.formulation == Formulation::kCompliant) {  // a contact that slides has an impulse below mu |u_t|
      const Row<double>* const all = rows(k);
      least += read.parameters[kMu][k] * std::hypot(velocity_of(k, all[0], nu), velocity_of(k, all[1], nu));
    }
    meeting.chosen = velocity_of(k, meeting.rows[2], nu) + meeting.b < least && may_move(k);
  }
  list_chosen();
  return chosen_.size() > before;
}

// The speeds of bodies, for `fastest`.
void Simulator::set_speeds(const Velocities<double>& nu) {
  for (int body = 0; body < scene_.bodies; ++body) {
    const Twist<double>& twist = nu.of_bodies[body];
    speeds_[body] = {std::sqrt(dot(twist.linear, twist.linear)), std::sqrt(dot(twist.angular, twist.angular))};
  }
}

// A bound of the speed with which a pair closes.
double Simulator::fastest(int k) const {
  const Pair& pair = scene_.pairs[k];
  const auto of_body = [&](int body) {
    const Vector<double> arm = meetings_[k].contact.point - places_.position(body);
    return speeds_[body][0] + speeds_[body][1] * std::sqrt(dot(arm, arm));
  };
  return of_body(pair.body) + (pair.has_other() ? of_body(pair.other_body) : 0);
}

// Whether some velocity changes the gap of a pair, which no joint may do: such a contact has no impulse.
bool Simulator::may_move(int k) {
  if (scene_.links.empty() || scene_.pairs[k].is_of_joint()) return true;
  const std::ptrdiff_t n = scene_.velocities();
  set_rows({&k, 1}, one_J_.data());
  const double* const normal = one_J_.data() + 2 * n;
  const Vector<double>& point = meetings_[k].contact.point;
  constexpr double kRound = 1e-14;
  const double least = kRound * (1 + std::sqrt(dot(point, point)));
  return std::any_of(normal, normal + n, [&](double x) { return std::abs(x) > least; });
}

void Simulator::list_chosen() {
  chosen_.clear();
  for (int k = 0; k < scene_.contacts(); ++k) {
    if (meetings_[k].chosen) chosen_.push_back(k);
  }
}

void Simulator::advance(const Numbers& read, const State<double>& next) {
  if (!has_impacts_) {
    for (int k = 0; k < scene_.velocities(); ++k) motion_.all[k] = scene_.dt * after_.all[k];
  } else {
    for (int body = 0; body < scene_.free(); ++body) {
      const Vector<double> held = held_motion(scene_.dt, time_[body], held_[body]);
      for (std::size_t i = 0; i < 3; ++i) motion_.all[6 * body + i] += held[i];
    }
  }
  for_each_velocity(scene_, [&](int k, StatePart part, int i) { next[part][i] = after_.all[k]; });
  for_each_coordinate(
      scene_, motion_.all.data(),
      [&](StatePart part, int i, double motion) { next[part][i] = read.state[part][i] + motion; },
      [&](int i, const Vector<double>& turn) {
        const Quaternion<double> q = turned(quaternion_at(read.state[kOrientation], i), turn);
        double* const to = next[kOrientation] + 4 * i;
        to[0] = q.w;
        to[1] = q.x;
        to[2] = q.y;
        to[3] = q.z;
      });
}

}  // namespace lcp::rigid
