#include "lcp/nn/traditional_model.h"

#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <utility>
#include <vector>

#include "models/torchscript.h"

namespace lcp::nn {
namespace {

using torch::Tensor;

Tensor numbers(const std::vector<double>& x) { return torch::tensor(x, torch::kDouble); }

// A of the entries (0, 1), (0, 2), (1, 2) of the upper triangle: [..., 3, 3].
Tensor antisymmetric(const Tensor& upper) {
  const Tensor a = upper.select(-1, 0), b = upper.select(-1, 1), c = upper.select(-1, 2), zero = torch::zeros_like(a);
  return torch::stack({zero, a, b, -a, zero, c, -b, -c, zero}, -1).unflatten(-1, {3, 3});
}

void set(Tensor parameter, const Tensor& value, double noise) {
  const torch::NoGradGuard no_grad;
  parameter.copy_(value);
  if (noise > 0) parameter.add_(torch::randn_like(parameter), noise);
}

// phi, beta and f of a StateMap that is affine to begin with.
void set(StateMap& map, const Tensor& weight, const Tensor& bias, double noise) {
  set(map->affine->weight, weight, noise);
  set(map->affine->bias, bias, noise);
}

}  // namespace

TraditionalModelImpl::TraditionalModelImpl(const TraditionalModelOptions& options_) : options(options_) {
  TORCH_CHECK(options.mass() > 0, "mass must be > 0; got ", options.mass());
  TORCH_CHECK(options.dt() > 0, "dt must be > 0; got ", options.dt());
  TORCH_CHECK(options.gravity() > 0, "gravity must be > 0; got ", options.gravity());
  TORCH_CHECK(std::isnan(options.mu()) || options.mu() >= 0, "mu must be >= 0, or NaN; got ", options.mu());
  TORCH_CHECK(options.force_unit() > 0, "force_unit must be > 0; got ", options.force_unit());
  TraditionalModelImpl::reset();
}

void TraditionalModelImpl::reset() {
  dynamics = register_buffer("dynamics", torch::tensor({1., 1., 0., 1., -1., 0.}));
  switch (options.parameters()) {
    case Parameters::kFriction:
      mu = register_parameter("mu", torch::ones({}));
      break;
    case Parameters::kRows:
      learned = register_parameter("learned", torch::randn({3, 6}));
      break;
    case Parameters::kStructured:
      matrix = register_module("matrix", StructuredMatrix(StructuredMatrixOptions(3).basis(options.basis())));
      learned = register_parameter("learned", torch::randn({3, 3}));
      break;
    case Parameters::kNetworks:
      const auto map = [&](const char* name) {
        return register_module(name, StateMap(StateMapOptions(3)
                                                  .hidden(options.hidden())
                                                  .velocity_scale(velocity_unit())
                                                  .force_scale(options.force_unit())));
      };
      phi = map("phi");
      beta = map("beta");
      f = map("f");
      break;
  }
  held = register_buffer("held", torch::zeros({3, 6}));
  values = register_buffer("values", torch::zeros({3, 6}));
}

void TraditionalModelImpl::pretty_print(std::ostream& stream) const {
  constexpr const char* kNames[] = {"friction", "rows", "structured", "networks"};
  stream << "lcp::nn::TraditionalModel(mass=" << options.mass() << ", dt=" << options.dt()
         << ", gravity=" << options.gravity() << ", parameters=" << kNames[static_cast<int>(options.parameters())]
         << ")";
}

Tensor TraditionalModelImpl::true_rows(double limit) {
  return numbers({1, -1, 1, 1, 1, 0, -1, 1, 1, -1, -1, 0, -1, -1, 0, 0, 0, limit}).view({3, 6});
}

void TraditionalModelImpl::start(double coefficient, double noise) {
  const Tensor rows = true_rows(coefficient * options.mass() * options.gravity() / options.force_unit());
  const Tensor direction = numbers({1, -1, 0}), cone = numbers({0, 1, 1});
  switch (options.parameters()) {
    case Parameters::kFriction:
      return set(mu, torch::tensor(coefficient, torch::kDouble), 0);
    case Parameters::kRows:
      return set(learned, rows, noise);
    case Parameters::kStructured:
      set(matrix->phi, direction.unsqueeze(-1), noise);
      set(matrix->beta, cone, noise);
      return set(learned, rows.slice(1, 3), noise);
    case Parameters::kNetworks:
      const Tensor none = torch::zeros({3, 2});
      set(phi, none, direction, noise);
      set(beta, none, cone, noise);
      return set(f, rows.slice(1, 3, 5), rows.select(1, 5), noise);
  }
}

void TraditionalModelImpl::hold(const Tensor& mask, const Tensor& given) {
  TORCH_CHECK(mask.sizes() == held.sizes() && mask.scalar_type() == torch::kBool, "mask must be [3, 6], bool; got ",
              mask.sizes(), ", ", mask.scalar_type());
  TORCH_CHECK(given.sizes() == held.sizes(), "values must be [3, 6]; got ", given.sizes());
  const torch::NoGradGuard no_grad;
  held.copy_(mask);
  values.copy_(given);
}

Tensor TraditionalModelImpl::rows() {
  switch (options.parameters()) {
    case Parameters::kFriction: {
      Tensor truth = true_rows(0).to(mu.scalar_type());
      const Tensor limit = mu * (options.mass() * options.gravity() / options.force_unit());
      return torch::cat({truth.flatten().slice(0, 0, -1), limit.unsqueeze(0)}).view({3, 6});
    }
    case Parameters::kRows:
      return torch::where(held != 0, values, learned);
    case Parameters::kStructured:
      return torch::cat({matrix->forward(), torch::where(held.slice(1, 3) != 0, values.slice(1, 3), learned)}, 1);
    case Parameters::kNetworks:
      break;
  }
  TORCH_CHECK(false, "networks have no rows: their G and f depend on v and u by more than W");
}

Tensor TraditionalModelImpl::nonlinearity() const {
  Tensor sum = torch::zeros({}, dynamics.options());
  if (options.parameters() != Parameters::kNetworks) return sum;
  for (const StateMap& map : {phi, beta}) sum = sum + map->affine->weight.square().sum();
  if (options.hidden() == 0) return sum;
  for (const StateMap& map : {phi, beta, f}) sum = sum + map->hidden_out->weight.square().sum();
  return sum;
}

Tensor TraditionalModelImpl::G_of(const Tensor& v, const Tensor& u) {
  if (options.parameters() != Parameters::kNetworks) return rows().slice(1, 0, 3);
  const Tensor direction = phi(v, u);
  return direction.unsqueeze(-1) * direction.unsqueeze(-2) + antisymmetric(beta(v, u));
}

Tensor TraditionalModelImpl::missed(const Tensor& G) const {
  const Tensor miss = (G - values.slice(1, 0, 3)).abs().reshape({-1, 3, 3}).mean(0);
  return (held.slice(1, 0, 3) * miss).sum();
}

Tensor TraditionalModelImpl::f_of(const Tensor& v, const Tensor& u) {
  if (options.parameters() == Parameters::kNetworks) return f(v, u);
  const auto state = torch::broadcast_tensors({v / velocity_unit(), u / options.force_unit()});
  const Tensor s = torch::stack({state[0], state[1], torch::ones_like(state[0])}, -1);
  return (rows().slice(1, 3) * s.unsqueeze(-2)).sum(-1);
}

TraditionalModelImpl::Step TraditionalModelImpl::step(const Tensor& v_given, const Tensor& u_given,
                                                      const SolveOptions& solve_options) {
  const Tensor v = v_given.to(dynamics.dtype()), u = u_given.to(dynamics.dtype());
  return step(v, u, G_of(v, u), f_of(v, u), solve_options);
}

TraditionalModelImpl::Step TraditionalModelImpl::step(const Tensor& v_given, const Tensor& u_given, const Tensor& G,
                                                      const Tensor& f_given, const SolveOptions& solve_options) const {
  const auto given = torch::broadcast_tensors({v_given.to(dynamics.dtype()), u_given.to(dynamics.dtype())});
  const Tensor &v = given[0], &u = given[1];
  const SolveResult result = solve(G, f_given, solve_options);
  const Tensor state = torch::stack({v / velocity_unit(), u / options.force_unit(), torch::ones_like(v)}, -1);
  Tensor v_next = (dynamics * torch::cat({state, result.z}, -1)).sum(-1) * velocity_unit();
  const Tensor gamma = result.z.select(-1, 2);
  // What is left of the cancelling sum is round-off; its derivative is what is wanted.
  if (options.parameters() == Parameters::kFriction)
    v_next = torch::where(gamma == 0, v_next - v_next.detach(), v_next);
  return {v_next, result.z.slice(-1, 0, 2) * options.force_unit(), gamma * velocity_unit(),
          options.mass() * (v_next - v) / options.dt() - u, result.status};
}

namespace {

constexpr const char* kStep = R"(
def step(self, v: Tensor, u: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    v, u = torch.broadcast_tensors([v.to(self.dynamics), u.to(self.dynamics)])
    s = torch.stack([v / self.velocity_unit, u / self.force_unit, torch.ones_like(v)], -1)
    G, f = self.G_and_f(s)
    z, w, status = torch.ops.lcp.solve(G, f)
    v_next = torch.sum(self.dynamics * torch.cat([s, z], -1), -1) * self.velocity_unit
{rest}    return v_next, self.mass * (v_next - v) / self.dt - u, status

def forward(self, v: Tensor, u: Tensor) -> Tensor:
    return self.step(v, u)[0]
)";

constexpr const char* kRest =
    "    v_next = torch.where(torch.select(z, -1, 2) == 0, v_next - v_next.detach(), v_next)\n";

constexpr const char* kAffine = R"(
def G_and_f(self, s: Tensor) -> Tuple[Tensor, Tensor]:
    {rows}
    return {G}, torch.sum(W * torch.unsqueeze(s, -2), -1)
)";

constexpr const char* kNetwork = R"(
def G_and_f(self, s: Tensor) -> Tuple[Tensor, Tensor]:
    s = torch.slice(s, -1, 0, 2)
    phi = {phi}
    a, b, c = torch.unbind({beta}, -1)
    o = torch.zeros_like(a)
    A = torch.unflatten(torch.stack([o, a, b, torch.neg(a), o, c, torch.neg(b), torch.neg(c), o], -1), -1, [3, 3])
    return torch.unsqueeze(phi, -1) * torch.unsqueeze(phi, -2) + A, {f}
)";

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  return text.replace(text.find(mark), mark.size(), by);
}

// Registers what G and f are made of; returns the source of the method G_and_f.
std::string define_G_and_f(torch::jit::Module& script, const TraditionalModel& model) {
  const auto parameter = [&](const std::string& name, const Tensor& x) {
    script.register_parameter(name, x.detach().clone().requires_grad_(), false);
  };
  const auto buffer = [&](const std::string& name, const Tensor& x) { script.register_buffer(name, x.clone()); };
  const auto affine = [&](const std::string& rows, const std::string& G) {
    return replaced(replaced(kAffine, "{rows}", rows), "{G}", G);
  };
  const TraditionalModelOptions& options = model->options;
  switch (options.parameters()) {
    case Parameters::kFriction:
      parameter("mu", model->mu);
      buffer("rows", TraditionalModelImpl::true_rows(0).to(model->mu.scalar_type()));
      script.register_attribute("weight", c10::FloatType::get(),
                                options.mass() * options.gravity() / options.force_unit());
      return affine(
          "W = torch.cat([torch.slice(torch.flatten(torch.slice(self.rows, 1, 3)), 0, 0, 8), "
          "torch.unsqueeze(self.mu * self.weight, 0)]).view([3, 3])",
          "torch.slice(self.rows, 1, 0, 3)");
    case Parameters::kRows:
      parameter("learned", model->learned);
      buffer("held", model->held != 0);
      buffer("values", model->values);
      return affine("W = torch.slice(torch.where(self.held, self.values, self.learned), 1, 3)",
                    "torch.slice(torch.where(self.held, self.values, self.learned), 1, 0, 3)");
    case Parameters::kStructured: {
      parameter("learned", model->learned);
      buffer("held", model->held.slice(1, 3) != 0);
      buffer("values", model->values.slice(1, 3));
      parameter("phi", model->matrix->phi);
      parameter("beta", model->matrix->beta);
      const auto bases = model->matrix->named_buffers();
      buffer("antisymmetric", bases["antisymmetric_basis"]);
      std::string G =
          "torch.matmul(self.phi, torch.t(self.phi)) + "
          "torch.sum(torch.reshape(self.beta, [-1, 1, 1]) * self.antisymmetric, 0)";
      if (model->matrix->alpha.defined()) {
        parameter("alpha", model->matrix->alpha);
        buffer("symmetric", bases["symmetric_basis"]);
        G += " + torch.sum(torch.reshape(torch.square(self.alpha), [-1, 1, 1]) * self.symmetric, 0)";
      }
      return affine("W = torch.where(self.held, self.values, self.learned)", G);
    }
    case Parameters::kNetworks: {
      std::string source = kNetwork;
      for (const auto& [name, map] :
           {std::pair<std::string, StateMap>{"phi", model->phi}, {"beta", model->beta}, {"f", model->f}}) {
        source = replaced(source, "{" + name + "}", add_state_map(script, name, map));
      }
      return source;
    }
  }
  TORCH_CHECK(false, "no such parameters");
}

}  // namespace

std::string torchscript_bytes(const TraditionalModel& model) {
  const TraditionalModelOptions& options = model->options;
  std::vector<std::pair<std::string, double>> numbers = {{"dt", options.dt()},
                                                         {"mass", options.mass()},
                                                         {"gravity", options.gravity()},
                                                         {"velocity_unit", model->velocity_unit()},
                                                         {"force_unit", options.force_unit()}};
  const bool known = !std::isnan(options.mu()) && options.parameters() != Parameters::kFriction;
  if (known) numbers.emplace_back("mu", options.mu());
  torch::jit::Module script = make_module("TraditionalModel", numbers);
  script.register_buffer("dynamics", model->dynamics.clone());
  define(script, define_G_and_f(script, model));
  define(script, replaced(kStep, "{rest}", options.parameters() == Parameters::kFriction ? kRest : ""));
  return bytes_of(script);
}

void save_torchscript(const TraditionalModel& model, const std::string& path) {
  write_bytes(torchscript_bytes(model), path);
}

}  // namespace lcp::nn
