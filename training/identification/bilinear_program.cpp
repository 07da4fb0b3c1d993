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
    nnz_jac = static_cast<Index>(places_.size());
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
    for (std::size_t k = 0; k < 2 * program_.rotations.size(); ++k) g_l[r] = g_u[r] = 0, ++r;
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
      gradient[i] = 2 * program_.weight[k] * (at[i] - program_.target[k]);
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
    for (const auto& [angle, cosine, sine] : program_.rotations) {
      g[r++] = at[cosine] - std::cos(at[angle]);
      g[r++] = at[sine] - std::sin(at[angle]);
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
    if (values == nullptr) {
      for (const auto& [place, k] : places_) {
        row[k] = place.first;
        column[k] = place.second;
      }
      return true;
    }
    std::fill_n(values, places_.size(), 0.);
    Index r = 0;
    const auto put = [&](std::int64_t c, double value) { values[places_.at({r, static_cast<Index>(c)})] += value; };
    for (const auto& equation : program_.equations) {
      for (const auto& term : equation.terms) {
        put(term.x, term.factor * (term.by >= 0 ? at[term.by] : 1));
        if (term.by >= 0) put(term.by, term.factor * at[term.x]);
      }
      ++r;
    }
    for (const auto& [angle, cosine, sine] : program_.rotations) {
      put(cosine, 1);
      put(angle, std::sin(at[angle]));
      ++r;
      put(sine, 1);
      put(angle, -std::cos(at[angle]));
      ++r;
    }
    for (const auto& ball : program_.balls) {
      for (std::size_t k = 0; k < ball.x.size(); ++k) put(ball.x[k], 2 * (at[ball.x[k]] - ball.centre[k]));
      ++r;
    }
    for (std::size_t k = 0; k < relaxed(); ++k) {
      put(program_.pairs[k].a, at[program_.pairs[k].b]);
      put(program_.pairs[k].b, at[program_.pairs[k].a]);
      ++r;
    }
    return true;
  }

  bool eval_h(Index n, const Number* at, bool, Number sigma, Index, const Number* lambda, bool, Index, Index* row,
              Index* column, Number* values) override {
    if (values == nullptr) {
      for (const auto& [place, k] : hessian_) {
        row[k] = place.first;
        column[k] = place.second;
      }
      return true;
    }
    std::fill_n(values, hessian_.size(), 0.);
    const auto put = [&](std::int64_t i, std::int64_t j, double value) { values[hessian_.at(lower(i, j))] += value; };
    for (Index i = 0; i < n; ++i) {
      const double w = program_.weight[static_cast<std::size_t>(i)];
      if (w != 0) put(i, i, 2 * sigma * w);
    }
    for (const auto& [a, b] : program_.pairs) put(a, b, sigma * rho);
    Index r = 0;
    for (const auto& equation : program_.equations) {
      for (const auto& term : equation.terms) {
        if (term.by >= 0) put(term.x, term.by, lambda[r] * term.factor);
      }
      ++r;
    }
    for (const auto& [angle, cosine, sine] : program_.rotations) {
      put(angle, angle, lambda[r] * std::cos(at[angle]) + lambda[r + 1] * std::sin(at[angle]));
      r += 2;
    }
    for (const auto& ball : program_.balls) {
      for (const std::int64_t i : ball.x) put(i, i, 2 * lambda[r]);
      ++r;
    }
    for (std::size_t k = 0; k < relaxed(); ++k) put(program_.pairs[k].a, program_.pairs[k].b, lambda[r++]);
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
      sum += program_.weight[i] * square(at[i] - program_.target[i]);
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
    return static_cast<Index>(program_.equations.size() + 2 * program_.rotations.size() + program_.balls.size() +
                              relaxed());
  }

  // The sparsity of the Jacobian and of the lower triangle of the Hessian.
  void find_sparsity() {
    places_.clear();
    hessian_.clear();
    Index r = 0;
    const auto in_row = [&](std::int64_t c) { places_.try_emplace({r, static_cast<Index>(c)}, 0); };
    for (const auto& equation : program_.equations) {
      for (const auto& term : equation.terms) {
        in_row(term.x);
        if (term.by >= 0) {
          in_row(term.by);
          hessian_.try_emplace(lower(term.x, term.by), 0);
        }
      }
      ++r;
    }
    for (const auto& [angle, cosine, sine] : program_.rotations) {
      for (const std::int64_t value : {cosine, sine}) {
        in_row(value);
        in_row(angle);
        ++r;
      }
      hessian_.try_emplace(lower(angle, angle), 0);
    }
    for (const auto& ball : program_.balls) {
      for (const std::int64_t i : ball.x) {
        in_row(i);
        hessian_.try_emplace(lower(i, i), 0);
      }
      ++r;
    }
    for (std::size_t k = 0; k < program_.pairs.size(); ++k) {
      const auto& [a, b] = program_.pairs[k];
      hessian_.try_emplace(lower(a, b), 0);
      if (k >= relaxed()) continue;
      in_row(a);
      in_row(b);
      ++r;
    }
    for (std::size_t i = 0; i < program_.weight.size(); ++i) {
      if (program_.weight[i] != 0) hessian_.try_emplace(lower(static_cast<Index>(i), static_cast<Index>(i)), 0);
    }
    Index k = 0;
    for (auto& place : places_) place.second = k++;
    k = 0;
    for (auto& place : hessian_) place.second = k++;
  }

  const BilinearProgram& program_;
  std::map<Place, Index> places_, hessian_;
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
