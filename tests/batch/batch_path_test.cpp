#include "batch/batch_path.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "solver/ladder.h"
#include "support/problems.h"

namespace lcp::batch {
namespace {

using testing::Problem;
using Random = std::mt19937_64;

constexpr double kKappa = 1e-3;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Problems of one n and their solutions, stored one behind another.
template <class T>
struct Problems {
  explicit Problems(int size) : n(size) {}

  int n;
  std::int64_t count = 0;
  std::vector<T> M, q, z;

  // Numbers are rounded to T first, so that both ways begin with the same problem.
  void add(Problem problem) {
    for (double& x : problem.M.reshaped()) x = static_cast<T>(x);
    for (double& x : problem.q) x = static_cast<T>(x);
    Eigen::VectorXd solution(n), w(n);
    solver::Ladder ladder(n, {});
    ladder.solve(problem.M.data(), problem.q.data(), nullptr, solution.data(), w.data());
    M.insert(M.end(), problem.M.data(), problem.M.data() + n * n);
    q.insert(q.end(), problem.q.begin(), problem.q.end());
    z.insert(z.end(), solution.begin(), solution.end());
    ++count;
  }
};

// The same, one problem after another and in double precision.
class OneByOne {
 public:
  template <class T>
  OneByOne(const Problems<T>& all, std::int64_t b, std::int64_t matrix)
      : n_(all.n), M_(part(all.M, matrix, n_ * n_)), z(n_), w(n_), path_(n_, 0), derivative_(n_) {
    const std::vector<double> q = part(all.q, b, n_), z_0 = part(all.z, b, n_);
    found = path_.point(M_.data(), q.data(), z_0.data(), kKappa, z.data(), w.data());
    if (!found) {
      std::fill(z.begin(), z.end(), 0.0);
      std::fill(w.begin(), w.end(), kNaN);
    }
    derivative_.set(M_.data(), w.data(), z.data());
  }

  template <class T>
  static std::vector<double> part(const std::vector<T>& numbers, std::int64_t b, std::int64_t size) {
    return {numbers.begin() + b * size, numbers.begin() + (b + 1) * size};
  }
  std::vector<double> adjoint(const std::vector<double>& g_z, const std::vector<double>& g_w) {
    std::vector<double> t_r(n_), t_s(n_);
    derivative_.adjoint(g_z.data(), g_w.data(), t_r.data(), t_s.data());
    return t_r;
  }
  std::vector<double> tangent(const std::vector<double>& r) {
    std::vector<double> dz(n_), dw(n_);
    const std::vector<double> none(n_);
    derivative_.tangent(r.data(), none.data(), dz.data(), dw.data());
    return dz;
  }

 private:
  int n_;
  std::vector<double> M_;

 public:
  std::vector<double> z, w;
  bool found;

 private:
  solver::CentralPath path_;
  solver::PathDerivative derivative_;
};

template <class T>
class BatchPathTest : public ::testing::Test {
 protected:
  static constexpr double kTolerance = sizeof(T) == sizeof(double) ? 1e-9 : 1e-5;

  std::vector<T> random_numbers(std::int64_t count) {
    std::vector<T> numbers(count);
    for (T& x : numbers) x = static_cast<T>(std::normal_distribution<double>()(random_));
    return numbers;
  }

  static void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
    double size = 0;
    for (const double x : expected) size = std::max(size, std::abs(x));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(found[i]));
      } else {
        EXPECT_NEAR(found[i], expected[i], kTolerance * size);
      }
    }
  }

  // Compares all elements with those that are found one by one, and by a batch of their own.
  void compare(const Problems<T>& all, bool shared_M) {
    const int n = all.n;
    BatchPath<T> path(n, kKappa);
    path.find(all.count, {all.M.data(), shared_M}, {all.q.data(), false}, {all.z.data(), false});
    const std::vector<T> z(path.z().data, path.z().data + all.count * n);
    const std::vector<T> g_z = random_numbers(all.count * n), g_w = random_numbers(all.count * n);
    std::vector<T> t(all.count * n), dz(all.count * n);
    // Parts that begin anywhere, as walks ask for them.
    for (std::int64_t b = 0; b < all.count; b += 5) {
      const std::int64_t some = std::min<std::int64_t>(5, all.count - b);
      path.adjoint(b, some, g_z.data() + b * n, g_w.data() + b * n, t.data() + b * n);
      path.tangent(b, some, g_z.data() + b * n, dz.data() + b * n);
    }
    for (std::int64_t b = 0; b < all.count; ++b) {
      SCOPED_TRACE(::testing::Message() << "n = " << n << ", element " << b);
      OneByOne one(all, b, shared_M ? 0 : b);
      const auto part = [&](const std::vector<T>& numbers) { return OneByOne::part(numbers, b, n); };
      expect_near(part(z), one.z);
      expect_near(part(t), one.adjoint(part(g_z), part(g_w)));
      expect_near(part(dz), one.tangent(part(g_z)));
      BatchPath<T> alone(n, kKappa);
      const std::int64_t matrix = shared_M ? 0 : b;
      alone.find(1, {all.M.data() + matrix * n * n, true}, {all.q.data() + b * n, false},
                 {all.z.data() + b * n, false});
      EXPECT_TRUE(std::equal(z.begin() + b * n, z.begin() + (b + 1) * n, alone.z().data));
    }
  }

  Random random_{17};
};
using Types = ::testing::Types<double, float>;
TYPED_TEST_SUITE(BatchPathTest, Types);

TYPED_TEST(BatchPathTest, FindsThePointsAndDerivativesOfSingleProblems) {
  for (int n = 1; n <= 18; ++n) {  // above 16 there are no kernels
    Problems<TypeParam> all(n);
    for (int k = 0; k < 21; ++k) {
      all.add(k % 2 == 0 ? testing::positive_definite(this->random_, n)
                         : testing::plant(this->random_, testing::p_matrix(this->random_, n), true).problem);
    }
    this->compare(all, false);
    this->compare(all, true);
  }
}

TYPED_TEST(BatchPathTest, FindsThePointsOfContacts) {
  for (const int n : {4, 8}) {
    Problems<TypeParam> all(n);
    for (int k = 0; k < 19; ++k) {
      all.add(testing::plant(this->random_, testing::low_rank(this->random_, n, n / 2, true), false).problem);
    }
    this->compare(all, false);
  }
}

TYPED_TEST(BatchPathTest, DoesNotMindUnits) {
  const int n = 4;
  Problems<TypeParam> all(n);
  for (int k = 0; k < 17; ++k) {
    Problem problem = testing::positive_definite(this->random_, n);
    for (int i = 0; i < n; ++i) {
      const double unit = std::exp2(static_cast<double>(this->random_() % 17) - 8);
      problem.M.row(i) *= unit;
      problem.M.col(i) *= unit;
      problem.q[i] *= unit;
    }
    all.add(problem);
  }
  this->compare(all, false);
}

TEST(PathKernelsTest, LeaveFewProblems) {
  Random random(3);
  for (int n = 1; n <= kLockstep; ++n) {
    Problems<double> all(n);
    for (int k = 0; k < 64; ++k) all.add(testing::positive_definite(random, n));
    std::vector<double> z(all.count * n), w(all.count * n);
    std::vector<std::int8_t> status(all.count);
    linalg::AlignedVector<double> workspace(path::workspace_size(n));
    path::kernels().doubles.find(n, all.count, {all.M.data(), false}, {all.q.data(), false}, {all.z.data(), false},
                                 kKappa, workspace.data(), z.data(), w.data(), status.data());
    EXPECT_LE(std::count(status.begin(), status.end(), kLeftOver), 1) << n;
  }
}

// What has no point has the derivative 0 or NaN, and does not disturb its neighbours.
TYPED_TEST(BatchPathTest, LeavesElementsWithoutAPoint) {
  const int n = 3;
  Problems<TypeParam> all(n);
  for (int k = 0; k < 16; ++k) {
    all.add(testing::positive_definite(this->random_, n));
    if (k % 3 == 0) all.q[all.q.size() - 2] = static_cast<TypeParam>(kNaN);
    if (k % 5 == 0) all.M[all.M.size() - 1] = std::numeric_limits<TypeParam>::infinity();
  }
  this->compare(all, false);
  BatchPath<TypeParam> path(n, kKappa);
  path.find(1, {all.M.data(), false}, {all.q.data(), false}, {all.z.data(), false});
  const std::vector<TypeParam> zero(n), one(n, 1);
  std::vector<TypeParam> t(n, 7);
  path.adjoint(0, 1, zero.data(), zero.data(), t.data());
  EXPECT_EQ(t, zero);
  path.adjoint(0, 1, one.data(), zero.data(), t.data());
  EXPECT_TRUE(std::all_of(t.begin(), t.end(), [](TypeParam x) { return std::isnan(x); }));
}

}  // namespace
}  // namespace lcp::batch
