// LCPs to test and to time: families of the literature, random ones with a known answer, frictional contact of a rigid
// block, and hostile ones.
//
//   [BG]     Ben Gharbia, Gilbert: Nonconvergence of the plain Newton-min algorithm for linear complementarity problems
//            with a P-matrix, Math. Programming 134, 2012.
//   [CPS]    Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
//   [Murty]  Murty: Linear Complementarity, Linear and Nonlinear Programming, Heldermann, 1988.
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

/// The problem of one unknown.
inline Problem scalar(double M, double q) { return {RowMatrix::Constant(1, 1, M), Eigen::VectorXd::Constant(1, q)}; }

/// A problem with a known solution, which is the only one where the generator says so.
struct Planted {
  Problem problem;
  Eigen::VectorXd z;
};

/// max_i |min(z_i, (M z + q)_i)|, NaN where z has one.
double natural_residual(const Problem& problem, const Eigen::VectorXd& z);

/// The traditional formulation of a sliding block: its velocity without friction, over dt g, and the friction limit mu.
Problem sliding_block(double velocity, double limit);

/// One step of a rigid block on the ground, some of its corners in contact [Stewart, Trinkle, 1996; Anitescu, Potra,
/// 1997]. Unknowns: normal impulses, friction impulses along the directions of each contact, slip speeds; n =
/// contacts * (directions + 2). M is copositive for mu >= 0, and mostly singular: four corners and opposite friction
/// directions are redundant. Mass, size, pose, velocity, friction and step are random.
Problem friction_block(std::mt19937_64& random, int contacts, int directions);

/// friction_block with 1 to 4 contacts and 4 or 8 directions, n = 6..40.
Problem friction_block(std::mt19937_64& random);

/// Contacts at random places of a body of six degrees of freedom, of which the light ones are mass_ratio times as
/// mobile as the heavy ones; mu is log-uniform. n = contacts * (directions + 2), in the order of friction_block.
struct ContactFamily {
  int contacts, directions;
  double mass_ratio, least_mu, most_mu;
  double spread = 1;        ///< of the rows of a contact: 0 would make them parallel
  bool separating = false;  ///< whether the contacts move apart
};
Problem contacts_of(std::mt19937_64& random, const ContactFamily& family);

/// M = A'A + I / 10 and q normal: one solution, any active set.
Problem positive_definite(std::mt19937_64& random, int n);

/// Murty's exponential example [Murty, ch. 6]: M lower triangular, 2 below the diagonal; Lemke's method with d = e
/// visits 2^n bases. The only solution is 2^n e_1.
Problem murty(int n);

/// Fathi's example [Fathi, Computational complexity of LCPs associated with positive definite symmetric matrices,
/// 1979]: L L' of murty's M, and q = -e. The only solution is e_1.
Problem fathi(int n);

/// Csizmadia's matrix, 1 on the diagonal and -1 below: its inverse and its handicap, which bounds the steps of
/// interior-point methods, grow as 2^n and 4^n [de Klerk, E.-Nagy, On the complexity of computing the handicap of a
/// sufficient matrix, 2011]. The only solution is (1, 0, 1, 0, ...), with w = (0, 1, 0, 1, ...).
Planted csizmadia(int n);

/// M = I + 2 C, C the cyclic permutation, q = -e, n odd [Murty, ch. 4; Morris, Randomized pivot algorithms for P-matrix
/// linear complementarity problems, 2002]: principal pivots can go in circles, and random ones take an exponential time
/// to leave them. The only solution is e / 3.
Planted morris(int n);

/// Bard's rule, exchange the most negative variable for its complement, cycles through six bases [Kostreva, Cycling in
/// linear complementarity problems, 1979]. The only solution is 10/3 e.
Planted bard_cycle();

/// [BG, sec. 3], n >= 3: from the basis { z_1 } the plain Newton-min algorithm cycles with period n, though M is a
/// P-matrix. There q = e > 0; here z_1 and w_1 have changed places, so that the cycle starts at z = 0. The only
/// solution is e_1.
Planted newton_min_cycle(int n);

/// The tridiagonal M = (1, 4, -2), q = -e [Ahn, Iterative methods for linear complementarity problems with upper bounds
/// on primary variables, 1983]. The only solution is -M^-1 q > 0.
Planted ahn(int n);

/// The subset-sum problem, whether some of the items add up to target, as an LCP [Chung, NP-completeness of the linear
/// complementarity problem, 1989]: of order items + 2. It is solvable if and only if there is such a subset, in which
/// items have z_i = items_i, and feasible if 0 <= target <= the sum of all items.
Problem subset_sum(const Eigen::VectorXd& items, double target);
Planted subset_sum(std::mt19937_64& random, int items);

/// A membrane, fixed at the rim of a unit square and lifted by a paraboloid: z is its height over the obstacle at rows
/// x columns inner points, M the five-point Laplacian, an M-matrix of that many columns' bandwidth. One solution.
Problem obstacle(int rows, int columns);

/// A bimatrix game in cost form, M = [[0, A], [B', 0]] with A, B > 0 and q = -e [CPS, 4.4.23]: solvable, since the game
/// has an equilibrium, but M is in no class that Lemke's method with d = e is sure to process.
Problem bimatrix_game(std::mt19937_64& random, int rows, int columns);

/// min x'H x / 2 + c'x, l <= x <= u, with H positive definite, as an LCP of order 2 n in z = (x - l, y), y the
/// multiplier of u. One solution.
Planted box_qp(std::mt19937_64& random, int n);

/// A P-matrix, neither symmetric nor definite: (S + K) with symmetric S > 0 and K' = -K, rows and columns scaled, some
/// variables exchanged for their complements.
RowMatrix p_matrix(std::mt19937_64& random, int n);

/// Positive semidefinite of that rank, plus a skew-symmetric matrix of like rank where skew.
RowMatrix low_rank(std::mt19937_64& random, int n, int rank, bool skew);

/// Strictly copositive, but indefinite for most n > 2: low_rank plus a nonnegative matrix of positive diagonal.
RowMatrix copositive(std::mt19937_64& random, int n);

/// Off-diagonal entries <= 0, a diagonal of any sign: feasible LCPs are solvable [Chandrasekaran, A special case of the
/// complementary pivot problem, 1970].
RowMatrix z_matrix(std::mt19937_64& random, int n);

/// A Z-matrix with y'M <= 0 and q with y'q < 0 for some y > 0: no z >= 0 has M z + q >= 0.
Problem infeasible(std::mt19937_64& random, int n);

/// q such that a random z >= 0 solves M z + q, with an active set of any size and, where ties, some z_i = w_i = 0.
/// Exact up to the rounding of q. The only solution where M is a P-matrix.
Planted plant(std::mt19937_64& random, const RowMatrix& M, bool ties = false);

/// Random problems that may break a solver: entries of 1e-300 to 1e300, zero, equal and nearly equal rows and columns,
/// low rank, integers, ties and near-ties, units of any size, sometimes NaN or infinity. z is empty, or a solution up
/// to rounding, overflow and underflow.
Planted hostile(std::mt19937_64& random, int n);

/// The optimality conditions of min c'x, A x >= b, x >= 0: z = (x, y) with the dual y.
Problem linear_program(const Eigen::VectorXd& c, const Eigen::MatrixXd& A, const Eigen::VectorXd& b);

}  // namespace lcp::testing
