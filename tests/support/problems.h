// LCPs to test and to time: small ones with known answers and frictional contact of a rigid block.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <random>

namespace lcp::testing {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Problem {
  RowMatrix M;
  Eigen::VectorXd q;

  int n() const { return static_cast<int>(q.size()); }
};

/// max_i |min(z_i, (M z + q)_i)|, NaN where z has one.
double natural_residual(const Problem& problem, const Eigen::VectorXd& z);

/// One step of a rigid block on the ground, some of its corners in contact [Stewart, Trinkle, 1996; Anitescu, Potra,
/// 1997]. Unknowns: normal impulses, friction impulses along the directions of each contact, slip speeds; n =
/// contacts * (directions + 2). M is copositive for mu >= 0, and mostly singular: four corners and opposite friction
/// directions are redundant. Mass, size, pose, velocity, friction and step are random.
Problem friction_block(std::mt19937_64& random, int contacts, int directions);

/// friction_block with 1 to 4 contacts and 4 or 8 directions, n = 6..40.
Problem friction_block(std::mt19937_64& random);

/// M = A'A + I / 10 and q normal: one solution, any active set.
Problem positive_definite(std::mt19937_64& random, int n);

/// Murty's exponential example [Murty, 1988, ch. 6]: M lower triangular, 2 below the diagonal; Lemke's method with
/// d = e visits 2^n bases.
Problem murty(int n);

/// Fathi's example [Fathi, 1979]: L L' of murty's M, and q = -e. The solution is e_1.
Problem fathi(int n);

/// The optimality conditions of min c'x, A x >= b, x >= 0: z = (x, y) with the dual y.
Problem linear_program(const Eigen::VectorXd& c, const Eigen::MatrixXd& A, const Eigen::VectorXd& b);

}  // namespace lcp::testing
