// Solving and differentiating a batch allocates nothing per element, whichever kernel or algorithm serves.
#include <gtest/gtest.h>

#include "batch/batch_derivative.h"
#include "batch/batch_solver.h"
#include "batch/outer_products.h"
#include "support/count_allocations.h"
#include "support/problems.h"

namespace lcp::batch {
namespace {

template <class T>
class BatchAllocationTest : public ::testing::Test {
 protected:
  static constexpr int kCount = 2000;

  // Every seventh problem has units that the kernels leave to the ladder. None is infeasible, since proofs of that
  // allocate.
  void make_problems(int n) {
    std::mt19937_64 random(31);
    M_.clear(), q_.clear();
    for (int k = 0; k < kCount; ++k) {
      auto problem = testing::positive_definite(random, n);
      if (k % 7 == 3) problem.M *= sizeof(T) == sizeof(double) ? 1e-200 : 1e-30;
      for (const double x : problem.M.template reshaped<Eigen::RowMajor>()) M_.push_back(static_cast<T>(x));
      for (const double x : problem.q) q_.push_back(static_cast<T>(x));
    }
    for (std::vector<T>* x : {&z_, &w_, &t_}) x->resize(q_.size());
    status_.resize(kCount);
    states_.resize(q_.size());
    products_.resize(M_.size());
    sum_.resize(n * n);
  }

  std::vector<T> M_, q_, z_, w_, t_, products_;
  std::vector<double> sum_;
  std::vector<std::int8_t> status_, states_;
};
using Types = ::testing::Types<double, float>;
TYPED_TEST_SUITE(BatchAllocationTest, Types);

TYPED_TEST(BatchAllocationTest, NothingIsAllocatedPerElement) {
  using T = TypeParam;
  for (const solver::Method method : {solver::Method::kAuto, solver::Method::kLemke}) {
    for (const int n : {1, 2, 3, 4, 5, 6, 8, 16, 20}) {
      this->make_problems(n);
      solver::Settings settings;
      settings.method = method;
      settings.tolerance = sizeof(T) == sizeof(double) ? 1e-9 : 1e-4;
      settings.single_precision = sizeof(T) == sizeof(float);
      BatchSolver<T> solver(n, settings);
      BatchDerivative<T> derivative(n, false);
      const auto work = [&](int count) {
        const long before = testing::allocations();
        const BatchView<T> M{this->M_.data(), false}, q{this->q_.data(), false}, z{this->z_.data(), false};
        std::int8_t* const states = this->states_.data();
        for (const BatchView<T> guess : {BatchView<T>{nullptr, false}, q}) {
          solver.solve(count, M, q, guess, {this->z_.data(), this->w_.data(), this->status_.data(), states});
        }
        derivative.adjoint(count, M, states, z, q, this->t_.data());
        derivative.tangent(count, M, states, q, this->z_.data(), this->w_.data());
        if (has_outer_products(n)) {
          outer_products(n, count, this->t_.data(), this->q_.data(), this->products_.data());
          sum_outer_products(n, count, this->t_.data(), this->q_.data(), this->sum_.data());
        }
        return testing::allocations() - before;
      };
      work(this->kCount);  // what only some elements need is made for the first of them
      EXPECT_EQ(work(50), 0) << n;
      EXPECT_EQ(work(this->kCount), 0) << n;
    }
  }
}

}  // namespace
}  // namespace lcp::batch
