// Loads a learned model and steps it: load_model model.pt
//
// Nothing here calls lcp:: by name; linking TorchLCP::torchlcp is what brings the operator that the model needs.
#include <torch/script.h>

#include <iostream>
#include <string>

// The friction coefficient: a number, or a parameter where it was learned. Models that have learned friction in another
// form have none.
std::string friction_of(const torch::jit::Module& model) {
  if (!model.hasattr("mu")) return "none";
  const torch::IValue mu = model.attr("mu");
  return std::to_string(mu.isTensor() ? mu.toTensor().item<double>() : mu.toDouble());
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: load_model model.pt" << std::endl;
    return 2;
  }
  torch::jit::Module model = torch::jit::load(argv[1]);
  const auto number = [](double x) { return torch::tensor({x}, torch::kDouble); };
  const auto print = [&](const char* what, double v, double u) {
    const torch::Tensor v_next = model.forward({number(v), number(u)}).toTensor();
    std::cout << what << ": v = " << v << " m/s, u = " << u << " N  ->  " << v_next.item<double>() << " m/s\n";
  };
  std::cout << "mu = " << friction_of(model) << ", dt = " << model.attr("dt").toDouble() << " s\n";
  print("sticks", 0.0, 1.0);
  print("slides", 1.0, 0.0);
  return 0;
}
