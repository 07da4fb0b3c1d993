// Models written as TorchScript files.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lcp::nn {

/// (v_next, force, status) for the inputs.
using StepFunction =
    std::function<std::tuple<at::Tensor, at::Tensor, at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// The inputs of a model by name, each with a tensor of as many dimensions as a batch of that input has.
using ModelInputs = std::vector<std::pair<std::string, at::Tensor>>;

/// The inputs (v, u) of a block on a line.
ModelInputs velocity_and_force();

/// The bytes of a file from which torch::jit::load makes a module of the class `name`, with the model's parameters and
/// buffers, with format_version and `numbers` as attributes, and with the methods step(inputs...) -> (v_next, force,
/// status) and forward(inputs...) -> v_next.
///
/// The operators that `step` calls are recorded while it runs once, so that the mathematics of a model are written down
/// in C++ only. (A model that ran TorchScript source in C++ as well would have to interpret it in each step of
/// training.) The record holds for all inputs: `step` must therefore not read sizes of batches, must convert tensors
/// by to(tensor) instead of to(dtype), and must create tensors by at:: functions, since those of torch:: are recorded
/// as constants.
std::string torchscript_of(const std::string& name, const torch::nn::Module& model,
                           const std::vector<std::pair<std::string, double>>& numbers, const ModelInputs& inputs,
                           const StepFunction& step);

/// Writes through a new file in the same folder, so that `path` is replaced completely or not at all. Throws a
/// std::system_error where that fails.
void write_bytes(const std::string& bytes, const std::string& path);

}  // namespace lcp::nn
