#include "identification/bilinear_program.h"

#include <IpIpoptApplication.hpp>
#include <IpSolveStatistics.hpp>
#include <IpTNLP.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "run/text.h"

namespace lcp::training {
namespace {

using Ipopt::Index;
using Ipopt::Number;

constexpr double kInfinity = 2e19;   // Ipopt takes bounds beyond 1e19 as infinite
constexpr double kGrowth = 10;       // factor from one value of rho to the next, and divisor of t
constexpr double kTolerance = 1e-8;  // Ipopt's convergence tolerance
constexpr int kMaxValues = 12;       // at most this many values of rho or t are tried

struct Derivatives {
  double value, first, second;
};

Derivatives derivatives(BilinearProgram::Function f, double x) {
  switch (f) {
    case BilinearProgram::Function::kCosine:
      return {std::cos(x), -std::sin(x), -std::cos(x)};
    case BilinearProgram::Function::kSine:
      return {std::sin(x), std::cos(x), -std::sin(x)};
    case BilinearProgram::Function::kTanh:
      break;
  }
  const double t = std::tanh(x), slope = 1 - t * t;
  return {t, slope, -2 * t * slope};
}

// The smooth program of one rho or t, for Ipopt, with exact sparse derivatives.
class SmoothProgram : public Ipopt::TNLP {
 public:
  SmoothProgram(const BilinearProgram& program) : x(program.start), program_(program) {}

  double rho = 0;     // weight of the products in the objective
  double bound = -1;  // upper bound of each product; < 0: none
  std::vector<double> x;
  Ipopt::SolverReturn status = Ipopt::INTERNAL_ERROR;
  std::function<void(Index iteration, double objective, double infeasibility)> observer;

  bool get_nlp_info(Index& n, Index& m, Index& nnz_jac, Index& nnz_hess, IndexStyleEnum& style) override {
    find_sparsity();
    n = static_cast<Index>(x.size());
    m = rows();
    nnz_jac = static_cast<Index>(jacobian_.size());
    nnz_hess = static_cast<Index>(hessian_.size());
    style = TNLP::C_STYLE;
    return true;
  }

  bool get_bounds_info(Index n, Number* x_l, Number* x_u, Index, Number* g_l, Number* g_u) override {
    for (Index i = 0; i < n; ++i) {
      x_l[i] = std::max(program_.lower[static_cast<std::size_t>(i)], -kInfinity);
      x_u[i] = std::min(program_.upper[static_cast<std::size_t>(i)], kInfinity);
    }
    Index r = 0;
    for (const auto& equation : program_.equations) g_l[r] = g_u[r] = equation.right, ++r;
    for (std::size_t k = 0; k < program_.dependences.size(); ++k) g_l[r] = g_u[r] = 0, ++r;
    for (const auto& ball : program_.balls) g_l[r] = -kInfinity, g_u[r] = ball.squared_radius, ++r;
    for (std::size_t k = 0; k < relaxed(); ++k) g_l[r] = -kInfinity, g_u[r] = bound, ++r;
    return true;
  }

  bool get_starting_point(Index n, bool, Number* start, bool, Number*, Number*, Index, bool, Number*) override {
    std::copy_n(x.begin(), n, start);
    return true;
  }

  bool eval_f(Index, const Number* at, bool, Number& value) override {
    value = objective(at);
    for (const auto& [a, b] : program_.pairs) value += rho * at[a] * at[b];
    return true;
  }

  bool eval_grad_f(Index n, const Number* at, bool, Number* gradient) override {
    for (Index i = 0; i < n; ++i) {
      const auto k = static_cast<std::size_t>(i);
      gradient[i] = program_.cost[k] + 2 * program_.weight[k] * (at[i] - program_.target[k]);
    }
    for (const auto& [a, b] : program_.pairs) {
      gradient[a] += rho * at[b];
      gradient[b] += rho * at[a];
    }
    return true;
  }

  bool eval_g(Index, const Number* at, bool, Index, Number* g) override {
    Index r = 0;
    for (const auto& equation : program_.equations) {
      double sum = 0;
      for (const auto& term : equation.terms) sum += term.factor * at[term.x] * (term.by >= 0 ? at[term.by] : 1);
      g[r++] = sum;
    }
    for (const auto& [f, argument, value] : program_.dependences) {
      g[r++] = at[value] - derivatives(f, at[argument]).value;
    }
    for (const auto& ball : program_.balls) {
      double sum = 0;
      for (std::size_t k = 0; k < ball.x.size(); ++k) sum += square(at[ball.x[k]] - ball.centre[k]);
      g[r++] = sum;
    }
    for (std::size_t k = 0; k < relaxed(); ++k) g[r++] = at[program_.pairs[k].a] * at[program_.pairs[k].b];
    return true;
  }

  bool eval_jac_g(Index, const Number* at, bool, Index, Index, Index* row, Index* column, Number* values) override {
    if (values == nullptr) return write(jacobian_, row, column);
    std::fill_n(values, jacobian_.size(), 0.);
    differentiate(
        at, 0, no_multipliers_.data(),
        [&](Index r, std::int64_t c, double value) {
          values[jacobian_.at({r, static_cast<Index>(c)})] += value;
        },
        [](std::int64_t, std::int64_t, double) {});
    return true;
  }

  bool eval_h(Index, const Number* at, bool, Number sigma, Index, const Number* lambda, bool, Index, Index* row,
              Index* column, Number* values) override {
    if (values == nullptr) return write(hessian_, row, column);
    std::fill_n(values, hessian_.size(), 0.);
    differentiate(
        at, sigma, lambda, [](Index, std::int64_t, double) {},
        [&](std::int64_t i, std::int64_t j, double value) { values[hessian_.at(lower(i, j))] += value; });
    return true;
  }

  bool intermediate_callback(Ipopt::AlgorithmMode, Index iteration, Number value, Number infeasibility, Number, Number,
                             Number, Number, Number, Number, Index, const Ipopt::IpoptData*,
                             Ipopt::IpoptCalculatedQuantities*) override {
    observer(iteration, value, infeasibility);
    return true;
  }

  void finalize_solution(Ipopt::SolverReturn end, Index n, const Number* at, const Number*, const Number*, Index,
                         const Number*, const Number*, Number, const Ipopt::IpoptData*,
                         Ipopt::IpoptCalculatedQuantities*) override {
    status = end;
    x.assign(at, at + n);
  }

  double objective(const Number* at) const {
    double sum = 0;
    for (std::size_t i = 0; i < program_.weight.size(); ++i) {
      sum += program_.cost[i] * at[i] + program_.weight[i] * square(at[i] - program_.target[i]);
    }
    return sum;
  }

  double largest_product() const {
    double most = 0;
    for (const auto& [a, b] : program_.pairs) {
      most = std::max(most, x[static_cast<std::size_t>(a)] * x[static_cast<std::size_t>(b)]);
    }
    return most;
  }

 private:
  using Place = std::pair<Index, Index>;

  static double square(double v) { return v * v; }
  static Place lower(std::int64_t i, std::int64_t j) {
    return {static_cast<Index>(std::max(i, j)), static_cast<Index>(std::min(i, j))};
  }
  std::size_t relaxed() const { return bound >= 0 ? program_.pairs.size() : 0; }
  Index rows() const {
    return static_cast<Index>(program_.equations.size() + program_.dependences.size() + program_.balls.size() +
                              relaxed());
  }

  // Calls `first` with each derivative of a constraint, (row, unknown, value), and `second` with each second derivative
  // of the Lagrangian, (unknown, unknown, value). Those of one place must be added. Their places do not depend on `at`.
  //   sigma: the weight of the objective. lambda: [rows()], the multipliers.
  template <class First, class Second>
  void differentiate(const Number* at, Number sigma, const Number* lambda, const First& first,
                     const Second& second) const {
    for (std::size_t i = 0; i < program_.weight.size(); ++i) {
      const auto k = static_cast<std::int64_t>(i);
      if (program_.weight[i] != 0) second(k, k, 2 * sigma * program_.weight[i]);
    }
    for (const auto& [a, b] : program_.pairs) second(a, b, sigma * rho);
    Index r = 0;
    for (const auto& equation : program_.equations) {
      for (const auto& [a, factor, b] : equation.terms) {
        first(r, a, factor * (b >= 0 ? at[b] : 1));
        if (b < 0) continue;
        first(r, b, factor * at[a]);
        second(a, b, lambda[r] * factor);
      }
      ++r;
    }
    for (const auto& [f, argument, value] : program_.dependences) {
      const Derivatives of_f = derivatives(f, at[argument]);
      first(r, value, 1);
      first(r, argument, -of_f.first);
      second(argument, argument, -lambda[r] * of_f.second);
      ++r;
    }
    for (const auto& ball : program_.balls) {
      for (std::size_t k = 0; k < ball.x.size(); ++k) {
        first(r, ball.x[k], 2 * (at[ball.x[k]] - ball.centre[k]));
        second(ball.x[k], ball.x[k], 2 * lambda[r]);
      }
      ++r;
    }
    for (std::size_t k = 0; k < relaxed(); ++k) {
      const auto& [a, b] = program_.pairs[k];
      first(r, a, at[b]);
      first(r, b, at[a]);
      second(a, b, lambda[r]);
      ++r;
    }
  }

  // The places of the Jacobian and of the lower triangle of the Hessian that are not always 0, in ascending order.
  void find_sparsity() {
    jacobian_.clear();
    hessian_.clear();
    no_multipliers_.assign(static_cast<std::size_t>(rows()), 0);
    differentiate(
        x.data(), 0, no_multipliers_.data(),
        [&](Index r, std::int64_t c, double) {
          jacobian_.try_emplace({r, static_cast<Index>(c)}, 0);
        },
        [&](std::int64_t i, std::int64_t j, double) { hessian_.try_emplace(lower(i, j), 0); });
    for (auto* places : {&jacobian_, &hessian_}) {
      Index k = 0;
      for (auto& place : *places) place.second = k++;
    }
  }

  static bool write(const std::map<Place, Index>& places, Index* row, Index* column) {
    for (const auto& [place, k] : places) {
      row[k] = place.first;
      column[k] = place.second;
    }
    return true;
  }

  const BilinearProgram& program_;
  std::map<Place, Index> jacobian_, hessian_;  // the numbers of the places
  std::vector<Number> no_multipliers_;         // [rows()], zeros
};

constexpr const char* kSolved = "solved";

std::string in_words(Ipopt::ApplicationReturnStatus status) {
  switch (status) {
    case Ipopt::Solve_Succeeded:
    case Ipopt::Solved_To_Acceptable_Level:
      return kSolved;
    case Ipopt::Infeasible_Problem_Detected:
      return "locally infeasible: no point nearby satisfies the constraints";
    case Ipopt::Maximum_Iterations_Exceeded:
      return "the iterations ran out";
    case Ipopt::Restoration_Failed:
      return "the constraints could not be restored";
    default:
      return "Ipopt ended with status " + std::to_string(static_cast<int>(status));
  }
}

}  // namespace

MpecSolution solve(const BilinearProgram& program, const MpecOptions& options,
                   const std::function<void(const MpecIterate&)>& progress) {
  const bool penalty = options.method == Complementarity::kPenalty;
  const Ipopt::SmartPtr<SmoothProgram> smooth = new SmoothProgram(program);
  MpecSolution solution;
  double parameter = options.first;
  smooth->observer = [&](Index k, double objective, double infeasibility) {
    if (progress) progress({solution.iterations + k, parameter, objective, infeasibility});
  };
  for (int k = 0; k < kMaxValues; ++k) {
    smooth->rho = penalty ? parameter : 0;
    smooth->bound = penalty ? -1 : parameter;
    const Ipopt::SmartPtr<Ipopt::IpoptApplication> ipopt = IpoptApplicationFactory();
    ipopt->Options()->SetIntegerValue("print_level", 0);
    ipopt->Options()->SetStringValue("sb", "yes");  // no banner
    ipopt->Options()->SetNumericValue("tol", kTolerance);
    // Ipopt relaxes bounds a little by default. A factor below 0 would make the penalised objective unbounded below.
    ipopt->Options()->SetNumericValue("bound_relax_factor", 0);
    ipopt->Options()->SetIntegerValue("max_iter", static_cast<Index>(options.max_iterations - solution.iterations));
    if (ipopt->Initialize() != Ipopt::Solve_Succeeded) {
      solution.status = "Ipopt did not start";
      break;
    }
    const Ipopt::ApplicationReturnStatus end = ipopt->OptimizeTNLP(smooth);
    if (IsValid(ipopt->Statistics())) solution.iterations += ipopt->Statistics()->IterationCount();
    solution.status = in_words(end);
    solution.largest_product = smooth->largest_product();
    if (solution.status != kSolved) break;
    if (solution.largest_product <= options.largest_product) break;
    solution.status = "the products of the pairs stay above " + short_number(options.largest_product);
    parameter *= penalty ? kGrowth : 1 / kGrowth;
  }
  solution.objective = smooth->objective(smooth->x.data());
  solution.x = smooth->x;
  return solution;
}

}  // namespace lcp::training
