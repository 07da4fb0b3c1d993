// Mathematical programs with complementarity constraints, solved by Ipopt.
//
//   minimise    sum_i w_i (x_i - t_i)^2
//   subject to  linear and bilinear equations,  lower <= x <= upper,  0 <= x_a perp x_b >= 0 for each pair (a, b)
//
//   [Scholtes] Scholtes: Convergence properties of a regularization scheme for mathematical programs with
//              complementarity constraints, SIAM J. Optim. 11, 2001.
//   [LLN]      Leyffer, Lopez-Calva, Nocedal: Interior methods for mathematical programs with complementarity
//              constraints, SIAM J. Optim. 17, 2006.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lcp::training {

struct BilinearProgram {
  struct Term {
    std::int64_t x;  ///< of an unknown
    double factor;
    std::int64_t by = -1;  ///< of a second unknown that multiplies it, or -1
  };
  struct Equation {
    std::vector<Term> terms;
    double right;  ///< sum of the terms = right
  };
  struct Pair {
    std::int64_t a, b;
  };
  /// sum of squares of (x_i - t_i) <= radius.
  struct Ball {
    std::vector<std::int64_t> x;
    std::vector<double> centre;
    double radius;
  };

  std::vector<double> weight, target, lower, upper, start;
  std::vector<Equation> equations;
  std::vector<Pair> pairs;
  std::vector<Ball> balls;

  /// The index of a new unknown.
  std::int64_t add(double lower_bound, double upper_bound, double from, double weighs = 0, double aim = 0);
};

enum class Complementarity {
  kPenalty,    ///< rho sum x_a x_b in the objective, rho growing tenfold until all products are small [LLN]
  kRelaxation  ///< x_a x_b <= t, t falling tenfold [Scholtes]
};

struct MpecOptions {
  Complementarity method = Complementarity::kPenalty;
  double first = 1e-3;                 ///< rho, or t
  double largest_product = 1e-8;       ///< of a pair, at which it is solved
  std::int64_t max_iterations = 3000;  ///< in all
};

struct MpecSolution {
  std::vector<double> x;
  double objective = 0;        ///< without the penalty
  double largest_product = 0;  ///< of a pair
  std::int64_t iterations = 0;
  std::string status = {};  ///< "solved", or what ended it
};

/// Where Ipopt is.
struct MpecIterate {
  std::int64_t iteration;  ///< in all
  double parameter;        ///< rho, or t
  double objective;        ///< with the penalty
  double infeasibility;    ///< the largest violation of a constraint
};

/// progress: called at every iterate.
MpecSolution solve(const BilinearProgram& program, const MpecOptions& options,
                   const std::function<void(const MpecIterate&)>& progress = nullptr);

}  // namespace lcp::training
