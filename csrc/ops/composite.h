// Operators that are made of others, which modules of tensor code register beside the table of this folder.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>
#include <string>

#include "lcp/solve.h"
#include "ops/registration.h"

namespace lcp::ops {

/// Registers an operator without a kernel of its own, also for torch.vmap.
///   function: a TORCH_FN of the operators that it is made of.
template <class Function>
void define_composite(torch::Library& library, const std::string& schema, Function function) {
  library.def(schema.c_str(), function, {at::Tag::pt2_compliant_tag});
  const std::string name = schema.substr(0, schema.find('('));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::FuncTorchBatchedDecomposition, function));
}

/// x without the wrappers of tensors that torch.func differentiates.
at::Tensor without_wrappers(at::Tensor x);

/// The arguments of a schema that stand for SolveOptions, and these options.
inline constexpr const char* kSolveArguments =
    R"(str method="auto", str ties="inactive", float kappa=0.0, float? tolerance=None, int? max_pivots=None)";

inline SolveOptions solve_options(const std::string& method, const std::string& ties, double kappa,
                                  std::optional<double> tolerance, std::optional<std::int64_t> max_pivots) {
  SolveOptions options;
  options.method = method;
  options.ties = ties;
  options.kappa = kappa;
  options.tolerance = tolerance;
  options.max_pivots = max_pivots;
  return options;
}

}  // namespace lcp::ops
