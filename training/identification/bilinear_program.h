// Mathematical programs with complementarity constraints, solved by Ipopt.
//
//   minimise    sum_i c_i x_i + w_i (x_i - t_i)^2
//   subject to  linear and bilinear equations,  x_b = f(x_a) for some pairs and functions f,  lower <= x <= upper,
//               0 <= x_a perp x_b >= 0 for each pair (a, b)
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
    std::int64_t x;  ///< index of an unknown
    double factor;
    std::int64_t by = -1;  ///< index of a second unknown that multiplies it, or -1
  };
  struct Equation {
    std::vector<Term> terms;
    double right;  ///< the sum of the terms must equal this
  };
  struct Pair {
    std::int64_t a, b;
  };
  enum class Function { kCosine, kSine, kTanh };
  /// The equation x_value = f(x_argument).
  struct Dependence {
    Function f;
    std::int64_t argument, value;
  };
  /// The constraint sum_i (x_i - centre_i)^2 <= squared_radius.
  struct Ball {
    std::vector<std::int64_t> x;
    std::vector<double> centre;
    double squared_radius;
  };

  std::vector<double> cost, weight, target, lower, upper, start;
  std::vector<Equation> equations;
  std::vector<Dependence> dependences;
  std::vector<Pair> pairs;
  std::vector<Ball> balls;

  /// Adds an unknown and returns its index.
  std::int64_t add(double lower_bound, double upper_bound, double initial, double objective_weight = 0,
                   double objective_target = 0) {
    lower.push_back(lower_bound);
    upper.push_back(upper_bound);
    start.push_back(initial);
    cost.push_back(0);
    weight.push_back(objective_weight);
    target.push_back(objective_target);
    return static_cast<std::int64_t>(lower.size()) - 1;
  }
};

enum class Complementarity {
  kPenalty,    ///< rho sum x_a x_b in the objective, rho growing tenfold until all products are small [LLN]
  kRelaxation  ///< x_a x_b <= t, t falling tenfold [Scholtes]
};

struct MpecOptions {
  Complementarity method = Complementarity::kPenalty;
  double first = 1e-3;                 ///< initial value of rho or t
  double largest_product = 1e-8;       ///< the program is solved when no product x_a x_b is larger
  std::int64_t max_iterations = 3000;  ///< in total, for all values of rho or t
};

struct MpecSolution {
  std::vector<double> x;
  double objective = 0;        ///< without the penalty
  double largest_product = 0;  ///< of the pairs
  std::int64_t iterations = 0;
  std::string status = {};  ///< "solved", or why it is not
};

/// An iterate of Ipopt.
struct MpecIterate {
  std::int64_t iteration;  ///< counted over all values of rho or t
  double parameter;        ///< the present rho or t
  double objective;        ///< with the penalty
  double infeasibility;    ///< the largest violation of a constraint
};

/// progress: called at every iterate.
MpecSolution solve(const BilinearProgram& program, const MpecOptions& options,
                   const std::function<void(const MpecIterate&)>& progress = nullptr);

}  // namespace lcp::training
