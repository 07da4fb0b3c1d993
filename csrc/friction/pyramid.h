// Coulomb's law with a pyramid in place of each cone: the linear complementarity problem of Stewart and Trinkle.
//
//   [ST]   Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics with inelastic collisions and
//          Coulomb friction, International Journal for Numerical Methods in Engineering 39, 1996.
#pragma once

#include <vector>

#include "friction/impulse_problem.h"
#include "solver/ladder.h"

namespace lcp::friction {

/// The directions of friction, unit vectors (cosine, sine) in the tangent plane of a contact.
struct Directions {
  int count;
  const double* cosine;  ///< [count], or [c, count]
  const double* sine;
  int stride;  ///< from one contact's directions to the next contact's; 0 if all contacts have the same

  /// The unknowns of a contact: its impulses along the normal and in the directions, and its slip.
  int unknowns() const { return count + 2; }
};

/// M := (D' W D, E; diag(mu), -E', 0), [c unknowns, c unknowns], the unknowns of each contact one behind another. D
/// takes impulses to the axes (t1, t2, n), and E = 1 for the slip of a contact and its directions. W: [3 c, 3 c].
void pyramid_matrix(int contacts, const Directions& directions, const double* W, const double* mu, double* M);

/// x := D z, [3 c].
void pyramid_impulses(int contacts, const Directions& directions, const double* z, double* x);
/// z := D' x, with slips of 0.
void pyramid_unknowns(int contacts, const Directions& directions, const double* x, double* z);

/// Solves the LCP of the pyramids and turns the first direction of each contact to the friction that it found. Repeated
/// calls reduce the error of the pyramids, as long as the friction of no contact turns far from one call to the next.
class Pyramid {
 public:
  explicit Pyramid(int contacts);

  /// angle: [c], radians, the angle of the first direction of each contact.
  std::vector<double>& angle() { return angle_; }

  /// h: [3 c], the solution. mu: [c]. Turns the directions. Returns false where Lemke's method finds no solution.
  bool solve(const Impulses& problem, const double* mu, double* h);

 private:
  static constexpr int kCount = 8;

  int contacts_;
  std::vector<double> angle_, cosine_, sine_;
  Directions directions_;
  solver::Ladder lcp_;
  std::vector<double> M_, q_, z_, w_;
};

}  // namespace lcp::friction
