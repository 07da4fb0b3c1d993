// The parameters and buffers of a module of C++ as lists, by which Python gives it the tensors of its own module.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <vector>

namespace lcp::nn {

/// Copies tensors, in the order of named_parameters() and named_buffers(), to the module, which takes their dtypes.
/// Throws c10::Error where their number or a shape does not fit.
void assign_tensors(torch::nn::Module& module, at::TensorList parameters, at::TensorList buffers);

/// The parameters of the module, without a gradient.
std::vector<at::Tensor> parameters_of(const torch::nn::Module& module);

}  // namespace lcp::nn
