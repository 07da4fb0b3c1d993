// Models written as TorchScript files.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lcp/export.h"

namespace torch::jit {
struct Module;
}

namespace lcp::nn {

/// (v_next, force, status) for the inputs.
using StepFunction =
    std::function<std::tuple<at::Tensor, at::Tensor, at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// The inputs of a model by name, each with a tensor of as many dimensions as a batch of that input has.
using ModelInputs = std::vector<std::pair<std::string, at::Tensor>>;

/// The inputs (v, u) of a block on a line.
LCP_API ModelInputs velocity_and_force();

/// Adds the attribute input_sizes, which python/torchlcp/export.py reads: for each input by its name the sizes of its
/// dimensions behind the batch, such as {"v": [2], "u": [2]}.
LCP_API void register_input_sizes(torch::jit::Module& script, const ModelInputs& inputs);

using NamedNumbers = std::vector<std::pair<std::string, double>>;

/// The bytes of a file from which torch::jit::load makes a module of the class `name`. The module has the model's
/// parameters and buffers, format_version, `numbers` and the input_sizes of register_input_sizes as attributes. Its
/// methods are step(inputs...) -> (v_next, force, status) and forward(inputs...) -> v_next.
///
/// The operators that `step` calls are recorded while it runs once, so that the mathematics of a model are written down
/// in C++ only. (A model that ran TorchScript source in C++ as well would have to interpret it in each step of
/// training.) The record holds for all inputs: `step` must therefore not read sizes of batches, must convert tensors
/// by to(tensor) instead of to(dtype), and must create tensors by at:: functions, since those of torch:: are recorded
/// as constants.
LCP_API std::string torchscript_of(const std::string& name, const torch::nn::Module& model, const NamedNumbers& numbers,
                                   const ModelInputs& inputs, const StepFunction& step);

/// Sets the model's parameters to those of a file that torchscript_of wrote for the same class, the same parameters and
/// the same `numbers`. For any other file, throws c10::Error that names the file, and leaves the model as it was.
LCP_API void read_parameters(const std::string& name, torch::nn::Module& model, const NamedNumbers& numbers,
                             const std::string& path);

/// Writes through a new file in the same folder, so that `path` is replaced completely or not at all. Throws a
/// std::system_error where writing fails.
LCP_API void write_bytes(const std::string& bytes, const std::string& path);

}  // namespace lcp::nn
