#include "lcp/nn/lcp_network.h"

#include <ATen/ATen.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "lcp/nn/torchscript.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

// A sum counts as round-off up to this multiple of the epsilon of its terms: a learned z carries errors of some
// epsilon.
constexpr double kRoundOffInEpsilon = 64;

// The effect of new unknowns, relative to that of random networks.
constexpr double kNewEffect = 0.4;

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

// z and the status of LCP(M, q), solved for unknowns that are scaled so that M has the diagonal 1.
std::pair<Tensor, Tensor> solve_scaled(const Tensor& M, const Tensor& q, const SolveOptions& options = {}) {
  const Tensor scale = at::diagonal(M, 0, -2, -1).detach().rsqrt();
  const SolveResult scaled = solve(M * scale.unsqueeze(-1) * scale.unsqueeze(-2), q * scale, options);
  return {scaled.z * scale, scaled.status};
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
  add("M", {n, n}, 0.3, 0);
  add_part("f", options.f(), {d}, 0.3, 0, -1);
  add_part("G", options.G(), {d, n}, 0, 0.5, 1);
  add_part("q", options.q(), {n}, 1, 0.5, 0);
  input_unit = register_buffer("input_unit", torch::ones({p}, torch::kDouble));
  output_unit = register_buffer("output_unit", torch::ones({d}, torch::kDouble));
}

void LcpNetworkImpl::add(const std::string& name, std::vector<std::int64_t> shape, double deviation,
                         std::int64_t unknown) {
  const Tensor parameter = register_parameter(name, torch::zeros(shape, torch::kDouble));
  entries_.push_back({name, std::move(shape), size_, deviation, unknown});
  size_ += parameter.numel();
}

void LcpNetworkImpl::add_part(const std::string& name, Dependence dependence, const std::vector<std::int64_t>& outputs,
                              double weight, double bias, std::int64_t unknown) {
  const std::int64_t p = options.inputs(), h = options.hidden();
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

Tensor LcpNetworkImpl::entry(const std::string& name, const Tensor& theta) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
  TORCH_INTERNAL_ASSERT(found != entries_.end(), name);
  const std::int64_t count = c10::multiply_integers(found->shape);
  return theta.slice(-1, found->first, found->first + count).unflatten(-1, found->shape);
}

Tensor LcpNetworkImpl::value(const std::string& part, Dependence dependence, const Tensor& x,
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
  const Tensor a = options.activation() == Activation::kTanh ? s.tanh() : s.relu();
  return y + times(of_outputs("_out_weight", 1), a);
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

Tensor LcpNetworkImpl::assembled(const Parts& at_x, const Tensor& z) const {
  const Tensor terms = at_x.G * z.unsqueeze(-2);
  Tensor sum = terms.sum(-1), size = terms.abs().sum(-1);
  if (at_x.f.defined()) {
    sum = sum + at_x.f;
    size = size + at_x.f.abs();
  }
  const bool single = sum.scalar_type() == torch::kFloat;
  const double round_off =
      kRoundOffInEpsilon * (single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon());
  return at::where(sum.detach().abs() <= round_off * (1 + size.detach()), sum - sum.detach(), sum) * output_unit;
}

LcpNetworkImpl::Step LcpNetworkImpl::step(const Tensor& x_given, const Tensor& theta,
                                          const SolveOptions& solve_options) const {
  const Parts at_x = parts(x_given.to(theta), theta);
  const auto [z, status] = solve_scaled(at_x.M, at_x.q, solve_options);
  return {assembled(at_x, z), z, status, (at_x.G.norm(2, -2) * z).sum(-1)};
}

LcpNetworkImpl::Linearization LcpNetworkImpl::linearize(const Tensor& x_given, const Tensor& theta_given,
                                                        const SolveOptions& solve_options) const {
  TORCH_CHECK(solve_options.kappa == 0, "kappa must be 0; got ", solve_options.kappa);
  const Tensor theta = theta_given.detach().unsqueeze(1);  // [b, 1, size]
  const std::int64_t d = options.outputs();
  const Parts at_x = [&] {
    const torch::NoGradGuard no_grad;
    return parts(x_given.to(theta), theta);
  }();

  // The values are (f, 0) + H z, where H are G and below it the norms of its columns. The adjoint of each,
  // -M_aa^-T H_k, by the derivative of lcp::solve.
  const Tensor norms = at_x.G.norm(2, -2, true);
  const Tensor H = at::cat({at_x.G, norms}, -2);
  std::vector<Tensor> adjoints;
  Tensor z;
  {
    const torch::AutoGradMode grad(true);
    const Tensor q = at_x.q.detach().requires_grad_();
    z = solve_scaled(at_x.M, q, solve_options).first;
    for (std::int64_t k = 0; k <= d; ++k) {
      adjoints.push_back(torch::autograd::grad({z}, {q}, {H.select(-2, k).expand_as(z).contiguous()}, k < d)[0]);
    }
    z = z.detach();
  }
  const torch::NoGradGuard no_grad;
  const Tensor t = at::stack(adjoints, -2);  // [b, s, d + 1, n], the derivatives in q; those in M are t z'
  const Tensor identity = at::eye(d + 1, d, theta.options());      // the derivatives in f
  const Tensor x = (x_given.to(theta) / input_unit).unsqueeze(1);  // [s, 1, p]
  const auto products = [](const Tensor& a, const Tensor& b) { return a.unsqueeze(-1) * b.unsqueeze(-2); };

  std::vector<Tensor> columns;
  const auto add = [&](const Tensor& derivative, std::int64_t dims) {
    columns.push_back(derivative.flatten(-dims).expand({t.size(0), t.size(1), d + 1, -1}));
  };
  // M = L L' + U - U': the derivatives in L are t (L'z)' + z (L't)', those in U t z' - z t'.
  const Tensor L = at::tril(entry("M", theta)).unsqueeze(-3), z_row = z.unsqueeze(-2);
  const auto times_L = [&](const Tensor& a) { return (a.unsqueeze(-1) * L).sum(-2); };
  const Tensor of_L = products(t, times_L(z_row)) + products(z_row, times_L(t));
  const Tensor of_U = products(t, z_row) - products(z_row, t);
  add(at::tril(of_L) + at::triu(of_U, 1), 2);
  // Each part is linear in its last layer. derivative: those in the part, [b, s, d + 1, outputs].
  const auto add_part = [&](const std::string& part, Dependence dependence, const Tensor& derivative) {
    if (dependence == Dependence::kAbsent) return;
    add(derivative, 1);
    if (dependence == Dependence::kConstant) return;
    add(products(derivative, x), 2);
    if (dependence == Dependence::kAffine) return;
    const Tensor s = times(entry(part + "_hidden_weight", theta), x.squeeze(1)) + entry(part + "_hidden_bias", theta);
    const bool tanh = options.activation() == Activation::kTanh;
    const Tensor a = tanh ? s.tanh() : s.relu();
    const Tensor slope = tanh ? 1 - a.square() : (s > 0).to(s);
    const Tensor weight = entry(part + "_out_weight", theta);
    const Tensor out = part == "G" ? weight.flatten(-3, -2) : weight;  // [b, 1, outputs, h]
    const Tensor hidden = (derivative.unsqueeze(-1) * out.unsqueeze(-3)).sum(-2) * slope.unsqueeze(-2);
    add(products(hidden, x), 2);
    add(hidden, 1);
    add(products(derivative, a.unsqueeze(-2)), 2);
  };
  add_part("f", options.f(), identity);
  const Tensor direction = at::where(norms > 0, at_x.G / norms, 0);  // the derivative of the norms in G
  std::vector<std::int64_t> identities = direction.sizes().vec();
  identities.insert(identities.end() - 2, d);
  const Tensor of_H =
      at::cat({at::eye(d, theta.options()).unsqueeze(-1).expand(identities), direction.unsqueeze(-3)}, -3);
  add_part("G", options.G(), (of_H * z.unsqueeze(-2).unsqueeze(-2)).flatten(-2));
  add_part("q", options.q(), t);
  return {at::cat({assembled(at_x, z) / output_unit, (norms.squeeze(-2) * z).sum(-1, true)}, -1), at::cat(columns, -1)};
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

Tensor LcpNetworkImpl::grown(const LcpNetworkImpl& smaller, const Tensor& theta, at::Generator generator) const {
  TORCH_CHECK(theta.sizes() == at::IntArrayRef({smaller.size_}), "theta must be [", smaller.size_, "]; got ",
              theta.sizes());
  Tensor all = random(1, std::move(generator))[0];
  at::diagonal(entry("M", all)).fill_(std::sqrt(std::max(0.0, 1 - options.definiteness())));
  entry("G_bias", all).mul_(kNewEffect);
  for (const Entry& e : smaller.entries_) {
    Tensor to = entry(e.name, all);
    for (std::size_t k = 0; k < e.shape.size(); ++k) to = to.slice(static_cast<std::int64_t>(k), 0, e.shape[k]);
    to.copy_(smaller.entry(e.name, theta));
  }
  return all;
}

Tensor LcpNetworkImpl::restricted(const Tensor& theta, const Tensor& unknowns) const {
  std::vector<Tensor> parts;
  for (const Entry& e : entries_) {
    const Tensor whole = entry(e.name, theta);
    if (e.name == "M") {
      // The rows of L that are left have a product L L' of their own: R'R for the triangle R of L' = Q R.
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

void LcpNetworkImpl::pretty_print(std::ostream& stream) const {
  stream << "lcp::nn::LcpNetwork(inputs=" << options.inputs() << ", outputs=" << options.outputs()
         << ", unknowns=" << options.unknowns() << ", f=" << name_of(options.f()) << ", G=" << name_of(options.G())
         << ", q=" << name_of(options.q()) << ", hidden=" << options.hidden() << ")";
}

std::string torchscript_bytes(const LcpNetwork& network, const MotionLayout& layout) {
  const std::int64_t d = network->options.outputs();
  TORCH_CHECK(layout.positions + d + layout.inputs == network->options.inputs(), "the network has ",
              network->options.inputs(), " inputs; got ", layout.positions, " positions, ", d, " velocities and ",
              layout.inputs, " inputs");
  const auto example = [](std::int64_t count) { return count == 1 ? at::zeros({1}) : at::zeros({1, count}); };
  ModelInputs inputs = {{"v", example(d)}, {"u", example(layout.inputs)}};
  if (layout.positions > 0) inputs.emplace_back("x", example(layout.positions));
  const auto step = [&](const std::vector<Tensor>& given) {
    const Tensor theta = network->theta();
    std::vector<Tensor> columns;
    const auto add = [&](std::size_t group, std::int64_t count) {
      const Tensor values = given[group].to(theta);
      for (std::int64_t k = 0; k < count; ++k) columns.push_back(count == 1 ? values : values.select(-1, k));
    };
    if (layout.positions > 0) add(2, layout.positions);
    add(0, d);
    add(1, layout.inputs);
    const Tensor x = at::stack(at::broadcast_tensors(columns), -1);
    const LcpNetworkImpl::Step next = network->step(x, theta);
    const auto slice = [&](std::int64_t first) { return x.slice(-1, first, first + d); };
    Tensor force = layout.mass / layout.dt * (next.y - slice(layout.positions));
    if (layout.inputs == d) force = force - slice(layout.positions + d);
    const auto squeezed = [&](const Tensor& y) { return d == 1 ? y.select(-1, 0) : y; };
    return std::tuple(squeezed(next.y), squeezed(force), next.status);
  };
  return torchscript_of("LcpNetwork", *network, {{"dt", layout.dt}, {"mass", layout.mass}, {"gravity", layout.gravity}},
                        inputs, step);
}

}  // namespace lcp::nn
