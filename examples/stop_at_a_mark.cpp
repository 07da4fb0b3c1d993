// Finds how fast to push a mass off a table of 1 m so that it comes to rest at a mark: Newton's method on the
// derivative of a whole rollout, through flight, impact, sliding and sticking. Several marks, surfaces and masses at
// once.
#include <lcp/physics/point_mass.h>
#include <torch/torch.h>

#include <iostream>

int main() {
  namespace physics = lcp::physics;
  const auto numbers = [](std::vector<double> x) { return torch::tensor(x, torch::kDouble); };
  const torch::Tensor marks = numbers({1.0, 1.5, 2.0, 3.0});  // m
  physics::PointMass mass = physics::PointMass::of(/*mass=*/1, /*dt=*/0.01, /*mu=*/0.5, /*gravity=*/9.81);
  mass.mu = numbers({0.5, 0.5, 0.2, 0.8});
  mass.mass = numbers({1.0, 2.0, 0.5, 1.0});
  const torch::Tensor force = torch::zeros({300, 4, 2}, torch::kDouble);  // N, no force

  torch::Tensor speed = torch::full({4}, 5.0, torch::kDouble).requires_grad_();  // m/s
  torch::Tensor miss;
  for (int k = 0; k < 20; ++k) {
    const torch::Tensor zero = torch::zeros_like(speed);
    const physics::PointMassState start{torch::stack({zero, zero + 1}, -1), torch::stack({speed, zero}, -1)};
    const physics::PointMassSolution rollout = physics::simulate(start, force, mass);
    miss = rollout.step.next.position.select(-1, 0)[-1] - marks;
    const torch::Tensor slope = torch::autograd::grad({miss.sum()}, {speed})[0];

    const physics::RolloutCertificate certificate = physics::certify_rollout(start, force, mass, {}, rollout);
    std::cout << "missed by at most " << miss.abs().max().item<double>() << " m; unsolved steps "
              << certificate.unsolved.sum().item<std::int64_t>() << ", with a one-sided derivative "
              << certificate.kinked.sum().item<std::int64_t>() << "\n";
    if (miss.abs().max().item<double>() < 1e-10) break;
    speed = (speed - miss / slope).detach().requires_grad_();
  }
  for (int b = 0; b < 4; ++b) {
    std::cout << "mu = " << mass.mu[b].item<double>() << ": " << speed[b].item<double>() << " m/s stop at "
              << marks[b].item<double>() << " m\n";
  }
  return miss.abs().max().item<double>() < 1e-10 ? 0 : 1;
}
