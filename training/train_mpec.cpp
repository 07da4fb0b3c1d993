// Learns the friction of a sliding block from motion alone, with the LCP of each sample as a constraint [Notes, 4].
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md).
#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "identification/bilinear_program.h"
#include "lcp/nn/lcp_network.h"
#include "network/motion.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"
#include "sliding_block/samples.h"

namespace {

using namespace lcp::training;
using lcp::nn::Dependence;
using lcp::nn::LcpNetwork;
using Term = BilinearProgram::Term;
using torch::Tensor;

// A start has found the block where its error is less than this, relative to the standard deviation of the velocities.
constexpr double kFound = 1e-3;

struct Flags {
  RunFlags run;
  SampleFlags samples{.known_forces = KnownForces::kNone, .samples = 100, .states = "mixed"};
  PhysicsFlags block{.mass = 1, .dt = 1, .mu = 1, .gravity = 1};
  std::string f = "absent";
  std::int64_t unknowns = 2, starts = 8, iterations = 1000;

  void add_to(CommandLine& line) {
    run.add_to(line);
    samples.add_to(line);
    block.add_to(line);
    line.add("f", f, "The part of v_next that does not depend on the unknowns of the LCP",
             one_of({"absent", "constant", "affine"}));
    line.add("unknowns", unknowns, "Number of unknowns of the LCP",
             [](const std::int64_t& n) { return n >= 1 && n <= 16 ? "" : "1 to 16"; });
    line.add("starts", starts, "Random starts, one after the other", at_least_one);
    line.add("iterations", iterations, "Largest number of Ipopt iterations for each start", at_least_one);
    line.footer(
        std::string("Example: train_mpec --samples 50 --out runs/mpec\n"
                    "Data of your own: CSV with columns v,u,v_next (m/s, N, m/s), and optionally trajectory; one "
                    "row in\nfive, or one trajectory in five, is held out.") +
        kModelNote);
  }
};

Motion motion_of(const Samples& samples) {
  return {at::stack({samples.v, samples.u}, 1), samples.v_next.unsqueeze(-1)};
}

LcpNetwork network_for(const Flags& flags, const Motion& motion) {
  lcp::nn::LcpNetworkOptions options(2, 1, flags.unknowns);
  options.f(flags.f == "absent"     ? Dependence::kAbsent
            : flags.f == "constant" ? Dependence::kConstant
                                    : Dependence::kAffine);
  LcpNetwork network(options);
  const auto unit = [](const Tensor& of) {
    const Tensor deviation = of.std(0, /*unbiased=*/false);
    return at::where(deviation > 0, deviation, 1);
  };
  network->input_unit.copy_(unit(motion.x));
  network->output_unit.copy_(unit(motion.v_next));
  return network;
}

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
// Data and parameters have the size 1 in the units of the network. The bound keeps iterates from growing along the
// directions in which the unknowns of an LCP may be scaled.
constexpr double kLargestParameter = 100;
// The weight of the entries of M beside its diagonal: of networks that explain the samples equally well, those are
// preferred whose unknowns do not affect each other, which the samples may not show.
constexpr double kCoupling = 1e-4;

// The optimality conditions of the inner problem as constraints of the outer one [Notes, 4]:
//
//   minimise    mean_i |f(x_i) + G z_i - y_i|^2   over the parameters and all z_i
//   subject to  0 <= z_i perp M z_i + q(x_i) >= 0
//
// with constant G and affine q, and f absent, constant or affine. M = L L' + epsilon I + U - U' is positive definite,
// so that each z_i is the only solution. With s_i = L' z_i the constraints are bilinear.
//   theta: [size()], where the parameters start; z starts at the solutions there. motion: in the units of the network.
BilinearProgram lifted_program(const LcpNetwork& network, const Tensor& theta, const Motion& motion) {
  const auto& options = network->options;
  const torch::NoGradGuard no_grad;
  const std::int64_t n = options.unknowns(), d = options.outputs(), p = options.inputs();
  BilinearProgram program;
  Tensor weights = torch::zeros_like(theta);
  network->entry("M", weights).copy_(kCoupling * (1 - at::eye(n)));
  for (std::int64_t k = 0; k < theta.size(0); ++k) {
    program.add(-kLargestParameter, kLargestParameter, theta[k].item<double>(), weights[k].item<double>());
  }
  // The places of the parameters in the program are those in theta.
  const Tensor places = at::arange(network->size(), torch::kLong);
  const auto place = [&](const char* name, at::IntArrayRef index) {
    Tensor at_index = network->entry(name, places);
    for (const std::int64_t k : index) at_index = at_index[k];
    return at_index.item<std::int64_t>();
  };
  const Tensor x_all = motion.x / network->input_unit, y_all = motion.v_next / network->output_unit;
  const auto parts = network->parts(motion.x, theta);
  const lcp::nn::LcpNetworkImpl::Step step = network->step(motion.x, theta);
  const Tensor z_all = step.z, w_all = (parts.M * z_all.unsqueeze(-2)).sum(-1) + parts.q;
  const Tensor L = at::tril(network->entry("M", theta));
  const Tensor s_all = at::matmul(z_all, L);
  const Tensor e_all = step.y / network->output_unit - y_all;
  const double weight = 1 / static_cast<double>(motion.v_next.numel());
  for (std::int64_t i = 0; i < motion.count(); ++i) {
    const auto value = [i](const Tensor& of, std::int64_t k) { return of[i][k].item<double>(); };
    std::vector<std::int64_t> z, s;
    for (std::int64_t k = 0; k < n; ++k) z.push_back(program.add(0, kUnbounded, value(z_all, k)));
    const auto unknown = [&](std::int64_t k) { return z[static_cast<std::size_t>(k)]; };
    for (std::int64_t k = 0; k < n; ++k) {
      s.push_back(program.add(-kUnbounded, kUnbounded, value(s_all, k)));
      std::vector<Term> terms = {{s.back(), 1}};
      for (std::int64_t j = k; j < n; ++j) terms.push_back({place("M", {j, k}), -1, unknown(j)});
      program.equations.push_back({terms, 0});
    }
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t w = program.add(0, kUnbounded, value(w_all, k));
      std::vector<Term> terms = {{w, 1}, {unknown(k), -options.definiteness()}, {place("q_bias", {k}), -1}};
      for (std::int64_t j = 0; j <= k; ++j) terms.push_back({place("M", {k, j}), -1, s[static_cast<std::size_t>(j)]});
      for (std::int64_t j = k + 1; j < n; ++j) terms.push_back({place("M", {k, j}), -1, unknown(j)});  // U
      for (std::int64_t j = 0; j < k; ++j) terms.push_back({place("M", {j, k}), 1, unknown(j)});       // -U'
      for (std::int64_t j = 0; j < p; ++j) terms.push_back({place("q_weight", {k, j}), -value(x_all, j)});
      program.equations.push_back({terms, 0});
      program.pairs.push_back({unknown(k), w});
    }
    for (std::int64_t k = 0; k < d; ++k) {
      std::vector<Term> terms = {{program.add(-kUnbounded, kUnbounded, value(e_all, k), weight), 1}};
      for (std::int64_t j = 0; j < n; ++j) terms.push_back({place("G_bias", {k, j}), -1, unknown(j)});
      if (options.f() != Dependence::kAbsent) terms.push_back({place("f_bias", {k}), -1});
      if (options.f() == Dependence::kAffine) {
        for (std::int64_t j = 0; j < p; ++j) terms.push_back({place("f_weight", {k, j}), -value(x_all, j)});
      }
      program.equations.push_back({terms, -value(y_all, k)});
    }
  }
  return program;
}

// The parameters that solve lifted_program, [size()].
Tensor parameters_of(const MpecSolution& solution, const LcpNetwork& network) {
  return torch::tensor(std::vector<double>(solution.x.begin(), solution.x.begin() + network->size()), torch::kDouble);
}

int train_mpec(int argc, const char* const* argv) {
  CommandLine line(
      "train_mpec",
      "Learns f, G, M and q of v_next = f + G z, z = LCP(M, q), of a sliding block from motion alone. The\n"
      "parameters and the z of all samples are unknowns of one program, solved by Ipopt: it minimises the\n"
      "error of the velocities, and the LCP of each sample is a constraint. train_network solves the LCPs\n"
      "instead, train_bilevel penalises their violation.");
  Flags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.samples.validate(line);
  if (flags.block.gravity == 0) throw UsageError("--gravity must be > 0: m g is the unit of force; got 0");
  const OneThread one_thread;
  const torch::NoGradGuard no_grad;

  const Data data = load_data(flags.run, flags.block, flags.samples);
  OutputFolder out(line, flags.run);
  const Motion motion = motion_of(data.training);
  LcpNetwork network = network_for(flags, motion);
  const Tensor starts = network->random(flags.starts, generator(flags.run.seed, Stream::kStarts));
  Table history{{"start", "iterations", "solved", "training_rmse", "complementarity"}, {}};
  Progress progress("start", 0, flags.starts, flags.run.quiet);
  // Ipopt's linear solver must not run in two threads at once.
  const auto ends = divide_tasks(flags.starts, /*threads=*/1, [&](std::int64_t k) {
    const torch::NoGradGuard none;
    const MpecSolution solution =
        solve(lifted_program(network, starts[k], motion), {.max_iterations = flags.iterations});
    const Tensor theta = parameters_of(solution, network);
    // That of the velocities that lcp::solve gives with these parameters.
    const double error = rmse(network->step(motion.x, theta).y - motion.v_next);
    progress.show(k + 1, solution.status + " after " + std::to_string(solution.iterations) + " iterations, rmse " +
                             short_number(error) + " m/s");
    return Checkpoint{
        {{"iterations", solution.iterations}, {"status", solution.status}},
        {{"theta", theta}, {"measured", torch::tensor({error, solution.largest_product}, torch::kDouble)}}};
  });
  if (!ProcessGroup::current().is_first()) return 0;
  double lowest = INFINITY;  // of the errors of the starts
  Tensor theta;              // that of the best start
  std::int64_t solved = 0, found = 0;
  for (std::int64_t k = 0; k < flags.starts; ++k) {
    const Checkpoint& end = ends[static_cast<std::size_t>(k)];
    const Tensor& measured = end.tensors.at("measured");
    const auto error = measured[0].item<double>();
    const bool ended = end.state["status"] == "solved";
    history.add_row({static_cast<double>(k), end.state["iterations"].get<double>(), ended ? 1. : 0., error,
                     measured[1].item<double>()});
    if (ended) ++solved;
    if (error < kFound * network->output_unit.item<double>()) ++found;
    if (error < lowest) {
      lowest = error;
      theta = end.tensors.at("theta");
    }
  }
  out.write_csv("history.csv", history);
  if (!theta.defined()) throw std::runtime_error("none of the starts ended with a network that has a solution");
  network->set_theta(theta);
  network->to(flags.run.scalar_type());
  write_model(out, lcp::nn::torchscript_bytes(network, {0, 1, flags.block.dt, flags.block.mass, flags.block.gravity}));
  nlohmann::json metrics = evaluate_model(out, flags.run, data.heldout, flags.block, flags.samples);
  metrics.update({{"training_rmse", lowest},
                  {"starts", flags.starts},
                  {"starts_solved", solved},
                  {"starts_exact", found},
                  {"unknowns", flags.unknowns},
                  {"training_samples", data.training.count()}});
  write_results(out, metrics, {"rollout.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("train_mpec", train_mpec, argc, argv, Processes::kDivided); }
