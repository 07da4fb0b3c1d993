#include "network/lifted_program.h"

#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>
#include <vector>

namespace lcp::training {
namespace {

using nn::Dependence;
using nn::LcpNetwork;
using torch::Tensor;
using Term = BilinearProgram::Term;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
// Data and parameters have the size 1 in the units of the network. The bound keeps iterates from growing along the
// directions in which the unknowns of an LCP may be scaled.
constexpr double kLargestParameter = 100;
// The weight of the entries of M beside its diagonal: of networks that explain the samples equally well, those are
// preferred whose unknowns do not affect each other, which the samples may not show.
constexpr double kCoupling = 1e-4;

}  // namespace

BilinearProgram lifted_program(const LcpNetwork& network, const Tensor& theta, const Motion& motion) {
  const auto& options = network->options;
  TORCH_CHECK(
      options.G() == Dependence::kConstant && options.q() == Dependence::kAffine && options.f() != Dependence::kNetwork,
      "G must be constant, q affine and f no network");
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
  const nn::LcpNetworkImpl::Step step = network->step(motion.x, theta);
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

Tensor parameters_of(const MpecSolution& solution, const LcpNetwork& network) {
  return torch::tensor(std::vector<double>(solution.x.begin(), solution.x.begin() + network->size()), torch::kDouble);
}

}  // namespace lcp::training
