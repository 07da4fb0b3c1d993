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

Adjoint::Adjoint(const Scene& scene, double rank_tolerance, Ties ties)
    : scene_(scene),
      derivative_(make_derivative(scene, rank_tolerance, ties)),
      carried_(scene.bodies),
      carried_gamma_(3 * scene.contacts()),
      state_(scene.bodies),
      rotation_(scene.bodies),
      has_rotation_(scene.bodies),
      before_(scene.bodies),
      free_(scene.bodies),
      after_(scene.bodies),
      inverse_(scene.bodies),
      rows_(3 * scene.contacts()),
      separations_(scene.contacts()),
      compliances_(scene.contacts()),
      impacts_(scene),
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
      g_R_(3 * scene.contacts()),
      g_mu_(scene.contacts()) {
  chosen_.reserve(scene.contacts());
  touches_.reserve(scene.contacts());
  touching_.reserve(scene.contacts());
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
  threshold_ = threshold_of(scene_, parameters.gravity);
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
    if (!walked.chosen[s][k]) continue;
    std::copy_n(of_gamma, 3, carried_gamma_.data() + 3 * chosen_.size());
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
  if (chosen_.empty()) {
    after_ = free_;
    seed_end(read);
    tape_.reverse(tape_.size(), 1);
  } else {
    add_contacts(read);
    const State<const double> end = walked.path.state(s);
    for (int body = 0; body < scene_.bodies; ++body) {
      for (int i = 0; i < 3; ++i) {
        v_[6 * body + i] = end.velocity[3 * body + i];
        v_[6 * body + 3 + i] = end.angular_velocity[3 * body + i];
      }
    }
    for (std::size_t k = 0; k < chosen_.size(); ++k) {
      const std::ptrdiff_t pair = chosen_[k];
      std::copy_n(walked.path.gamma[s] + 3 * pair, 3, gamma_.data() + 3 * k);
      mu_[k] = parameters.mu[pair];
    }
    const int solved = tape_.size();  // from here on the nodes depend on nu
    for (int body = 0; body < scene_.bodies; ++body) {
      const Twist<double> nu = twist_at(v_.data(), body);
      for (std::size_t i = 0; i < 3; ++i) {
        after_[body].linear[i] = Variable::independent(tape_, nu.linear[i]);
        after_[body].angular[i] = Variable::independent(tape_, nu.angular[i]);
      }
    }
    seed_end(read);
    tape_.reverse(tape_.size(), solved);
    pass_solver(s, walked, to.parameters);
    tape_.reverse(solved, 1);
  }
  for (const Leaf& leaf : leaves_) *leaf.gradient += tape_.adjoint(leaf.node);
  const auto carry = [&](const std::vector<Variable>& variables, std::vector<double>& gradient) {
    for (std::size_t i = 0; i < variables.size(); ++i) gradient[i] = tape_.adjoint(variables[i].node);
  };
  carry(state_.position, carried_.position);
  carry(state_.orientation, carried_.orientation);
  carry(state_.velocity, carried_.velocity);
  carry(state_.angular_velocity, carried_.angular_velocity);
}

// The rows of J, the separations and for compliant contact the regularisations of the chosen pairs.
void Adjoint::add_contacts(Leaves& read) {
  const bool is_compliant = scene_.law.formulation == Formulation::kCompliant;
  if (is_compliant) {
    for (int body = 0; body < scene_.bodies; ++body) inverse_[body] = inverse_mass<Variable>(body, read);
  }
  for (std::size_t k = 0; k < chosen_.size(); ++k) {
    const int chosen = chosen_[k];
    const Pair& pair = scene_.pairs[chosen];
    const Contact<Variable> contact = contact_of<Variable>(pair, read);
    const Matrix<Variable> frame = frame_of(contact.normal);
    for (std::size_t i = 0; i < 3; ++i) rows_[3 * k + i] = row_of(pair, contact, frame[i], read);
    separations_[k] =
        separation_of(chosen, contact, rows_[3 * k + 2], free_.data(), before_.data(), threshold_, scene_, read);
    if (is_compliant) {
      compliances_[k] =
          regularization_of(delassus_of(pair, rows_.data() + 3 * k, inverse_.data()), read.stiffness(chosen),
                            read.dissipation(chosen), scene_.dt, scene_.law.sigma, scene_.law.beta);
    }
  }
}

// Computes the end of the step from after_, and gives it the gradient that is carried to it.
void Adjoint::seed_end(Leaves& read) {
  touches_.clear();
  touching_.clear();
  bool has_impact = false;
  for (std::size_t k = 0; k < chosen_.size(); ++k) {
    if (!(gamma_[3 * k + 2] > 0)) continue;
    touches_.push_back({chosen_[k], separations_[k].time.value});
    touching_.push_back(static_cast<int>(k));
    has_impact = has_impact || separations_[k].bounces;
  }
  if (has_impact) impacts_.find(touches_);
  ends_.clear();
  for (int body = 0; body < scene_.bodies; ++body) {
    const Twist<Variable>& nu = after_[body];
    Twist<Variable> motion;
    if (has_impact && std::isfinite(impacts_.time(body))) {
      // Several first impacts at the same time have the mean of their derivatives.
      const Variable time = mean_over<Variable>(
          touches_.size(), [&](std::size_t k) { return impacts_.is_first(touches_[k], body); },
          [&](std::size_t k) { return separations_[touching_[k]].time; });
      if (!impacts_.flies(body)) {
        motion = motion_of(nu, scene_.dt, time, before_[body]);
      } else {
        const Variable held = mean_over<Variable>(
            touches_.size(), [&](std::size_t k) { return impacts_.is_own(touches_[k], body); },
            [&](std::size_t k) { return separations_[touching_[k]].held; });
        const Twist<Variable> whole = motion_of(nu, scene_.dt, time, free_[body]);
        const Twist<Variable> part = held_motion(scene_.dt, time, held, before_[body], free_[body]);
        motion = {whole.linear + part.linear, whole.angular + part.angular};
      }
    } else {
      motion = motion_of(nu, scene_.dt);
    }
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

// From the adjoint of nu to those of J, b, R, the free velocities, the masses and mu.
void Adjoint::pass_solver(std::int64_t s, const WalkedPath& walked, const Parameters<double>& to) {
  const std::ptrdiff_t n = 6 * scene_.bodies;
  const std::size_t rows = 3 * chosen_.size();
  std::fill_n(J_.begin(), rows * n, 0.0);
  const auto entries = [&](std::size_t i, const auto& use) {
    const Pair& pair = scene_.pairs[chosen_[i / 3]];
    const auto of_body = [&](int body, const Twist<Variable>& row) {
      for (int j = 0; j < 3; ++j) {
        use(row.linear[j], 6 * body + j);
        use(row.angular[j], 6 * body + 3 + j);
      }
    };
    of_body(pair.body, rows_[i].body);
    if (pair.other_body != Pair::kWorld) of_body(pair.other_body, rows_[i].other);
  };
  for (std::size_t i = 0; i < rows; ++i) {
    b_[i] = i % 3 == 2 ? separations_[i / 3].b.value : 0;
    R_[i] = i % 3 == 2 ? compliances_[i / 3].normal.value : compliances_[i / 3].tangent.value;
    entries(i, [&](const Variable& entry, std::ptrdiff_t j) { J_[i * n + j] = entry.value; });
  }
  for (int body = 0; body < scene_.bodies; ++body) {
    for (int i = 0; i < 3; ++i) {
      g_v_[6 * body + i] = tape_.adjoint(after_[body].linear[i].node);
      g_v_[6 * body + 3 + i] = tape_.adjoint(after_[body].angular[i].node);
    }
  }
  const auto kept = [&](const auto& series) { return series.data != nullptr ? series[s] : nullptr; };
  derivative_->adjoint(static_cast<int>(chosen_.size()),
                       {A_.data(), nullptr, J_.data(), b_.data(), R_.data(), mu_.data()},
                       {v_.data(), gamma_.data(), kept(walked.unknowns), kept(walked.states)}, g_v_.data(),
                       carried_gamma_.data(), {a_.data(), c_.data(), g_R_.data(), g_mu_.data()});

  // dL = a' (A dv_free - dA (v - v_free) + dJ' gamma) + c' (dJ v + db) + R' dR + mu' dmu.
  for (std::size_t i = 0; i < rows; ++i) {
    entries(i, [&](const Variable& entry, std::ptrdiff_t j) {
      tape_.add_adjoint(entry.node, a_[j] * gamma_[i] + c_[i] * v_[j]);
    });
    if (i % 3 == 2) tape_.add_adjoint(separations_[i / 3].b.node, c_[i]);
  }
  for (std::size_t k = 0; k < chosen_.size() && scene_.law.formulation == Formulation::kCompliant; ++k) {
    tape_.add_adjoint(compliances_[k].tangent.node, g_R_[3 * k] + g_R_[3 * k + 1]);
    tape_.add_adjoint(compliances_[k].normal.node, g_R_[3 * k + 2]);
  }
  for (std::size_t k = 0; k < chosen_.size() && to.mu != nullptr; ++k) to.mu[chosen_[k]] += g_mu_[k];
  for (int body = 0; body < scene_.bodies; ++body) {
    const Twist<double> a = twist_at(a_.data(), body), nu = twist_at(v_.data(), body);
    const Vector<double> change = nu.linear - values_of(free_[body].linear),
                         turn = nu.angular - values_of(free_[body].angular);
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
      tape_.add_adjoint(free_[body].linear[i].node, of_linear);
      tape_.add_adjoint(free_[body].angular[i].node, of_angular);
    }
    if (to.mass != nullptr) to.mass[body] -= dot(a.linear, change);
  }
}

}  // namespace lcp::rigid
