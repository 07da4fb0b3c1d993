// Solves the LCPs of a batch: small problems by the vector kernels; all others, and those that the kernels leave, by
// the ladder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "batch/elements.h"
#include "batch/kernels.h"
#include "linalg/aligned.h"
#include "solver/ladder.h"
#include "solver/pair_states.h"

namespace lcp::batch {

/// T is the type of the numbers in memory, double or float. An element's result depends neither on the other elements
/// nor on its place among them. Allocates as Ladder does, when the first element needs one.
template <class T>
class BatchSolver {
 public:
  BatchSolver(int n, const solver::Settings& settings);

  /// Whether problems of this size go to a kernel first; all others are solved one by one.
  static bool has_kernel(int n, const solver::Settings& settings, bool has_guess);

  /// M, q, guess: `count` problems; guess.data may be nullptr. solutions: z, w count x n, NaN where an element is not
  /// solved; status: count, the values of lcp::Status; states: count x n or nullptr, see solver::PairState.
  void solve(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess, const Solutions<T>& solutions);

 private:
  // The solver, one by one, of the elements that the kernels leave.
  struct OneByOne {
    OneByOne(int n, const solver::Settings& settings)
        : ladder(n, settings),
          pair_states(n, 0, settings.single_precision),
          M(std::int64_t{n} * n),
          q(n),
          guess(n),
          z(n),
          w(n) {}

    solver::Ladder ladder;
    solver::PairStates pair_states;
    ElementReader<T> M, q, guess;
    std::vector<double> z, w;
  };

  // Copies of elements that are not next to each other in memory.
  struct Copies {
    std::vector<std::int64_t> element;
    std::vector<T> M, q, guess, z, w;
    std::vector<std::int8_t> status, states;

    void resize(std::int64_t n, std::int64_t count) {
      element.resize(count);
      M.resize(count * n * n);
      for (std::vector<T>* x : {&q, &guess, &z, &w}) x->resize(count * n);
      status.resize(count);
      states.resize(count * n);
    }
  };

  OneByOne& one_by_one();
  void find_states(std::int64_t b, BatchView<T> M, BatchView<T> q, std::int8_t* states);
  void solve_again_as_double(std::int64_t count, BatchView<T> M, BatchView<T> q, BatchView<T> guess,
                             const Solutions<T>& solutions);

  int n_;
  solver::Settings settings_;
  SolveKernel<T> enumerate_ = nullptr;
  SolveKernel<T> enumerate_as_double_ = nullptr;
  Copies copies_;
  const LockstepKernels<T>* lockstep_ = nullptr;
  linalg::AlignedVector<double> perturbation_, workspace_;
  std::optional<OneByOne> one_by_one_;
};

}  // namespace lcp::batch
