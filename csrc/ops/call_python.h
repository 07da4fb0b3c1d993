// Functions that callers in Python give to methods in C++.
//
// Such a function arrives as a number. The package torchlcp implements lcp::_call_python, which finds the function by
// its number and calls it, so that this library need not know Python. csrc/identification declares the operator.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <vector>

namespace lcp::ops {

using PythonFunction = std::int64_t;

/// function(tensors, step); of a function without a step it is 0.
inline std::vector<at::Tensor> call_python(PythonFunction function, const std::vector<at::Tensor>& tensors,
                                           std::int64_t step = 0) {
  static const auto operation = c10::Dispatcher::singleton()
                                    .findSchemaOrThrow("lcp::_call_python", "")
                                    .typed<std::vector<at::Tensor>(std::int64_t, at::TensorList, std::int64_t)>();
  return operation.call(function, tensors, step);
}

}  // namespace lcp::ops
