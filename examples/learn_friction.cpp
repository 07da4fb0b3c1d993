// Learns a friction coefficient from velocities, by Adam through lcp::solve: learn_friction [model.pt]
// Given a model.pt that a training program wrote, it also steps that model.
#include <lcp/lcp.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <cmath>
#include <iostream>

// One step of a unit mass, dt = 0.1 s, as the LCP with unknowns (lambda+, lambda-, gamma).
torch::Tensor step(const torch::Tensor& v, const torch::Tensor& u, const torch::Tensor& mu) {
  const double dt = 0.1;
  const torch::Tensor M = torch::tensor({{dt, -dt, 1.}, {-dt, dt, 1.}, {-1., -1., 0.}}, torch::kDouble);
  const torch::Tensor v_free = v + dt * u;  // without friction
  const torch::Tensor q = torch::stack({v_free, -v_free, (9.81 * mu).expand_as(v_free)}, -1);
  const lcp::SolveResult result = lcp::solve(M, q);
  return v_free + dt * (result.z.select(-1, 0) - result.z.select(-1, 1));
}

int main(int argc, char** argv) {
  torch::manual_seed(0);
  const double truth = 0.3058;
  const torch::Tensor v = torch::randn(256, torch::kDouble);
  const torch::Tensor u = 4 * torch::randn(256, torch::kDouble);
  const torch::Tensor observed = step(v, u, torch::tensor(truth, torch::kDouble));

  torch::Tensor mu = torch::tensor(0.1, torch::kDouble).requires_grad_();
  torch::optim::Adam optimizer({mu}, torch::optim::AdamOptions(0.01));
  for (int k = 0; k < 300; ++k) {
    optimizer.zero_grad();
    (step(v, u, mu) - observed).square().mean().backward();
    optimizer.step();
  }
  std::cout << "learned mu = " << mu.item<double>() << ", truth " << truth << std::endl;
  if (argc > 1) {
    torch::jit::Module model = torch::jit::load(argv[1]);
    const torch::Tensor rest =
        model.forward({torch::zeros(1, torch::kDouble), torch::ones(1, torch::kDouble)}).toTensor();
    std::cout << "the model at rest under 1 N moves at " << rest.item<double>() << " m/s" << std::endl;
  }
  return std::abs(mu.item<double>() - truth) < 1e-3 ? 0 : 1;
}
