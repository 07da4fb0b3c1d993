// One step of a body on compliant, level ground, of numbers or of variables of a rigid::Tape: what
// lcp/physics/compliant_particle.h and compliant_block.h define.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "rigid/step.h"

namespace lcp::compliant {

using rigid::Matrix;
using rigid::Vector;

/// The coordinates of the particle are (x, y, z), m, those of the block (x, z, theta), m and rad.
enum class Form { kParticle, kBlock };

/// The most contacts and parameters that a body has.
inline constexpr int kMostContacts = 4;
inline constexpr int kMostParameters = 7;

constexpr int contacts_of(Form form) { return form == Form::kParticle ? 1 : 4; }

/// How many parameters there are. The particle has its mass and the gravity, the block its mass, width and height and
/// the gravity; behind these both have mu, the stiffness and the dissipation of the ground.
constexpr int parameters_of(Form form) { return form == Form::kParticle ? 5 : 7; }

/// What all trajectories share.
struct Body {
  Form form;
  double dt;           ///< s
  double sigma, beta;  ///< of lcp::RegularizationOptions
};

/// The numbers from which a step is computed.
template <class T>
struct Start {
  T parameters[kMostParameters];
  Vector<T> position, velocity;
  Vector<T> u;  ///< N, and N m for an angle
};

/// A contact of contact::Problem.
template <class T>
struct Contact {
  Matrix<T> J;  ///< the rows of the two tangents and of the normal
  T v_hat;      ///< m/s, of the normal; that of the tangents is 0
  rigid::Regularization<T> R;
};

/// The data of contact::Problem.
template <class T>
struct Problem {
  Vector<T> inertia;  ///< the diagonal of A
  Vector<T> v_free;
  T mu;               ///< of all contacts
  std::size_t count;  ///< of the contacts
  Contact<T> contacts[kMostContacts];
};

/// A point where a body touches the ground, or would.
template <class T>
struct Point {
  Matrix<T> J;
  T gap;  ///< m
};

/// Corner k of a block, which has turned by an angle with this cosine and sine.
template <class T>
Point<T> corner_of(int k, const Start<T>& start, const T& cosine, const T& sine) {
  const T across = (k % 2 == 0 ? -0.5 : 0.5) * start.parameters[1], up = (k < 2 ? -0.5 : 0.5) * start.parameters[2];
  const T r_x = cosine * across - sine * up, r_z = sine * across + cosine * up;
  return {{{{1, 0, -r_z}, {0, 0, 0}, {0, 1, r_x}}}, start.position[1] + r_z};
}

/// The mean of the diagonal of J A^-1 J', 1/kg.
///   inverse: the diagonal of A^-1.
template <class T>
T delassus_of(const Matrix<T>& J, const Vector<T>& inverse) {
  T sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) sum = sum + J[i][j] * J[i][j] * inverse[j];
  }
  return (1. / 3) * sum;
}

/// Sets the problem of a step with these of the body's contacts, one behind another.
template <class T>
void pose(const Body& body, const Start<T>& start, std::span<const int> contacts, Problem<T>& problem) {
  using std::cos;
  using std::sin;
  const bool is_block = body.form == Form::kBlock;
  const T* const parameters = start.parameters;
  const T &mass = parameters[0], &gravity = parameters[is_block ? 3 : 1];
  const T* const ground = parameters + (is_block ? 4 : 2);
  problem.inertia = {mass, mass, mass};
  if (is_block) {
    problem.inertia[2] = (1. / 12) * (mass * (parameters[1] * parameters[1] + parameters[2] * parameters[2]));
  }
  Vector<T> force = start.u, inverse;
  T& lift = force[is_block ? 1 : 2];
  lift = lift - mass * gravity;
  for (std::size_t i = 0; i < 3; ++i) {
    inverse[i] = 1 / problem.inertia[i];
    problem.v_free[i] = start.velocity[i] + body.dt * (inverse[i] * force[i]);
  }
  problem.mu = ground[0];
  problem.count = contacts.size();
  if (contacts.empty()) return;
  T cosine = 1, sine = 0;
  if (is_block) {
    cosine = cos(start.position[2]);
    sine = sin(start.position[2]);
  }
  for (std::size_t k = 0; k < contacts.size(); ++k) {
    const Point<T> point = is_block ? corner_of(contacts[k], start, cosine, sine)
                                    : Point<T>{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, start.position[2]};
    problem.contacts[k] = {
        point.J, -rigid::compliant_closing(point.gap, ground[2], body.dt),
        rigid::regularization_of(delassus_of(point.J, inverse), ground[1], ground[2], body.dt, body.sigma, body.beta)};
  }
}

}  // namespace lcp::compliant
