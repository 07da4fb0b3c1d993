#include "rigid/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
};

Simulator::Simulator(const Scene& scene, double tolerance)
    : scene_(scene),
      tolerance_(tolerance),
      ladders_(scene.contacts() + 1),
      rotation_(scene.bodies),
      before_(scene.bodies),
      free_(scene.bodies),
      after_(scene.bodies),
      meetings_(scene.contacts()),
      impacts_(scene),
      A_(36 * scene.bodies * scene.bodies),
      v_free_(6 * scene.bodies),
      v_(6 * scene.bodies),
      J_(18 * scene.contacts() * scene.bodies),
      b_(3 * scene.contacts()),
      mu_(scene.contacts()),
      gamma_(3 * scene.contacts()),
      u_(3 * scene.contacts()) {
  chosen_.reserve(scene.contacts());
  touches_.reserve(scene.contacts());
}

friction::Ladder& Simulator::ladder(int contacts) {
  std::unique_ptr<friction::Ladder>& found = ladders_[contacts];
  if (!found) {
    found = std::make_unique<friction::Ladder>(6 * scene_.bodies, contacts,
                                               friction::Limits{tolerance_, std::numeric_limits<std::int64_t>::max()});
  }
  return *found;
}

void Simulator::run(std::int64_t steps, const Parameters<const double>& parameters, const State<const double>& first,
                    Series<const double> u, const Path<double>& path, const Outcome& outcome) {
  const int bodies = scene_.bodies, contacts = scene_.contacts();
  threshold_ = threshold_of(scene_, parameters.gravity);
  set_mass_matrix(scene_, parameters, A_.data());
  std::fill(v_free_.begin(), v_free_.end(), 0.0);
  const Status of_A =
      ladder(0).solve({A_.data(), v_free_.data(), nullptr, nullptr, nullptr}, nullptr, v_.data(), nullptr, nullptr);
  bool failed = !is_finite(first.position, 3 * bodies) || !is_finite(first.orientation, 4 * bodies) ||
                !is_finite(first.velocity, 3 * bodies) || !is_finite(first.angular_velocity, 3 * bodies);
  State<const double> now = first;
  for (std::int64_t s = 0; s < steps; ++s) {
    const State<double> next = path.state(s);
    bool* const chosen = outcome.chosen[s];
    double* const gamma = path.gamma[s];
    std::int64_t& iterations = *outcome.iterations[s];
    std::fill_n(chosen, contacts, false);
    std::fill_n(gamma, 3 * contacts, 0.0);
    iterations = 0;
    Status status = Status::kBadInput;
    failed = failed || !is_finite(u[s], 6 * bodies);
    if (!failed && of_A == Status::kSolved) {
      const Numbers read = {parameters, now, u[s], rotation_.data()};
      if (find(read)) status = solve(read, iterations);
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
    meeting.normal_row = row_of(pair, meeting.contact, meeting.contact.normal, read);
    const double speed = -velocity_of(pair, meeting.normal_row, free_.data());
    const double earlier = -velocity_of(pair, meeting.normal_row, before_.data());
    meeting.separation =
        separation_of(meeting.contact.gap, speed, earlier, read.parameters.restitution[k], threshold_, scene_);
    const double opening = meeting.separation.b - speed;
    if (!std::isfinite(opening)) return false;
    meeting.chosen = opening < 0;
    if (meeting.chosen) chosen_.push_back(k);
  }
  return true;
}

// Solves the contacts that are chosen, and chooses more, until none closes. Leaves the velocities in v_ and after_.
Status Simulator::solve(const Numbers& read, std::int64_t& iterations) {
  if (chosen_.empty()) {
    after_ = free_;
    return Status::kSolved;
  }
  for (;;) {
    pose_problem(read);
    friction::Ladder& ladder = this->ladder(static_cast<int>(chosen_.size()));
    const Status status = ladder.solve({A_.data(), v_free_.data(), J_.data(), b_.data(), mu_.data()}, nullptr,
                                       v_.data(), gamma_.data(), u_.data());
    iterations += ladder.iterations();
    if (status != Status::kSolved) return status;
    for (int body = 0; body < scene_.bodies; ++body) after_[body] = twist_at(v_.data(), body);
    if (chosen_.size() == meetings_.size() || !choose_more(read)) return status;
  }
}

void Simulator::pose_problem(const Numbers& read) {
  const std::ptrdiff_t n = 6 * scene_.bodies;
  std::fill_n(J_.begin(), 3 * chosen_.size() * n, 0.0);
  double* row = J_.data();
  for (std::size_t k = 0; k < chosen_.size(); ++k) {
    const Pair& pair = scene_.pairs[chosen_[k]];
    const Meeting& meeting = meetings_[chosen_[k]];
    const Matrix<double> frame = frame_of(meeting.contact.normal);
    for (std::size_t i = 0; i < 3; ++i, row += n) {
      const Row<double> factors = i == 2 ? meeting.normal_row : row_of(pair, meeting.contact, frame[i], read);
      put(factors.body, row + 6 * pair.body);
      if (pair.other_body != Pair::kWorld) {
        put(factors.other, row + 6 * pair.other_body);
      }
    }
    b_[3 * k] = b_[3 * k + 1] = 0;
    b_[3 * k + 2] = meeting.separation.b;
    mu_[k] = read.parameters.mu[chosen_[k]];
  }
}

// Chooses the pairs that the velocities v_ bring to close, too. Returns whether there are any.
bool Simulator::choose_more(const Numbers& read) {
  double largest = 0;
  for (std::size_t i = 0; i < 3 * chosen_.size(); ++i) largest = std::max(largest, std::abs(u_[i]));
  const auto opening = [&](int k) {
    return velocity_of(scene_.pairs[k], meetings_[k].normal_row, after_.data()) + meetings_[k].separation.b;
  };
  for (int k = 0; k < scene_.contacts(); ++k) {
    const Meeting& meeting = meetings_[k];
    if (meeting.chosen) continue;
    const Matrix<double> frame = frame_of(meeting.contact.normal);
    for (std::size_t i = 0; i < 2; ++i) {
      const Row<double> row = row_of(scene_.pairs[k], meeting.contact, frame[i], read);
      largest = std::max(largest, std::abs(velocity_of(scene_.pairs[k], row, after_.data())));
    }
    largest = std::max(largest, std::abs(opening(k)));
  }
  const std::size_t before = chosen_.size();
  chosen_.clear();
  for (int k = 0; k < scene_.contacts(); ++k) {
    meetings_[k].chosen = meetings_[k].chosen || opening(k) < -kSlack * largest;
    if (meetings_[k].chosen) chosen_.push_back(k);
  }
  return chosen_.size() > before;
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
    const Twist<double> motion =
        is_hit ? motion_of(nu, scene_.dt, impacts_.time(body), before_[body]) : motion_of(nu, scene_.dt);
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
