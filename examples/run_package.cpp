// Steps a learned model without Python and without TorchScript: run_package model_aoti.pt2
//
//   python -m torchlcp.export model.pt --package model_aoti.pt2
//
// makes the package. Nothing here calls lcp:: by name; linking TorchLCP::torchlcp is what brings the operator that the
// model needs.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/types.h>

#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: run_package model_aoti.pt2" << std::endl;
    return 2;
  }
  torch::inductor::AOTIModelPackageLoader model(argv[1]);
  const torch::Tensor v = torch::tensor({0.0, 0.0, 1.0}, torch::kDouble);  // m/s
  const torch::Tensor u = torch::tensor({1.0, 6.0, 0.0}, torch::kDouble);  // N
  const std::vector<torch::Tensor> step = model.run({v, u});               // v_next, force and status
  std::cout << "dt = " << model.get_metadata().at("dt") << " s\n";
  const char* what[] = {"sticks", "starts", "slides"};
  for (int k = 0; k < 3; ++k) {
    std::cout << what[k] << ": v = " << v[k].item<double>() << " m/s, u = " << u[k].item<double>() << " N  ->  "
              << step[0][k].item<double>() << " m/s, friction " << step[1][k].item<double>() << " N\n";
  }
  return 0;
}
