// Runs of problems of one n: the SIMD kernels for what is small and plain, the careful code for the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batch/kernels.h"
#include "linalg/aligned.h"
#include "solver/active_set.h"
#include "solver/ladder.h"

namespace lcp::batch {

/// One element of a run after another, as doubles; T is double or float.
template <class T>
class Doubles {
 public:
  explicit Doubles(std::int64_t size) : size_(size), copy_(sizeof(T) == sizeof(double) ? 0 : size) {}

  const double* operator()(const BatchView<T>& run, std::int64_t b);

 private:
  std::int64_t size_;
  std::vector<double> copy_;
  const T* copied_ = nullptr;  // what copy_ holds
};

/// Solves. An element's result depends neither on the others nor on its place among them. Allocates as solver::Ladder
/// does, when the first element needs one.
template <class T>
class BatchSolver {
 public:
  BatchSolver(int n, const solver::Settings& settings);

  /// M, q, guess: `count` problems; guess.data may be nullptr. z, w: count x n; status: count.
  void solve(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess, T* z, T* w, std::int8_t* status);

 private:
  // Copies of some elements.
  struct Elements {
    std::vector<std::int64_t> of;
    std::vector<T> M, q, guess, z, w;
    std::vector<std::int8_t> status;

    void resize(std::int64_t n, std::int64_t count) {
      of.resize(count);
      M.resize(count * n * n);
      for (std::vector<T>* x : {&q, &guess, &z, &w}) x->resize(count * n);
      status.resize(count);
    }
  };

  void solve_open_as_double(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess, T* z, T* w,
                            std::int8_t* status);

  int n_;
  solver::Settings settings_;
  SolveKernel<T> enumerate_ = nullptr;
  SolveKernel<T> enumerate_as_double_ = nullptr;
  Elements open_;
  const LockstepKernels<T>* lockstep_ = nullptr;
  linalg::AlignedVector<double> perturbation_, workspace_;
  std::optional<solver::Ladder> ladder_;
  Doubles<T> M_, q_, guess_;
  std::vector<double> z_, w_;
};

/// The adjoint of the solution map, see active_set.h.
template <class T>
class BatchAdjoint {
 public:
  BatchAdjoint(int n, int free, bool tied_active);

  /// t = J' (g_z, g_w): count x n.
  void adjoint(std::int64_t count, BatchView<T> M, BatchView<T> z, BatchView<T> w, BatchView<T> g_z, BatchView<T> g_w,
               T* t);

 private:
  int n_;
  bool tied_active_;
  const SmallKernels<T>* small_ = nullptr;
  const LockstepKernels<T>* lockstep_ = nullptr;
  linalg::AlignedVector<double> workspace_;
  solver::ActiveSet active_set_;
  Doubles<T> M_, z_, w_, g_z_, g_w_;
  std::vector<double> t_;
  std::vector<std::int8_t> status_;
};

}  // namespace lcp::batch
