// Fits M and W of a sliding block's LCP to known contact forces by linear programs [Notes, 3.1.4]: one for each row,
// or one for all where M is monotone.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md).
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "lcp/nn/traditional_model.h"
#include "linear_program/complementarity_program.h"
#include "linear_program/simplex.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"
#include "sliding_block/friction_model.h"
#include "sliding_block/samples.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

// Smaller numbers count as 0. Here and below, units are such that dt = m = mu g = 1.
constexpr double kNegligible = 1e-6;

struct ProgramFlags {
  double epsilon = 0;
  std::string normalization = "one_per_row";
  std::string matrix = kMonotone;
  bool no_bias = false;
  double l1 = 0;
  std::string solver = "simplex";

  void add_to(CommandLine& line);
  KnownEntries known_entries() const;
};

struct Fit {
  Tensor rows;                   // [3, 6], [M|W]
  double objective = 0;          // sum of lambda'w over the samples
  std::vector<OptimalSet> sets;  // for each row, all solutions of its program
};

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

void ProgramFlags::add_to(CommandLine& line) {
  line.add("epsilon", epsilon,
           "Lower bound of w in all samples, with forces in units of mu m g and velocities in units of dt mu g",
           nonnegative);
  line.add(
      "normalization", normalization,
      "one_per_row fixes M13 = M23 = 1 and M31 = -1; none leaves the scale of each row free, so that 0 is a solution",
      one_of({"one_per_row", "none"}));
  add_matrix_flag(line, matrix, /*may_be_affine=*/false);
  line.add_switch("no-bias", no_bias, "Fix W13 = W23 = 0: the first two rows of q have no constant");
  line.add("l1", l1, "Weight of the sum of |M| and |W| in the objective", nonnegative);
  line.add("solver", solver, "simplex (a vertex of the optimal set) or interior_point (a point inside it)",
           one_of({"simplex", "interior_point"}));
}

KnownEntries ProgramFlags::known_entries() const {
  Tensor mask = held_entries(normalization);
  if (no_bias) mask.slice(0, 0, 2).select(1, 5).fill_(true);
  return {mask, at::where(mask, lcp::nn::TraditionalModelImpl::true_rows(1), 0)};
}

// Solves the program of each row or, where M is to be monotone, that of all rows, see monotone_program. Throws a
// UsageError where no row satisfies the constraints, and a std::runtime_error where the solver finds no solution.
// Unless `quiet`, it shows its progress where it takes more than a second.
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

// For each row the set of rows that fit equally well: dimension, lower and upper bounds of the entries, and a
// description in words; and whether the row is trivial: w >= 0 then holds for every force in every state, so that it
// says nothing about contact.
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

struct Flags {
  RunFlags run;
  SampleFlags samples{.known_forces = KnownForces::kContact, .samples = 300, .data = {}, .states = "mixed"};
  PhysicsFlags block{.mass = 1, .dt = 1, .mu = 1, .gravity = 1};
  ProgramFlags program;

  void add_to(CommandLine& line) {
    run.add_to(line);
    samples.add_to(line);
    block.add_to(line);
    program.add_to(line);
  }
};

// Converts [M|W] from the units of the model to SI units.
Tensor to_si(const Tensor& rows, const lcp::nn::TraditionalModel& model) {
  const double velocity = model->velocity_unit(), force = model->options.force_unit();
  const auto numbers = [](const std::vector<double>& x) { return at::tensor(x, at::kDouble); };
  return rows * numbers({velocity, velocity, force}).unsqueeze(-1) /
         numbers({force, force, velocity, velocity, force, 1});
}

// Warns of rows that are trivial or not unique although their objective is small, and of an objective that is not
// small.
void warn(const nlohmann::json& metrics, const Flags& flags, double samples) {
  for (const auto& family : metrics["families"]) {
    const std::string row = "warning: row " + family["row"].dump();
    if (family["trivial"]) {
      std::cerr << row << " is trivial: it holds for every force in every state"
                << (flags.program.normalization == "none" ? "; --normalization one_per_row excludes such rows" : "")
                << "\n";
    } else if (family["dimension"] > 0) {
      std::cerr << row << " is one of many that fit as well: " << family["words"].get<std::string>() << "\n";
    }
  }
  const double excess = metrics["objective"].get<double>() - metrics["lower_bound"].get<double>();
  if (flags.program.l1 == 0 && excess > kNegligible * samples) {
    std::cerr << "warning: no rows fit these forces: the objective " << short_number(metrics["objective"])
              << " is above its lower bound " << short_number(metrics["lower_bound"]) << "\n";
  }
}

int fit_linear_program(int argc, const char* const* argv) {
  CommandLine line(
      "fit_linear_program",
      "Fits M and W of a sliding block's LCP, w = M lambda + W (v, u, 1) with 0 <= lambda perp w >= 0, to\n"
      "known contact forces by a linear program, says which other M and W fit as well, and writes the\n"
      "learned LCP as a TorchScript model that can be stepped.");
  Flags flags;
  flags.add_to(line);
  line.footer(
      "Example: fit_linear_program --split maximal --out runs/maximal\n"
      "Data of your own: CSV with columns v,u,v_next,lambda_plus,lambda_minus,gamma (m/s, N, m/s, N, N, m/s), and\n"
      "optionally trajectory; one row in five, or one trajectory in five, is held out." +
      std::string(kModelNote));
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.samples.validate(line);
  const OneThread one_thread;
  torch::manual_seed(generator(flags.run.seed, Stream::kParameters).current_seed());

  const torch::NoGradGuard no_grad;
  const Data data = load_data(flags.run, flags.block, flags.samples);
  if (data.training.gamma.min().item<double>() < 0) throw UsageError(flags.samples.data + ": gamma is negative");
  const double unit = flags.block.max_friction() > 0 ? flags.block.max_friction() : 1;
  lcp::nn::TraditionalModel model(options_of<lcp::nn::TraditionalModelOptions>(flags.block).force_unit(unit));
  model->to(flags.run.scalar_type());
  const Tensor contact = solutions(model, data.training), state = states(model, data.training);
  const KnownEntries known = flags.program.known_entries();
  const bool monotone = flags.program.matrix == kMonotone;
  const Fit fitted =
      fit(complementarity_program(contact, state, known, flags.program.epsilon), flags.program, flags.run.quiet);

  OutputFolder out(line, flags.run);
  model->named_parameters()["learned"].copy_(fitted.rows);
  model->hold(monotone ? with_monotone(known.mask) : known.mask, fitted.rows);
  fit_dynamics(model, data.training);
  write_model(out, lcp::nn::torchscript_bytes(model));

  const double limit = flags.block.max_friction() / unit;
  const Tensor scaled = canonical_rows(fitted.rows, false);
  nlohmann::json metrics =
      evaluate_model(out, flags.run, data.heldout.to(flags.run.scalar_type()), flags.block, flags.samples);
  metrics.update(against_block(
      {{"parameter_error", row_error(scaled, limit)},
       {"max_row_error", row_error(flags.program.normalization == "one_per_row" ? fitted.rows : scaled, limit)}},
      data.heldout, flags.block));
  metrics.update({
      {"rows", to_json(to_si(fitted.rows, model))},
      {"rows_in_units", to_json(fitted.rows)},
      {"true_rows_in_units", to_json(lcp::nn::TraditionalModelImpl::true_rows(limit))},
      {"force_unit", unit},
      {"velocity_unit", model->velocity_unit()},
      {"objective", fitted.objective},
      {"lower_bound", lower_bound(contact, flags.program.epsilon).sum().item<double>()},
      {"families", families(fitted)},
      {"training_samples", data.training.count()},
  });
  bool degenerate = false;
  for (const auto& family : metrics["families"]) degenerate |= family["trivial"] || family["dimension"] > 0;
  metrics["degenerate"] = degenerate;
  metrics.update(rows_identifiability(model, data.training).json());
  if (!flags.run.quiet) warn(metrics, flags, static_cast<double>(data.training.count()));
  write_results(out, metrics, {"rollout.png", "rows.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("fit_linear_program", fit_linear_program, argc, argv); }
