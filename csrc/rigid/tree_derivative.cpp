#include "rigid/tree_derivative.h"

#include <algorithm>

namespace lcp::rigid {
namespace {

using Numbers = Vector<double>;
using Square = Matrix<double>;

SpatialMotion operator+(const SpatialMotion& a, const SpatialMotion& b) {
  return {a.angular + b.angular, a.linear + b.linear};
}
SpatialMotion operator-(const SpatialMotion& a, const SpatialMotion& b) {
  return {a.angular - b.angular, a.linear - b.linear};
}
SpatialMotion operator*(double factor, const SpatialMotion& a) { return {factor * a.angular, factor * a.linear}; }
Wrench<double> operator+(const Wrench<double>& a, const Wrench<double>& b) {
  return {a.force + b.force, a.torque + b.torque};
}

// The change of a motion b that is carried along by a.
SpatialMotion cross(const SpatialMotion& a, const SpatialMotion& b) {
  return {cross(a.angular, b.angular), cross(a.angular, b.linear) + cross(a.linear, b.angular)};
}
// The change of a wrench that is carried along.
Wrench<double> cross(const SpatialMotion& a, const Wrench<double>& b) {
  return {cross(a.angular, b.force), cross(a.angular, b.torque) + cross(a.linear, b.force)};
}
double dot(const SpatialMotion& a, const Wrench<double>& b) {
  return dot(a.angular, b.torque) + dot(a.linear, b.force);
}

void add(const Square& a, Square& to) {
  for (std::size_t i = 0; i < 3; ++i) to[i] = to[i] + a[i];
}

// [a] [b], where [a] x is a x x.
Square cross_product(const Numbers& a, const Numbers& b) {
  const double along = dot(a, b);
  Square product;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) product[i][j] = b[i] * a[j] - (i == j ? along : 0);
  }
  return product;
}

// [a] A + ([a] A)' of a symmetric A, which is [a] A - A [a].
Square turned(const Numbers& a, const Square& A) {
  Square product;  // its transpose
  for (std::size_t j = 0; j < 3; ++j) product[j] = cross(a, A[j]);
  Square sum;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) sum[i][j] = product[i][j] + product[j][i];
  }
  return sum;
}

}  // namespace

void TreeDerivative::Composite::add(const Composite& other) {
  mass += other.mass;
  moment = moment + other.moment;
  rigid::add(other.inertia, inertia);
  rigid::add(other.turning, turning);
  momentum = momentum + other.momentum;
  needed = needed + other.needed;
  impulses = impulses + other.impulses;
  force = force + other.force;
  rigid::add(other.moment_of_force, moment_of_force);
}

Wrench<double> TreeDerivative::Composite::accelerated(const SpatialMotion& motion) const {
  return {mass * motion.linear - cross(moment, motion.angular),
          inertia * motion.angular + cross(moment, motion.linear)};
}

// 2 B = (v x*) I - I (v x) + (I v) x* reads the angular part alone.
Wrench<double> TreeDerivative::Composite::with_velocity(const Vector<double>& angular) const {
  return {-2.0 * cross(momentum, angular), turning * angular};
}

TreeDerivative::TreeDerivative(const Scene& scene)
    : scene_(scene),
      origins_(scene.bodies),
      screws_(scene.dofs_of_trees()),
      velocities_(scene.bodies),
      carrying_(scene.dofs_of_trees()),
      motions_(scene.bodies),
      accelerations_(scene.bodies),
      rates_(scene.dofs_of_trees()),
      composites_(scene.bodies),
      change_(scene.dofs_of_trees()) {
  for (const Joint& joint : scene.joints) {
    for (const int count : {joint.slides(), joint.turns()}) {
      const int begin = static_cast<int>(group_.size());
      group_.insert(group_.end(), count, begin);
      group_end_.insert(group_end_.end(), count, begin + count);
    }
  }
}

void TreeDerivative::set_places(const Places<double>& places) {
  places_ = &places;
  for (const Link& link : scene_.links) {
    origins_[link.body] = link.parent == Pair::kWorld ? places.positions[link.body] : origins_[link.parent];
    const int begin = link.first_dof - scene_.first_of_trees();
    for (int k = begin; k < begin + link.dofs; ++k) {
      const Screw<double>& screw = places.screws[k];
      screws_[k] = screw.turns ? SpatialMotion{screw.axis, cross(screw.point - origins_[link.body], screw.axis)}
                               : SpatialMotion{{0, 0, 0}, screw.axis};
    }
  }
}

void TreeDerivative::set_velocities(const double* velocities) {
  for (const Link& link : scene_.links) {
    SpatialMotion moving = link.parent == Pair::kWorld ? SpatialMotion{} : velocities_[link.parent];
    const int begin = link.first_dof - scene_.first_of_trees();
    for (int k = begin; k < begin + link.dofs; ++k) {
      carrying_[k] = group_[k] == k ? moving : carrying_[k - 1];
      moving = moving + velocities[k] * screws_[k];
    }
    velocities_[link.body] = moving;
  }
}

SpatialMotion TreeDerivative::turned_velocity(int body, int k) const {
  return cross(screws_[k], velocities_[body] - carrying_[k]);
}

Vector<double> TreeDerivative::center_of_mass(int body, const Parameters<const double>& parameters) const {
  return places_->positions[body] - origins_[body] +
         places_->rotations[body] * vector_at(parameters[kMassCenter], body - scene_.free());
}

// The motions of the bodies, and the rates of the degrees of freedom. Gravity counts as an acceleration of the world.
void TreeDerivative::set_rates(const Vector<double>& gravity, const double* before, const double* change) {
  for (const Link& link : scene_.links) {
    const bool is_root = link.parent == Pair::kWorld;
    SpatialMotion velocity = is_root ? SpatialMotion{} : motions_[link.parent];
    SpatialMotion acceleration = is_root ? SpatialMotion{{0, 0, 0}, -gravity} : accelerations_[link.parent];
    const int first = link.first_dof - scene_.first_of_trees();
    for (int begin = first; begin < first + link.dofs; begin = group_end_[begin]) {
      SpatialMotion relative = {}, growth = {};
      for (int k = begin; k < group_end_[begin]; ++k) {
        const SpatialMotion along = cross(velocity, screws_[k]);
        rates_[k].velocity = along;
        rates_[k].acceleration = cross(acceleration, screws_[k]) + cross(velocity, along);
        relative = relative + before[k] * screws_[k];
        growth = growth + change[k] * screws_[k];
      }
      velocity = velocity + relative;
      acceleration = acceleration + growth + cross(velocity, relative);
      for (int k = begin; k < group_end_[begin]; ++k) {
        rates_[k].by_speed = rates_[k].velocity + cross(velocity, screws_[k]);
      }
    }
    motions_[link.body] = velocity;
    accelerations_[link.body] = acceleration;
  }
}

TreeDerivative::Composite TreeDerivative::composite_of(int body, const Parameters<const double>& parameters,
                                                       const double* u, const Wrench<Variable>& impulse,
                                                       const SpatialMotion& velocity,
                                                       const SpatialMotion& acceleration) const {
  const Square& R = places_->rotations[body];
  const double mass = parameters[kMass][body];
  const Numbers center = center_of_mass(body, parameters);
  Composite own = {};
  own.mass = mass;
  own.moment = mass * center;
  const Square I = symmetric(matrix_at(parameters[kInertia], body));
  Square half;  // R I
  for (std::size_t i = 0; i < 3; ++i) half[i] = I * R[i];
  const double square = dot(center, own.moment);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      own.inertia[i][j] = dot(half[i], R[j]) + (i == j ? square : 0) - own.moment[i] * center[j];
    }
  }
  const Numbers &omega = velocity.angular, &v = velocity.linear;
  const Wrench<double> momentum = own.accelerated(velocity);
  own.momentum = momentum.force;
  own.turning = turned(omega, own.inertia);
  const Square first = cross_product(v, own.moment), second = cross_product(own.moment, v);
  const Numbers& n = momentum.torque;
  const Square spin = {{{0, -n[2], n[1]}, {n[2], 0, -n[0]}, {-n[1], n[0], 0}}};
  for (std::size_t i = 0; i < 3; ++i) own.turning[i] = own.turning[i] - first[i] - second[i] - spin[i];
  own.force = vector_at(u, 2 * body);
  own.moment_of_force = cross_product(center, own.force);
  own.needed = own.accelerated(acceleration) + cross(velocity, momentum);
  own.needed.force = own.needed.force - own.force;
  own.needed.torque = own.needed.torque - cross(center, own.force) - R * vector_at(u, 2 * body + 1);
  const Wrench<double> at_body = {(1 / scene_.dt) * values_of(impulse.force),
                                  (1 / scene_.dt) * values_of(impulse.torque)};
  own.impulses = {at_body.force, at_body.torque + cross(places_->positions[body] - origins_[body], at_body.force)};
  return own;
}

// A displacement S along a degree of freedom moves what it carries as one rigid body, but for what comes from outside:
// with the velocity v0 and the acceleration a0 of what carries it, the velocities change by S x v + v0 x S, and the
// wrench f that a body needs changes by S x* f + I (a0 x S + v0 x (v0 x S)) + 2 B (v0 x S). A force along another
// degree of freedom that is carried along does not see the rigid part.
void TreeDerivative::differentiate(const Parameters<const double>& parameters, const double* u, const double* before,
                                   const double* after, const std::vector<Wrench<Variable>>& impulses, Jacobian& to) {
  const int dofs = scene_.dofs_of_trees();
  const double dt = scene_.dt;
  for (int k = 0; k < dofs; ++k) change_[k] = (after[k] - before[k]) / dt;
  set_rates(vector_at(parameters[kGravity], 0), before, change_.data());
  for (const Link& link : scene_.links) {
    composites_[link.body] =
        composite_of(link.body, parameters, u, impulses[link.body], motions_[link.body], accelerations_[link.body]);
  }
  to.setZero(dofs, 2 * dofs);
  for (auto link = scene_.links.rbegin(); link != scene_.links.rend(); ++link) {
    const Composite& all = composites_[link->body];
    const int first = link->first_dof - scene_.first_of_trees();
    for (int i = first; i < first + link->dofs; ++i) {
      const SpatialMotion& S = screws_[i];
      const Rates& rates = rates_[i];
      const Wrench<double> inertial = all.accelerated(S);
      const Numbers turning = transposed_times(all.turning, S.angular) - 2.0 * cross(S.linear, all.momentum);
      // Contacts stay where they are, and forces on bodies keep their directions.
      const Numbers by_turn = cross(all.impulses.torque, S.angular) + cross(all.impulses.force, S.linear) -
                              transposed_times(all.moment_of_force, S.angular) - cross(S.linear, all.force);
      const Numbers by_move = cross(all.impulses.force, S.angular);
      const Wrench<double> of_forces = {-cross(all.force, S.angular), -(all.moment_of_force * S.angular)};
      const Wrench<double> by_place = all.accelerated(rates.acceleration) + all.with_velocity(rates.velocity.angular) +
                                      cross(S, all.needed) + of_forces;
      const Wrench<double> by_velocity = all.accelerated(rates.by_speed) + all.with_velocity(S.angular);
      const auto carried_by = [&](int k) {
        const SpatialMotion& along = screws_[k];
        const double place = dot(rates_[k].acceleration, inertial) + dot(rates_[k].velocity.angular, turning) +
                             dot(along.angular, by_turn) + dot(along.linear, by_move);
        const double speed = dot(rates_[k].by_speed, inertial) + dot(along.angular, turning);
        const double mass = dot(along, inertial);
        to(i, k) = -dt * place;
        to(i, dofs + k) = mass - dt * speed;
        return mass;
      };
      for (int k = group_[i]; k < group_end_[i]; ++k) carried_by(k);
      const auto carries = [&](int k) {
        const double mass = carried_by(k);
        to(k, i) = -dt * dot(screws_[k], by_place);
        to(k, dofs + i) = mass - dt * dot(screws_[k], by_velocity);
      };
      for (int k = first; k < group_[i]; ++k) carries(k);
      if (link->parent != Pair::kWorld) for_each_carrier(link->parent, carries);
    }
    if (link->parent != Pair::kWorld) composites_[link->parent].add(all);
  }
}

void TreeDerivative::add_forces(int body, const Wrench<double>& wrench, double* to) const {
  for_each_carrier(body, [&](int k) { to[k] += dot(screws_[k], wrench); });
}

void TreeDerivative::add_change(const Parameters<const double>& parameters, const double* du, double* dP) const {
  for (const Link& link : scene_.links) {
    const double* const own = du + 6 * link.body;
    if (std::all_of(own, own + 6, [](double number) { return number == 0; })) continue;
    const Numbers force = scene_.dt * vector_at(own, 0), torque = scene_.dt * vector_at(own, 1);
    add_forces(link.body,
               {force, cross(center_of_mass(link.body, parameters), force) + places_->rotations[link.body] * torque},
               dP);
  }
}

void TreeDerivative::add_gradient(const Parameters<const double>& parameters, double* to_u) const {
  for (const Link& link : scene_.links) {
    const SpatialMotion& along = velocities_[link.body];
    const Numbers force = along.linear + cross(along.angular, center_of_mass(link.body, parameters)),
                  torque = transposed_times(places_->rotations[link.body], along.angular);
    for (std::size_t i = 0; i < 3; ++i) {
      to_u[6 * link.body + i] += scene_.dt * force[i];
      to_u[6 * link.body + 3 + i] += scene_.dt * torque[i];
    }
  }
}

}  // namespace lcp::rigid
