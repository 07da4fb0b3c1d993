#include "linalg/equilibrate.h"

#include <Eigen/IterativeLinearSolvers>
#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lcp::linalg {
namespace {

// Each sweep halves the exponents by which rows and columns still differ.
constexpr int kSweeps = 8;

// The limits of the least-squares fit of remove_units, which is rounded to integers.
constexpr int kFitSteps = 100;
constexpr double kFitTolerance = 1e-4;

// The exponent by which one sweep scales a row whose largest entry is x times that of the matrix: half the exponent of
// x, rounded to nearest.
int half_exponent(double x) { return x > 0 ? static_cast<int>(std::lround(std::log2(x) / 2)) : 0; }

}  // namespace

void equilibrate(int n, double* A, int* r, int* c) {
  std::fill_n(r, n, 0);
  std::fill_n(c, n, 0);
  double target = 0;
  for (std::ptrdiff_t k = 0; k < static_cast<std::ptrdiff_t>(n) * n; ++k) target = std::max(target, std::abs(A[k]));
  bool changes = true;
  for (int sweep = 0; sweep < kSweeps && changes; ++sweep) {
    changes = false;
    // The rows are scaled first, then the columns of the scaled rows.
    for (const bool rows : {true, false}) {
      const int along = rows ? 1 : n;
      const int across = rows ? n : 1;
      for (int i = 0; i < n; ++i) {
        double* line = A + static_cast<std::ptrdiff_t>(i) * across;
        double largest = 0;
        for (int j = 0; j < n; ++j) largest = std::max(largest, std::abs(line[static_cast<std::ptrdiff_t>(j) * along]));
        const int exponent = half_exponent(largest / target);
        if (exponent == 0) continue;
        changes = true;
        (rows ? r : c)[i] += exponent;
        for (int j = 0; j < n; ++j) {
          double& entry = line[static_cast<std::ptrdiff_t>(j) * along];
          entry = std::ldexp(entry, -exponent);
        }
      }
    }
  }
}

// The normal equations are singular, since r + 1, c - 1 fits as well, but consistent, so that conjugate gradients solve
// them.
void remove_units(int n, double* A, int* r, int* c) {
  Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> matrix(A, n, n);
  Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(2 * n, 2 * n);
  Eigen::VectorXd sums = Eigen::VectorXd::Zero(2 * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (matrix(i, j) == 0) continue;
      const double size = std::log2(std::abs(matrix(i, j)));
      normal(i, i) += 1;
      normal(n + j, n + j) += 1;
      normal(i, n + j) = normal(n + j, i) = 1;
      sums[i] += size;
      sums[n + j] += size;
    }
  }
  Eigen::ConjugateGradient<Eigen::MatrixXd, Eigen::Lower | Eigen::Upper> gradients;
  gradients.setMaxIterations(kFitSteps).setTolerance(kFitTolerance).compute(normal);
  const Eigen::VectorXd fit = gradients.solve(sums);
  for (int i = 0; i < n; ++i) {
    r[i] = static_cast<int>(std::lround(fit[i]));
    c[i] = static_cast<int>(std::lround(fit[n + i]));
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) matrix(i, j) = std::ldexp(matrix(i, j), -r[i] - c[j]);
  }
}

}  // namespace lcp::linalg
