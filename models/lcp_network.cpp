#include "lcp/nn/lcp_network.h"

#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lcp::nn {
namespace {

using torch::Tensor;

// A sum counts as round-off up to this multiple of the epsilon of its terms: a learned z carries errors of some
// epsilon.
constexpr double kRoundOffInEpsilon = 64;

Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

const char* name_of(Dependence dependence) {
  switch (dependence) {
    case Dependence::kAbsent:
      return "absent";
    case Dependence::kConstant:
      return "constant";
    case Dependence::kAffine:
      return "affine";
    case Dependence::kNetwork:
      return "network";
  }
  TORCH_CHECK(false, "no such dependence");
}

}  // namespace

LcpNetworkImpl::LcpNetworkImpl(const LcpNetworkOptions& options_) : options(options_) {
  const std::int64_t p = options.inputs(), d = options.outputs(), n = options.unknowns();
  TORCH_CHECK(p > 0, "inputs must be > 0; got ", p);
  TORCH_CHECK(d > 0, "outputs must be > 0; got ", d);
  TORCH_CHECK(n > 0, "unknowns must be > 0; got ", n);
  TORCH_CHECK(options.G() != Dependence::kAbsent, "G must not be absent");
  TORCH_CHECK(options.q() == Dependence::kAffine || options.q() == Dependence::kNetwork,
              "q must be affine or a network; got ", name_of(options.q()));
  TORCH_CHECK(options.hidden() > 0, "hidden must be > 0; got ", options.hidden());
  TORCH_CHECK(options.definiteness() > 0, "definiteness must be > 0; got ", options.definiteness());
  add("M", {n, n}, 0.3);
  add_part("f", options.f(), d, 0.3, 0);
  add_part("G", options.G(), d * n, 0, 0.5);
  add_part("q", options.q(), n, 1, 0.5);
  input_unit = register_buffer("input_unit", torch::ones({p}, torch::kDouble));
  output_unit = register_buffer("output_unit", torch::ones({d}, torch::kDouble));
}

void LcpNetworkImpl::add(const std::string& name, std::vector<std::int64_t> shape, double deviation) {
  const Tensor parameter = register_parameter(name, torch::zeros(shape, torch::kDouble));
  entries_.push_back({name, std::move(shape), size_, deviation});
  size_ += parameter.numel();
}

void LcpNetworkImpl::add_part(const std::string& name, Dependence dependence, std::int64_t outputs, double weight,
                              double bias) {
  const std::int64_t p = options.inputs(), h = options.hidden();
  if (dependence == Dependence::kAbsent) return;
  add(name + "_bias", {outputs}, bias);
  if (dependence == Dependence::kConstant) return;
  add(name + "_weight", {outputs, p}, weight);
  if (dependence == Dependence::kAffine) return;
  add(name + "_hidden_weight", {h, p}, 1);
  add(name + "_hidden_bias", {h}, 1);
  add(name + "_out_weight", {outputs, h}, 0.3 / std::sqrt(static_cast<double>(h)));
}

Tensor LcpNetworkImpl::entry(const std::string& name, const Tensor& theta) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  TORCH_INTERNAL_ASSERT(found != entries_.end(), name);
  const std::int64_t count = c10::multiply_integers(found->shape);
  return theta.slice(-1, found->first, found->first + count).unflatten(-1, found->shape);
}

Tensor LcpNetworkImpl::value(const std::string& part, Dependence dependence, const Tensor& x,
                             const Tensor& theta) const {
  if (dependence == Dependence::kAbsent) return {};
  Tensor y = entry(part + "_bias", theta);
  if (dependence == Dependence::kConstant) return y;
  y = y + times(entry(part + "_weight", theta), x);
  if (dependence == Dependence::kAffine) return y;
  const Tensor s = times(entry(part + "_hidden_weight", theta), x) + entry(part + "_hidden_bias", theta);
  const Tensor a = options.activation() == Activation::kTanh ? s.tanh() : s.relu();
  return y + times(entry(part + "_out_weight", theta), a);
}

Tensor LcpNetworkImpl::matrix(const Tensor& theta) const {
  const Tensor learned = entry("M", theta);
  const Tensor L = at::tril(learned), U = at::triu(learned, 1);
  const Tensor identity = at::eye(options.unknowns(), theta.options());
  return at::matmul(L, L.mT()) + options.definiteness() * identity + U - U.mT();
}

LcpNetworkImpl::Parts LcpNetworkImpl::parts(const Tensor& x_given, const Tensor& theta) const {
  const Tensor x = x_given / input_unit;
  const std::int64_t d = options.outputs(), n = options.unknowns();
  return {value("f", options.f(), x, theta), value("G", options.G(), x, theta).unflatten(-1, {d, n}),
          value("q", options.q(), x, theta), matrix(theta)};
}

LcpNetworkImpl::Step LcpNetworkImpl::step(const Tensor& x_given, const Tensor& theta,
                                          const SolveOptions& solve_options) const {
  const Parts at_x = parts(x_given.to(theta), theta);
  const SolveResult lcp = solve(at_x.M, at_x.q, solve_options);
  const Tensor terms = at_x.G * lcp.z.unsqueeze(-2);
  Tensor sum = terms.sum(-1), size = terms.abs().sum(-1);
  if (at_x.f.defined()) {
    sum = sum + at_x.f;
    size = size + at_x.f.abs();
  }
  const double round_off = kRoundOffInEpsilon * std::numeric_limits<double>::epsilon();
  const Tensor y = at::where(sum.detach().abs() <= round_off * size.detach(), sum - sum.detach(), sum);
  return {y * output_unit, lcp.z, lcp.status};
}

Tensor LcpNetworkImpl::theta() const {
  std::vector<Tensor> all;
  all.reserve(entries_.size());
  for (const auto& parameter : parameters()) all.push_back(parameter.flatten());
  return at::cat(all);
}

void LcpNetworkImpl::set_theta(const Tensor& theta) {
  TORCH_CHECK(theta.sizes() == at::IntArrayRef({size_}), "theta must be [", size_, "]; got ", theta.sizes());
  const torch::NoGradGuard no_grad;
  for (const Entry& e : entries_) named_parameters()[e.name].copy_(entry(e.name, theta));
}

Tensor LcpNetworkImpl::random(std::int64_t count, at::Generator generator) const {
  Tensor theta = torch::randn({count, size_}, generator, torch::kDouble);
  for (const Entry& e : entries_) theta.slice(1, e.first, e.first + c10::multiply_integers(e.shape)).mul_(e.deviation);
  return theta;
}

void LcpNetworkImpl::pretty_print(std::ostream& stream) const {
  stream << "lcp::nn::LcpNetwork(inputs=" << options.inputs() << ", outputs=" << options.outputs()
         << ", unknowns=" << options.unknowns() << ", f=" << name_of(options.f()) << ", G=" << name_of(options.G())
         << ", q=" << name_of(options.q()) << ", hidden=" << options.hidden() << ")";
}

}  // namespace lcp::nn
