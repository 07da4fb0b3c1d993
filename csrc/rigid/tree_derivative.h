// The derivative of inverse dynamics in closed form.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "rigid/scene.h"
#include "rigid/step.h"
#include "rigid/tree.h"
#include "rigid/vectors.h"

namespace lcp::rigid {

/// A velocity of a body or a displacement of it, of the point that is at the origin of its tree: where the root is.
struct SpatialMotion {
  Vector<double> angular, linear;
};

/// What add_momentum computes for the first problem of a step, differentiated in the places of the trees and in their
/// velocities before the step [Singh, Russell, Wensing: Efficient analytical derivatives of rigid body dynamics using
/// spatial vector algebra, IEEE Robotics and Automation Letters 7, 2022]. The parameters of the trees are constants,
/// and their bodies have no drag.
///
/// A place changes by a displacement along each degree of freedom, m or rad.
class TreeDerivative {
 public:
  using Jacobian = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// scene must outlive this object.
  explicit TreeDerivative(const Scene& scene);

  /// Sets the places of a step, for all that follows; they must outlive the calls.
  void set_places(const Places<double>& places);
  /// Sets the velocities of the trees that `turned_velocity` is asked about.
  void set_velocities(const double* velocities);

  const Vector<double>& origin(int body) const { return origins_[body]; }
  /// The displacement of what degree of freedom k of the trees carries.
  const SpatialMotion& screw(int k) const { return screws_[k]; }
  /// Of a body, for the velocities of set_velocities.
  const SpatialMotion& velocity(int body) const { return velocities_[body]; }
  /// Its derivative in the place of degree of freedom k of its chain.
  SpatialMotion turned_velocity(int body, int k) const;
  /// Calls use(k) for each degree of freedom of the trees that carries a body of them.
  template <class Use>
  void for_each_carrier(int body, const Use& use) const {
    for (const Link* link = scene_.link_of(body); link != nullptr; link = scene_.link_of(link->parent)) {
      const int begin = link->first_dof - scene_.first_of_trees();
      for (int k = begin; k < begin + link->dofs; ++k) use(k);
    }
  }

  /// [d, 2 d], in the places and in the velocities before. The impulses of contacts are taken as constant.
  ///   u: inputs_of(scene) numbers. before, after: velocities of the trees. impulses: [bodies], about their origins.
  void differentiate(const Parameters<const double>& parameters, const double* u, const double* before,
                     const double* after, const std::vector<Wrench<Variable>>& impulses, Jacobian& to);

  /// Adds the forces along the degrees of freedom for a wrench on a body, about the origin of its tree.
  void add_forces(int body, const Wrench<double>& wrench, double* to) const;
  /// Adds the change of P for that of the forces on bodies, du.
  void add_change(const Parameters<const double>& parameters, const double* du, double* dP) const;
  /// Adds the gradient of the forces on bodies for that of P, which set_velocities was given.
  void add_gradient(const Parameters<const double>& parameters, double* to_u) const;

 private:
  // A body and all that it carries, about the origin of the tree.
  struct Composite {
    double mass;
    Vector<double> moment;  // of mass
    Matrix<double> inertia;
    Matrix<double> turning;  // E of B
    Vector<double> momentum;
    Wrench<double> needed;    // by the motion, less the forces on the bodies
    Wrench<double> impulses;  // of contacts, N and N m
    Vector<double> force;     // on the bodies
    Matrix<double> moment_of_force;

    void add(const Composite& other);
    Wrench<double> accelerated(const SpatialMotion& motion) const;      // I m
    Wrench<double> with_velocity(const Vector<double>& turning) const;  // 2 B m
  };
  // Of a degree of freedom: the changes of velocity and acceleration that its displacement makes beside the turn, and
  // of the acceleration for its speed.
  struct Rates {
    SpatialMotion velocity, acceleration, by_speed;
  };

  Composite composite_of(int body, const Parameters<const double>& parameters, const double* u,
                         const Wrench<Variable>& impulse, const SpatialMotion& velocity,
                         const SpatialMotion& acceleration) const;
  void set_rates(const Vector<double>& gravity, const double* before, const double* change);
  Vector<double> center_of_mass(int body, const Parameters<const double>& parameters) const;

  const Scene& scene_;
  const Places<double>* places_ = nullptr;
  std::vector<int> group_, group_end_;  // of each degree of freedom: those of its joint that turn, or slide, with it
  std::vector<Vector<double>> origins_;
  std::vector<SpatialMotion> screws_;
  std::vector<SpatialMotion> velocities_, carrying_;  // of bodies, and of what carries each degree of freedom
  std::vector<SpatialMotion> motions_, accelerations_;
  std::vector<Rates> rates_;
  std::vector<Composite> composites_;
  std::vector<double> change_;
};

}  // namespace lcp::rigid
