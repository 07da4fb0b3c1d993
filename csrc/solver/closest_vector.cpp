#include "solver/closest_vector.h"

#include <algorithm>
#include <cmath>

namespace lcp::solver {
namespace {

// Lovasz' condition, see [LLL].
constexpr double kReduced = 0.75;

// The number of swaps after which a basis is taken as it is: rounding errors could make them endless.
constexpr int kMostSwaps = 1000;

class Lattice {
 public:
  explicit Lattice(const Eigen::MatrixXd& B)
      : basis_(B),
        integers_(Eigen::MatrixXd::Identity(B.cols(), B.cols())),
        orthogonal_(B),
        squares_(B.cols()),
        factors_(Eigen::MatrixXd::Zero(B.cols(), B.cols())) {
    orthogonalize(0);
    reduce();
  }

  // Adds to s the integer combination of B's columns that is closest to `rest`.
  void approach(Eigen::VectorXd rest, Eigen::VectorXd& s) const {
    for (Eigen::Index i = basis_.cols() - 1; i >= 0; --i) {
      const double count = std::round(share(rest, i));
      rest -= count * basis_.col(i);
      s += count * integers_.col(i);
    }
  }

 private:
  // The component of x along the i-th vector of Gram and Schmidt, in units of that vector.
  double share(const Eigen::VectorXd& x, Eigen::Index i) const {
    return squares_[i] > 0 ? x.dot(orthogonal_.col(i)) / squares_[i] : 0.0;
  }

  // Computes Gram and Schmidt's vectors from the first that changed on.
  void orthogonalize(Eigen::Index first) {
    for (Eigen::Index i = first; i < basis_.cols(); ++i) {
      orthogonal_.col(i) = basis_.col(i);
      for (Eigen::Index j = 0; j < i; ++j) {
        factors_(i, j) = share(basis_.col(i), j);
        orthogonal_.col(i) -= factors_(i, j) * orthogonal_.col(j);
      }
      squares_[i] = orthogonal_.col(i).squaredNorm();
    }
  }

  void reduce() {
    int swaps = 0;
    for (Eigen::Index i = 1; i < basis_.cols() && swaps < kMostSwaps;) {
      for (Eigen::Index j = i - 1; j >= 0; --j) {
        const double count = std::round(share(basis_.col(i), j));
        basis_.col(i) -= count * basis_.col(j);
        integers_.col(i) -= count * integers_.col(j);
      }
      orthogonalize(i);
      const double factor = factors_(i, i - 1);
      if (squares_[i] >= (kReduced - factor * factor) * squares_[i - 1]) {
        ++i;
      } else {
        basis_.col(i).swap(basis_.col(i - 1));
        integers_.col(i).swap(integers_.col(i - 1));
        orthogonalize(i - 1);
        i = std::max<Eigen::Index>(1, i - 1);
        ++swaps;
      }
    }
  }

  Eigen::MatrixXd basis_, integers_, orthogonal_;
  Eigen::VectorXd squares_;
  Eigen::MatrixXd factors_;
};

}  // namespace

Eigen::VectorXd closest_vector(const Eigen::MatrixXd& B, const Eigen::VectorXd& t) {
  Eigen::VectorXd s = t.array().round();
  Lattice(B).approach(B * (t - s), s);
  return s;
}

}  // namespace lcp::solver
