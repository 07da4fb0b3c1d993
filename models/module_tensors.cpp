#include "models/module_tensors.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace lcp::nn {
namespace {

void assign_all(const char* kind, const std::vector<at::Tensor>& to, at::TensorList from) {
  TORCH_CHECK(to.size() == from.size(), "a module with ", to.size(), " ", kind, " got ", from.size());
  for (std::size_t k = 0; k < to.size(); ++k) {
    TORCH_CHECK(to[k].sizes() == from[k].sizes(), "one of the ", kind, " must be ", to[k].sizes(), "; got ",
                from[k].sizes());
    to[k].set_data(from[k].detach().cpu().clone());
  }
}

}  // namespace

void assign_tensors(torch::nn::Module& module, at::TensorList parameters, at::TensorList buffers) {
  assign_all("parameters", module.parameters(), parameters);
  assign_all("buffers", module.buffers(), buffers);
}

std::vector<at::Tensor> parameters_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : module.parameters()) all.push_back(parameter.detach());
  return all;
}

}  // namespace lcp::nn
