// Steps a learned model without Python and without TorchScript: run_package model_aoti.pt2
//
//   python -m torchlcp.export model.pt --package model_aoti.pt2
//
// makes the package, of a block or of tosses. Nothing here calls lcp:: by name; linking TorchLCP::torchlcp is what
// brings the operator that the model needs.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/types.h>

#include <iostream>
#include <string>
#include <vector>

using Package = torch::inductor::AOTIModelPackageLoader;

void step_blocks(Package& model) {
  const torch::Tensor v = torch::tensor({0.0, 0.0, 1.0}, torch::kDouble);  // m/s
  const torch::Tensor u = torch::tensor({1.0, 6.0, 0.0}, torch::kDouble);  // N
  const std::vector<torch::Tensor> step = model.run({v, u});               // v_next, force and status
  std::cout << "dt = " << model.get_metadata().at("dt") << " s\n";
  const char* what[] = {"sticks", "starts", "slides"};
  for (int k = 0; k < 3; ++k) {
    std::cout << what[k] << ": v = " << v[k].item<double>() << " m/s, u = " << u[k].item<double>() << " N  ->  "
              << step[0][k].item<double>() << " m/s, friction " << step[1][k].item<double>() << " N\n";
  }
}

// A cube of .1 m that falls upright onto the ground, at 1 m/s, until the 20th step.
void step_cube(Package& model) {
  const auto row = [](const std::vector<double>& x) { return torch::tensor(x, torch::kDouble).unsqueeze(0); };
  // position (m), orientation, velocity (m/s) and angular velocity (rad/s), then status, each [1, ...]
  std::vector<torch::Tensor> state = {row({0, 0, 0.1}), row({1, 0, 0, 0}), row({0, 0, -1}), row({0, 0, 0})};
  for (int k = 0; k < 20; ++k) {
    state.resize(4);
    state = model.run(state);
  }
  std::cout << "after 20 steps at " << model.get_metadata().at("rate") << " /s: height "
            << state[0][0][2].item<double>() << " m, speed " << state[2].norm().item<double>() << " m/s, status "
            << state[4].item<int>() << '\n';
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: run_package model_aoti.pt2" << std::endl;
    return 2;
  }
  Package model(argv[1]);
  const bool is_of_tosses = model.get_metadata().count("rate") > 0;
  if (is_of_tosses) {
    step_cube(model);
  } else {
    step_blocks(model);
  }
  return 0;
}
