// An interior point method: Newton's method along a path whose points have h_n u_n near kappa > 0 at every contact. A
// row has s = a - b with (h - lower) a and (upper - h) b near kappa, where these bounds are finite.
// From points near its end at kappa = 0, Newton's method for the law itself takes over.
//
// It is made for redundant contacts whose gaps differ by little, such as 1e-8 of the velocities. These differences
// decide which contacts carry the load. Newton's method for the law compares velocities with impulses and does not see
// them.
//
//   [NT]   Nesterov, Todd: Primal-dual interior-point methods for self-scaled cones, SIAM J. Optimization 8, 1998.
//   [VDB]  Vandenberghe: The CVXOPT linear and quadratic cone program solvers, 2010.
//   [W]    Wright: Ill-conditioning and computational error in interior methods, SIAM J. Optimization 9, 1998.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "friction/impulse_problem.h"
#include "friction/newton.h"
#include "linalg/lu.h"

namespace lcp::friction {

/// The path that is followed. Each path fails on problems that the other one solves.
enum class Path : std::int8_t {
  /// The path x o y = kappa e in the second-order cone, with x = (h_t, mu h_n) and y = (u_t, u_n / mu + |u_t|). Steps
  /// take the directions of Nesterov and Todd [NT]; x and y stay within the cone.
  kCone,
  kSmooth,  ///< the path of smooth_path.h, with h_n, u_n > 0
};

struct InteriorSettings {
  Path path;
  double start;  ///< h_n and u_n at every contact; the other parts start at 0
  /// For kCone: |u_t| counts as sqrt(|u_t|^2 + (blur kappa)^2), blur > 0, since its derivative jumps where a contact
  /// sticks. The best blur differs from problem to problem.
  double blur = 0.1;
};

/// Allocates in the constructor, and for many contacts in set().
class InteriorPoint {
 public:
  InteriorPoint(Eigen::Index n, int contacts, int rows = 0);

  /// Sets the problem in whose velocities the steps are taken, and its Impulses. Both must outlive the use of this
  /// object.
  void set(const Problem& problem, const Impulses& impulses);

  /// h: [3 c + k], the best point found; its residual is returned. h is not read. Stops at a residual of `goal`. Adds
  /// the steps, also those of Newton's method, to `steps`, and stops where these reach `most`.
  double solve(const InteriorSettings& settings, double goal, double* h, std::int64_t& steps, std::int64_t most);

 private:
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Vector = Eigen::VectorXd;

  // A Newton step at one contact, for a change du of u = B p + q, where the path has y in place of u:
  //   dh = change - K du and dy = slope du + gap.
  struct Local {
    Eigen::Matrix3d K, slope;
    Eigen::Vector3d change, gap;
  };

  // A row: the parts a and b of its velocity, which belong to the lower and the upper bound, and a Newton step, with a
  // change ds of s = B p + q:
  //   dh = change - K ds.
  struct Row {
    double a, b, da, db;
    double K, change;
    bool has_lower, has_upper;
    bool is_fixed;  // whether the interval has no inside
  };

  // blur: the size below which |u_t| is smoothed.
  void linearize_cone(Eigen::Index k, double kappa, double blur);
  void linearize_smooth(Eigen::Index k, double kappa);
  double mean_product(Path path) const;
  void start_rows(double start);
  void linearize_row(Eigen::Index r, double kappa);
  void finish_row(Eigen::Index r, double kappa);
  bool step(Path path, double kappa, double blur);
  double longest(Path path) const;
  void polish(double kappa, double goal, std::int64_t& steps, std::int64_t most);

  Eigen::Index n_;
  int contacts_;
  Impulses impulses_ = {};
  linalg::Lu lu_;
  Newton newton_;
  Matrix L_, B_;                      // A = L L' and B = J L^-T, whose rows are in the units of the Impulses: W = B B'
  Matrix KB_;                         // [3, n]
  std::vector<Local> local_;          // [c]
  std::vector<Row> at_rows_;          // [k]
  Vector p_, dp_, bodies_;            // [n]; p is L' (v - v_free), which is B' h at a solution
  Vector h_, dh_, u_, du_, rows_;     // [3 c + k]; u_ is y of contacts
  std::vector<double> trial_, best_;  // [3 c + k]
  double best_residual_ = 0;
};

}  // namespace lcp::friction
