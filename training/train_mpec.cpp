// Learns the friction of a sliding block from motion alone, with the LCP of each sample as a constraint [Notes, 4].
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md).
#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "identification/bilinear_program.h"
#include "lcp/learning/bilevel_loss.h"
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
using Weights = std::optional<lcp::learning::BilevelWeights>;
using torch::Tensor;

// A start has found the block where its error is less than this, relative to the standard deviation of the velocities.
constexpr double kFound = 1e-3;

struct Flags {
  RunFlags run;
  SampleFlags samples{.known_forces = KnownForces::kNone, .samples = 100, .states = "mixed"};
  PhysicsFlags block{.mass = 1, .dt = 1, .mu = 1, .gravity = 1};
  std::string f = "absent", G = "constant", q = "affine", inner = "hard";
  std::vector<double> alpha = {1, 10, 100};
  double first = 1e-3;
  std::int64_t unknowns = 2, hidden_units = 8, starts = 8, iterations = 1000;

  void add_to(CommandLine& line) {
    run.add_to(line);
    samples.add_to(line);
    block.add_to(line);
    line.add("f", f, "The part of v_next that does not depend on the unknowns of the LCP",
             one_of({"absent", "constant", "affine", "network"}));
    line.add("G", G, "The effect of the unknowns on v_next", one_of({"constant", "affine", "network"}));
    line.add("q", q, "The vector of the LCP", one_of({"affine", "network"}));
    line.add("hidden-units", hidden_units, "Width of the tanh layer of each part that is a network", at_least_one);
    line.add("inner", inner,
             "Whose conditions are the constraints: hard (the LCP of each sample) or soft (the problem of the bilevel "
             "loss, with slacks and multipliers, whose value is the objective)",
             one_of({"hard", "soft"}));
    line.add("alpha", alpha, "With --inner soft, the weights A1 A2 A3 of the prediction, complementarity and violation",
             [](const std::vector<double>& x) {
               const bool valid =
                   x.size() == 3 && x[0] > 0 && x[1] >= 0 && x[2] > 0 && std::isfinite(x[0] + x[1] + x[2]);
               return valid ? "" : "three finite numbers, A1 and A3 > 0, A2 >= 0";
             });
    line.add("first", first, "First weight of the penalty on products that must be 0", positive);
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
  using lcp::nn::dependence_named;
  options.f(dependence_named(flags.f, "f")).G(dependence_named(flags.G, "G")).q(dependence_named(flags.q, "q"));
  options.hidden(flags.hidden_units);
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

// In a soft inner problem, z = c z' with a small c has small penalties, and G' = c G the same motion. The bound on G
// keeps c from 0; that of the truth is 1, in units in which velocities have the size 1.
constexpr double kLargestEffect = 2;

// The optimality conditions of the inner problems as constraints of the outer one [Notes, 4]. Either the LCPs
// themselves, which is the hard problem,
//
//   minimise    mean_i |e_i|^2,  e_i = f(x_i) + G(x_i) z_i - y_i,  over the parameters and all z_i
//   subject to  0 <= z_i perp M z_i + q(x_i) >= 0
//
// or, with weights a, the conditions of the soft problem [Notes, 3.2.4], whose z_i may violate the LCP,
//
//   minimise    mean_i a1 |e_i|^2 + a2 z_i'(M z_i + q(x_i)) + a3 sum_k s_ik
//   subject to  0 <= z_i perp 2 a1 G(x_i)'e_i + a2 ((M + M') z_i + q(x_i)) - M' nu_i >= 0
//               0 <= nu_i perp M z_i + q(x_i) + s_i >= 0
//               0 <= s_i perp a3 - nu_i >= 0
//
// with the slacks s_i and the multipliers nu_i. f, G and q may be networks, whose hidden layers are unknowns, too.
// M = L L' + epsilon I + U - U' is positive definite, so that z_i is unique in the hard problem, and both soft ones are
// convex. With t_i = L' z_i and r_i = L' nu_i all constraints but the tanh are bilinear.
class LiftedProgram {
 public:
  // theta: [size()], where the parameters start; the other unknowns start at the solutions there.
  LiftedProgram(const LcpNetwork& network, const Tensor& theta, const Motion& motion, const Weights& soft)
      : options_(network->options),
        network_(network),
        theta_(theta),
        places_(at::arange(network->size(), torch::kLong)),
        x_(motion.x / network->input_unit),
        y_(motion.v_next / network->output_unit) {
    const std::int64_t n = options_.unknowns();
    Tensor weights = torch::zeros_like(theta), largest = at::full_like(theta, kLargestParameter);
    network->entry("M", weights).copy_(kCoupling * (1 - at::eye(n)));
    if (soft) network->entry("G_bias", largest).fill_(kLargestEffect);
    for (std::int64_t k = 0; k < theta.size(0); ++k) {
      const double bound = largest[k].item<double>();
      program_.add(-bound, bound, theta[k].clamp(-bound, bound).item<double>(), weights[k].item<double>());
    }
    const auto parts = network->parts(motion.x, theta);
    const Tensor f = parts.f.defined() ? parts.f : torch::zeros_like(y_);
    Tensor z = network->step(motion.x, theta).z, nu = torch::zeros_like(z), s = nu;
    if (soft) {
      const auto inner = lcp::learning::bilevel_loss(parts.M, parts.q, parts.G, y_ - f, *soft);
      z = inner.lambda, nu = inner.multiplier, s = inner.violation;
    }
    const auto times = [](const Tensor& A, const Tensor& of) { return (A * of.unsqueeze(-2)).sum(-1); };
    const Tensor w = times(parts.M, z) + parts.q, L = at::tril(network->entry("M", theta));
    const Tensor e = f + times(parts.G, z) - y_;
    const double share = 1 / static_cast<double>(y_.numel());
    for (std::int64_t i = 0; i < motion.count(); ++i) {
      const std::vector<std::int64_t> z_i = add(z[i], 0), t_i = product_with_L(z_i, at::matmul(z[i], L));
      const std::vector<std::int64_t> w_i = add(w[i], soft ? -kUnbounded : 0);
      const std::vector<std::vector<Term>> q_i = part("q", options_.q(), i, n);
      for (std::int64_t k = 0; k < n; ++k)
        equate(w_i[at(k)], joined(product_with_M(k, z_i, t_i, false, 1), q_i[at(k)]));
      const std::vector<std::vector<std::int64_t>> G_i = effects(parts.G, i);
      const std::vector<std::int64_t> e_i = add(e[i], -kUnbounded, share * (soft ? soft->prediction : 1));
      const std::vector<std::vector<Term>> f_i = part("f", options_.f(), i, options_.outputs());
      for (std::int64_t k = 0; k < options_.outputs(); ++k) {
        std::vector<Term> terms = f_i[at(k)];
        for (std::int64_t j = 0; j < n; ++j) terms.push_back({G_i[at(k)][at(j)], 1, z_i[at(j)]});
        equate(e_i[at(k)], std::move(terms), y_[i][k].item<double>());
      }
      if (soft) {
        add_soft_conditions(*soft, share, z_i, t_i, w_i, e_i, q_i, G_i, nu[i], s[i], at::matmul(nu[i], L));
      } else {
        for (std::int64_t k = 0; k < n; ++k) program_.pairs.push_back({z_i[at(k)], w_i[at(k)]});
      }
    }
  }

  const BilinearProgram& program() const { return program_; }

 private:
  using Indices = std::vector<std::int64_t>;
  using Terms = std::vector<Term>;

  static std::size_t at(std::int64_t k) { return static_cast<std::size_t>(k); }

  static Terms joined(Terms a, const Terms& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  // The index of an entry of a parameter.
  std::int64_t place(const std::string& name, at::IntArrayRef index) const {
    Tensor at_index = network_->entry(name, places_);
    for (const std::int64_t k : index) at_index = at_index[k];
    return at_index.item<std::int64_t>();
  }

  // Unknowns that start at these values.
  Indices add(const Tensor& start, double least, double weight = 0) {
    Indices all;
    for (std::int64_t k = 0; k < start.size(0); ++k) {
      all.push_back(program_.add(least, kUnbounded, start[k].item<double>(), weight));
    }
    return all;
  }

  // The equation x = terms - known.
  void equate(std::int64_t x, Terms terms, double known = 0) {
    terms.push_back({x, -1});
    program_.equations.push_back({std::move(terms), known});
  }

  // L'z.
  Indices product_with_L(const Indices& z, const Tensor& start) {
    const Indices all = add(start, -kUnbounded);
    for (std::int64_t k = 0; k < start.size(0); ++k) {
      Terms terms;
      for (std::int64_t j = k; j < start.size(0); ++j) terms.push_back({place("M", {j, k}), 1, z[at(j)]});
      equate(all[at(k)], std::move(terms));
    }
    return all;
  }

  // factor (M z)_k or, where `transposed`, factor (M'z)_k; t = L'z.
  Terms product_with_M(std::int64_t k, const Indices& z, const Indices& t, bool transposed, double factor) const {
    const double skew = transposed ? -factor : factor;
    Terms terms = {{z[at(k)], factor * options_.definiteness()}};
    for (std::int64_t j = 0; j <= k; ++j) terms.push_back({place("M", {k, j}), factor, t[at(j)]});
    for (std::int64_t j = k + 1; j < options_.unknowns(); ++j) terms.push_back({place("M", {k, j}), skew, z[at(j)]});
    for (std::int64_t j = 0; j < k; ++j) terms.push_back({place("M", {j, k}), -skew, z[at(j)]});
    return terms;
  }

  // The outputs of a part at sample i, [rows] or, of G, [rows columns]; adds the unknowns of its hidden layer.
  std::vector<Terms> part(const std::string& name, Dependence dependence, std::int64_t i, std::int64_t rows,
                          std::int64_t columns = 0) {
    std::vector<Terms> all(at(rows * std::max<std::int64_t>(columns, 1)));
    if (dependence == Dependence::kAbsent) return all;
    Indices hidden;
    if (dependence == Dependence::kNetwork) {
      const std::string weight = name + "_hidden_weight", bias = name + "_hidden_bias";
      const Tensor start = network_->entry(bias, theta_) + (network_->entry(weight, theta_) * x_[i]).sum(-1);
      hidden = add(start.tanh(), -1);
      const Indices arguments = add(start, -kUnbounded);
      for (std::int64_t h = 0; h < options_.hidden(); ++h) {
        equate(arguments[at(h)], joined({{place(bias, {h}), 1}}, times_x(weight, {h}, i)));
        program_.dependences.push_back({BilinearProgram::Function::kTanh, arguments[at(h)], hidden[at(h)]});
      }
    }
    for (std::size_t r = 0; r < all.size(); ++r) {
      const auto output = static_cast<std::int64_t>(r);
      const std::vector<std::int64_t> index =
          columns > 0 ? Indices{output / columns, output % columns} : Indices{output};
      all[r].push_back({place(name + "_bias", index), 1});
      if (dependence != Dependence::kConstant) all[r] = joined(all[r], times_x(name + "_weight", index, i));
      for (std::size_t h = 0; h < hidden.size(); ++h) {
        Indices of_hidden = index;
        of_hidden.push_back(static_cast<std::int64_t>(h));
        all[r].push_back({place(name + "_out_weight", of_hidden), 1, hidden[h]});
      }
    }
    return all;
  }

  // A row of a parameter times x_i.
  Terms times_x(const std::string& name, Indices row, std::int64_t i) const {
    Terms terms;
    row.push_back(0);
    for (row.back() = 0; row.back() < options_.inputs(); ++row.back()) {
      terms.push_back({place(name, row), x_[i][row.back()].item<double>()});
    }
    return terms;
  }

  // The unknowns G_kj at sample i: the parameters, where G is constant. G: [samples, d, n] or [d, n], the start.
  std::vector<Indices> effects(const Tensor& G, std::int64_t i) {
    const std::int64_t d = options_.outputs(), n = options_.unknowns();
    std::vector<Indices> all(at(d), Indices(at(n)));
    const bool constant = options_.G() == Dependence::kConstant;
    const std::vector<Terms> outputs = constant ? std::vector<Terms>() : part("G", options_.G(), i, d, n);
    for (std::int64_t k = 0; k < d; ++k) {
      for (std::int64_t j = 0; j < n; ++j) {
        std::int64_t& index = all[at(k)][at(j)];
        if (constant) {
          index = place("G_bias", {k, j});
        } else {
          index = program_.add(-kLargestParameter, kLargestParameter, G[i][k][j].item<double>());
          equate(index, outputs[at(k * n + j)]);
        }
      }
    }
    return all;
  }

  void add_soft_conditions(const lcp::learning::BilevelWeights& a, double share, const Indices& z, const Indices& t,
                           const Indices& w, const Indices& e, const std::vector<Terms>& q,
                           const std::vector<Indices>& G, const Tensor& nu_start, const Tensor& s_start,
                           const Tensor& r_start) {
    const std::int64_t n = options_.unknowns();
    const Indices nu = add(nu_start, 0), s = add(s_start, 0), r = product_with_L(nu, r_start);
    Terms products;
    for (std::int64_t k = 0; k < n; ++k) {
      products.push_back({z[at(k)], 1, w[at(k)]});
      program_.cost[at(s[at(k)])] = share * a.violation;
      const double w_k = program_.start[at(w[at(k)])], s_k = s_start[k].item<double>();
      const std::int64_t violated = program_.add(0, kUnbounded, std::max(0.0, w_k + s_k));
      equate(violated, {{w[at(k)], 1}, {s[at(k)], 1}});
      const std::int64_t left = program_.add(0, kUnbounded, std::max(0.0, a.violation - nu_start[k].item<double>()));
      equate(left, {{nu[at(k)], -1}}, -a.violation);
      Terms slope = product_with_M(k, z, t, false, a.complementarity);
      slope = joined(slope, product_with_M(k, z, t, true, a.complementarity));
      slope = joined(slope, product_with_M(k, nu, r, true, -1));
      for (const Term& term : q[at(k)]) slope.push_back({term.x, a.complementarity * term.factor, term.by});
      for (std::size_t c = 0; c < e.size(); ++c) slope.push_back({G[c][at(k)], 2 * a.prediction, e[c]});
      const std::int64_t slack = program_.add(0, kUnbounded, std::max(0.0, value(slope)));
      equate(slack, std::move(slope));
      program_.pairs.insert(program_.pairs.end(), {{z[at(k)], slack}, {nu[at(k)], violated}, {s[at(k)], left}});
    }
    const std::int64_t product = program_.add(-kUnbounded, kUnbounded, value(products));
    program_.cost[at(product)] = share * a.complementarity;
    equate(product, std::move(products));
  }

  double value(const Terms& terms) const {
    double sum = 0;
    for (const Term& term : terms) {
      sum += term.factor * program_.start[at(term.x)] * (term.by >= 0 ? program_.start[at(term.by)] : 1);
    }
    return sum;
  }

  const lcp::nn::LcpNetworkOptions& options_;
  const LcpNetwork& network_;
  const Tensor& theta_;
  const Tensor places_;  // [size()], the index of each parameter
  const Tensor x_, y_;   // in the units of the network
  BilinearProgram program_;
};

// The parameters that solve a LiftedProgram, [size()].
Tensor parameters_of(const MpecSolution& solution, const LcpNetwork& network) {
  return torch::tensor(std::vector<double>(solution.x.begin(), solution.x.begin() + network->size()), torch::kDouble);
}

// How far the objective of a solution is from the least values of the inner problems at its parameters, whose
// conditions are its constraints.
double inner_difference(const MpecSolution& solution, const LcpNetwork& network, const Tensor& theta,
                        const Motion& motion, const Weights& soft) {
  const Tensor M = network->entry("M", theta), y = motion.v_next / network->output_unit;
  const double coupling = kCoupling * (M - at::diag(at::diagonal(M))).square().sum().item<double>();
  Tensor least = (network->step(motion.x, theta).y / network->output_unit - y).square();
  if (soft) {
    const auto parts = network->parts(motion.x, theta);
    least = lcp::learning::bilevel_loss(parts.M, parts.q, parts.G, parts.f.defined() ? y - parts.f : y, *soft).value;
  }
  return std::abs(solution.objective - coupling - least.sum().item<double>() / static_cast<double>(y.numel()));
}

int train_mpec(int argc, const char* const* argv) {
  CommandLine line(
      "train_mpec",
      "Learns f, G, M and q of v_next = f + G z, z = LCP(M, q), of a sliding block from motion alone. The\n"
      "parameters and the z of all samples are unknowns of one program, solved by Ipopt: it minimises the\n"
      "error of the velocities, and the LCP of each sample is a constraint, or the optimality conditions of the\n"
      "inner problem of train_bilevel, which penalises violations of the LCP. train_network solves the LCPs.");
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
  Weights weights;
  if (flags.inner == "soft") weights = lcp::learning::BilevelWeights{flags.alpha[0], flags.alpha[1], flags.alpha[2]};
  Table history{{"start", "iterations", "solved", "training_rmse", "complementarity", "inner_difference"}, {}};
  Progress progress("start", 0, flags.starts, flags.run.quiet);
  // Ipopt's linear solver must not run in two threads at once.
  const auto ends = divide_tasks(flags.starts, /*threads=*/1, [&](std::int64_t k) {
    const torch::NoGradGuard none;
    const MpecSolution solution = solve(LiftedProgram(network, starts[k], motion, weights).program(),
                                        {.first = flags.first, .max_iterations = flags.iterations});
    const Tensor theta = parameters_of(solution, network);
    // That of the velocities that lcp::solve gives with these parameters.
    const double error = rmse(network->step(motion.x, theta).y - motion.v_next);
    progress.show(k + 1, solution.status + " after " + std::to_string(solution.iterations) + " iterations, rmse " +
                             short_number(error) + " m/s");
    return Checkpoint{{{"iterations", solution.iterations}, {"status", solution.status}},
                      {{"theta", theta},
                       {"measured", torch::tensor({error, solution.largest_product,
                                                   inner_difference(solution, network, theta, motion, weights)},
                                                  torch::kDouble)}}};
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
                     measured[1].item<double>(), measured[2].item<double>()});
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
                  {"parameters", network->size()},
                  {"training_samples", data.training.count()}});
  write_results(out, metrics, {"rollout.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("train_mpec", train_mpec, argc, argv, Processes::kDivided); }
