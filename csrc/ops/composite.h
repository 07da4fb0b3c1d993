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

/// An autograd kernel for what has no derivative under torch.compile and torch.vmap: forward mode throws, and so does a
/// backward pass through its results.
void refuse_derivative(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack);

/// The autograd kernel of define_traced_as_one.
void differentiate_parts(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack);

/// The same for a function that reads numbers of its tensors, which neither tracing nor torch.vmap has: torch.export
/// keeps the operator as one, and a rule for torch.vmap is registered elsewhere. Its parts record its derivatives,
/// but where these numbers cannot be read, derivatives are refused.
///   meta: a TORCH_FN of the same arguments whose results have shapes, but no data.
template <class Function, class Meta>
void define_traced_as_one(torch::Library& library, const std::string& schema, Function function, Meta meta) {
  library.def(schema.c_str(), {at::Tag::pt2_compliant_tag});
  const std::string name = schema.substr(0, schema.find('('));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Meta, meta));
  library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Autograd,
                                             torch::CppFunction::makeFromBoxedFunction<&differentiate_parts>()));
}

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
