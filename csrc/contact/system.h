// The linear algebra of a Problem: products with A and J, and linear systems in H = A + J' blkdiag(K_1 .. K_c) J.
#pragma once

#include <Eigen/Core>
#include <memory>
#include <vector>

namespace lcp::contact {

using Vector = Eigen::VectorXd;

class System {
 public:
  virtual ~System() = default;

  /// Copies A [n, n], of which it takes the symmetric part, and J [3 c + k, n], both row-major. The last k rows are
  /// those of constraints in one dimension, which H does not contain.
  virtual void set(const double* A, const double* J) = 0;

  virtual void multiply(const Vector& x, Vector& result) const = 0;           ///< A x
  virtual void to_contacts(const Vector& v, Vector& result) const = 0;        ///< J v
  virtual void to_bodies(const Vector& gamma, Vector& result) const = 0;      ///< J' gamma
  virtual void multiply_abs(const Vector& x, Vector& result) const = 0;       ///< |A| x
  virtual void to_contacts_abs(const Vector& v, Vector& result) const = 0;    ///< |J| v
  virtual void to_bodies_abs(const Vector& gamma, Vector& result) const = 0;  ///< |J|' gamma
  virtual void diagonal(Vector& result) const = 0;                            ///< the diagonal of A
  virtual void row_squares(const Vector& weights, Vector& result) const = 0;  ///< the diagonal of J diag(weights) J'

  /// Factors H; false where it is not positive definite. K: [c], symmetric.
  virtual bool factor(const std::vector<Eigen::Matrix3d>& K) = 0;
  virtual void solve(Vector& x) const = 0;              ///< x := H^-1 x
  virtual void inverse(Eigen::MatrixXd& to) const = 0;  ///< H^-1, [n, n]
  virtual void compliance(double* W) = 0;  ///< W [3 c + k, 3 c + k] := J H^-1 J', symmetric to the last bit

 protected:
  System() = default;
  System(const System&) = default;
  System& operator=(const System&) = default;
};

/// How often a system is factored after each `set`.
enum class Factors { kManyTimes, kOnce };

/// Chooses between a dense system and, where enough entries of A and J are 0, a sparse one (sparse_pays).
class AnySystem {
 public:
  AnySystem(Eigen::Index n, Eigen::Index contacts, Eigen::Index rows = 0, Factors factors = Factors::kManyTimes);
  System& set(const double* A, const double* J);  ///< as System::set; allocates if it chooses the sparse one

 private:
  Eigen::Index n_, contacts_, rows_;
  Factors factors_;
  std::unique_ptr<System> dense_, sparse_;
};

}  // namespace lcp::contact
