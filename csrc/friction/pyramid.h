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

/// The rows of a problem in the LCP. Each has kUnknowns = 2 unknowns behind those of the contacts, by its bounds:
///
///   both finite      h = lower + z_1,  w_1 = s + z_2,  w_2 = upper - lower - z_1
///   one finite       h = lower + z_1,  w_1 = s,  or  h = upper - z_1,  w_1 = -s;  w_2 = 1 + z_2
///   an equation      h = z_1 - z_2,  w_1 = s,  w_2 = -s
struct PyramidRows {
  int count = 0;
  const double* lower = nullptr;  ///< [k]
  const double* upper = nullptr;  ///< [k]

  static constexpr int kUnknowns = 2;
  enum class Kind { kInterval, kAbove, kBelow, kEquation };

  Kind kind(int r) const;
  /// The impulse where the unknowns are 0.
  double base(int r) const;
};

/// The unknowns of the LCP.
inline int unknowns_of(int contacts, const Directions& directions, const PyramidRows& rows) {
  return contacts * directions.unknowns() + PyramidRows::kUnknowns * rows.count;
}

/// M := (D' W D, E; diag(mu), -E', 0), the unknowns of each contact one behind another, and then those of the rows. D
/// takes impulses to the axes (t1, t2, n), and E = 1 for the slip of a contact and its directions. W: [3 c + k, 3 c +
/// k].
void pyramid_matrix(int contacts, const Directions& directions, const PyramidRows& rows, const double* W,
                    const double* mu, double* M);

/// x := D z, [3 c + k].
void pyramid_impulses(int contacts, const Directions& directions, const PyramidRows& rows, const double* z, double* x);
/// z := D' x, with slips of 0.
void pyramid_unknowns(int contacts, const Directions& directions, const PyramidRows& rows, const double* x, double* z);
/// q := D' x for the velocities x where the impulses are `base` for rows and else 0, with the widths of intervals.
void pyramid_offsets(int contacts, const Directions& directions, const PyramidRows& rows, const double* x, double* q);

/// Solves the LCP of the pyramids and turns the first direction of each contact to the friction that it found. Repeated
/// calls reduce the error of the pyramids, as long as the friction of no contact turns far from one call to the next.
class Pyramid {
 public:
  explicit Pyramid(int contacts, int rows = 0);

  /// angle: [c], radians, the angle of the first direction of each contact.
  std::vector<double>& angle() { return angle_; }

  /// h: [3 c + k], the solution. mu: [c]. Turns the directions. Returns false where Lemke's method finds no solution.
  bool solve(const Impulses& problem, const double* mu, double* h);

 private:
  static constexpr int kCount = 8;

  int contacts_;
  PyramidRows rows_;
  std::vector<double> angle_, cosine_, sine_;
  Directions directions_;
  solver::Ladder lcp_;
  std::vector<double> M_, q_, z_, w_;
  std::vector<double> base_, u_;  // [3 c + k]
};

}  // namespace lcp::friction
