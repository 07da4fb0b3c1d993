#include "support/problems.h"

#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace lcp::testing {
namespace {

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

double normal(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }

int integer(std::mt19937_64& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

bool chance(std::mt19937_64& random, double probability) { return uniform(random, 0, 1) < probability; }

Eigen::MatrixXd normal_matrix(std::mt19937_64& random, Eigen::Index rows, Eigen::Index columns) {
  return Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return normal(random); });
}

// Lets z_i and w_i change places: a principal pivot [CPS, sec. 2.3].
void exchange(Problem& problem, int i) {
  RowMatrix& M = problem.M;
  const double pivot = M(i, i);
  const Eigen::RowVectorXd row = -M.row(i) / pivot;
  const Eigen::VectorXd column = M.col(i);
  const double q = -problem.q[i] / pivot;
  M += column * row;
  M.col(i) = column / pivot;
  M.row(i) = row;
  M(i, i) = 1 / pivot;
  problem.q += column * q;
  problem.q[i] = q;
}

// The matrix with 1 in (i, i + shift mod n).
RowMatrix cyclic(int n, int shift) {
  RowMatrix C = RowMatrix::Zero(n, n);
  for (int i = 0; i < n; ++i) C(i, (i + shift + n) % n) = 1;
  return C;
}

// x 2^exponent, within 1e300.
double scaled(double x, int exponent) { return std::clamp(std::ldexp(x, exponent), -1e300, 1e300); }

RowMatrix hostile_matrix(std::mt19937_64& random, int n) {
  const int kind = integer(random, 0, 6);
  const auto entry = [&]() -> double {
    switch (kind) {
      case 0:
        return integer(random, -3, 3);
      case 1:
        return chance(random, 0.6) ? 0 : integer(random, -2, 2);
      case 2:
        return uniform(random, 0.1, 1);
      case 3:
        return std::copysign(std::pow(10, uniform(random, -300, 300)), normal(random));
      case 4:
        return std::copysign(std::pow(10, uniform(random, -9, 9)), normal(random));
      default:
        return normal(random);
    }
  };
  RowMatrix M = RowMatrix::NullaryExpr(n, n, entry);
  const int some = integer(random, 1, n);
  switch (integer(random, 0, 9)) {
    case 0:
      M = (M + M.transpose()).eval();
      break;
    case 1:
      M = (M.leftCols(some) * M.leftCols(some).transpose()).eval();
      break;
    case 2:
      M = (M - M.transpose()).eval();
      break;
    case 3:
      M = (M.cwiseAbs().diagonal().asDiagonal().toDenseMatrix() - M.cwiseAbs()).eval();
      break;
    case 4:
      M.topLeftCorner(some, some).setZero();
      M.bottomRightCorner(n - some, n - some).setZero();
      break;
    case 5:
      M = M.triangularView<Eigen::Lower>().toDenseMatrix();
      break;
    default:
      break;
  }
  M = M.unaryExpr([](double x) { return std::isfinite(x) ? x : 1.0; }).eval();
  const int i = integer(random, 0, n - 1);
  const int j = integer(random, 0, n - 1);
  const double nearly = std::pow(10, uniform(random, -17, -6));
  switch (integer(random, 0, 11)) {
    case 0:
      M.row(i).setZero();
      break;
    case 1:
      M.col(i).setZero();
      break;
    case 2:
      M.row(i) = Eigen::RowVectorXd(M.row(j));
      break;
    case 3:
      M.col(i) = Eigen::VectorXd(M.col(j));
      break;
    case 4:
      M.row(i) = Eigen::RowVectorXd(M.row(j) * (1 + nearly));
      M(i, i) += nearly * M(i, i);
      break;
    case 5:
      M.col(i) = Eigen::VectorXd(-M.col(j) * (1 + nearly));
      M(i, i) -= nearly * M(i, i);
      break;
    default:
      break;
  }
  return M;
}

Eigen::VectorXd hostile_q(std::mt19937_64& random, const RowMatrix& M) {
  const Eigen::Index n = M.rows();
  switch (integer(random, 0, 5)) {
    case 0:
      return Eigen::VectorXd::Constant(n, -1);
    case 1:
      return -M.col(integer(random, 0, static_cast<int>(n) - 1));
    case 2:
      return Eigen::VectorXd::NullaryExpr(n, [&] { return chance(random, 0.5) ? 0 : integer(random, -2, 2); });
    case 3:
      return Eigen::VectorXd::NullaryExpr(n, [&] { return integer(random, -1, 1) * 1e-300; });
    default:
      return Eigen::VectorXd::NullaryExpr(n, [&] { return normal(random); });
  }
}

// Other units for rows, columns, M and q as a whole, by powers of two: exact but for overflow and underflow.
void rescale(std::mt19937_64& random, Planted& planted) {
  const int n = planted.problem.n();
  const auto exponent = [&] {
    constexpr int kReach[] = {0, 0, 0, 10, 60, 900};
    const int reach = kReach[integer(random, 0, 5)];
    return [&random, reach] { return integer(random, -reach, reach); };
  };
  const int of_M = exponent()();
  const int of_q = exponent()();
  const Eigen::VectorXi rows = Eigen::VectorXi::NullaryExpr(n, exponent());
  const Eigen::VectorXi columns = Eigen::VectorXi::NullaryExpr(n, exponent());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      planted.problem.M(i, j) = scaled(planted.problem.M(i, j), of_M + rows[i] + columns[j]);
    }
    planted.problem.q[i] = scaled(planted.problem.q[i], of_q + rows[i]);
    if (planted.z.size() > 0) planted.z[i] = scaled(planted.z[i], of_q - of_M - columns[i]);
  }
}

}  // namespace

double natural_residual(const Problem& problem, const Eigen::VectorXd& z) {
  const Eigen::VectorXd w = problem.M * z + problem.q;
  double residual = 0;
  for (int i = 0; i < problem.n(); ++i) {
    const double r = std::abs(std::min(z[i], w[i]));
    if (std::isnan(z[i]) || std::isnan(w[i])) return std::nan("");
    residual = std::max(residual, r);
  }
  return residual;
}

Problem sliding_block(double velocity, double limit) {
  Problem problem{RowMatrix(3, 3), Eigen::Vector3d(velocity, -velocity, limit)};
  problem.M << 1, -1, 1, -1, 1, 1, -1, -1, 0;
  return problem;
}

Problem friction_block(std::mt19937_64& random, int contacts, int directions) {
  const double mass = uniform(random, 0.2, 5);
  const Eigen::Vector3d half(uniform(random, 0.05, 0.5), uniform(random, 0.05, 0.5), uniform(random, 0.05, 0.5));
  const double dt = std::pow(10, uniform(random, -3, -1));
  const double mu = uniform(random, 0.05, 1.2);
  Eigen::Matrix<double, 6, 6> inverse_mass = Eigen::Matrix<double, 6, 6>::Zero();
  for (int i = 0; i < 3; ++i) {
    inverse_mass(i, i) = 1 / mass;
    const double inertia = mass / 3 * (half.squaredNorm() - half[i] * half[i]);
    inverse_mass(3 + i, 3 + i) = 1 / inertia;
  }
  Eigen::Matrix<double, 6, 1> velocity;
  for (int i = 0; i < 6; ++i) velocity[i] = normal(random);
  velocity[2] = -std::abs(velocity[2]) * uniform(random, 0, 1);
  velocity[2] -= dt * 9.81;
  if (uniform(random, 0, 1) < 0.2) velocity.setZero(), velocity[2] = -dt * 9.81;  // at rest: heavily degenerate

  const int n = contacts * (directions + 2);
  Eigen::MatrixXd normals(contacts, 6);
  Eigen::MatrixXd tangents(contacts * directions, 6);
  const double yaw = uniform(random, 0, 2 * std::numbers::pi);
  const Eigen::Matrix3d turn = Eigen::AngleAxisd(yaw, Eigen::Vector3d::UnitZ()).toRotationMatrix();
  const auto row = [](const Eigen::Vector3d& point, const Eigen::Vector3d& direction) {
    Eigen::Matrix<double, 1, 6> result;
    result << direction.transpose(), point.cross(direction).transpose();
    return result;
  };
  constexpr int kCorner[4][2] = {{1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
  for (int c = 0; c < contacts; ++c) {
    const Eigen::Vector3d point = turn * Eigen::Vector3d(kCorner[c][0] * half[0], kCorner[c][1] * half[1], -half[2]);
    normals.row(c) = row(point, Eigen::Vector3d::UnitZ());
    for (int k = 0; k < directions; ++k) {
      const double angle = 2 * std::numbers::pi * k / directions;
      tangents.row(c * directions + k) = row(point, Eigen::Vector3d(std::cos(angle), std::sin(angle), 0));
    }
  }

  Eigen::MatrixXd jacobian(contacts * (directions + 1), 6);
  jacobian << normals, tangents;
  const int impulses = contacts * (directions + 1);
  Problem problem{RowMatrix::Zero(n, n), Eigen::VectorXd::Zero(n)};
  problem.M.topLeftCorner(impulses, impulses) = jacobian * inverse_mass * jacobian.transpose();
  problem.q.head(impulses) = jacobian * velocity;
  for (int c = 0; c < contacts; ++c) {
    problem.M(impulses + c, c) = mu;
    for (int k = 0; k < directions; ++k) {
      const int i = contacts + c * directions + k;
      problem.M(i, impulses + c) = 1;
      problem.M(impulses + c, i) = -1;
    }
  }
  return problem;
}

Problem friction_block(std::mt19937_64& random) {
  const int contacts = std::uniform_int_distribution<int>(1, 4)(random);
  const int directions = std::uniform_int_distribution<int>(0, 1)(random) ? 8 : 4;
  return friction_block(random, contacts, directions);
}

Problem contacts_of(std::mt19937_64& random, const ContactFamily& family) {
  constexpr int kFreedoms = 6;
  std::normal_distribution<double> normal;
  const auto log_uniform = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high) + 1e-300)(random));
  };
  const auto row = [&] {
    return Eigen::VectorXd(Eigen::VectorXd::NullaryExpr(kFreedoms, [&] { return normal(random); }));
  };
  const int c = family.contacts, d = family.directions, impulses = c * (d + 1), n = impulses + c;
  Eigen::MatrixXd J(impulses, kFreedoms);  // normals, then the directions of each contact
  for (int k = 0; k < c; ++k) {
    const Eigen::VectorXd across = row(), one = (1 - family.spread) * across + family.spread * row(),
                          other = (1 - family.spread) * across + family.spread * row();
    J.row(k) = across;
    for (int l = 0; l < d / 2; ++l) {
      const double angle = 2 * std::acos(-1.0) * l / d;
      J.row(c + k * d + l) = std::cos(angle) * one + std::sin(angle) * other;
      J.row(c + k * d + d / 2 + l) = -J.row(c + k * d + l);
    }
  }
  Eigen::VectorXd mobility(kFreedoms);
  for (double& x : mobility) x = log_uniform(1 / std::sqrt(family.mass_ratio), std::sqrt(family.mass_ratio));
  Problem problem{RowMatrix::Zero(n, n), Eigen::VectorXd::Zero(n)};
  problem.M.topLeftCorner(impulses, impulses) = J * mobility.asDiagonal() * J.transpose();
  problem.q.head(impulses) = J * row();
  for (int k = 0; k < c; ++k) {
    problem.M(impulses + k, k) = log_uniform(family.least_mu, family.most_mu);
    problem.M.block(impulses + k, c + k * d, 1, d).setConstant(-1);
    problem.M.block(c + k * d, impulses + k, d, 1).setConstant(1);
    if (family.separating) problem.q[k] = std::abs(problem.q[k]);
  }
  return problem;
}

Problem positive_definite(std::mt19937_64& random, int n) {
  const RowMatrix A = RowMatrix::NullaryExpr(n, n, [&] { return normal(random); });
  return {A.transpose() * A + 0.1 * RowMatrix::Identity(n, n),
          Eigen::VectorXd::NullaryExpr(n, [&] { return normal(random); })};
}

Problem murty(int n) {
  Problem problem{RowMatrix::Identity(n, n), Eigen::VectorXd::Zero(n)};
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) problem.M(i, j) = 2;
    problem.q[i] = -std::ldexp(1.0, n + 1) + std::ldexp(1.0, n - i);  // the path through all bases needs this q
  }
  return problem;
}

Problem fathi(int n) {
  const RowMatrix L = murty(n).M;
  return {L * L.transpose(), -Eigen::VectorXd::Ones(n)};
}

Planted csizmadia(int n) {
  RowMatrix M = RowMatrix::Identity(n, n);
  M.triangularView<Eigen::StrictlyLower>().setConstant(-1);
  const Eigen::VectorXd z = Eigen::VectorXd::NullaryExpr(n, [](Eigen::Index i) { return i % 2 == 0 ? 1.0 : 0.0; });
  const Eigen::VectorXd q = Eigen::VectorXd::Ones(n) - z - M * z;
  return {{M, q}, z};
}

Planted morris(int n) {
  return {{RowMatrix::Identity(n, n) + 2 * cyclic(n, 1), -Eigen::VectorXd::Ones(n)},
          Eigen::VectorXd::Constant(n, 1.0 / 3)};
}

Planted bard_cycle() {
  return {{0.1 * RowMatrix::Identity(3, 3) + 0.2 * cyclic(3, -1), -Eigen::Vector3d::Ones()},
          Eigen::Vector3d::Constant(10.0 / 3)};
}

Planted newton_min_cycle(int n) {
  RowMatrix M = RowMatrix::Identity(n, n);
  if (n % 2 == 1) {
    M += 2 * cyclic(n, -1);
  } else {
    M += 4.0 / 3 * cyclic(n, -1) + 0.5 * cyclic(n, -2);
  }
  Problem problem{M, Eigen::VectorXd::Ones(n)};
  exchange(problem, 0);
  return {problem, Eigen::VectorXd::Unit(n, 0)};
}

Planted ahn(int n) {
  RowMatrix M = 4 * RowMatrix::Identity(n, n);
  M.diagonal(-1).setConstant(1);
  M.diagonal(1).setConstant(-2);
  const Eigen::VectorXd q = -Eigen::VectorXd::Ones(n);
  return {{M, q}, M.partialPivLu().solve(-q)};
}

Problem subset_sum(const Eigen::VectorXd& items, double target) {
  const Eigen::Index n = items.size();
  Problem problem{-RowMatrix::Identity(n + 2, n + 2), Eigen::VectorXd(n + 2)};
  problem.M.bottomRightCorner(2, 2) *= static_cast<double>(n);
  problem.M.row(n).head(n).setConstant(1);
  problem.M.row(n + 1).head(n).setConstant(-1);
  problem.q << items, -target, target;
  return problem;
}

Planted subset_sum(std::mt19937_64& random, int items) {
  const Eigen::VectorXd values = Eigen::VectorXd::NullaryExpr(items, [&] { return integer(random, 1, 100); });
  Eigen::VectorXd z = Eigen::VectorXd::Zero(items + 2);
  for (int i = 0; i < items; ++i) z[i] = chance(random, 0.5) ? values[i] : 0;
  return {subset_sum(values, z.sum()), z};
}

Problem obstacle(int rows, int columns) {
  const int n = rows * columns;
  RowMatrix M = 4 * RowMatrix::Identity(n, n);
  Eigen::VectorXd height(n);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const int k = i * columns + j;
      const double x = (i + 1.0) / (rows + 1) - 0.5;
      const double y = (j + 1.0) / (columns + 1) - 0.5;
      height[k] = 0.5 - 4 * (x * x + y * y);
      if (i + 1 < rows) M(k, k + columns) = M(k + columns, k) = -1;
      if (j + 1 < columns) M(k, k + 1) = M(k + 1, k) = -1;
    }
  }
  return {M, M * height};  // w = M u >= 0 for the membrane's height u = z + height
}

Problem bimatrix_game(std::mt19937_64& random, int rows, int columns) {
  const int n = rows + columns;
  Problem problem{RowMatrix::Zero(n, n), -Eigen::VectorXd::Ones(n)};
  const auto cost = [&] { return uniform(random, 1, 10); };
  problem.M.topRightCorner(rows, columns) = RowMatrix::NullaryExpr(rows, columns, cost);
  problem.M.bottomLeftCorner(columns, rows) = RowMatrix::NullaryExpr(columns, rows, cost);
  return problem;
}

Planted box_qp(std::mt19937_64& random, int n) {
  Planted result{{RowMatrix::Zero(2 * n, 2 * n), Eigen::VectorXd(2 * n)}, Eigen::VectorXd::Zero(2 * n)};
  RowMatrix& M = result.problem.M;
  M.topLeftCorner(n, n) = positive_definite(random, n).M;
  M.topRightCorner(n, n).setIdentity();
  M.bottomLeftCorner(n, n) = -RowMatrix::Identity(n, n);
  const Eigen::VectorXd width = Eigen::VectorXd::NullaryExpr(n, [&] { return uniform(random, 0.5, 2); });
  Eigen::VectorXd slack = Eigen::VectorXd::Zero(n);
  for (int i = 0; i < n; ++i) {
    const int bound = integer(random, -1, 1);
    const double multiplier = uniform(random, 0.1, 1);
    result.z[i] = bound < 0 ? 0 : bound > 0 ? width[i] : uniform(random, 0.1, 0.9) * width[i];
    if (bound > 0) result.z[n + i] = multiplier;
    if (bound < 0) slack[i] = multiplier;
  }
  result.problem.q << slack - M.topRows(n) * result.z, width;
  return result;
}

RowMatrix p_matrix(std::mt19937_64& random, int n) {
  const Eigen::MatrixXd K = normal_matrix(random, n, n);
  Problem problem{positive_definite(random, n).M + K - K.transpose(), Eigen::VectorXd::Zero(n)};
  for (int i = 0; i < n; ++i) {
    problem.M.row(i) *= uniform(random, 0.2, 5);
    problem.M.col(i) *= uniform(random, 0.2, 5);
    if (chance(random, 0.3)) exchange(problem, i);
  }
  return problem.M;
}

RowMatrix low_rank(std::mt19937_64& random, int n, int rank, bool skew) {
  const Eigen::MatrixXd A = normal_matrix(random, n, rank);
  RowMatrix M = A * A.transpose();
  if (!skew) return M;
  const Eigen::MatrixXd B = normal_matrix(random, n, rank);
  return M + A * B.transpose() - B * A.transpose();
}

RowMatrix copositive(std::mt19937_64& random, int n) {
  RowMatrix M = low_rank(random, n, std::max(1, n / 3), true);
  M += RowMatrix::NullaryExpr(n, n, [&] { return chance(random, 0.5) ? uniform(random, 0, 3) : 0; });
  for (int i = 0; i < n; ++i) M(i, i) += 0.1;
  return M;
}

RowMatrix z_matrix(std::mt19937_64& random, int n) {
  RowMatrix M = RowMatrix::NullaryExpr(n, n, [&] { return chance(random, 0.5) ? -uniform(random, 0, 1) : 0; });
  for (int i = 0; i < n; ++i) M(i, i) = uniform(random, -1, n);
  return M;
}

Problem infeasible(std::mt19937_64& random, int n) {
  Problem problem{z_matrix(random, n), Eigen::VectorXd::NullaryExpr(n, [&] { return normal(random); })};
  const Eigen::VectorXd y = Eigen::VectorXd::NullaryExpr(n, [&] { return uniform(random, 0.5, 2); });
  problem.M.diagonal().setZero();
  for (int j = 0; j < n; ++j) problem.M(j, j) = -uniform(random, 0, 0.99) * y.dot(problem.M.col(j)) / y[j];
  problem.q -= y * (y.dot(problem.q) + uniform(random, 0.1, 1)) / y.squaredNorm();
  return problem;
}

Planted plant(std::mt19937_64& random, const RowMatrix& M, bool ties) {
  const Eigen::Index n = M.rows();
  Eigen::VectorXd z = Eigen::VectorXd::Zero(n);
  Eigen::VectorXd w = Eigen::VectorXd::Zero(n);
  const double share = uniform(random, 0, 1);
  for (Eigen::Index i = 0; i < n; ++i) {
    if (ties && chance(random, 0.3)) continue;
    (chance(random, share) ? z : w)[i] = uniform(random, 0.1, 2);
  }
  return {{M, w - M * z}, z};
}

Planted hostile(std::mt19937_64& random, int n) {
  Planted result;
  Problem& problem = result.problem;
  problem.M = hostile_matrix(random, n);
  if (chance(random, 0.5)) {
    result = plant(random, problem.M, chance(random, 0.5));
    if (chance(random, 0.2)) result.z[0] = 1e-12, problem.q -= problem.M.col(0) * 1e-12;   // nearly a tie
    if (chance(random, 0.2)) problem.q.array() += 1e-9 * problem.q.cwiseAbs().maxCoeff();  // feasible beyond rounding
  }
  if (result.z.size() == 0 || !problem.q.allFinite()) {
    result.z.resize(0);
    problem.q = hostile_q(random, problem.M);
  }
  rescale(random, result);
  if (chance(random, 0.02)) {
    const double bad = chance(random, 0.5) ? std::nan("") : std::numeric_limits<double>::infinity();
    const int i = integer(random, 0, n - 1);
    (chance(random, 0.5) ? problem.q[i] : problem.M(i, integer(random, 0, n - 1))) = bad * normal(random);
  }
  return result;
}

Problem linear_program(const Eigen::VectorXd& c, const Eigen::MatrixXd& A, const Eigen::VectorXd& b) {
  const Eigen::Index variables = c.size();
  const Eigen::Index rows = b.size();
  Problem problem{RowMatrix::Zero(variables + rows, variables + rows), Eigen::VectorXd(variables + rows)};
  problem.M.topRightCorner(variables, rows) = -A.transpose();
  problem.M.bottomLeftCorner(rows, variables) = A;
  problem.q << c, -b;
  return problem;
}

}  // namespace lcp::testing
