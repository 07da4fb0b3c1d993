// Fits M and W of a sliding block's LCP to known contact forces by a linear program [Notes, 3.1.4].
#include <ATen/ATen.h>

#include <iostream>
#include <string>
#include <vector>

#include "lcp/nn/traditional_model.h"
#include "linear_program/complementarity_program.h"
#include "linear_program/fit.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"
#include "sliding_block/friction_model.h"
#include "sliding_block/samples.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

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
  lcp::nn::TraditionalModel model(lcp::nn::TraditionalModelOptions()
                                      .mass(flags.block.mass)
                                      .dt(flags.block.dt)
                                      .gravity(flags.block.gravity)
                                      .mu(flags.block.mu)
                                      .force_unit(unit));
  model->to(flags.run.scalar_type());
  const Tensor contact = solutions(model, data.training), state = states(model, data.training);
  const lcp::training::KnownEntries known = flags.program.known_entries();
  const bool monotone = flags.program.matrix == kMonotone;
  const Fit fitted = fit(lcp::training::complementarity_program(contact, state, known, flags.program.epsilon),
                         flags.program, flags.run.quiet);

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
      {"lower_bound", lcp::training::lower_bound(contact, flags.program.epsilon).sum().item<double>()},
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

int main(int argc, char** argv) { lcp::training::run_program("fit_linear_program", fit_linear_program, argc, argv); }
