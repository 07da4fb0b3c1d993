#include "linear_program/fit.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "run/program.h"
#include "sliding_block/friction_model.h"

namespace lcp::training {
namespace {

using torch::Tensor;

std::vector<std::string> entries(std::int64_t row) {
  std::vector<std::string> names;
  for (const char* matrix : {"M", "W"}) {
    for (const char* column : {"1", "2", "3"}) names.push_back(matrix + std::to_string(row + 1) + column);
  }
  return names;
}

std::string shown(double x) { return short_number(std::abs(x) < kNegligible ? 0 : x); }

std::string interval(double lower, double upper) {
  return (std::isinf(lower) ? "(-inf" : "[" + shown(lower)) + ", " + (std::isinf(upper) ? "inf)" : shown(upper) + "]");
}

// The set of solutions as text, such as "M12 = M11 - 2, W13 = -M11 + 1, M11 in (-inf, inf)"; empty where x is unique.
std::string in_words(const Tensor& x, const OptimalSet& set, const std::vector<std::string>& names) {
  const auto [rows, free] = reduced_echelon_form(set.directions);
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (std::int64_t j = 0; j < x.size(0); ++j) {
    const bool varies = rows.size(0) > 0 && rows.select(1, j).abs().max().item<double>() > kNegligible;
    if (!varies || std::find(free.begin(), free.end(), j) != free.end()) continue;
    std::string sum;
    const auto add_term = [&](double weight, const std::string& name) {
      if (std::abs(weight) < kNegligible) return;
      const bool one = !name.empty() && std::abs(std::abs(weight) - 1) < kNegligible;
      sum += sum.empty() ? (weight < 0 ? "-" : "") : (weight < 0 ? " - " : " + ");
      sum += one ? name : shown(std::abs(weight)) + (name.empty() ? "" : " " + name);
    };
    double constant = x[j].item<double>();
    for (std::size_t k = 0; k < free.size(); ++k) {
      const double weight = rows[static_cast<std::int64_t>(k)][j].item<double>();
      constant -= weight * x[free[k]].item<double>();
      add_term(weight, names[static_cast<std::size_t>(free[k])]);
    }
    add_term(constant, "");
    add(names[static_cast<std::size_t>(j)] + " = " + sum);
  }
  for (const std::int64_t j : free) {
    add(names[static_cast<std::size_t>(j)] + " in " +
        interval(set.lower[j].item<double>(), set.upper[j].item<double>()));
  }
  return text;
}

// Whether w >= 0 holds in the row for all nonnegative forces in every state: its
// entries of M and its bias are >= 0, and those of v and u are 0.
bool is_trivial(const Tensor& row) {
  return at::cat({row.slice(0, 0, 3), -row.slice(0, 3, 5).abs(), row.slice(0, 5)}).min().item<double>() > -kNegligible;
}

// The solution of a program of the rows that the name names.
Tensor solution(const LinearProgram& program, const ProgramFlags& flags, const std::string& name,
                const LinearProgramObserver& observer) {
  const bool simplex = flags.solver == "simplex";
  const LinearProgramSolution found =
      solve(program, simplex ? LinearProgramMethod::kSimplex : LinearProgramMethod::kInteriorPoint, observer);
  if (found.status == LinearProgramStatus::kSolved) return found.x;
  if (solve(program).status == LinearProgramStatus::kInfeasible) {
    throw UsageError("--epsilon " + nlohmann::json(flags.epsilon).dump() + " is too much: no " + name +
                     (name == "rows" ? " have" : " has") + " w >= epsilon in every sample");
  }
  throw std::runtime_error("the solver found no " + name + (simplex ? "" : "; --solver simplex may"));
}

}  // namespace

void ProgramFlags::add_to(CommandLine& line) {
  line.add("epsilon", epsilon,
           "Lower bound of w in all samples, with forces in units of mu m g and velocities in units of dt mu g",
           nonnegative);
  line.add(
      "normalization", normalization,
      "one_per_row fixes M13 = M23 = 1 and M31 = -1; none leaves the scale of each row free, so that 0 is a solution",
      one_of({"one_per_row", "none"}));
  add_matrix_flag(line, matrix);
  line.add_switch("no-bias", no_bias, "Fix W13 = W23 = 0: the first two rows of q have no constant");
  line.add("l1", l1, "Weight of the sum of |M| and |W| in the objective", nonnegative);
  line.add("solver", solver, "simplex (a vertex of the optimal set) or interior_point (a point inside it)",
           one_of({"simplex", "interior_point"}));
}

KnownEntries ProgramFlags::known_entries() const {
  Tensor mask = held_entries(normalization);
  if (no_bias) mask.slice(0, 0, 2).select(1, 5).fill_(true);
  return {mask, at::where(mask, nn::TraditionalModelImpl::true_rows(1), 0)};
}

Fit fit(const LinearProgram& program, const ProgramFlags& flags, bool quiet) {
  const bool monotone = flags.matrix == kMonotone;
  const LinearProgram all = monotone ? monotone_program(program) : program;
  const auto whole = [&](const LinearProgram& part) { return flags.l1 > 0 ? with_l1(part, flags.l1) : part; };
  // Of the programs that an optimal set takes, all but the first start from its solution and are solved soon.
  Progress progress("linear program", 0, (monotone ? 1 : 3) + 3, quiet, std::chrono::seconds(1));
  std::int64_t solved = 0;
  const LinearProgramObserver show = [&](std::int64_t iteration, double objective, double error) {
    progress.show(solved, "iteration " + std::to_string(iteration) + ", objective " + short_number(objective) +
                              ", error " + short_number(error));
  };
  const auto solve_for = [&](const LinearProgram& part, const std::string& name) {
    const Tensor x = solution(whole(part), flags, name, show);
    ++solved;
    return x;
  };
  const Tensor together = monotone ? solve_for(with_row_first(all, 3, 0), "rows") : Tensor();
  std::vector<Tensor> rows;
  Fit result;
  for (std::int64_t i = 0; i < 3; ++i) {
    const LinearProgram alone = row_program(program, 3, i);
    rows.push_back(monotone ? together.slice(0, 6 * i, 6 * (i + 1))
                            : solve_for(alone, "row " + std::to_string(i + 1)).slice(0, 0, 6));
    result.objective += (alone.cost * rows.back()).sum().item<double>();
    result.sets.push_back(optimal_set(whole(monotone ? with_row_first(all, 3, i) : alone), 6, show));
    ++solved;
  }
  result.rows = at::stack(rows);
  return result;
}

nlohmann::json families(const Fit& fit) {
  nlohmann::json json = nlohmann::json::array();
  for (std::int64_t i = 0; i < 3; ++i) {
    const OptimalSet& set = fit.sets[static_cast<std::size_t>(i)];
    json.push_back({{"row", i + 1},
                    {"dimension", set.directions.size(0)},
                    {"trivial", is_trivial(fit.rows[i])},
                    {"lower", to_json(set.lower)},
                    {"upper", to_json(set.upper)},
                    {"words", in_words(fit.rows[i], set, entries(i))}});
  }
  return json;
}

}  // namespace lcp::training
