#include "lcp/nn/direct_model.h"

#include <torch/torch.h>

#include "lcp/solve.h"
#include "models/torchscript.h"

namespace lcp::nn {

DirectModelImpl::DirectModelImpl(const DirectModelOptions& options_) : options(options_) {
  TORCH_CHECK(options.mass() > 0, "mass must be > 0; got ", options.mass());
  TORCH_CHECK(options.dt() > 0, "dt must be > 0; got ", options.dt());
  TORCH_CHECK(options.mu() >= 0, "mu must be >= 0; got ", options.mu());
  TORCH_CHECK(options.gravity() >= 0, "gravity must be >= 0; got ", options.gravity());
  DirectModelImpl::reset();
}

void DirectModelImpl::reset() {
  const auto map = [this](std::int64_t outputs) {
    return StateMap(StateMapOptions(outputs)
                        .hidden(options.hidden())
                        .velocity_scale(options.velocity_scale())
                        .force_scale(options.force_scale()));
  };
  f = register_module("f", map(2));
  G = register_module("G", map(4));
}

void DirectModelImpl::pretty_print(std::ostream& stream) const {
  stream << "lcp::nn::DirectModel(mass=" << options.mass() << ", dt=" << options.dt() << ", mu=" << options.mu()
         << ", gravity=" << options.gravity() << ", hidden=" << options.hidden() << ")";
}

torch::Tensor DirectModelImpl::f_of(const torch::Tensor& v, const torch::Tensor& u) {
  return f(v, u) * options.velocity_scale();
}

torch::Tensor DirectModelImpl::G_of(const torch::Tensor& v, const torch::Tensor& u) {
  return G(v, u).unflatten(-1, {2, 2}) * (options.velocity_scale() / options.force_scale());
}

torch::Tensor DirectModelImpl::forward(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& lambda) {
  return f_of(v, u) + (G_of(v, u) * lambda.unsqueeze(-2)).sum(-1);
}

torch::Tensor DirectModelImpl::nonlinearity() const {
  if (options.hidden() == 0) return torch::zeros({}, f->affine->weight.options());
  return f->hidden_out->weight.square().sum() + G->hidden_out->weight.square().sum();
}

DirectModelImpl::Step DirectModelImpl::step(const torch::Tensor& v_given, const torch::Tensor& u_given) {
  const auto dtype = f->affine->weight.scalar_type();
  const torch::Tensor v = v_given.to(dtype);
  const torch::Tensor u = u_given.to(dtype);
  const torch::Tensor matrix = G_of(v, u);
  const double limit = options.mu() * options.mass() * options.gravity();
  const SolveResult result = solve(-matrix.flip(-1), f_of(v, u) + limit * matrix.sum(-1));
  const torch::Tensor v_next = result.w.select(-1, 0) - result.w.select(-1, 1);
  return {v_next, options.mass() * (v_next - v) / options.dt() - u, result.status};
}

namespace {

// DirectModelImpl in TorchScript; `{map}` stands for the expression of a StateMap.
constexpr const char* kSource = R"(
def f_and_G(self, v: Tensor, u: Tensor) -> Tuple[Tensor, Tensor]:
    v, u = torch.broadcast_tensors([v.to(self.f_weight), u.to(self.f_weight)])
    s = torch.stack([v / self.velocity_scale, u / self.force_scale], -1)
    f = {f}
    G = {G}
    return f * self.velocity_scale, torch.unflatten(G, -1, [2, 2]) * (self.velocity_scale / self.force_scale)

def step(self, v: Tensor, u: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    f, G = self.f_and_G(v, u)
    q = f + self.mu * self.mass * self.gravity * torch.sum(G, -1)
    z, w, status = torch.ops.lcp.solve(torch.neg(torch.flip(G, [-1])), q)
    v_next = torch.select(w, -1, 0) - torch.select(w, -1, 1)
    return v_next, self.mass * (v_next - v) / self.dt - u, status

def forward(self, v: Tensor, u: Tensor) -> Tensor:
    return self.step(v, u)[0]
)";

}  // namespace

void save_torchscript(const DirectModel& model, const std::string& path) {
  const DirectModelOptions& options = model->options;
  torch::jit::Module script("DirectModel");
  script.register_attribute("format_version", c10::IntType::get(), std::int64_t{1});
  for (const auto& [name, value] : {std::pair<const char*, double>{"dt", options.dt()},
                                    {"mass", options.mass()},
                                    {"gravity", options.gravity()},
                                    {"mu", options.mu()},
                                    {"velocity_scale", options.velocity_scale()},
                                    {"force_scale", options.force_scale()}}) {
    script.register_attribute(name, c10::FloatType::get(), value);
  }
  std::string source = kSource;
  for (const auto& [name, map] : {std::pair<std::string, StateMap>{"f", model->f}, {"G", model->G}}) {
    const auto add = [&](const std::string& parameter, const torch::Tensor& value) {
      script.register_parameter(name + parameter, value.detach().clone().requires_grad_(), false);
      return "self." + name + parameter;
    };
    std::string expression =
        "torch.linear(s, " + add("_weight", map->affine->weight) + ", " + add("_bias", map->affine->bias) + ")";
    if (options.hidden() > 0) {
      expression += " + torch.linear(torch.tanh(torch.linear(s, " + add("_hidden_weight", map->hidden_in->weight) +
                    ", " + add("_hidden_bias", map->hidden_in->bias) + ")), " +
                    add("_out_weight", map->hidden_out->weight) + ", None)";
    }
    const std::string mark = "{" + name + "}";
    source.replace(source.find(mark), mark.size(), expression);
  }
  define(script, source);
  save_module(script, path);
}

}  // namespace lcp::nn
