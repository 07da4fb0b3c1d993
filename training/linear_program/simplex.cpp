#include "linear_program/simplex.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <coin/ClpCholeskyBase.hpp>
#include <coin/ClpEventHandler.hpp>
#include <coin/ClpInterior.hpp>
#include <coin/ClpMessage.hpp>
#include <coin/ClpSimplex.hpp>
#include <coin/CoinMessageHandler.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "run/program.h"

namespace lcp::training {
namespace {

using at::Tensor;

constexpr double kTolerance = 1e-10;         // the simplex method's tolerance of constraints and of reduced costs
constexpr double kInteriorTolerance = 1e-9;  // the same of the interior point method
constexpr double kGap = 1e-6;                // relative gap and violation with which an interior point is accepted
constexpr double kWidth = 1e-6;              // an optimal set that is narrower in a direction counts as flat there
constexpr double kBox = 1e3;  // half the width of the box about one solution to which an unbounded set is cut
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A tensor with the shape of `like`, filled from an array.
Tensor tensor_of(const double* values, const Tensor& like) {
  Tensor x = at::empty_like(like);
  std::copy_n(values, x.numel(), x.data_ptr<double>());
  return x;
}

// Clp ends the process where a number is larger than its own infinities.
constexpr double kLargest = 1e20;

void check_size(const char* what, const Tensor& x) {
  const Tensor too_large = x.abs().masked_select(x.isnan() | ((x.abs() > kLargest) & x.isfinite()));
  if (too_large.numel() == 0) return;
  throw UsageError("the linear program has " + std::string(what) + " of " + short_number(too_large[0].item<double>()) +
                   ", and its solver takes numbers below 1e20: check the units of the data and --mass, --l1 and "
                   "--epsilon");
}

// Loads a program whose constraints are bounded by program.bound below and by `ceiling` above.
void load(const LinearProgram& program, const Tensor& ceiling, double tolerance, ClpModel& model) {
  check_size("a cost", program.cost);
  check_size("a coefficient", program.constraints);
  check_size("a bound", at::cat({program.bound, program.lower, program.upper}));
  const auto columns = static_cast<int>(program.cost.size(0)), rows = static_cast<int>(program.bound.size(0));
  std::vector<CoinBigIndex> start = {0};
  std::vector<int> index;
  std::vector<double> value;
  const std::vector<double> by_column = entries_of(program.constraints.t());
  for (std::size_t k = 0; k < by_column.size(); ++k) {
    if (by_column[k] != 0) {
      index.push_back(static_cast<int>(k) % rows);
      value.push_back(by_column[k]);
    }
    if ((k + 1) % rows == 0) start.push_back(static_cast<CoinBigIndex>(index.size()));
  }
  model.loadProblem(columns, rows, start.data(), index.data(), value.data(), entries_of(program.lower).data(),
                    entries_of(program.upper).data(), entries_of(program.cost).data(), entries_of(program.bound).data(),
                    entries_of(ceiling).data());
  model.setLogLevel(0);
  model.setPrimalTolerance(tolerance);
  model.setDualTolerance(tolerance);
}

LinearProgramStatus status_of(const ClpModel& model) {
  switch (model.status()) {
    case 0:
      return LinearProgramStatus::kSolved;
    case 1:
      return LinearProgramStatus::kInfeasible;
    case 2:
      return LinearProgramStatus::kUnbounded;
    default:
      return LinearProgramStatus::kStopped;
  }
}

LinearProgramSolution solution(LinearProgramStatus status, const Tensor& x, const Tensor& cost) {
  return {status, x, (cost * x).sum().item<double>()};
}

// Has Clp call the observer at every iterate of the simplex method.
class SimplexEvents : public ClpEventHandler {
 public:
  explicit SimplexEvents(LinearProgramObserver observer) : observer_(std::move(observer)) {}
  ClpEventHandler* clone() const override { return new SimplexEvents(*this); }

  int event(Event event) override {
    if (event == endOfIteration) tell();
    return ClpEventHandler::event(event);
  }

 private:
  // Clp's own values contain penalties, or are those of its last factorisation.
  void tell() const {
    const double* const x = model_->solutionRegion(1);
    const double* const rows = model_->solutionRegion(0);
    double objective = 0, violations = 0;
    for (int j = 0; j < model_->numberColumns(); ++j) objective += model_->objective()[j] * x[j];
    for (int i = 0; i < model_->numberRows(); ++i) violations += std::max(0., model_->rowLower()[i] - rows[i]);
    observer_(model_->numberIterations(), objective, violations);
  }

  LinearProgramObserver observer_;
};

// Has Clp call the observer at every iterate of the interior point method, of which it has messages but no events.
class InteriorMessages : public CoinMessageHandler {
 public:
  explicit InteriorMessages(LinearProgramObserver observer) : observer_(std::move(observer)) {}
  CoinMessageHandler* clone() const override { return new InteriorMessages(*this); }

  // Nothing is printed: the log level 0 keeps all other messages away.
  void attach_to(ClpInterior& model) {
    setLogLevel(0);
    model.passInMessageHandler(this);
    model.messagesPointer()->setDetailMessage(0, number_);
  }

  int print() override {
    if (currentMessage().externalNumber() == number_) observer_(intValue(0), doubleValue(0), doubleValue(2));
    return 0;
  }

 private:
  LinearProgramObserver observer_;
  int number_ = ClpMessage().message_[CLP_BARRIER_ITERATION]->externalNumber();
};

// Minimises one cost after another over the feasible set of one program.
class Simplex {
 public:
  Simplex(const LinearProgram& program, const LinearProgramObserver& observer) {
    load(program, at::full_like(program.bound, kInfinity), kTolerance, model_);
    model_.scaling(0);            // the tolerances are those of the unknowns as they are
    model_.setPerturbation(100);  // none
    if (!observer) return;
    const SimplexEvents events(observer);
    model_.passInEventHandler(&events);  // which the model copies
  }

  // Restricts the feasible set to the points that are optimal for the last cost. By complementary slackness these
  // satisfy every row and every bound whose multiplier is not 0 with equality.
  void stay_optimal() {
    const double* const multipliers = model_.dualRowSolution();
    const double* const reduced = model_.dualColumnSolution();
    const double negligible = kTolerance * cost_.abs().max().item<double>();
    for (int i = 0; i < model_.numberRows(); ++i) {
      if (multipliers[i] > negligible) model_.setRowUpper(i, model_.rowLower()[i]);
    }
    for (int j = 0; j < model_.numberColumns(); ++j) {
      if (reduced[j] > negligible) model_.setColumnUpper(j, model_.columnLower()[j]);
      if (reduced[j] < -negligible) model_.setColumnLower(j, model_.columnUpper()[j]);
    }
  }

  // Restricts the feasible set to points within kBox of x.
  void stay_near(const Tensor& x) {
    for (int j = 0; j < model_.numberColumns(); ++j) {
      const double here = x[j].item<double>();
      model_.setColumnBounds(j, std::max(model_.columnLower()[j], here - kBox),
                             std::min(model_.columnUpper()[j], here + kBox));
    }
  }

  LinearProgramSolution minimise(const Tensor& cost) {
    check_size("a cost", cost);
    cost_ = cost;
    model_.chgObjCoefficients(entries_of(cost).data());
    model_.primal();
    if (model_.status() == 0) model_.primal();  // a second solve, from the optimal basis, removes errors of about 1e-12
    return solution(status_of(model_), tensor_of(model_.primalColumnSolution(), cost), cost);
  }

 private:
  ClpSimplex model_;
  Tensor cost_;
};

// Solves the dual program, whose normal equations have one row for each unknown and not one for each constraint:
//
//   maximise b'y  subject to  y >= 0,  A'y = c where x is free,  A'y <= c where x >= 0.
//
// Each x_i is the multiplier of its row.
LinearProgramSolution solve_dual(const LinearProgram& program, const LinearProgramObserver& observer) {
  const Tensor bounded = program.lower.isfinite(), fixed = program.lower == program.upper;
  TORCH_CHECK((fixed | program.upper.isinf()).all().item<bool>(), "an unknown has an upper bound");
  const Tensor shift = at::where(bounded, program.lower, 0), unknown = fixed.logical_not().nonzero().squeeze(-1);
  const Tensor A = program.constraints.index_select(1, unknown), c = program.cost.index_select(0, unknown);
  const Tensor b = program.bound - (program.constraints * shift).sum(-1);
  const LinearProgram dual = {-b, A.t(), at::where(bounded.index_select(0, unknown), -kInfinity, c), at::zeros_like(b),
                              at::full_like(b, kInfinity)};
  // Clp minimises -b'y, and the objective of the whole program is b'y + cost'shift.
  const double constant = (program.cost * shift).sum().item<double>();
  InteriorMessages messages(
      [&](std::int64_t iteration, double negative, double gap) { observer(iteration, constant - negative, gap); });
  ClpInterior model;
  load(dual, c, kInteriorTolerance, model);
  if (observer) messages.attach_to(model);
  model.setCholesky(new ClpCholeskyBase);  // which the model deletes
  model.primalDual();
  const Tensor y = tensor_of(model.primalColumnSolution(), b), x = -tensor_of(model.dualRowSolution(), c);

  // Clp reports some points as optimal that are not.
  const double objective = (c * x).sum().item<double>();
  const double gap = std::abs(objective - (b * y).sum().item<double>());
  const double violation = (b - (A * x).sum(-1)).max().item<double>();
  const bool solved = model.status() == 0 && std::max(gap, violation) <= kGap * (1 + std::abs(objective));
  return solution(solved ? LinearProgramStatus::kSolved : LinearProgramStatus::kStopped, shift.index_add(0, unknown, x),
                  program.cost);
}

}  // namespace

LinearProgramSolution solve(const LinearProgram& program, LinearProgramMethod method,
                            const LinearProgramObserver& observer) {
  return method == LinearProgramMethod::kSimplex ? Simplex(program, observer).minimise(program.cost)
                                                 : solve_dual(program, observer);
}

OptimalSet optimal_set(const LinearProgram& program, std::int64_t unknowns, const LinearProgramObserver& observer) {
  Simplex simplex(program, observer);
  const LinearProgramSolution best = simplex.minimise(program.cost);
  TORCH_CHECK(best.status == LinearProgramStatus::kSolved, "the program has no solution");
  simplex.stay_optimal();
  const Tensor unit = at::eye(program.cost.size(0), at::kDouble);
  const auto least = [&](const Tensor& cost) {
    const LinearProgramSolution end = simplex.minimise(cost);
    return end.status == LinearProgramStatus::kUnbounded ? -kInfinity : end.objective;
  };
  OptimalSet set{at::empty({unknowns}, at::kDouble), at::empty({unknowns}, at::kDouble), {}};
  for (std::int64_t j = 0; j < unknowns; ++j) {
    set.lower[j] = least(unit[j]);
    set.upper[j] = 0 - least(-unit[j]);
  }

  // Each direction that is tried is orthogonal to those tried before. Either two solutions differ along it, and their
  // difference is a direction of the set, or the whole set is orthogonal to it.
  simplex.stay_near(best.x);
  Tensor tried = at::zeros({0, unknowns}, at::kDouble);
  std::vector<Tensor> directions = {tried};
  const auto orthogonal = [&](const Tensor& rows) { return rows - at::matmul(at::matmul(rows, tried.t()), tried); };
  while (tried.size(0) < unknowns) {
    const Tensor left = orthogonal(unit.slice(0, 0, unknowns).slice(1, 0, unknowns));
    Tensor direction = at::zeros_like(program.cost);
    Tensor seen = direction.slice(0, 0, unknowns);
    seen.copy_(left[left.norm(2, 1).argmax().item<std::int64_t>()]);
    seen /= seen.norm();
    const Tensor difference = simplex.minimise(-direction).x - simplex.minimise(direction).x;
    if ((difference * direction).sum().item<double>() > kWidth) {
      const Tensor rest = orthogonal(difference.slice(0, 0, unknowns).unsqueeze(0));
      directions.push_back(rest / rest.norm());
      seen = directions.back()[0];
    }
    tried = at::cat({tried, seen.unsqueeze(0)});
  }
  set.directions = at::cat(directions);
  return set;
}

}  // namespace lcp::training
