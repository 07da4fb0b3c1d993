#include "models/lcp_network_formulas.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lcp::nn {
namespace {

using at::Tensor;

// A sum counts as round-off up to this multiple of the epsilon of its terms: a learned z carries errors of some
// epsilon.
constexpr double kRoundOffInEpsilon = 64;

// The effect of new unknowns, relative to the effect of those of random networks.
constexpr double kNewEffect = 0.4;

Tensor times(const Tensor& A, const Tensor& x) { return (A * x.unsqueeze(-2)).sum(-1); }

// z and the status of LCP(M, q), solved for unknowns that are scaled so that M has the diagonal 1.
std::pair<Tensor, Tensor> solve_scaled(const Tensor& M, const Tensor& q, const SolveOptions& options = {}) {
  const Tensor scale = at::diagonal(M, 0, -2, -1).detach().rsqrt();
  const SolveResult scaled = solve(M * scale.unsqueeze(-1) * scale.unsqueeze(-2), q * scale, options);
  return {scaled.z * scale, scaled.status};
}

}  // namespace

const char* dependence_name(Dependence dependence) {
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

Dependence dependence_named(const std::string& name, const std::string& part) {
  for (const Dependence one : {Dependence::kAbsent, Dependence::kConstant, Dependence::kAffine, Dependence::kNetwork}) {
    if (name == dependence_name(one)) return one;
  }
  TORCH_CHECK(false, part, " must be absent, constant, affine or network; got ", name);
}

Activation activation_named(const std::string& name) {
  TORCH_CHECK(name == "tanh" || name == "relu", "activation must be tanh or relu; got ", name);
  return name == "tanh" ? Activation::kTanh : Activation::kRelu;
}

LcpNetworkFormulas::LcpNetworkFormulas(const LcpNetworkOptions& options) : options_(options) {
  const std::int64_t p = options_.inputs(), d = options_.outputs(), n = options_.unknowns();
  TORCH_CHECK(p > 0, "inputs must be > 0; got ", p);
  TORCH_CHECK(d > 0, "outputs must be > 0; got ", d);
  TORCH_CHECK(n > 0, "unknowns must be > 0; got ", n);
  TORCH_CHECK(options_.G() != Dependence::kAbsent, "G must not be absent");
  TORCH_CHECK(options_.q() == Dependence::kAffine || options_.q() == Dependence::kNetwork,
              "q must be affine or a network; got ", dependence_name(options_.q()));
  TORCH_CHECK(options_.hidden() > 0, "hidden must be > 0; got ", options_.hidden());
  TORCH_CHECK(options_.definiteness() > 0, "definiteness must be > 0; got ", options_.definiteness());
  add("M", {n, n}, 0.3, 0);
  add_part("f", options_.f(), {d}, 0.3, 0, -1);
  add_part("G", options_.G(), {d, n}, 0, 0.5, 1);
  add_part("q", options_.q(), {n}, 1, 0.5, 0);
}

void LcpNetworkFormulas::add(const std::string& name, std::vector<std::int64_t> shape, double deviation,
                             std::int64_t unknown) {
  const std::int64_t count = c10::multiply_integers(shape);
  entries_.push_back({name, std::move(shape), size_, deviation, unknown});
  size_ += count;
}

void LcpNetworkFormulas::add_part(const std::string& name, Dependence dependence,
                                  const std::vector<std::int64_t>& outputs, double weight, double bias,
                                  std::int64_t unknown) {
  const std::int64_t p = options_.inputs(), h = options_.hidden();
  const auto for_each = [&](std::int64_t last) {
    std::vector<std::int64_t> shape = outputs;
    shape.push_back(last);
    return shape;
  };
  if (dependence == Dependence::kAbsent) return;
  add(name + "_bias", outputs, bias, unknown);
  if (dependence == Dependence::kConstant) return;
  add(name + "_weight", for_each(p), weight, unknown);
  if (dependence == Dependence::kAffine) return;
  add(name + "_hidden_weight", {h, p}, 1, -1);
  add(name + "_hidden_bias", {h}, 1, -1);
  add(name + "_out_weight", for_each(h), 0.3 / std::sqrt(static_cast<double>(h)), unknown);
}

Tensor LcpNetworkFormulas::entry(const std::string& name, const Tensor& theta) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  TORCH_CHECK(found != entries_.end(), "the network has no parameter ", name);
  const std::int64_t count = c10::multiply_integers(found->shape);
  return theta.slice(-1, found->first, found->first + count).unflatten(-1, found->shape);
}

Tensor LcpNetworkFormulas::value(const std::string& part, Dependence dependence, const Tensor& x,
                                 const Tensor& theta) const {
  if (dependence == Dependence::kAbsent) return {};
  const bool matrix = part == "G";  // its outputs are [d, n]
  const auto of_outputs = [&](const char* name, std::int64_t last_dims) {
    const Tensor all = entry(part + name, theta);
    return matrix ? all.flatten(-2 - last_dims, -1 - last_dims) : all;
  };
  Tensor y = of_outputs("_bias", 0);
  if (dependence == Dependence::kConstant) return y;
  y = y + times(of_outputs("_weight", 1), x);
  if (dependence == Dependence::kAffine) return y;
  const Tensor s = times(entry(part + "_hidden_weight", theta), x) + entry(part + "_hidden_bias", theta);
  const Tensor a = options_.activation() == Activation::kTanh ? s.tanh() : s.relu();
  return y + times(of_outputs("_out_weight", 1), a);
}

Tensor LcpNetworkFormulas::matrix(const Tensor& theta) const {
  const Tensor learned = entry("M", theta);
  const Tensor L = at::tril(learned), U = at::triu(learned, 1);
  const Tensor identity = at::eye(options_.unknowns(), theta.options());
  return at::matmul(L, L.mT()) + options_.definiteness() * identity + U - U.mT();
}

LcpNetworkFormulas::Parts LcpNetworkFormulas::parts(const Tensor& x_given, const Tensor& theta,
                                                    const Tensor& input_unit) const {
  const Tensor x = x_given / input_unit;
  const std::int64_t d = options_.outputs(), n = options_.unknowns();
  return {value("f", options_.f(), x, theta), value("G", options_.G(), x, theta).unflatten(-1, {d, n}),
          value("q", options_.q(), x, theta), matrix(theta)};
}

Tensor LcpNetworkFormulas::assembled(const Parts& at_x, const Tensor& z, const Tensor& output_unit) const {
  const Tensor terms = at_x.G * z.unsqueeze(-2);
  Tensor sum = terms.sum(-1), size = terms.abs().sum(-1);
  if (at_x.f.defined()) {
    sum = sum + at_x.f;
    size = size + at_x.f.abs();
  }
  const bool single = sum.scalar_type() == at::kFloat;
  const double round_off =
      kRoundOffInEpsilon * (single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon());
  return at::where(sum.detach().abs() <= round_off * (1 + size.detach()), sum - sum.detach(), sum) * output_unit;
}

LcpNetworkFormulas::Step LcpNetworkFormulas::step(const Tensor& x_given, const Tensor& theta, const NetworkUnits& units,
                                                  const SolveOptions& solve_options) const {
  const Parts at_x = parts(x_given.to(theta), theta, units.input);
  const auto [z, status] = solve_scaled(at_x.M, at_x.q, solve_options);
  return {assembled(at_x, z, units.output), z, status, (at_x.G.norm(2, -2) * z).sum(-1)};
}

LcpNetworkFormulas::Linearization LcpNetworkFormulas::linearize(const Tensor& x_given, const Tensor& theta_given,
                                                                const NetworkUnits& units,
                                                                const SolveOptions& solve_options) const {
  TORCH_CHECK(solve_options.kappa == 0, "kappa must be 0; got ", solve_options.kappa);
  const Tensor theta = theta_given.detach().unsqueeze(1);  // [b, 1, size]
  const std::int64_t d = options_.outputs();
  const Parts at_x = [&] {
    const c10::NoGradGuard no_grad;
    return parts(x_given.to(theta), theta, units.input);
  }();

  // The values are (f, 0) + H z, where H are G and below it the norms of its columns. The derivative of lcp::solve
  // gives the adjoint of each row of H, -M_aa^-T H_k.
  const Tensor norms = at_x.G.norm(2, -2, true);
  const Tensor H = at::cat({at_x.G, norms}, -2);
  std::vector<Tensor> adjoints;
  Tensor z;
  {
    const c10::AutoGradMode grad(true);
    const Tensor q = at_x.q.detach().requires_grad_();
    z = solve_scaled(at_x.M, q, solve_options).first;
    for (std::int64_t k = 0; k <= d; ++k) {
      adjoints.push_back(torch::autograd::grad({z}, {q}, {H.select(-2, k).expand_as(z).contiguous()}, k < d)[0]);
    }
    z = z.detach();
  }
  const c10::NoGradGuard no_grad;
  const Tensor t = at::stack(adjoints, -2);  // [b, s, d + 1, n], the derivatives in q; the derivatives in M are t z'
  const Tensor identity = at::eye(d + 1, d, theta.options());       // the derivatives in f
  const Tensor x = (x_given.to(theta) / units.input).unsqueeze(1);  // [s, 1, p]
  const auto products = [](const Tensor& a, const Tensor& b) { return a.unsqueeze(-1) * b.unsqueeze(-2); };

  std::vector<Tensor> columns;
  const auto add = [&](const Tensor& derivative, std::int64_t dims) {
    columns.push_back(derivative.flatten(-dims).expand({t.size(0), t.size(1), d + 1, -1}));
  };
  // M = L L' + U - U': the derivatives in L are t (L'z)' + z (L't)', and the derivatives in U are t z' - z t'.
  const Tensor L = at::tril(entry("M", theta)).unsqueeze(-3), z_row = z.unsqueeze(-2);
  const auto times_L = [&](const Tensor& a) { return (a.unsqueeze(-1) * L).sum(-2); };
  const Tensor of_L = products(t, times_L(z_row)) + products(z_row, times_L(t));
  const Tensor of_U = products(t, z_row) - products(z_row, t);
  add(at::tril(of_L) + at::triu(of_U, 1), 2);
  // Each part is linear in its last layer. derivative: the derivatives in the part, [b, s, d + 1, outputs].
  const auto add_part = [&](const std::string& part, Dependence dependence, const Tensor& derivative) {
    if (dependence == Dependence::kAbsent) return;
    add(derivative, 1);
    if (dependence == Dependence::kConstant) return;
    add(products(derivative, x), 2);
    if (dependence == Dependence::kAffine) return;
    const Tensor s = times(entry(part + "_hidden_weight", theta), x.squeeze(1)) + entry(part + "_hidden_bias", theta);
    const bool tanh = options_.activation() == Activation::kTanh;
    const Tensor a = tanh ? s.tanh() : s.relu();
    const Tensor slope = tanh ? 1 - a.square() : (s > 0).to(s);
    const Tensor weight = entry(part + "_out_weight", theta);
    const Tensor out = part == "G" ? weight.flatten(-3, -2) : weight;  // [b, 1, outputs, h]
    const Tensor hidden = (derivative.unsqueeze(-1) * out.unsqueeze(-3)).sum(-2) * slope.unsqueeze(-2);
    add(products(hidden, x), 2);
    add(hidden, 1);
    add(products(derivative, a.unsqueeze(-2)), 2);
  };
  add_part("f", options_.f(), identity);
  const Tensor direction = at::where(norms > 0, at_x.G / norms, 0);  // the derivative of the norms in G
  std::vector<std::int64_t> identities = direction.sizes().vec();
  identities.insert(identities.end() - 2, d);
  const Tensor of_H =
      at::cat({at::eye(d, theta.options()).unsqueeze(-1).expand(identities), direction.unsqueeze(-3)}, -3);
  add_part("G", options_.G(), (of_H * z.unsqueeze(-2).unsqueeze(-2)).flatten(-2));
  add_part("q", options_.q(), t);
  return {at::cat({assembled(at_x, z, units.output) / units.output, (norms.squeeze(-2) * z).sum(-1, true)}, -1),
          at::cat(columns, -1)};
}

Tensor LcpNetworkFormulas::random(std::int64_t count, at::Generator generator) const {
  Tensor theta = at::randn({count, size_}, generator, at::kDouble);
  for (const Entry& e : entries_) theta.slice(1, e.first, e.first + c10::multiply_integers(e.shape)).mul_(e.deviation);
  return theta;
}

Tensor LcpNetworkFormulas::grown(const LcpNetworkFormulas& smaller, const Tensor& theta,
                                 at::Generator generator) const {
  TORCH_CHECK(theta.sizes() == at::IntArrayRef({smaller.size_}), "theta must be [", smaller.size_, "]; got ",
              theta.sizes());
  Tensor all = random(1, std::move(generator))[0];
  at::diagonal(entry("M", all)).fill_(std::sqrt(std::max(0.0, 1 - options_.definiteness())));
  entry("G_bias", all).mul_(kNewEffect);
  for (const Entry& e : smaller.entries_) {
    Tensor to = entry(e.name, all);
    for (std::size_t k = 0; k < e.shape.size(); ++k) to = to.slice(static_cast<std::int64_t>(k), 0, e.shape[k]);
    to.copy_(smaller.entry(e.name, theta));
  }
  return all;
}

Tensor LcpNetworkFormulas::restricted(const Tensor& theta, const Tensor& unknowns) const {
  std::vector<Tensor> parts;
  for (const Entry& e : entries_) {
    const Tensor whole = entry(e.name, theta);
    if (e.name == "M") {
      // The remaining rows of L have a product L L' of their own: R'R for the triangle R of L' = Q R.
      const Tensor L = at::tril(whole).index_select(0, unknowns);
      const Tensor R = std::get<1>(at::linalg_qr(L.mT(), "r"));
      const Tensor U = at::triu(whole, 1);
      const Tensor A = (U - U.mT()).index_select(0, unknowns).index_select(1, unknowns);
      parts.push_back((R.mT() + at::triu(A, 1)).flatten());
    } else {
      parts.push_back((e.unknown < 0 ? whole : whole.index_select(e.unknown, unknowns)).flatten());
    }
  }
  return at::cat(parts);
}

}  // namespace lcp::nn
