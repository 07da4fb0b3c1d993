#include "rigid/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "interrupt/checkpoint.h"
#include "rigid/mass_matrix.h"

namespace lcp::rigid {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A pair that the solution brings to close counts from this velocity on, relative to the largest of all contacts. The
// solution has rounding errors below that.
constexpr double kSlack = 1e-10;

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
  const Parameters<const double>& parameters;
  State<const double> state;
  const double* u;
  const Matrix<double>* rotations;

  Vector<double> position(int body) const { return vector_at(state.position, body); }
  Quaternion<double> orientation(int body) const { return quaternion_at(state.orientation, body); }
  const Matrix<double>& rotation(int body) const { return rotations[body]; }
  Vector<double> velocity(int body) const { return vector_at(state.velocity, body); }
  Vector<double> angular_velocity(int body) const { return vector_at(state.angular_velocity, body); }
  double mass(int body) const { return parameters.mass[body]; }
  Matrix<double> inertia(int body) const { return matrix_at(parameters.inertia, body); }
  double drag(int body) const { return parameters.drag[body]; }
  Vector<double> gravity() const { return vector_at(parameters.gravity, 0); }
  Vector<double> force(int body) const { return vector_at(u, 2 * body); }
  Vector<double> torque(int body) const { return vector_at(u, 2 * body + 1); }
  Vector<double> center(int ball) const { return vector_at(parameters.centers, ball); }
  double radius(int ball) const { return parameters.radii[ball]; }
  Vector<double> normal(int plane) const { return vector_at(parameters.normals, plane); }
  double offset(int plane) const { return parameters.offsets[plane]; }
  double restitution(int pair) const { return parameters.restitution[pair]; }
  double stiffness(int pair) const { return parameters.stiffness[pair]; }
  double dissipation(int pair) const { return parameters.dissipation[pair]; }
};

Simulator::Simulator(const Scene& scene, double tolerance)
    : scene_(scene),
      solver_(make_solver(scene, tolerance)),
      rotation_(scene.bodies),
      before_(scene.bodies),
      free_(scene.bodies),
      after_(scene.bodies),
      inverse_(scene.bodies),
      meetings_(scene.contacts()),
      impacts_(scene),
      A_(36 * scene.bodies * scene.bodies),
      v_free_(6 * scene.bodies),
      v_(6 * scene.bodies),
      J_(18 * scene.contacts() * scene.bodies),
      b_(3 * scene.contacts()),
      R_(3 * scene.contacts()),
      mu_(scene.contacts()),
      gamma_(3 * scene.contacts()) {
  chosen_.reserve(scene.contacts());
  touches_.reserve(scene.contacts());
}

void Simulator::run(std::int64_t steps, const Parameters<const double>& parameters, const State<const double>& first,
                    Series<const double> u, const Path<double>& path, const Outcome& outcome) {
  const int bodies = scene_.bodies, contacts = scene_.contacts(), unknowns = contacts * unknowns_of(scene_.law);
  threshold_ = threshold_of(scene_, parameters.gravity);
  set_mass_matrix(scene_, parameters, A_.data());
  std::fill(v_free_.begin(), v_free_.end(), 0.0);
  const Status of_A = solver_->solve(0, {A_.data(), v_free_.data(), nullptr, nullptr, nullptr, nullptr},
                                     {v_.data(), nullptr, nullptr, nullptr});
  if (scene_.law.formulation == Formulation::kCompliant) {
    const Numbers read = {parameters, first, nullptr, nullptr};
    for (int body = 0; body < bodies; ++body) inverse_[body] = inverse_mass<double>(body, read);
  }
  bool failed = !is_finite(first.position, 3 * bodies) || !is_finite(first.orientation, 4 * bodies) ||
                !is_finite(first.velocity, 3 * bodies) || !is_finite(first.angular_velocity, 3 * bodies);
  State<const double> now = first;
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    pace.spend(500 * (bodies + contacts));
    const State<double> next = path.state(s);
    bool* const chosen = outcome.chosen[s];
    double* const gamma = path.gamma[s];
    std::int64_t& iterations = *outcome.iterations[s];
    std::fill_n(chosen, contacts, false);
    std::fill_n(gamma, 3 * contacts, 0.0);
    iterations = 0;
    double* const kept = outcome.unknowns.data != nullptr ? outcome.unknowns[s] : nullptr;
    std::int8_t* const states = outcome.states.data != nullptr ? outcome.states[s] : nullptr;
    if (kept != nullptr) std::fill_n(kept, unknowns, 0.0);
    if (states != nullptr) std::fill_n(states, unknowns, std::int8_t{0});
    Status status = Status::kBadInput;
    failed = failed || !is_finite(u[s], 6 * bodies);
    if (!failed && of_A == Status::kSolved) {
      const Numbers read = {parameters, now, u[s], rotation_.data()};
      if (find(read)) status = solve(read, kept, states, iterations);
      if (status == Status::kSolved) advance(read, next);
    }
    *outcome.status[s] = static_cast<std::int8_t>(status);
    failed = status != Status::kSolved;
    if (failed) {
      std::fill_n(next.position, 3 * bodies, kNaN);
      std::fill_n(next.orientation, 4 * bodies, kNaN);
      std::fill_n(next.velocity, 3 * bodies, kNaN);
      std::fill_n(next.angular_velocity, 3 * bodies, kNaN);
      std::fill_n(gamma, 3 * contacts, kNaN);
      continue;
    }
    for (std::size_t k = 0; k < chosen_.size(); ++k) {
      chosen[chosen_[k]] = true;
      std::copy_n(gamma_.data() + 3 * k, 3, gamma + 3 * chosen_[k]);
    }
    now = {next.position, next.orientation, next.velocity, next.angular_velocity};
  }
}

// The free velocities and the meetings of all pairs, of which it chooses those that would close. False where numbers
// are not finite, or a quaternion is 0.
bool Simulator::find(const Numbers& read) {
  chosen_.clear();
  for (int body = 0; body < scene_.bodies; ++body) {
    before_[body] = {read.velocity(body), read.angular_velocity(body)};
    free_[body] = free_velocity<double>(body, scene_.dt, read);
    put(free_[body], v_free_.data() + 6 * body);
    const Quaternion<double> q = read.orientation(body);
    const double square = q.w * q.w + q.x * q.x + q.y * q.y + q.z * q.z;
    if (!(square > 0 && std::isfinite(square))) return false;
    rotation_[body] = rotation_matrix(q);
  }
  if (!is_finite(v_free_.data(), 6 * scene_.bodies)) return false;
  for (int k = 0; k < scene_.contacts(); ++k) {
    const Pair& pair = scene_.pairs[k];
    Meeting& meeting = meetings_[k];
    meeting.contact = contact_of<double>(pair, read);
    meeting.rows[2] = row_of(pair, meeting.contact, meeting.contact.normal, read);
    meeting.has_tangents = meeting.chosen = false;
    meeting.separation =
        separation_of(k, meeting.contact, meeting.rows[2], free_.data(), before_.data(), threshold_, scene_, read);
    if (!std::isfinite(velocity_of(k, meeting.rows[2], free_.data()) + meeting.separation.b)) return false;
  }
  // The LCP of a pile at rest is hard to solve for only some of its contacts, which round-off would choose.
  choose(read, free_.data(), scene_.law.formulation == Formulation::kPolyhedral ? -kSlack : 0);
  return true;
}

// Solves the contacts that are chosen, and chooses more, until none closes. Leaves the velocities in v_ and after_.
Status Simulator::solve(const Numbers& read, double* unknowns, std::int8_t* states, std::int64_t& iterations) {
  if (chosen_.empty()) {
    after_ = free_;
    return Status::kSolved;
  }
  for (;;) {
    pose_problem(read);
    const Status status = solver_->solve(static_cast<int>(chosen_.size()),
                                         {A_.data(), v_free_.data(), J_.data(), b_.data(), R_.data(), mu_.data()},
                                         {v_.data(), gamma_.data(), unknowns, states});
    iterations += solver_->iterations();
    const bool is_complete = chosen_.size() == meetings_.size();
    if (status != Status::kSolved) {
      // Lemke's method may fail for some of the contacts, and not for all.
      if (scene_.law.formulation != Formulation::kPolyhedral || status == Status::kBadInput || is_complete) {
        return status;
      }
      for (Meeting& meeting : meetings_) meeting.chosen = true;
      list_chosen();
      continue;
    }
    for (int body = 0; body < scene_.bodies; ++body) after_[body] = twist_at(v_.data(), body);
    if (is_complete || !choose(read, after_.data(), kSlack)) return status;
  }
}

void Simulator::pose_problem(const Numbers& read) {
  const std::ptrdiff_t n = 6 * scene_.bodies;
  std::fill_n(J_.begin(), 3 * chosen_.size() * n, 0.0);
  double* row = J_.data();
  for (std::size_t k = 0; k < chosen_.size(); ++k) {
    const int chosen = chosen_[k];
    const Pair& pair = scene_.pairs[chosen];
    const Row<double>* const rows = this->rows(chosen, read);
    for (std::size_t i = 0; i < 3; ++i, row += n) {
      put(rows[i].body, row + 6 * pair.body);
      if (pair.other_body != Pair::kWorld) put(rows[i].other, row + 6 * pair.other_body);
    }
    b_[3 * k] = b_[3 * k + 1] = 0;
    b_[3 * k + 2] = meetings_[chosen].separation.b;
    mu_[k] = read.parameters.mu[chosen];
    if (scene_.law.formulation == Formulation::kCompliant) {
      const Regularization<double> R =
          regularization_of(delassus_of(pair, rows, inverse_.data()), read.stiffness(chosen), read.dissipation(chosen),
                            scene_.dt, scene_.law.sigma, scene_.law.beta);
      R_[3 * k] = R_[3 * k + 1] = R.tangent;
      R_[3 * k + 2] = R.normal;
    }
  }
}

// The rows of J of a pair.
const Row<double>* Simulator::rows(int k, const Numbers& read) {
  Meeting& meeting = meetings_[k];
  if (!meeting.has_tangents) {
    const Matrix<double> frame = frame_of(meeting.contact.normal);
    for (std::size_t i = 0; i < 2; ++i) meeting.rows[i] = row_of(scene_.pairs[k], meeting.contact, frame[i], read);
    meeting.has_tangents = true;
  }
  return meeting.rows;
}

double Simulator::velocity_of(int k, const Row<double>& row, const Twist<double>* nu) const {
  return rigid::velocity_of(scene_.pairs[k], row, nu);
}

// Chooses the pairs that the velocities nu bring to close, too, faster than `slack` times the largest velocity of all
// contacts. Returns whether there are any.
bool Simulator::choose(const Numbers& read, const Twist<double>* nu, double slack) {
  double largest = 0;
  for (int k = 0; k < scene_.contacts() && slack != 0; ++k) {
    const Row<double>* const all = rows(k, read);
    for (int i = 0; i < 2; ++i) largest = std::max(largest, std::abs(velocity_of(k, all[i], nu)));
    largest = std::max(largest, std::abs(velocity_of(k, all[2], nu) + meetings_[k].separation.b));
  }
  const std::size_t before = chosen_.size();
  for (int k = 0; k < scene_.contacts(); ++k) {
    Meeting& meeting = meetings_[k];
    if (meeting.chosen) continue;
    double least = -slack * largest;
    if (scene_.law.formulation == Formulation::kCompliant) {  // a contact that slides has an impulse below mu |u_t|
      const Row<double>* const all = rows(k, read);
      least += read.parameters.mu[k] * std::hypot(velocity_of(k, all[0], nu), velocity_of(k, all[1], nu));
    }
    meeting.chosen = velocity_of(k, meeting.rows[2], nu) + meeting.separation.b < least;
  }
  list_chosen();
  return chosen_.size() > before;
}

void Simulator::list_chosen() {
  chosen_.clear();
  for (int k = 0; k < scene_.contacts(); ++k) {
    if (meetings_[k].chosen) chosen_.push_back(k);
  }
}

void Simulator::advance(const Numbers& read, const State<double>& next) {
  touches_.clear();
  bool has_impact = false;
  for (std::size_t k = 0; k < chosen_.size(); ++k) {
    if (!(gamma_[3 * k + 2] > 0)) continue;
    const Separation<double>& separation = meetings_[chosen_[k]].separation;
    touches_.push_back({chosen_[k], separation.time});
    has_impact = has_impact || separation.bounces;
  }
  if (has_impact) impacts_.find(touches_);
  for (int body = 0; body < scene_.bodies; ++body) {
    const bool is_hit = has_impact && std::isfinite(impacts_.time(body));
    const Twist<double>& nu = after_[body];
    Twist<double> motion;
    if (!is_hit) {
      motion = motion_of(nu, scene_.dt);
    } else if (!impacts_.flies(body)) {
      motion = motion_of(nu, scene_.dt, impacts_.time(body), before_[body]);
    } else {
      const double time = impacts_.time(body);
      const double held = mean_over<double>(
          touches_.size(), [&](std::size_t k) { return impacts_.is_own(touches_[k], body); },
          [&](std::size_t k) { return meetings_[touches_[k].pair].separation.held; });
      const Twist<double> whole = motion_of(nu, scene_.dt, time, free_[body]);
      const Twist<double> part = held_motion(scene_.dt, time, held, before_[body], free_[body]);
      motion = {whole.linear + part.linear, whole.angular + part.angular};
    }
    put(read.position(body) + motion.linear, next.position + 3 * body);
    const Quaternion<double> orientation = turned(read.orientation(body), motion.angular);
    double* const q = next.orientation + 4 * body;
    q[0] = orientation.w;
    q[1] = orientation.x;
    q[2] = orientation.y;
    q[3] = orientation.z;
    put(nu.linear, next.velocity + 3 * body);
    put(nu.angular, next.angular_velocity + 3 * body);
  }
}

}  // namespace lcp::rigid
