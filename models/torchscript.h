// TorchScript written from C++.
#pragma once

#include <torch/script.h>

#include <string>
#include <utility>
#include <vector>

#include "lcp/nn/state_map.h"

namespace lcp::nn {

/// A module of a class, with format_version and these numbers as attributes.
torch::jit::Module make_module(const std::string& name, const std::vector<std::pair<std::string, double>>& numbers);

/// Adds methods to a module, from TorchScript source in which torch.f is a builtin function and torch.ops.ns.f an
/// operator, as in Python. Throws torch::jit::ErrorReport with the place of a mistake in the source.
void define(torch::jit::Module& module, const std::string& source);

/// Registers a StateMap's parameters under names that begin with `name`. Returns the expression of its output, of a
/// tensor `s` whose last dimension is (v / velocity_scale, u / force_scale).
std::string add_state_map(torch::jit::Module& module, const std::string& name, const StateMap& map);

/// The bytes of a file from which torch::jit::load makes the module again.
std::string bytes_of(const torch::jit::Module& module);

/// Writes through a new file in the same folder, so that `path` is replaced completely or not at all. Throws a
/// std::system_error where that fails.
void write_bytes(const std::string& bytes, const std::string& path);

}  // namespace lcp::nn
